import { fieldParameter } from "./body-format.ts";

/** One part of a multipart body. */
export interface BodyPart {
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly name: string | null;
  readonly filename: string | null;
  readonly contentType: string | null;
  /** `[start, end)` of the content in the body. */
  readonly start: number;
  readonly end: number;
}

export interface MultipartBody {
  readonly parts: readonly BodyPart[];
  /** A sentence if the body does not end as it should: cut off, or more parts than are shown. */
  readonly problem: string | null;
}

const MAX_PARTS = 1000;
const MAX_HEAD_BYTES = 65_536;
const decoder = new TextDecoder();

/** Splits a body by the boundary of its Content-Type (RFC 2046 section 5.1); lenient about bare line feeds. */
export function splitMultipart(bytes: Uint8Array, contentType: string): MultipartBody {
  const boundary = fieldParameter(contentType, "boundary");
  if (boundary === null || boundary === "") return { parts: [], problem: "The Content-Type names no boundary" };
  const delimiter = new TextEncoder().encode(`--${boundary}`);
  const parts: BodyPart[] = [];
  let at = findDelimiter(bytes, delimiter, 0);
  if (at < 0) return { parts, problem: "The boundary does not appear in the body" };
  for (;;) {
    let start = at + delimiter.length;
    if (bytes[start] === 0x2d && bytes[start + 1] === 0x2d) return { parts, problem: null };
    const lineEnd = bytes.indexOf(10, start);
    if (lineEnd < 0) return { parts, problem: "The body ends inside a boundary" };
    start = lineEnd + 1;
    if (parts.length >= MAX_PARTS) return { parts, problem: `Only the first ${MAX_PARTS} parts are shown` };
    const next = findDelimiter(bytes, delimiter, start);
    parts.push(readPart(bytes, start, next < 0 ? bytes.length : beforeLineBreak(bytes, next, start)));
    if (next < 0) return { parts, problem: "The last part has no end" };
    at = next;
  }
}

/** The next delimiter at the beginning of a line. */
function findDelimiter(bytes: Uint8Array, delimiter: Uint8Array, from: number): number {
  for (let at = bytes.indexOf(0x2d, from); at >= 0; at = bytes.indexOf(0x2d, at + 1)) {
    if (at > 0 && bytes[at - 1] !== 10) continue;
    if (startsWith(bytes, delimiter, at)) return at;
  }
  return -1;
}

function startsWith(bytes: Uint8Array, wanted: Uint8Array, at: number): boolean {
  if (at + wanted.length > bytes.length) return false;
  for (let index = 0; index < wanted.length; index++) if (bytes[at + index] !== wanted[index]) return false;
  return true;
}

function beforeLineBreak(bytes: Uint8Array, at: number, least: number): number {
  let end = at;
  if (end > least && bytes[end - 1] === 10) end--;
  if (end > least && bytes[end - 1] === 13) end--;
  return end;
}

function readPart(bytes: Uint8Array, from: number, end: number): BodyPart {
  const headers: [string, string][] = [];
  let at = from;
  while (at < end && at - from < MAX_HEAD_BYTES) {
    const lineEnd = bytes.indexOf(10, at);
    if (lineEnd < 0 || lineEnd >= end) break;
    const line = decoder.decode(bytes.subarray(at, lineEnd)).replace(/\r$/u, "");
    at = lineEnd + 1;
    if (line === "") break;
    const colon = line.indexOf(":");
    headers.push(colon < 0 ? [line, ""] : [line.slice(0, colon).trim(), line.slice(colon + 1).trim()]);
  }
  const field = (name: string) => headers.find(([key]) => key.toLowerCase() === name)?.[1] ?? null;
  const disposition = field("content-disposition");
  return {
    headers,
    name: disposition === null ? null : fieldParameter(disposition, "name"),
    filename: disposition === null ? null : fieldParameter(disposition, "filename"),
    contentType: field("content-type"),
    start: Math.min(at, end),
    end,
  };
}
