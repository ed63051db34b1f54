import { brotliCompressSync, constants, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { decodeContentSync, decodingPlan } from "@headworks/http-fields/content-coding";
import type { ContentCoding } from "@headworks/http-fields/content-coding";

/** Fast settings: nobody transfers the result. */
const ENCODERS: Readonly<Record<ContentCoding, (bytes: Uint8Array) => Uint8Array>> = {
  gzip: (bytes) => gzipSync(bytes, { level: 1 }),
  deflate: (bytes) => deflateSync(bytes, { level: 1 }),
  br: (bytes) => brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } }),
  zstd: (bytes) => zstdCompressSync(bytes),
};

/**
 * Restores the content codings of an imported body, since entries hold bodies as announced by Content-Encoding. Most
 * programs write decoded bodies: those are encoded again, so fields and content stay consistent although the bytes are
 * not the received ones. Bodies that still have their codings stay as they are. Undefined for unknown or too many
 * codings.
 */
export function codedBody(bytes: Uint8Array, contentEncoding: readonly string[]): Uint8Array | undefined {
  const { steps, remaining } = decodingPlan(contentEncoding);
  if (bytes.length === 0 || steps.length + remaining.length === 0 || isCoded(bytes, contentEncoding)) return bytes;
  if (remaining.length > 0) return undefined;
  return steps.toReversed().reduce((coded, coding) => ENCODERS[coding](coded), bytes);
}

/** Whether decoding succeeds with a non-empty result; uncoded data hardly ever does. */
function isCoded(bytes: Uint8Array, contentEncoding: readonly string[]): boolean {
  const { bytes: decoded, stop } = decodeContentSync(bytes, contentEncoding);
  return stop === "limit" || (stop === undefined && decoded.length > 0);
}
