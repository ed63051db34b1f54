import type { Query } from "@headworks/query-language";
import { decodeBeginningSync } from "@headworks/http-fields/content-coding";
import { fieldValues } from "@headworks/http1";
import type { SqlRow } from "../database.ts";
import { storedFields, urlOfRow } from "../read/stored-entry.ts";
import { mayBeText, SEARCHED_BYTES } from "../read/row-record.ts";
import type { StoredBodies } from "../stored-bodies.ts";

/** All parts in one row instead of a look-up each. */
export const PREFILTER_COLUMNS =
  "e.seq, e.scheme, e.host, e.port, e.path, e.request_type, e.response_type, h.request_fields, h.response_fields, " +
  "q.bytes AS request_bytes, q.file AS request_file, r.bytes AS response_bytes, r.file AS response_file";
export const PREFILTER_JOINS =
  "JOIN head h ON h.seq = e.seq LEFT JOIN body q ON q.key = e.seq * 2 LEFT JOIN body r ON r.key = e.seq * 2 + 1";

type Part = "url" | "fields" | "request" | "response";

/** A text that must occur in one of the parts for a match. */
interface Needle {
  readonly text: string;
  readonly parts: ReadonlySet<Part>;
  /** May start in a field name and end in its value. */
  readonly spansFields: boolean;
}

const EVERYWHERE: ReadonlySet<Part> = new Set(["url", "fields", "request", "response"]);
const PARTS_OF_FIELD: Readonly<Record<string, ReadonlySet<Part>>> = {
  body: new Set(["request", "response"]),
  "req.body": new Set(["request"]),
  "resp.body": new Set(["response"]),
};

/** Non-ASCII characters that lower-case to ASCII: Kelvin sign and dotted capital I. */
const FOLDING_TO_ASCII = ["\u{212a}", "\u{130}"].map((character) => Buffer.from(character));
/** Charsets that are no superset of ASCII. */
const NOT_ASCII_CHARSET = /utf-?(?:16|32|7)|ucs-?[24]|iso-2022|hz-gb|ebcdic|unicode/u;

/**
 * Quickly excludes entries that cannot match a free text, by comparing bytes without decoding characters. No false
 * negatives for ASCII texts, only false positives.
 */
export class TextPrefilter {
  readonly #needles: readonly Needle[];
  readonly #bodies: StoredBodies;

  /** Undefined if no text is required. */
  static of(query: Query, bodies: StoredBodies): TextPrefilter | undefined {
    const needles = needlesOf(query);
    return needles.length === 0 ? undefined : new TextPrefilter(needles, bodies);
  }

  private constructor(needles: readonly Needle[], bodies: StoredBodies) {
    this.#needles = needles;
    this.#bodies = bodies;
  }

  /** False: the entry of this {@link PREFILTER_COLUMNS} row does not match. */
  mayMatch(row: SqlRow): boolean {
    const texts = new Map<Part, string | undefined>();
    return this.#needles.every(({ text, parts, spansFields }) => {
      for (const part of parts) {
        if (!texts.has(part)) texts.set(part, this.#textOf(part, row));
        const haystack = texts.get(part);
        if (haystack === undefined || haystack.includes(text)) return true;
        if (part === "fields" && spansFields && linesOf(haystack).includes(text)) return true;
      }
      return false;
    });
  }

  /** Lower case; undefined if a full check is needed. */
  #textOf(part: Part, row: SqlRow): string | undefined {
    if (part === "url") return urlOfRow(row).toLowerCase();
    if (part === "fields") {
      return `${String(row["request_fields"])}${String(row["response_fields"] ?? "")}`.toLowerCase();
    }
    return this.#bodyText(part, row);
  }

  #bodyText(side: "request" | "response", row: SqlRow): string | undefined {
    const bytes = row[`${side}_bytes`];
    const hasFile = row[`${side}_file`] !== null;
    if (!(bytes instanceof Uint8Array) && !hasFile) return "";
    const mediaType = row[`${side}_type`];
    if (!mayBeText(typeof mediaType === "string" ? mediaType : undefined)) return "";
    const stored = bytes instanceof Uint8Array ? bytes : this.#bodies.read(Number(row["seq"]), side, SEARCHED_BYTES);
    if (stored === undefined) return "";
    const lowerFields = String(row[`${side}_fields`]).toLowerCase();
    if (NOT_ASCII_CHARSET.test(lowerFields)) return undefined;
    const plain = lowerFields.includes("content-encoding") ? decoded(stored, row, side) : stored;
    if ((plain[0] === 0xff && plain[1] === 0xfe) || (plain[0] === 0xfe && plain[1] === 0xff)) return undefined;
    const buffer = Buffer.from(plain.buffer, plain.byteOffset, plain.byteLength);
    return FOLDING_TO_ASCII.some((bytes) => buffer.includes(bytes))
      ? undefined
      : buffer.toString("latin1").toLowerCase();
  }
}

function decoded(stored: Uint8Array, row: SqlRow, side: "request" | "response"): Uint8Array {
  const codings = fieldValues(storedFields(row[`${side}_fields`]) ?? [], "content-encoding");
  return decodeBeginningSync(stored, codings, SEARCHED_BYTES);
}

/** JSON field lists separate name and value by `","`, field lines by `: `. */
function linesOf(json: string): string {
  return json.replaceAll('","', ": ");
}

function needlesOf(query: Query): Needle[] {
  switch (query.kind) {
    case "and":
      return query.terms.flatMap(needlesOf);
    case "preset":
      return needlesOf(query.query);
    case "anywhere":
      return query.value.kind === "literal" ? needle(query.value.text, EVERYWHERE) : [];
    case "field": {
      const parts = Object.hasOwn(PARTS_OF_FIELD, query.field) ? PARTS_OF_FIELD[query.field] : undefined;
      const { test } = query;
      if (parts === undefined || test.kind !== "text" || test.mode !== "matches" || test.values.length !== 1) return [];
      const [value] = test.values;
      return value?.kind === "literal" ? needle(value.text, parts) : [];
    }
    default:
      return [];
  }
}

/** Non-ASCII texts, and texts that JSON escapes, need the full check. */
function needle(text: string, parts: ReadonlySet<Part>): Needle[] {
  const spansFields = text.includes(":") || text.startsWith(" ");
  return /^[ !#-[\]-~]+$/u.test(text) ? [{ text: text.toLowerCase(), parts, spansFields }] : [];
}
