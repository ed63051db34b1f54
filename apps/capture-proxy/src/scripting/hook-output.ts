import type { RawFields } from "@headworks/http1";

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
const MAX_OUTPUT_LENGTH = 4_194_304;
const MAX_DATA_LENGTH = 1_048_576;
const MAX_FIELDS_LENGTH = 1_048_576;
const MAX_FIELDS = 10_000;
const MAX_METHOD_LENGTH = 256;
const MAX_MESSAGE_LENGTH = 300;
const MAX_DELAY_MS = 60_000;
const MAX_NOTES_LENGTH = 65_536;
const MAX_TAGS = 64;
const MAX_URL_LENGTH = 1_048_576;

/**
 * Checks the output of a hook, which the script may have forged: it shares an interpreter with the code that writes it.
 * Returns an error message for output that cannot be applied.
 */
export function checkedOutput(text: unknown): HookOutput | string {
  if (typeof text !== "string") return "The script's result is not readable";
  if (text.length > MAX_OUTPUT_LENGTH) {
    return `The script's result is longer than ${String(MAX_OUTPUT_LENGTH)} characters`;
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return "The script's result is not readable";
  }
  try {
    return outputOf(record(value));
  } catch (error) {
    return `The script's result is not valid: ${(error as Error).message.slice(0, MAX_MESSAGE_LENGTH)}`;
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
    ...(data !== undefined && { data: dataOf(data) }),
    ...(notes !== undefined && { notes: shortText(notes, "notes", MAX_NOTES_LENGTH) }),
    ...(tags !== undefined && { tags: tagsOf(tags) }),
  };
}

function requestOf({ method, url, fields }: Readonly<Record<string, unknown>>): NonNullable<HookOutput["request"]> {
  return {
    ...(method !== undefined && { method: methodOf(method) }),
    ...(url !== undefined && { url: shortText(url, "the URL", MAX_URL_LENGTH) }),
    ...(fields !== undefined && { fields: fieldsOf(fields) }),
  };
}

function methodOf(value: unknown): string {
  const method = shortText(value, "the method", MAX_METHOD_LENGTH);
  if (!TOKEN.test(method)) throw new TypeError(`${method} is not a method`);
  return method;
}

/** All scripts of an exchange read it. */
function dataOf(value: unknown): string {
  const text = shortText(value, "context.data", MAX_DATA_LENGTH);
  if (Array.isArray(record(JSON.parse(text)))) throw new TypeError("context.data is no object");
  return text;
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
  if (value.length > 2 * MAX_FIELDS) throw new RangeError(`more than ${String(MAX_FIELDS)} header fields`);
  let length = 0;
  return value.map((text: unknown, at) => {
    const part = at % 2 === 0 ? nameOf(text) : valueOf(text);
    length += part.length;
    if (length > MAX_FIELDS_LENGTH) {
      throw new RangeError(`header fields of more than ${String(MAX_FIELDS_LENGTH)} characters`);
    }
    return part;
  });
}

function nameOf(value: unknown): string {
  if (typeof value !== "string" || !TOKEN.test(value)) throw new TypeError(`${shown(value)} is no field name`);
  return value;
}

/** Octets, one character each: a character beyond is not sent by any protocol. */
function valueOf(value: unknown): string {
  if (typeof value !== "string" || /[\r\n\0]|[^\0-\xff]/.test(value)) {
    throw new TypeError(`${shown(value)} is no field value`);
  }
  return value;
}

function shown(value: unknown): string {
  return JSON.stringify(value).slice(0, MAX_MESSAGE_LENGTH);
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
