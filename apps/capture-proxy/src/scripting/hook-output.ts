import type { RawFields } from "@headworks/http1";
import type { GuestValue } from "@headworks/sandbox";

/** What a hook changed and decided, without bodies. Absent members: unchanged. */
export interface HookOutput {
  readonly request?: { readonly method?: string; readonly url?: string; readonly fields?: RawFields };
  readonly change?: { readonly status?: number; readonly reason?: string; readonly fields?: RawFields };
  /** The message's body was changed. */
  readonly bodyChanged?: boolean;
  readonly requestBodyChanged?: boolean;
  readonly responseBodyChanged?: boolean;
  /** Do not go on: respond with `response`, or cut the exchange off, or drop the message. */
  readonly stop?: boolean;
  readonly close?: boolean;
  readonly response?: { readonly status: number; readonly reason?: string; readonly fields: RawFields };
  readonly delayMs?: number;
  /** JSON text of `context.data`. */
  readonly data?: string;
  readonly notes?: string;
  readonly tags?: readonly string[];
}

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const MAX_DATA_LENGTH = 1_048_576;
const MAX_DELAY_MS = 60_000;
const MAX_NOTES_LENGTH = 65_536;
const MAX_TAGS = 64;
const MAX_URL_LENGTH = 1_048_576;

/**
 * Checks the output of a hook, which the script may have forged: it shares an interpreter with the code that writes it.
 * Returns an error message for output that cannot be applied.
 */
export function checkedOutput(text: GuestValue): HookOutput | string {
  let value: unknown;
  try {
    value = JSON.parse(typeof text === "string" ? text : "");
  } catch {
    return "The script's result is not readable";
  }
  try {
    return outputOf(record(value));
  } catch (error) {
    return `The script's result is not valid: ${(error as Error).message}`;
  }
}

function outputOf(value: Readonly<Record<string, unknown>>): HookOutput {
  const { request, change, response, delayMs, data, notes, tags } = value;
  return {
    ...(request !== undefined && { request: requestOf(record(request)) }),
    ...(change !== undefined && { change: changeOf(record(change)) }),
    ...(response !== undefined && { response: { ...changeOf(record(response)), ...requiredOf(record(response)) } }),
    ...(value["bodyChanged"] === true && { bodyChanged: true }),
    ...(value["requestBodyChanged"] === true && { requestBodyChanged: true }),
    ...(value["responseBodyChanged"] === true && { responseBodyChanged: true }),
    ...(value["stop"] === true && { stop: true }),
    ...(value["close"] === true && { close: true }),
    ...(delayMs !== undefined && { delayMs: Math.min(numberOf(delayMs, "delay"), MAX_DELAY_MS) }),
    ...(data !== undefined && { data: shortText(data, "context.data", MAX_DATA_LENGTH) }),
    ...(notes !== undefined && { notes: shortText(notes, "notes", MAX_NOTES_LENGTH) }),
    ...(tags !== undefined && { tags: tagsOf(tags) }),
  };
}

function requestOf({ method, url, fields }: Readonly<Record<string, unknown>>): NonNullable<HookOutput["request"]> {
  return {
    ...(method !== undefined && { method: tokenOf(method) }),
    ...(url !== undefined && { url: shortText(url, "url", MAX_URL_LENGTH) }),
    ...(fields !== undefined && { fields: fieldsOf(fields) }),
  };
}

function tokenOf(value: unknown): string {
  if (typeof value !== "string" || !TOKEN.test(value)) {
    throw new TypeError(`${String(value)} is no method or field name`);
  }
  return value;
}

function changeOf({ status, reason, fields }: Readonly<Record<string, unknown>>): NonNullable<HookOutput["change"]> {
  return {
    ...(status !== undefined && { status: statusOf(status) }),
    ...(reason !== undefined && { reason: valueOf(reason) }),
    ...(fields !== undefined && { fields: fieldsOf(fields) }),
  };
}

function requiredOf({ status, fields }: Readonly<Record<string, unknown>>): { status: number; fields: RawFields } {
  return { status: statusOf(status), fields: fieldsOf(fields) };
}

function record(value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null) throw new TypeError("an object is expected");
  return value as Readonly<Record<string, unknown>>;
}

function statusOf(value: unknown): number {
  const status = numberOf(value, "status");
  if (!Number.isInteger(status) || status < 200 || status > 599) throw new RangeError(`status ${String(status)}`);
  return status;
}

function numberOf(value: unknown, name: string): number {
  if (typeof value !== "number" || !Number.isFinite(value) || value < 0) throw new TypeError(`${name} is no number`);
  return value;
}

function fieldsOf(value: unknown): RawFields {
  if (!Array.isArray(value) || value.length % 2 !== 0) throw new TypeError("header fields are pairs of texts");
  return value.map((text: unknown, at) => {
    if (at % 2 === 1) return valueOf(text);
    return tokenOf(text);
  });
}

function valueOf(value: unknown): string {
  if (typeof value !== "string" || /[\r\n\0]/.test(value)) throw new TypeError("a line break or NUL in a field");
  return value;
}

function shortText(value: unknown, name: string, maxLength: number): string {
  if (typeof value !== "string") throw new TypeError(`${name} is no text`);
  if (value.length > maxLength) throw new RangeError(`${name} is longer than ${String(maxLength)} characters`);
  return value;
}

function tagsOf(value: unknown): string[] {
  if (!Array.isArray(value) || value.length > MAX_TAGS) {
    throw new TypeError(`tags are at most ${String(MAX_TAGS)} texts`);
  }
  return value.map((tag: unknown) => shortText(tag, "a tag", 64));
}
