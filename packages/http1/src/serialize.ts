import { consistsOf, isToken, TARGET, TCHAR, WRITABLE } from "./characters.ts";
import { Http1Error } from "./http1-error.ts";
import type { RawFields } from "./message.ts";

/** Ends the data of a chunk. */
export const CHUNK_END = "\r\n";

/** The last chunk with an empty trailer section: ends a chunked body. */
export const LAST_CHUNK = "0\r\n\r\n";

/**
 * A request head as latin1 text, with the empty line. The version is always HTTP/1.1.
 * @throws Http1Error `unsafe-text` when a part would break out of its place: method or field name no token, target
 *   not visible ASCII, CR, LF, NUL or a character beyond latin1 in a value.
 */
export function requestHeadText(method: string, target: string, fields: Readonly<RawFields>): string {
  if (!isToken(method) || target === "" || !consistsOf(target, TARGET)) throw new Http1Error("unsafe-text");
  return `${method} ${target} HTTP/1.1\r\n${fieldText(fields)}\r\n`;
}

/**
 * The head of an answer as latin1 text, with the empty line. The version is always HTTP/1.1.
 * @throws Http1Error `unsafe-text` as for `requestHeadText`, and for a status that is not 100 to 999.
 */
export function responseHeadText(status: number, reason: string, fields: Readonly<RawFields>): string {
  if (!Number.isInteger(status) || status < 100 || status > 999) throw new Http1Error("unsafe-text");
  if (!consistsOf(reason, WRITABLE)) throw new Http1Error("unsafe-text");
  return `HTTP/1.1 ${status} ${reason}\r\n${fieldText(fields)}\r\n`;
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
  return `0\r\n${fieldText(fields)}\r\n`;
}

function fieldText(fields: Readonly<RawFields>): string {
  let text = "";
  for (let at = 0; at < fields.length; at += 2) {
    const name = fields[at] ?? "";
    const value = fields[at + 1] ?? "";
    if (name === "" || !consistsOf(name, TCHAR) || !consistsOf(value, WRITABLE)) throw new Http1Error("unsafe-text");
    text += `${name}: ${value}\r\n`;
  }
  return text;
}
