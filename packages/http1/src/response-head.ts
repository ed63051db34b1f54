import { CR, FIELD_VALUE, LF, SP } from "./characters.ts";
import { plainLines, readFieldLines, strayByteCode, type HeadFacts } from "./field-lines.ts";
import { Http1Error } from "./http1-error.ts";
import {
  lengthFraming,
  NO_BODY,
  UNTIL_CLOSE,
  type FieldLines,
  type Framing,
  type Oddity,
  type ResponseHead,
  type Version,
} from "./message.ts";
import { fieldFraming, readContentLength } from "./framing-fields.ts";

const NO_ODDITIES: readonly Oddity[] = Object.freeze([]);
/** Another reader may have ended the message elsewhere, so nothing may follow it on its connection. */
const PADDED_FRAMING: readonly Oddity[] = Object.freeze(["space-before-colon"]);
const VERSION_LENGTH = "HTTP/1.1".length;
const STATUS_AT = VERSION_LENGTH + 1;
const REASON_AT = STATUS_AT + 4;

export interface StatusLine {
  readonly version: Version;
  readonly status: number;
  readonly reason: string;
  /** Offset of the first field line. */
  readonly end: number;
}

/**
 * Parses a response head (RFC 9112 sections 4 to 6, strict except for what the RFC tells a proxy to remove).
 * @param isClean  the text contains only field-value characters and CR LF pairs; affects only speed
 * @param method  of the request
 * @throws Http1Error
 */
export function parseResponseHead(
  text: string,
  isClean: boolean,
  method: string,
  fieldCount: number,
  facts: HeadFacts,
): ResponseHead {
  const line = readStatusLine(text);
  facts.reset();
  const fields = readFieldLines(text, line.end, isClean, fieldCount, facts);
  const declared = declaredFraming(line.version, facts);
  const framing = actualFraming(method, line.status, declared);
  const lines = plainLines(text, line.end, facts);
  const oddities = facts.hasPaddedFraming ? PADDED_FRAMING : NO_ODDITIES;
  return responseHead(line, fields, lines, framing, facts, oddities, text.length);
}

function readStatusLine(text: string): StatusLine {
  const version = text.startsWith("HTTP/1.1 ") ? "1.1" : text.startsWith("HTTP/1.0 ") ? "1.0" : undefined;
  if (version === undefined) throw new Http1Error(startErrorCode(text));
  const status = readStatus(text, STATUS_AT);
  if (status === undefined || text.charCodeAt(STATUS_AT + 3) !== SP) throw new Http1Error("bad-status-line");
  let at = REASON_AT;
  let code = text.charCodeAt(at);
  while (FIELD_VALUE[code] === 1) code = text.charCodeAt(++at);
  if (code !== CR || text.charCodeAt(at + 1) !== LF) throw new Http1Error(strayByteCode(code));
  return { version, status, reason: text.slice(REASON_AT, at), end: at + 2 };
}

/** The code for a response that does not start with a supported version. */
export function startErrorCode(text: string): Http1Error["code"] {
  if (text.startsWith("\r") || text.startsWith("\n")) return "leading-empty-line";
  return "bad-status-line";
}

/** Three digits at `at`, 100 to 999, or undefined. */
export function readStatus(text: string, at: number): number | undefined {
  const hundreds = text.charCodeAt(at) - 0x30;
  const tens = text.charCodeAt(at + 1) - 0x30;
  const ones = text.charCodeAt(at + 2) - 0x30;
  const areDigits = hundreds >= 1 && hundreds <= 9 && tens >= 0 && tens <= 9 && ones >= 0 && ones <= 9;
  return areDigits ? hundreds * 100 + tens * 10 + ones : undefined;
}

function declaredFraming(version: Version, facts: HeadFacts): Framing {
  if (facts.transferEncoding === undefined && facts.contentLength === undefined) return UNTIL_CLOSE;
  return fieldFraming(version, facts);
}

/**
 * The effective framing: no body for 1xx, 204, 304, in responses to HEAD, and for 2xx to CONNECT (RFC 9112 section
 * 6.3).
 */
export function actualFraming(method: string, status: number, declared: Framing): Framing {
  const isBodiless =
    status < 200 || status === 204 || status === 304 || method === "HEAD" || (method === "CONNECT" && status < 300);
  return isBodiless ? NO_BODY : declared;
}

export function responseHead(
  line: StatusLine,
  fields: string[],
  fieldLines: FieldLines,
  framing: Framing,
  facts: HeadFacts,
  oddities: readonly Oddity[],
  headSizeBytes: number,
): ResponseHead {
  const mayStayOpen = !facts.connectionClose && (line.version === "1.1" || facts.connectionKeepAlive);
  return {
    version: line.version,
    status: line.status,
    reason: line.reason,
    fields,
    fieldLines,
    framing,
    keepAlive: mayStayOpen && framing.kind !== "until-close" && oddities.length === 0,
    upgrade: line.status === 101 && facts.upgrade !== undefined ? facts.upgrade.toLowerCase() : undefined,
    oddities,
    headSizeBytes,
  };
}

/**
 * Framing of a leniently read response. Tolerates only deviations that all lenient readers interpret alike.
 * @throws Http1Error where two interpretations would end the message at different bytes
 */
export function tolerantFraming(version: Version, facts: HeadFacts, tolerate: (oddity: Oddity) => void): Framing {
  const { transferEncoding } = facts;
  if (transferEncoding === undefined) {
    return facts.contentLength === undefined ? UNTIL_CLOSE : tolerantLength(facts, facts.contentLength, tolerate);
  }
  if (facts.transferEncodingCount > 1) {
    if (facts.transferEncodingDiffers) throw new Http1Error("repeated-transfer-encoding");
    tolerate("repeated-transfer-encoding");
    facts.transferEncodingCount = 1;
  }
  const { contentLength } = facts;
  if (transferEncoding.toLowerCase() === "identity") {
    // Current rules read such a body until the connection closes, older ones by its Content-Length.
    if (contentLength !== undefined) throw new Http1Error("ambiguous-framing");
    tolerate("identity-transfer-encoding");
    return UNTIL_CLOSE;
  }
  if (contentLength !== undefined) {
    tolerantLength(facts, contentLength, tolerate);
    tolerate("content-length-with-transfer-encoding");
    facts.contentLength = undefined;
  }
  // In HTTP/1.0 some readers ignore the field and others obey it, so it stays an error.
  return fieldFraming(version, facts);
}

function tolerantLength(facts: HeadFacts, value: string, tolerate: (oddity: Oddity) => void): Framing {
  if (facts.contentLengthDiffers) throw new Http1Error("repeated-content-length");
  const parts = value.split(",").map((part) => part.trim());
  const first = parts[0] ?? "";
  if (parts.some((part) => part !== first)) throw new Http1Error("repeated-content-length");
  if (parts.length > 1 || facts.contentLengthCount > 1) tolerate("repeated-content-length");
  return lengthFraming(readContentLength(first));
}
