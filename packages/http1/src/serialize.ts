import { consistsOf, isToken, TARGET } from "./characters.ts";
import { Http1Error } from "./http1-error.ts";
import type { FieldLines, RawFields } from "./message.ts";
import { ownText } from "./own-text.ts";

/** Names are few and come again and again; hostile ones must not fill memory. */
const MAX_KNOWN_NAMES = 2000;
const MAX_KNOWN_NAME_LENGTH = 64;

/** Line ends with the names behind them that were found to be tokens. */
const lineStarts = new Map<string, string>();

const UNSAFE_IN_LINE = /[\0\r\n]|[^\0-\xff]/;
const BEYOND_LATIN1 = /[^\0-\xff]/;

/** Ends the data of a chunk. */
export const CHUNK_END = "\r\n";

/** The last chunk with an empty trailer section: ends a chunked body. */
export const LAST_CHUNK = "0\r\n\r\n";

/**
 * A request head as latin1 text, with the empty line. The version is always HTTP/1.1.
 * @param lines  of the head that exactly these fields were read from; they are not looked at once more
 * @throws Http1Error `unsafe-text` when a part would break out of its place: method or field name no token, a
 *   blank, a control character or a fragment in the target, CR, LF, NUL or a character beyond latin1 in a value.
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
 * The head of an answer as latin1 text, with the empty line. The version is always HTTP/1.1.
 * @param lines  of the head that exactly these fields were read from; they are not looked at once more
 * @throws Http1Error `unsafe-text` as for `requestHeadText`, and for a status that is not 100 to 999.
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

/**
 * What stands before the data of a chunk of `sizeBytes` bytes; `CHUNK_END` goes behind it.
 * @throws RangeError for a size of 0, which would end the body, or beyond 8 hexadecimal digits
 */
export function chunkPrefix(sizeBytes: number): string {
  if (!Number.isInteger(sizeBytes) || sizeBytes < 1 || sizeBytes > 0xffff_ffff) {
    throw new RangeError(`A chunk cannot have ${sizeBytes} bytes`);
  }
  return `${sizeBytes.toString(16)}\r\n`;
}

/**
 * The last chunk with trailer fields: ends a chunked body.
 * @throws Http1Error `unsafe-text`
 */
export function lastChunkWithTrailers(fields: Readonly<RawFields>): string {
  return checked("0", fields);
}

/**
 * The line and the fields behind it, with the empty line, if that has exactly as many lines as there are parts, all ended
 * by CR LF, no other CR or LF, no NUL, and fits latin1. Looking at the whole text with native searches is several times
 * cheaper than at each character of each part, and catches the same: a line end inside a part makes one line too many.
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

/** The end of the line before a field, and its name. */
function lineStart(name: string): string {
  const known = lineStarts.get(name);
  if (known !== undefined) return known;
  if (!isToken(name)) throw new Http1Error("unsafe-text");
  const start = ownText(`\r\n${name}: `);
  if (name.length <= MAX_KNOWN_NAME_LENGTH && lineStarts.size < MAX_KNOWN_NAMES) lineStarts.set(ownText(name), start);
  return start;
}
