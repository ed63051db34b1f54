import { fieldValue } from "./fields.ts";
import type { RawFields } from "./message.ts";

/** Remaining hops of a request; defined for TRACE and OPTIONS only (RFC 9110, 7.6.2). */
const MAX_FORWARDS = "max-forwards";
const COUNTER = /^[0-9]+$/;
/** Longer than any chain; larger counters need not be exact. */
const MAX_COUNTER = 2 ** 31 - 1;

/** Fields with credentials or client addresses, left out of TRACE responses. */
const SENSITIVE =
  /^(?:proxy-|forwarded$|x-forwarded-|x-real-ip$)|auth|cookie|token|secret|key|pass|session|credential|jwt|signature|csrf|xsrf|assertion|client-ip|connecting-ip|client-cert/;

const isCounted = (method: string): boolean => method === "OPTIONS" || method === "TRACE";

/** The decremented counter; values that are not numbers, and those of other methods, are unchanged. */
export function countedDown(method: string, value: string): string {
  if (!isCounted(method) || !COUNTER.test(value)) return value;
  return String(Math.max(0, Math.min(Number(value) - 1, MAX_COUNTER)));
}

/** Decrements each Max-Forwards in place. */
export function countDownForwards(method: string, fields: RawFields): void {
  if (!isCounted(method)) return;
  for (let at = 0; at < fields.length; at += 2) {
    if (fields[at]?.toLowerCase() === MAX_FORWARDS) fields[at + 1] = countedDown(method, fields[at + 1] ?? "");
  }
}

/** Whether a TRACE or OPTIONS request must be answered by this recipient. */
export function isLastRecipient(method: string, fields: Readonly<RawFields>): boolean {
  if (!isCounted(method)) return false;
  const value = fieldValue(fields, MAX_FORWARDS) ?? "";
  return COUNTER.test(value) && Number(value) === 0;
}

/** A request as TRACE returns it. */
export interface TracedRequest {
  readonly method: string;
  readonly target: string;
  readonly version: string;
  readonly fields: Readonly<RawFields>;
}

/**
 * The `message/http` body of a TRACE response (RFC 9110, 9.3.8): the request as received, without fields that may
 * carry a secret and those for whose lower-case name `isSecret` is true.
 */
export function tracedRequest(
  { method, target, version, fields }: TracedRequest,
  isSecret: (lowerName: string) => boolean = () => false,
): Buffer {
  let text = `${method} ${target} HTTP/${version}\r\n`;
  for (let at = 0; at < fields.length; at += 2) {
    const name = fields[at] ?? "";
    const lowerName = name.toLowerCase();
    if (!SENSITIVE.test(lowerName) && !isSecret(lowerName)) text += `${name}: ${fields[at + 1] ?? ""}\r\n`;
  }
  return Buffer.from(`${text}\r\n`, "latin1");
}
