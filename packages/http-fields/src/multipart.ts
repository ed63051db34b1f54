import {
  isToken,
  type MediaTypeLike,
  type Parameter,
  parameterValue,
  parseMediaType,
  splitOutsideQuotes,
  toMediaType,
} from "./media-type.ts";
import { percentDecoded } from "./text-decoding.ts";

export interface MultipartPart {
  /** Pairs as written; values without surrounding white space. */
  headers: readonly (readonly [name: string, value: string])[];
  /** From Content-Disposition. */
  name: string | undefined;
  filename: string | undefined;
  contentType: string | undefined;
  /** A view into the input. */
  body: Uint8Array;
}

export interface Multipart {
  parts: readonly MultipartPart[];
  /** False if the closing delimiter is missing (the last part is then incomplete) or `maxParts` was reached. */
  isComplete: boolean;
}

/** Parsing limits; beyond them parsing stops. */
export interface MultipartLimits {
  /** Default 1,000. */
  maxParts?: number;
  /** Bytes of one part's headers, default 16 KiB; larger headers are omitted. */
  maxHeaderBytes?: number;
}

/** RFC 2046 section 5.1.1 allows 70; some senders use more. */
const MAX_BOUNDARY_LENGTH = 250;

/** The boundary of a multipart Content-Type; undefined for other types and without a usable one. */
export function multipartBoundary(contentType: MediaTypeLike): string | undefined {
  const mediaType = toMediaType(contentType);
  if (mediaType?.type !== "multipart") return undefined;
  const boundary = parameterValue(mediaType.parameters, "boundary");
  return boundary === undefined || boundary === "" || boundary.length > MAX_BOUNDARY_LENGTH ? undefined : boundary;
}

/** Splits a multipart body (RFC 2046 section 5.1) in one pass. Undefined without a delimiter line. */
export function parseMultipart(
  body: Uint8Array,
  boundary: string,
  limits: MultipartLimits = {},
): Multipart | undefined {
  const { maxParts = 1000, maxHeaderBytes = 16_384 } = limits;
  const delimiter = new TextEncoder().encode(`--${boundary}`);
  let current = nextDelimiter(body, delimiter, 0);
  if (current === undefined) return undefined;
  const parts: MultipartPart[] = [];
  while (!current.isClosing && current.end < body.length) {
    if (parts.length === maxParts) return { parts, isComplete: false };
    const next = nextDelimiter(body, delimiter, current.end);
    parts.push(parsePart(body.subarray(current.end, next?.start ?? body.length), maxHeaderBytes));
    if (next === undefined) return { parts, isComplete: false };
    current = next;
  }
  return { parts, isComplete: current.isClosing };
}

interface Delimiter {
  /** Start, including its leading line end. */
  start: number;
  /** After its own line end. */
  end: number;
  isClosing: boolean;
}

const cr = 13;
const lf = 10;
const dash = 45;

function nextDelimiter(body: Uint8Array, delimiter: Uint8Array, from: number): Delimiter | undefined {
  for (let at = body.indexOf(dash, from); at !== -1; at = body.indexOf(dash, at + 1)) {
    if (at > from && body[at - 1] !== lf) continue;
    if (!startsWithAt(body, delimiter, at)) continue;
    const line = delimiterEnd(body, at + delimiter.length);
    if (line === undefined) continue;
    let start = at;
    if (start > from) start -= start - 1 > from && body[start - 2] === cr ? 2 : 1;
    return { start, ...line };
  }
  return undefined;
}

function startsWithAt(body: Uint8Array, wanted: Uint8Array, at: number): boolean {
  if (at + wanted.length > body.length) return false;
  for (let index = 0; index < wanted.length; index += 1) {
    if (body[at + index] !== wanted[index]) return false;
  }
  return true;
}

/** The rest of a boundary line: optional `--`, white space, and the line end or the end of input. */
function delimiterEnd(body: Uint8Array, from: number): { end: number; isClosing: boolean } | undefined {
  const isClosing = body[from] === dash && body[from + 1] === dash;
  let at = isClosing ? from + 2 : from;
  while (body[at] === 32 || body[at] === 9) at += 1;
  if (at >= body.length) return { end: body.length, isClosing };
  if (body[at] === cr && body[at + 1] === lf) return { end: at + 2, isClosing };
  return body[at] === lf ? { end: at + 1, isClosing } : undefined;
}

function parsePart(bytes: Uint8Array, maxHeaderBytes: number): MultipartPart {
  const headEnd = endOfHead(bytes);
  const isReadable = headEnd.length <= maxHeaderBytes;
  const text = isReadable ? new TextDecoder().decode(bytes.subarray(0, headEnd.length)) : "";
  // A line that begins with white space continues the previous one (RFC 2046 by way of RFC 822).
  const lines = text.replace(/\r?\n[ \t]+/g, " ").split(/\r?\n/);
  const headers: (readonly [string, string])[] = [];
  for (const line of lines) {
    const colon = line.indexOf(":");
    if (colon > 0) headers.push([line.slice(0, colon), line.slice(colon + 1).trim()]);
  }
  const valueOf = (name: string): string | undefined => headers.find(([each]) => each.toLowerCase() === name)?.[1];
  const disposition = parseDisposition(valueOf("content-disposition") ?? "");
  return {
    headers,
    name: parameterValue(disposition, "name"),
    filename: extendedValue(parameterValue(disposition, "filename*")) ?? parameterValue(disposition, "filename"),
    contentType: valueOf("content-type"),
    body: bytes.subarray(headEnd.next),
  };
}

/** Ends of the header lines; without an empty line everything is header. */
function endOfHead(bytes: Uint8Array): { length: number; next: number } {
  let lineStart = 0;
  for (let at = bytes.indexOf(lf); at !== -1; at = bytes.indexOf(lf, at + 1)) {
    const isEmpty = at === lineStart || (at === lineStart + 1 && bytes[lineStart] === cr);
    if (isEmpty) return { length: lineStart, next: at + 1 };
    lineStart = at + 1;
  }
  return { length: bytes.length, next: bytes.length };
}

/** Parameters of a Content-Disposition, unescaped the way browsers escape them. */
function parseDisposition(text: string): Parameter[] {
  const parameters: Parameter[] = [];
  for (const piece of splitOutsideQuotes(text, ";").slice(1)) {
    const equals = piece.indexOf("=");
    const name = piece.slice(0, Math.max(0, equals)).trim().toLowerCase();
    if (!isToken(name)) continue;
    parameters.push([name, dispositionValue(piece.slice(equals + 1).trim())]);
  }
  return parameters;
}

function dispositionValue(text: string): string {
  const isQuoted = text.length >= 2 && text.startsWith('"') && text.endsWith('"');
  if (!isQuoted) return text;
  // Only \" and \\ are escapes: older browsers send Windows paths with plain backslashes. The WHATWG form encoding
  // writes quotes and line ends in percent form and leaves every other percent sign alone.
  return text
    .slice(1, -1)
    .replace(/\\(["\\])/g, "$1")
    .replace(/%(?:22|0D|0A)/gi, (sequence) => percentDecoded(sequence));
}

/** RFC 8187: charset'language'percent-encoded; only UTF-8 and Latin-1 are defined. */
function extendedValue(text: string | undefined): string | undefined {
  const match = /^(utf-8|iso-8859-1)'[^']*'(.*)$/i.exec(text ?? "");
  if (match === null) return undefined;
  const encoded = match[2] ?? "";
  if (match[1]?.toLowerCase() === "utf-8") return percentDecoded(encoded);
  return encoded.replace(/%([0-9a-f]{2})/gi, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)));
}

/** The boundary and parts of a multipart body; undefined for other or malformed bodies. */
export function parseMultipartBody(
  body: Uint8Array,
  contentType: string,
  limits: MultipartLimits = {},
): Multipart | undefined {
  const boundary = multipartBoundary(parseMediaType(contentType));
  return boundary === undefined ? undefined : parseMultipart(body, boundary, limits);
}
