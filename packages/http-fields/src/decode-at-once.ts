// Tested by content-coding.test.ts
import type { Buffer } from "node:buffer";
import {
  brotliDecompressSync,
  constants,
  gunzipSync,
  inflateRawSync,
  inflateSync,
  zstdDecompressSync,
} from "node:zlib";
import {
  decodingPlan,
  defaultMaxBytes,
  hasZlibHeader,
  stopOf,
  type ContentCoding,
  type DecodedContent,
  type DecodingLimits,
  type DecodingStop,
} from "./decoding-plan.ts";

/**
 * Undoes the content codings of a body that is all there. At once, but all or nothing: a `stop` of `damaged` or
 * `limit` comes with no bytes; `decodeContent` gives what there was. An empty body needs no decoding.
 */
export function decodeContentSync(
  body: Uint8Array,
  contentEncoding: string | readonly string[] | undefined,
  limits: DecodingLimits = {},
): DecodedContent {
  const { steps, remaining } = decodingPlan(contentEncoding);
  let bytes = body;
  let stop: DecodingStop | undefined;
  for (const coding of steps) {
    if (bytes.length === 0) break;
    const step = decodeStep(bytes, coding, limits.maxBytes ?? defaultMaxBytes);
    bytes = step.bytes;
    stop ??= step.stop;
  }
  return { bytes, stop: stop ?? (remaining.length > 0 ? "unsupported" : undefined), remaining };
}

const nothing = new Uint8Array(0);

function decodeStep(
  bytes: Uint8Array,
  coding: ContentCoding,
  maxBytes: number,
): { bytes: Uint8Array; stop: DecodingStop | undefined } {
  try {
    return { bytes: decompress(bytes, coding, maxBytes, false), stop: undefined };
  } catch (error) {
    const stop = stopOf(error);
    if (stop !== "truncated") return { bytes: nothing, stop };
  }
  try {
    return { bytes: decompress(bytes, coding, maxBytes, true), stop: "truncated" };
  } catch (error) {
    return { bytes: nothing, stop: stopOf(error) };
  }
}

/** `mayEndEarly` takes the end of the input as a pause, so that what was decoded by then comes out. */
function decompress(bytes: Uint8Array, coding: ContentCoding, maxBytes: number, mayEndEarly: boolean): Buffer {
  // zlib refuses a limit of 0.
  const maxOutputLength = Math.max(1, maxBytes);
  const zlibFlush = mayEndEarly ? { finishFlush: constants.Z_SYNC_FLUSH } : {};
  switch (coding) {
    case "gzip":
      return gunzipSync(bytes, { maxOutputLength, ...zlibFlush });
    case "deflate":
      return hasZlibHeader(bytes[0] ?? 0)
        ? inflateSync(bytes, { maxOutputLength, ...zlibFlush })
        : inflateRawSync(bytes, { maxOutputLength, ...zlibFlush });
    case "br":
      return brotliDecompressSync(bytes, {
        maxOutputLength,
        ...(mayEndEarly ? { finishFlush: constants.BROTLI_OPERATION_FLUSH } : {}),
      });
    case "zstd":
      return zstdDecompressSync(bytes, {
        maxOutputLength,
        ...(mayEndEarly ? { finishFlush: constants.ZSTD_e_flush } : {}),
      });
  }
}
