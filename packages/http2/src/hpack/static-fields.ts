import { STATIC_TABLE } from "./static-table.ts";

/** Enters the table: the next section is likely to have it again. */
export const KEPT = 0;
/** Stays outside the table, where it would only push out others. */
export const NOT_KEPT = 1;
/** Stays outside the table here and at everybody who passes it on (RFC 7541, 7.1.3). */
export const NEVER_KEPT = 2;
/** A cookie, which is kept if it is long enough not to be guessed. */
export const COOKIE = 3;

/** What becomes of a field that no table has. */
export type Keeping = typeof KEPT | typeof NOT_KEPT | typeof NEVER_KEPT | typeof COOKIE;

/** What is known of a name before any section. */
export interface KnownName {
  /** Of the first entry of the static table that has it, or 0. */
  index: number;
  /** The indexes of whole entries; absent if the static table has none with a value. */
  values: Map<string, number> | undefined;
  keeping: Keeping;
}

/**
 * Values of these are others nearly each time. `date` is not among them: it is the same in all answers of a second,
 * which is worth an entry wherever sizes matter.
 */
const VARYING = [
  ":path",
  "age",
  "content-length",
  "content-range",
  "etag",
  "if-modified-since",
  "if-none-match",
  "last-modified",
  "location",
  "set-cookie",
  "traceparent",
  "x-request-id",
];

/** Someone who adds fields of his own could guess these from how small a block becomes. */
const SECRET = ["authorization", "proxy-authorization"];

/** The names of the static table, and those of which it is known that they had better not be kept. */
export const KNOWN_NAMES: ReadonlyMap<string, Readonly<KnownName>> = knownNames();

function knownNames(): Map<string, KnownName> {
  const names = new Map<string, KnownName>();
  const add = (name: string, keeping: Keeping): KnownName => {
    const known: KnownName = { index: 0, values: undefined, keeping };
    names.set(name, known);
    return known;
  };
  for (const name of VARYING) add(name, NOT_KEPT);
  for (const name of SECRET) add(name, NEVER_KEPT);
  add("cookie", COOKIE);
  for (const [at, [name, value]] of STATIC_TABLE.entries()) {
    const known = names.get(name) ?? add(name, KEPT);
    if (known.index === 0) known.index = at + 1;
    if (value === "") continue;
    known.values ??= new Map();
    known.values.set(value, at + 1);
  }
  return names;
}
