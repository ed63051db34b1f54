import { splitOutsideQuotes } from "./parameters.ts";

/** A supported content coding (RFC 9110 section 8.4.1). */
export type ContentCoding = "gzip" | "deflate" | "br" | "zstd";

/**
 * Why decoding stopped early: truncated input, input not in the coding, output beyond the limit, or an unknown coding
 * (or too many codings).
 */
export type DecodingStop = "truncated" | "damaged" | "limit" | "unsupported";

export interface DecodedContent {
  /** Everything, or the available part if `stop` is set; never more than the limit. */
  bytes: Uint8Array;
  stop: DecodingStop | undefined;
  /**
   * Codings that remain on `bytes`, in the order they were applied: unknown ones, or those of a body that is not in
   * them. With `damaged` and an empty list, `bytes` are what could be decoded.
   */
  remaining: readonly string[];
}

/** `maxBytes` bounds the output of every step; default 64 MiB. */
export interface DecodingLimits {
  maxBytes?: number;
}

export const defaultMaxBytes = 64 * 1024 * 1024;
/** Longer chains are not decoded, as in curl: a chain multiplies the expansion of a small input. */
export const maxCodings = 5;

const codingNames = new Map<string, ContentCoding>([
  ["gzip", "gzip"],
  ["x-gzip", "gzip"],
  ["deflate", "deflate"],
  ["br", "br"],
  ["zstd", "zstd"],
]);

/** The codings of Content-Encoding values in lower case, in the order they were applied, without `identity`. */
export function parseContentEncoding(values: string | readonly string[] | undefined): string[] {
  if (values === undefined) return [];
  const text = typeof values === "string" ? values : values.join(",");
  return splitOutsideQuotes(text.toLowerCase(), ",").filter((coding) => coding !== "" && coding !== "identity");
}

/**
 * The codings to decode, last applied first, and those that remain because of an unknown one; all remain if there are
 * more than `maxCodings`.
 */
export function decodingPlan(contentEncoding: string | readonly string[] | undefined): {
  steps: ContentCoding[];
  remaining: string[];
} {
  const remaining = parseContentEncoding(contentEncoding);
  const steps: ContentCoding[] = [];
  if (remaining.length > maxCodings) return { steps, remaining };
  for (let name = remaining.at(-1); name !== undefined; name = remaining.at(-1)) {
    const coding = codingNames.get(name);
    if (coding === undefined) break;
    steps.push(coding);
    remaining.pop();
  }
  return { steps, remaining };
}

/** The remaining codings as the start of a sentence: `the content coding foo`, `6 content codings, more than 5,`. */
export function remainingCodings(remaining: readonly string[]): string {
  return remaining.length > maxCodings
    ? `${remaining.length} content codings, more than ${maxCodings},`
    : `the content coding ${remaining.join(", ")}`;
}

/**
 * Whether a `deflate` body begins with the zlib header (RFC 1950 section 2.2) it should have; some servers send raw
 * deflate. The first octet tells: in raw deflate the low nibble 8 would be a stored block with padding that no encoder
 * writes.
 */
export const hasZlibHeader = (firstOctet: number): boolean => (firstOctet & 0x0f) === 8;

/** Bytes that are inspected to tell text from coded content. */
const PROBED_BYTES = 256;

/** Shorter coded content may be plain text by chance: Brotli writes an empty body as `;`. */
export const MIN_PLAIN_BYTES = 16;

/** Whether a body is certainly plain text despite its Content-Encoding, before an attempt to decode it. */
export const isSurelyPlainText = (bytes: Uint8Array): boolean => bytes.length >= MIN_PLAIN_BYTES && isPlainText(bytes);

/**
 * Whether a body that could not be decoded is plain text: UTF-8 without control characters, which coded content
 * hardly ever begins with.
 */
export function isPlainText(bytes: Uint8Array): boolean {
  const probed = bytes.subarray(0, PROBED_BYTES);
  let isAscii = true;
  for (const byte of probed) {
    const isControl = byte < 0x20 && byte !== 0x09 && byte !== 0x0a && byte !== 0x0d;
    if (isControl || byte === 0x7f) return false;
    if (byte >= 0x80) isAscii = false;
  }
  if (isAscii) return probed.length > 0;
  try {
    // The last character may be incomplete.
    new TextDecoder("utf-8", { fatal: true }).decode(probed, { stream: true });
    return true;
  } catch {
    return false;
  }
}

/** Names of codings in the order they were applied, from the steps in decoding order. */
export function stillOn(remaining: readonly string[], steps: readonly ContentCoding[]): string[] {
  return [...remaining, ...steps.toReversed()];
}

export function stopOf(error: unknown): DecodingStop {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  if (code === "ERR_BUFFER_TOO_LARGE") return "limit";
  // Brotli reports a short input by its message only.
  const isShort = code === "Z_BUF_ERROR" || (error instanceof Error && error.message === "unexpected end of file");
  return isShort ? "truncated" : "damaged";
}
