import { fieldValue } from "./fields.ts";
import type { RawFields } from "./message.ts";

/** The field that says how many intermediaries a request may still pass; it binds for two methods only (RFC 9110, 7.6.2). */
const MAX_FORWARDS = "max-forwards";
const COUNTER = /^[0-9]+$/;
/** Further than any chain goes; a counter beyond it need not be exact. */
const MAX_COUNTER = 2 ** 31 - 1;

/** Names that credentials have, and what proxies say about clients, which a client that traces need not know. */
const SENSITIVE =
  /^(?:proxy-|forwarded$|x-forwarded-|x-real-ip$)|auth|cookie|token|secret|key|pass|session|credential|jwt|signature|csrf|xsrf|assertion|client-ip|connecting-ip|client-cert/;

const isCounted = (method: string): boolean => method === "OPTIONS" || method === "TRACE";

/** The counter to forward; a value that is no number, or that of another method, is forwarded unchanged. */
export function countedDown(method: string, value: string): string {
  if (!isCounted(method) || !COUNTER.test(value)) return value;
  return String(Math.max(0, Math.min(Number(value) - 1, MAX_COUNTER)));
}

/** Counts down each Max-Forwards, in place, for the next recipient of a request. */
export function countDownForwards(method: string, fields: RawFields): void {
  if (!isCounted(method)) return;
  for (let at = 0; at < fields.length; at += 2) {
    if (fields[at]?.toLowerCase() === MAX_FORWARDS) fields[at + 1] = countedDown(method, fields[at + 1] ?? "");
  }
}

/** Whether a request is TRACE or OPTIONS and may not be forwarded any more: its recipient has to respond itself. */
export function isLastRecipient(method: string, fields: Readonly<RawFields>): boolean {
  if (!isCounted(method)) return false;
  const value = fieldValue(fields, MAX_FORWARDS) ?? "";
  return COUNTER.test(value) && Number(value) === 0;
}

/** A request as its final recipient shows it to a client that traces. */
export interface TracedRequest {
  readonly method: string;
  readonly target: string;
  readonly version: string;
  readonly fields: Readonly<RawFields>;
}

/**
 * The body, `message/http`, of the response to TRACE (RFC 9110, 9.3.8): the request as it was received, without the fields
 * that may carry a secret and those for which `isSecret` is true of the lower-case name.
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
