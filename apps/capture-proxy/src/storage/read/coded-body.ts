import { brotliCompressSync, constants, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { decodeContentSync, decodingPlan } from "@headworks/http-fields/content-coding";
import type { ContentCoding } from "@headworks/http-fields/content-coding";

/** Nobody waits for the smallest result: quick settings. */
const ENCODERS: Readonly<Record<ContentCoding, (bytes: Uint8Array) => Uint8Array>> = {
  gzip: (bytes) => gzipSync(bytes, { level: 1 }),
  deflate: (bytes) => deflateSync(bytes, { level: 1 }),
  br: (bytes) => brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } }),
  zstd: (bytes) => zstdCompressSync(bytes),
};

/**
 * A body from a file of another program in the form that its Content-Encoding fields announce, which is how entries hold
 * bodies. Most programs write bodies decoded: those are encoded again, so that fields and content stay what they were,
 * though the bytes are not those of the wire. Some write them as they came: those are left alone. Undefined when a
 * coding is not known here, or there are more than anybody sends.
 */
export function codedBody(bytes: Uint8Array, contentEncoding: readonly string[]): Uint8Array | undefined {
  const { steps, remaining } = decodingPlan(contentEncoding);
  if (bytes.length === 0 || steps.length + remaining.length === 0 || isCoded(bytes, contentEncoding)) return bytes;
  if (remaining.length > 0) return undefined;
  return steps.toReversed().reduce((coded, coding) => ENCODERS[coding](coded), bytes);
}

/** Whether the codings can be removed and leave something: no text and hardly any file looks like that by chance. */
function isCoded(bytes: Uint8Array, contentEncoding: readonly string[]): boolean {
  const { bytes: decoded, stop } = decodeContentSync(bytes, contentEncoding);
  return stop === "limit" || (stop === undefined && decoded.length > 0);
}
