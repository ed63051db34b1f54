import { Buffer } from "node:buffer";
import { pipeline, Readable, type Transform } from "node:stream";
import {
  brotliCompress,
  brotliCompressSync,
  constants,
  createBrotliCompress,
  createDeflate,
  createGzip,
  createZstdCompress,
  deflate,
  deflateSync,
  gzip,
  gzipSync,
  zstdCompress,
  zstdCompressSync,
} from "node:zlib";
import { type ContentCoding, decodingPlan } from "./decode-content.ts";
import { parseMediaType } from "./media-type.ts";

/** A few kilobytes are encoded faster than a pool thread would start. */
const AT_ONCE_BYTES = 16_384;

/** Brotli quality 4 costs about as much as gzip; 11, the default, a hundred times that. */
const BROTLI = { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } };

/**
 * Applies the codings of a Content-Encoding value in order, the inverse of `decodeContent`. Undefined if one of them
 * is unsupported or there are too many. Larger bodies are encoded off the main thread.
 */
export async function encodeContent(
  plain: Uint8Array,
  contentEncoding: string | readonly string[] | undefined,
): Promise<Buffer | undefined> {
  const { steps, remaining } = decodingPlan(contentEncoding);
  if (remaining.length > 0) return undefined;
  let bytes = Buffer.from(plain.buffer, plain.byteOffset, plain.byteLength);
  for (const coding of steps.toReversed()) {
    bytes = bytes.length <= AT_ONCE_BYTES ? codedAtOnce(bytes, coding) : await coded(bytes, coding);
  }
  return bytes;
}

function codedAtOnce(bytes: Buffer, coding: ContentCoding): Buffer {
  switch (coding) {
    case "gzip":
      return gzipSync(bytes);
    case "deflate":
      return deflateSync(bytes);
    case "br":
      return brotliCompressSync(bytes, BROTLI);
    case "zstd":
      return zstdCompressSync(bytes);
  }
}

function coded(bytes: Buffer, coding: ContentCoding): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const done = (error: Error | null, result: Buffer): void => {
      if (error) reject(error);
      else resolve(result);
    };
    switch (coding) {
      case "gzip":
        return gzip(bytes, done);
      case "deflate":
        return deflate(bytes, done);
      case "br":
        return brotliCompress(bytes, BROTLI, done);
      case "zstd":
        return zstdCompress(bytes, done);
    }
  });
}

/**
 * Applies the codings of a Content-Encoding value in order, piece by piece and off this thread, with constant memory
 * and fast settings. Undefined if one of the codings is unsupported or there are too many. An error of `pieces` is
 * thrown by the result.
 */
export function encodeInPieces(
  pieces: Iterable<Uint8Array>,
  contentEncoding: string | readonly string[] | undefined,
): AsyncIterable<Uint8Array> | undefined {
  const { steps, remaining } = decodingPlan(contentEncoding);
  if (remaining.length > 0) return undefined;
  const source = Readable.from(pieces);
  const streams = steps.toReversed().map(openStream);
  const last = streams.at(-1);
  if (last === undefined) return source;
  // An error destroys the last stream, and with it the loop over it.
  pipeline([source, ...streams], () => undefined);
  return last;
}

function openStream(coding: ContentCoding): Transform {
  switch (coding) {
    case "gzip":
      return createGzip({ level: 1 });
    case "deflate":
      return createDeflate({ level: 1 });
    case "br":
      return createBrotliCompress({ params: { [constants.BROTLI_PARAM_QUALITY]: 1 } });
    case "zstd":
      return createZstdCompress();
  }
}

/** Encodes a text in one charset; undefined for a text with unsupported characters. */
type Encode = (text: string) => Buffer | undefined;

const encoders = new Map<string, Encode | undefined>();

/**
 * Text as bytes of `charset` (a WHATWG Encoding name as in `decodeText`); undefined if the charset cannot be encoded,
 * or not with this text. Platforms only decode legacy charsets, so their tables are inverted when first needed.
 */
export function encodeText(text: string, charset: string): Buffer | undefined {
  if (!encoders.has(charset)) encoders.set(charset, encoderOf(charset));
  return encoders.get(charset)?.(text);
}

/** The WHATWG name of the charset of a Content-Type; undefined for none or an unknown one. */
export function declaredCharset(contentType: string | undefined): string | undefined {
  const label = parseMediaType(contentType)?.charset;
  if (label === undefined) return undefined;
  try {
    return new TextDecoder(label).encoding;
  } catch {
    return undefined;
  }
}

/** Encodes text in the charset of its Content-Type, or in UTF-8. */
export function encodeAsDeclared(text: string, contentType: string | undefined): Buffer {
  const charset = declaredCharset(contentType);
  return (charset === undefined ? undefined : encodeText(text, charset)) ?? Buffer.from(text, "utf8");
}

/** Charsets with switching sequences, which no table can represent. */
const STATEFUL = new Set(["iso-2022-jp", "replacement", "x-user-defined"]);

function encoderOf(charset: string): Encode | undefined {
  if (charset === "utf-8") return (text) => Buffer.from(text, "utf8");
  if (charset === "utf-16le") return (text) => Buffer.from(text, "utf16le");
  if (charset === "utf-16be") return (text) => Buffer.from(text, "utf16le").swap16();
  if (STATEFUL.has(charset)) return undefined;
  const table = reversedTable(charset);
  return table && ((text) => encodeBy(table, text));
}

/** Code points and their octets, as numbers. Sequences of up to three octets; four exist only in gb18030. */
function reversedTable(charset: string): ReadonlyMap<number, number> | undefined {
  const decode = strictDecoder(charset);
  if (decode === undefined) return undefined;
  const table = new Map<number, number>();
  const add = (octets: readonly number[]): boolean => {
    const text = decode(Uint8Array.from(octets));
    const point = text?.codePointAt(0);
    if (text === undefined || point === undefined) return false;
    if (text.length !== (point > 0xffff ? 2 : 1)) return true;
    const code = octets.reduce((sum, octet) => sum * 256 + octet, 0);
    if (!table.has(point)) table.set(point, code);
    return true;
  };
  const leads: number[] = [];
  for (let octet = 0; octet < 256; octet += 1) if (!add([octet])) leads.push(octet);
  for (const lead of leads) for (let trail = 0x30; trail < 256; trail += 1) add([lead, trail]);
  // The supplementary table of EUC-JP has its own prefix.
  if (charset === "euc-jp") {
    for (let row = 0xa1; row < 0xff; row += 1) for (let cell = 0xa1; cell < 0xff; cell += 1) add([0x8f, row, cell]);
  }
  return table;
}

function strictDecoder(charset: string): ((bytes: Uint8Array) => string | undefined) | undefined {
  try {
    const decoder = new TextDecoder(charset, { fatal: true, ignoreBOM: true });
    return (bytes) => {
      try {
        return decoder.decode(bytes);
      } catch {
        return undefined;
      }
    };
  } catch {
    return undefined;
  }
}

function encodeBy(table: ReadonlyMap<number, number>, text: string): Buffer | undefined {
  const bytes = Buffer.allocUnsafe(text.length * 3);
  let at = 0;
  for (const character of text) {
    const code = table.get(character.codePointAt(0) ?? 0);
    if (code === undefined) return undefined;
    if (code > 0xffff) bytes[at++] = code >> 16;
    if (code > 0xff) bytes[at++] = (code >> 8) & 0xff;
    bytes[at++] = code & 0xff;
  }
  return bytes.subarray(0, at);
}
