import { Buffer } from "node:buffer";
import {
  brotliCompress,
  brotliCompressSync,
  constants,
  deflate,
  deflateSync,
  gzip,
  gzipSync,
  zstdCompress,
  zstdCompressSync,
} from "node:zlib";
import { decodingPlan, type ContentCoding } from "./decoding-plan.ts";

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
