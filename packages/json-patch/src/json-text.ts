// Tested by json-patch.test.ts
/** A number with more to its text than a double keeps: `1.10`, `12345678901234567890`. */
export interface WrittenNumber {
  readonly rawJSON: string;
}

/** A JSON value; numbers that a double would change are kept as they were written, integers may be bigints. */
export type Json =
  | null
  | boolean
  | number
  | bigint
  | string
  | WrittenNumber
  | readonly Json[]
  | { readonly [name: string]: Json };

/** What ECMAScript has for numbers as text; TypeScript does not know it yet. */
const { rawJSON, isRawJSON } = JSON as unknown as {
  readonly rawJSON: (text: string) => WrittenNumber;
  readonly isRawJSON: (value: unknown) => boolean;
};
const parseWithSource = JSON.parse as (
  text: string,
  reviver: (name: string, value: Json, context: { readonly source?: string }) => Json,
) => Json;

export function isWrittenNumber(value: unknown): value is WrittenNumber {
  return typeof value === "object" && value !== null && isRawJSON(value);
}

/** Long integers, fractions, exponents and negative zero: whatever a double may spell in another way. */
const DELICATE_NUMBER = /[0-9]{16}|[0-9][.eE]|-0/;

/** Reads JSON text. Numbers whose spelling a double would change become {@link WrittenNumber}. Throws `SyntaxError`. */
export function readJson(text: string): Json {
  if (!DELICATE_NUMBER.test(text)) return JSON.parse(text) as Json;
  return parseWithSource(text, (_name, value, { source }) =>
    typeof value === "number" && source !== undefined && String(value) !== source ? rawJSON(source) : value,
  );
}

/** Writes a value with the indent, and the line at the end, that `like`, the text it was read from, has. */
export function writeJson(value: Json, like: string): string {
  const indent = /^[[{]\r?\n([ \t]{1,10})/.exec(like)?.[1] ?? "";
  const end = /\r?\n$/.exec(like)?.[0] ?? "";
  const exact = (_name: string, member: unknown): unknown =>
    typeof member === "bigint" ? rawJSON(String(member)) : member;
  return JSON.stringify(value, exact, indent) + end;
}
