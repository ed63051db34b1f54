import { BEYOND_LATIN1, consistsOf, isToken, ownText, TARGET } from "./grammar.ts";
import { type FieldLines, Http1Error, type RawFields } from "./message.ts";

/** Bounds the cache against hostile names. */
const MAX_KNOWN_NAMES = 2000;
const MAX_KNOWN_NAME_LENGTH = 64;

/** Cached line starts of names validated as tokens. */
const lineStarts = new Map<string, string>();
const UNSAFE_IN_LINE = /[\0\r\n]|[^\0-\xff]/;
export const CHUNK_END = "\r\n";

/** The last chunk with an empty trailer section. */
export const LAST_CHUNK = "0\r\n\r\n";

/**
 * A request head as latin1 text with the empty line, always HTTP/1.1.
 * @param lines  the lines of exactly these fields, not validated again
 * @throws Http1Error `unsafe-text` if a part would break the syntax: method or field name no token; a blank, control
 * character or fragment in the target; CR, LF, NUL or a non-latin1 character in a value
 */
export function requestHeadText(
  method: string,
  target: string,
  fields: Readonly<RawFields>,
  lines?: FieldLines,
): string {
  if (!isToken(method) || target === "" || !consistsOf(target, TARGET)) throw new Http1Error("unsafe-text");
  const firstLine = `${method} ${target} HTTP/1.1`;
  return lines === undefined ? checked(firstLine, fields) : `${firstLine}\r\n${lines}\r\n`;
}

/**
 * A response head as latin1 text with the empty line, always HTTP/1.1.
 * @param lines  the lines of exactly these fields, not validated again
 * @throws Http1Error `unsafe-text` as for `requestHeadText`, and for a status outside 100 to 999
 */
export function responseHeadText(
  status: number,
  reason: string,
  fields: Readonly<RawFields>,
  lines?: FieldLines,
): string {
  if (!Number.isInteger(status) || status < 100 || status > 999) throw new Http1Error("unsafe-text");
  const firstLine = `HTTP/1.1 ${status} ${reason}`;
  if (lines === undefined) return checked(firstLine, fields);
  if (UNSAFE_IN_LINE.test(reason)) throw new Http1Error("unsafe-text");
  return `${firstLine}\r\n${lines}\r\n`;
}

/** The text before a chunk's data. Throws RangeError for 0, which would end the body, or 2^32. */
export function chunkPrefix(sizeBytes: number): string {
  if (!Number.isInteger(sizeBytes) || sizeBytes < 1 || sizeBytes > 0xffff_ffff) {
    throw new RangeError(`A chunk cannot have ${sizeBytes} bytes`);
  }
  return `${sizeBytes.toString(16)}\r\n`;
}

/** The last chunk with trailer fields. Throws Http1Error `unsafe-text`. */
export function lastChunkWithTrailers(fields: Readonly<RawFields>): string {
  return checked("0", fields);
}

/**
 * The start line and fields with the empty line, after checking that the text has exactly as many lines as parts, all
 * ended by CR LF, no other CR or LF, no NUL, and only latin1. Native searches over the whole text are several times
 * cheaper than per-character checks and catch the same: a line end inside a part adds a line.
 */
function checked(firstLine: string, fields: Readonly<RawFields>): string {
  let text = firstLine;
  for (let at = 0; at < fields.length; at += 2) text = text + lineStart(fields[at] ?? "") + (fields[at + 1] ?? "");
  text += "\r\n\r\n";
  if (BEYOND_LATIN1.test(text) || text.includes("\0")) throw new Http1Error("unsafe-text");
  let at = 0;
  for (let lines = fields.length / 2 + 2; lines > 0; lines--) {
    const lineEnd = text.indexOf("\n", at);
    if (lineEnd < 0 || text.indexOf("\r", at) !== lineEnd - 1) throw new Http1Error("unsafe-text");
    at = lineEnd + 1;
  }
  if (at !== text.length) throw new Http1Error("unsafe-text");
  return text;
}

/** The previous line's end and the field's name. */
function lineStart(name: string): string {
  const known = lineStarts.get(name);
  if (known !== undefined) return known;
  if (!isToken(name)) throw new Http1Error("unsafe-text");
  const start = ownText(`\r\n${name}: `);
  if (name.length <= MAX_KNOWN_NAME_LENGTH && lineStarts.size < MAX_KNOWN_NAMES) lineStarts.set(ownText(name), start);
  return start;
}
