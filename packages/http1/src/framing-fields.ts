import { TCHAR, consistsOf } from "./characters.ts";
import type { HeadFacts } from "./field-lines.ts";
import { Http1Error, type Http1ErrorCode } from "./http1-error.ts";
import { CHUNKED, lengthFraming, type Framing, type Version } from "./message.ts";

const MAX_LENGTH_DIGITS = 15;

/**
 * Parses a Content-Length value: at most 15 digits, so that the number is exact.
 * @throws Http1Error `bad-content-length`
 */
export function readContentLength(value: string): number {
  if (value.length === 0 || value.length > MAX_LENGTH_DIGITS) throw new Http1Error("bad-content-length");
  let lengthBytes = 0;
  for (let at = 0; at < value.length; at++) {
    const digit = value.charCodeAt(at) - 0x30;
    if (digit < 0 || digit > 9) throw new Http1Error("bad-content-length");
    lengthBytes = lengthBytes * 10 + digit;
  }
  return lengthBytes;
}

function isChunked(value: string): boolean {
  return value === "chunked" || (value.length === 7 && value.toLowerCase() === "chunked");
}

/** The error for a Transfer-Encoding value other than `chunked`: an unknown coding, or invalid syntax. */
function transferEncodingErrorCode(value: string): Http1ErrorCode {
  const codings = value.split(",").map((part) => part.trim());
  const allTokens = codings.every((coding) => coding.length > 0 && consistsOf(coding, TCHAR));
  return allTokens && codings.some((coding) => coding.toLowerCase() !== "chunked")
    ? "unknown-transfer-coding"
    : "bad-transfer-encoding";
}

/**
 * Strict framing from Content-Length or Transfer-Encoding, one of which is present.
 * @throws Http1Error
 */
export function fieldFraming(version: Version, facts: HeadFacts): Framing {
  const { transferEncoding, contentLength } = facts;
  if (transferEncoding === undefined) {
    if (facts.contentLengthCount > 1) throw new Http1Error("repeated-content-length");
    return lengthFraming(readContentLength(contentLength ?? ""));
  }
  if (contentLength !== undefined) throw new Http1Error("content-length-with-transfer-encoding");
  if (facts.transferEncodingCount > 1) throw new Http1Error("repeated-transfer-encoding");
  if (!isChunked(transferEncoding)) throw new Http1Error(transferEncodingErrorCode(transferEncoding));
  if (version === "1.0") throw new Http1Error("transfer-encoding-in-http-1.0");
  return CHUNKED;
}
