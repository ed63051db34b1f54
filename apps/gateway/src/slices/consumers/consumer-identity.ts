import { hash, timingSafeEqual } from "node:crypto";
import type { Consumer } from "@headworks/gateway-contract";
import type { ConsumerIdentity } from "#request/context.ts";
import type { Clock, IssueReport } from "#slice.ts";

/** The identity for a credential type; created once per generation. */
export function identityOf(consumer: Consumer, credential: ConsumerIdentity["credential"]): ConsumerIdentity {
  return Object.freeze({
    name: consumer.name,
    groups: Object.freeze([...(consumer.groups ?? [])]),
    priority: consumer.priority,
    credential,
  });
}

/** Credentials of one type with their consumers, in document order. */
export function* credentialsOf<T extends NonNullable<Consumer["credentials"]>[number]["type"]>(
  consumers: readonly Consumer[],
  type: T,
): Generator<{
  readonly consumer: Consumer;
  readonly credential: Extract<NonNullable<Consumer["credentials"]>[number], { type: T }>;
  readonly fieldPath: readonly (string | number)[];
}> {
  for (const [at, consumer] of consumers.entries()) {
    for (const [index, credential] of (consumer.credentials ?? []).entries()) {
      if (isOfType(credential, type)) {
        yield { consumer, credential, fieldPath: ["consumers", at, "credentials", index] };
      }
    }
  }
}

function isOfType<C extends { readonly type: string }, T extends C["type"]>(
  credential: C,
  type: T,
): credential is Extract<C, { type: T }> {
  return credential.type === type;
}

/** SHA-256 of a field value, one byte per character. */
export function digestOfWire(value: string): Buffer {
  return hash("sha256", Buffer.from(value, "latin1"), "buffer");
}

/** SHA-256 of a text, which clients send as UTF-8. */
export function digestOfText(text: string): Buffer {
  return hash("sha256", Buffer.from(text, "utf8"), "buffer");
}

/** The map key of a digest. */
export function selectorOf(digest: Uint8Array): string {
  return Buffer.from(digest.buffer, digest.byteOffset, digest.byteLength).toString("latin1");
}

/** Constant-time comparison. */
export function isSameDigest(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && timingSafeEqual(a, b);
}

interface Validity {
  readonly not_before?: string;
  readonly not_after?: string;
}

/** True while a credential is valid; undefined for one that always is. */
export type IsValid = (() => boolean) | undefined;

/** Wall clock, since the times are shared with other parties. `not_after` is exclusive. */
export function validityOf({ not_before: from, not_after: until }: Validity, clock: Clock): IsValid {
  if (from === undefined && until === undefined) return undefined;
  const fromMs = from === undefined ? Number.NEGATIVE_INFINITY : Date.parse(from);
  const untilMs = until === undefined ? Number.POSITIVE_INFINITY : Date.parse(until);
  return () => {
    const nowMs = clock.now();
    return nowMs >= fromMs && nowMs < untilMs;
  };
}

/** Both times are valid and in order; an expired credential is a warning. */
export function checkValidity(
  credential: Validity,
  whose: string,
  fieldPath: readonly (string | number)[],
  { report, nowMs }: { readonly report: IssueReport; readonly nowMs: number },
): void {
  const moments = ["not_before", "not_after"] as const;
  const [fromMs, untilMs] = moments.map((name) => {
    const text = credential[name];
    const ms = text === undefined ? undefined : momentMs(text);
    if (Number.isNaN(ms)) report.error("bad_value", [...fieldPath, name], `There is no ${text}`);
    return ms;
  });
  if (untilMs === undefined) return;
  if (fromMs !== undefined && fromMs >= untilMs) {
    report.error("bad_value", [...fieldPath, "not_after"], `${whose} ends before it begins to be good`);
  } else if (untilMs <= nowMs) {
    report.warning("unused", [...fieldPath, "not_after"], `${whose} is not good any more and can be taken out`);
  }
}

/** Milliseconds since 1970; NaN for an invalid date such as February 30, which the engine would accept as March 2. */
function momentMs(text: string): number {
  const day = text.slice(0, 10);
  const dayMs = Date.parse(day);
  return Number.isNaN(dayMs) || !new Date(dayMs).toISOString().startsWith(day) ? Number.NaN : Date.parse(text);
}
