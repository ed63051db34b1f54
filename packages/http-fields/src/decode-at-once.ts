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
  isPlainText,
  isSurelyPlainText,
  MIN_PLAIN_BYTES,
  stillOn,
  stopOf,
  type ContentCoding,
  type DecodedContent,
  type DecodingLimits,
  type DecodingStop,
} from "./decoding-plan.ts";

/**
 * Decodes a complete body. A body that is not in its coding is returned unchanged, with the coding in `remaining`; a
 * damaged one (wrong checksum, trailing bytes) yields what could be decoded; beyond the limit nothing is returned. An
 * empty body needs no decoding.
 */
export function decodeContentSync(
  body: Uint8Array,
  contentEncoding: string | readonly string[] | undefined,
  limits: DecodingLimits = {},
): DecodedContent {
  const { steps, remaining } = decodingPlan(contentEncoding);
  let bytes = body;
  let stop: DecodingStop | undefined;
  for (const [at, coding] of steps.entries()) {
    if (bytes.length === 0) break;
    const step = decodeStep(bytes, coding, limits.maxBytes ?? defaultMaxBytes);
    if (step === undefined) return { bytes, stop: stop ?? "damaged", remaining: stillOn(remaining, steps.slice(at)) };
    bytes = step.bytes;
    stop ??= step.stop;
  }
  return { bytes, stop: stop ?? (remaining.length > 0 ? "unsupported" : undefined), remaining };
}

/** A Brotli meta-block (RFC 7932 section 9.2): the maximum output that one more input byte can cause. */
const maxOfOneByte = 16 * 1024 * 1024;

/**
 * The first `maxBytes` of the decoded body; `maxBytes` bounds the output of every step. Damaged bodies, and those
 * that are not in their coding, are treated as in `decodeContentSync`. A body beyond the limit is decoded several
 * times, each time to at most 16 MiB beyond it.
 */
export function decodeBeginningSync(
  body: Uint8Array,
  contentEncoding: string | readonly string[] | undefined,
  maxBytes: number,
): Uint8Array {
  if (body.length < MIN_PLAIN_BYTES) {
    const { bytes: whole, stop } = decodeContentSync(body, contentEncoding, { maxBytes });
    if (stop !== "limit") return whole.subarray(0, maxBytes);
  }
  let bytes = body;
  for (const coding of decodingPlan(contentEncoding).steps) {
    if (bytes.length === 0) break;
    const beginning = decodeBeginning(bytes, coding, maxBytes);
    if (beginning === undefined) return bytes.subarray(0, maxBytes);
    bytes = beginning;
  }
  return bytes;
}

/**
 * zlib returns nothing if the output is too large, so this searches for a prefix of the input with enough output but
 * not too much. Undefined for an input that is not in the coding.
 */
function decodeBeginning(bytes: Uint8Array, coding: ContentCoding, maxBytes: number): Uint8Array | undefined {
  if (isSurelyPlainText(bytes)) return undefined;
  let tooShort = 0;
  let tooLong = bytes.length + 1;
  for (let length = bytes.length; ; length = lengthBetween(tooShort, tooLong)) {
    try {
      const decoded = decompress(bytes.subarray(0, length), coding, maxBytes + maxOfOneByte, true);
      if (decoded.length >= maxBytes || tooLong - length === 1) return decoded.subarray(0, maxBytes);
      tooShort = length;
    } catch (error) {
      if (stopOf(error) !== "limit") return isPlainText(bytes) ? undefined : decodeUndamaged(bytes, coding, maxBytes);
      if (length - tooShort === 1) return nothing;
      tooLong = length;
    }
  }
}

/** The geometric mean: short inputs are cheap to try, and their expansion is unpredictable. */
function lengthBetween(tooShort: number, tooLong: number): number {
  const middle = Math.round(Math.sqrt(Math.max(1, tooShort) * tooLong));
  return Math.min(Math.max(middle, tooShort + 1), tooLong - 1);
}

const nothing = new Uint8Array(0);

/** Undefined for an input that is not in the coding. */
function decodeStep(
  bytes: Uint8Array,
  coding: ContentCoding,
  maxBytes: number,
): { bytes: Uint8Array; stop: DecodingStop | undefined } | undefined {
  if (isSurelyPlainText(bytes)) return undefined;
  try {
    return { bytes: decompress(bytes, coding, maxBytes, false), stop: undefined };
  } catch (error) {
    const stop = stopOf(error);
    if (stop === "limit") return { bytes: nothing, stop };
    if (isPlainText(bytes)) return undefined;
    if (stop === "damaged") return damagedStep(bytes, coding, maxBytes);
  }
  try {
    return { bytes: decompress(bytes, coding, maxBytes, true), stop: "truncated" };
  } catch (error) {
    return stopOf(error) === "limit" ? { bytes: nothing, stop: "limit" } : damagedStep(bytes, coding, maxBytes);
  }
}

function damagedStep(bytes: Uint8Array, coding: ContentCoding, maxBytes: number): ReturnType<typeof decodeStep> {
  const decoded = decodeUndamaged(bytes, coding, maxBytes);
  return decoded && { bytes: decoded, stop: "damaged" };
}

/** Output of the longest decodable prefix of a damaged input; undefined if empty. */
function decodeUndamaged(bytes: Uint8Array, coding: ContentCoding, maxBytes: number): Uint8Array | undefined {
  let decoded: Uint8Array = nothing;
  let good = 0;
  let bad = bytes.length;
  while (bad - good > 1) {
    const length = Math.floor((good + bad) / 2);
    try {
      decoded = decompress(bytes.subarray(0, length), coding, maxBytes, true);
      good = length;
    } catch {
      bad = length;
    }
  }
  return decoded.length === 0 ? undefined : decoded;
}

/** `mayEndEarly` flushes at the end of the input, so that the output so far is returned. */
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
