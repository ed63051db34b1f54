import { COLON, consistsOf, CR, FIELD_VALUE, LF, SP, TAB, TCHAR } from "./grammar.ts";
import {
  CHUNKED,
  type FieldLines,
  type Framing,
  Http1Error,
  type Http1ErrorCode,
  lengthFraming,
  type RawFields,
  type Version,
} from "./message.ts";

/** Case-insensitive comparison. */
function isName(name: string, lowerName: string): boolean {
  if (name.length !== lowerName.length) return false;
  // Comparing the first letter avoids most lower-cased copies.
  if ((name.charCodeAt(0) | 0x20) !== (lowerName.charCodeAt(0) | 0x20)) return false;
  return name === lowerName || name.toLowerCase() === lowerName;
}

/** Value of the first field named `lowerName`, or undefined. */
export function fieldValue(fields: Readonly<RawFields>, lowerName: string): string | undefined {
  for (let at = 0; at < fields.length; at += 2) {
    if (isName(fields[at] ?? "", lowerName)) return fields[at + 1];
  }
  return undefined;
}

/** Values of all fields named `lowerName`, in order; not split at commas. */
export function fieldValues(fields: Readonly<RawFields>, lowerName: string): string[] {
  const values: string[] = [];
  for (let at = 0; at < fields.length; at += 2) {
    if (isName(fields[at] ?? "", lowerName)) values.push(fields[at + 1] ?? "");
  }
  return values;
}

/** Whether a field named `lowerName` exists. */
export function hasField(fields: Readonly<RawFields>, lowerName: string): boolean {
  return fieldValue(fields, lowerName) !== undefined;
}

/** Whether both have the same names (case-sensitive) and values in the same order. */
export function areSameFields(fields: Readonly<RawFields>, others: Readonly<RawFields>): boolean {
  if (fields.length !== others.length) return false;
  for (let at = 0; at < fields.length; at++) if (fields[at] !== others[at]) return false;
  return true;
}

/**
 * Sets `name` to exactly one value, in place: at the position of the first occurrence (taking over the spelling
 * `name`), otherwise at the end. Repeats are removed.
 */
export function setField(fields: RawFields, name: string, value: string): void {
  const lowerName = name.toLowerCase();
  let kept = 0;
  let isSet = false;
  for (let at = 0; at < fields.length; at += 2) {
    const present = fields[at] ?? "";
    const isSame = isName(present, lowerName);
    if (isSame && isSet) continue;
    fields[kept] = isSame ? name : present;
    fields[kept + 1] = isSame ? value : (fields[at + 1] ?? "");
    isSet ||= isSame;
    kept += 2;
  }
  fields.length = kept;
  if (!isSet) fields.push(name, value);
}

/** Removes all fields named `lowerName`, in place; returns whether there were any. */
export function removeField(fields: RawFields, lowerName: string): boolean {
  let kept = 0;
  for (let at = 0; at < fields.length; at += 2) {
    const name = fields[at] ?? "";
    if (isName(name, lowerName)) continue;
    fields[kept] = name;
    fields[kept + 1] = fields[at + 1] ?? "";
    kept += 2;
  }
  const found = kept < fields.length;
  fields.length = kept;
  return found;
}

/** The lower-cased options of all Connection fields (RFC 9110 section 7.6.1), without empty members. */
export function connectionOptions(fields: Readonly<RawFields>): string[] {
  const options: string[] = [];
  for (let at = 0; at < fields.length; at += 2) {
    if (!isName(fields[at] ?? "", "connection")) continue;
    for (const part of (fields[at + 1] ?? "").toLowerCase().split(",")) {
      const option = part.trim();
      if (option !== "") options.push(option);
    }
  }
  return options;
}

const HOP_BY_HOP: readonly string[] = ["connection", "keep-alive", "te", "trailer", "upgrade"];

const NEVER_BY_CONNECTION = new Set([
  "authorization",
  "content-length",
  "cookie",
  "forwarded",
  "host",
  "set-cookie",
  "transfer-encoding",
]);

export interface HopByHopOptions {
  /** Hop-by-hop fields to keep, in lower case, for example `te` or `trailer` if trailers are forwarded. */
  readonly keep?: ReadonlySet<string>;
}

/**
 * A copy without hop-by-hop fields: Connection and the fields it names, Keep-Alive, Proxy-*, TE, Trailer, Upgrade (RFC
 * 9110 section 7.6.1). Connection can never remove Host, Content-Length, Transfer-Encoding, Authorization, cookies,
 * Forwarded or X-Forwarded-*, since a client could use that to strip fields a proxy relies on. Framing fields stay;
 * see `setFraming`.
 */
export function withoutHopByHop(fields: Readonly<RawFields>, { keep }: HopByHopOptions = {}): RawFields {
  const options = connectionOptions(fields);
  // Both lists can be long.
  const named = options.length === 0 ? undefined : new Set(options);
  const kept: RawFields = [];
  for (let at = 0; at < fields.length; at += 2) {
    const name = fields[at] ?? "";
    const isFixed = isHopByHop(name);
    if (isFixed && keep?.has(name.toLowerCase()) !== true) continue;
    if (!isFixed && named !== undefined && isNamed(named, name.toLowerCase())) continue;
    kept.push(name, fields[at + 1] ?? "");
  }
  return kept;
}

const LOWER_P = 0x70;

/** Compares before it creates a string: most names do not match. */
function isHopByHop(name: string): boolean {
  for (const lowerName of HOP_BY_HOP) if (isName(name, lowerName)) return true;
  return (name.charCodeAt(0) | 0x20) === LOWER_P && name.toLowerCase().startsWith("proxy-");
}

function isNamed(connectionOptionNames: ReadonlySet<string>, lowerName: string): boolean {
  return connectionOptionNames.has(lowerName) && !isProtected(lowerName);
}

function isProtected(lowerName: string): boolean {
  return NEVER_BY_CONNECTION.has(lowerName) || lowerName.startsWith("x-forwarded-");
}

/**
 * Replaces the framing fields according to `framing`, in place: forwarded messages are framed as they were parsed.
 * `none` keeps one Content-Length, which describes the omitted body in a response to HEAD and in a 304; the caller
 * removes it from 204 and from 2xx to CONNECT.
 */
export function setFraming(fields: RawFields, framing: Framing): void {
  switch (framing.kind) {
    case "length":
      removeField(fields, "transfer-encoding");
      if (!hasJust(fields, "content-length", String(framing.lengthBytes))) {
        setField(fields, "Content-Length", String(framing.lengthBytes));
      }
      break;
    case "chunked":
      removeField(fields, "content-length");
      if (!hasJust(fields, "transfer-encoding", "chunked")) setField(fields, "Transfer-Encoding", "chunked");
      break;
    case "until-close":
      removeField(fields, "transfer-encoding");
      removeField(fields, "content-length");
      break;
    case "none": {
      removeField(fields, "transfer-encoding");
      const [first, ...others] = fieldValues(fields, "content-length");
      if (first !== undefined && (others.length > 0 || first.includes(","))) {
        setField(fields, "Content-Length", (first.split(",")[0] ?? "").trim());
      }
    }
  }
}

function hasJust(fields: RawFields, lowerName: string, value: string): boolean {
  let found = 0;
  for (let at = 0; at < fields.length; at += 2) {
    if (!isName(fields[at] ?? "", lowerName)) continue;
    if (fields[at + 1] !== value) return false;
    found++;
  }
  return found === 1;
}

/** Fields that are not allowed in trailers (RFC 9110 section 6.5.1). */
const HEAD_ONLY = new Set([
  "authorization",
  "cache-control",
  "connection",
  "content-encoding",
  "content-length",
  "content-range",
  "content-type",
  "cookie",
  "expect",
  "host",
  "keep-alive",
  "max-forwards",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "range",
  "set-cookie",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "www-authenticate",
]);

/** The allowed fields of a trailer section; the same list if all are allowed. */
export function allowedTrailers(fields: RawFields): RawFields {
  let kept: RawFields | undefined;
  for (let at = 0; at < fields.length; at += 2) {
    const name = fields[at] ?? "";
    if (HEAD_ONLY.has(name.toLowerCase())) kept ??= fields.slice(0, at);
    else kept?.push(name, fields[at + 1] ?? "");
  }
  return kept ?? fields;
}

/** Facts from the fields of one head about framing, connection and routing. Reused for every head. */
export class HeadFacts {
  /** White space before the colon is removed in responses (RFC 9112 section 5.1), refused in requests. */
  readonly areOfResponses: boolean;
  /** Values of Content-Length in order; undefined if absent. */
  contentLength: string | undefined = undefined;
  contentLengthCount = 0;
  /** Whether two Content-Length values differ. */
  contentLengthDiffers = false;
  transferEncoding: string | undefined = undefined;
  transferEncodingCount = 0;
  transferEncodingDiffers = false;
  host: string | undefined = undefined;
  hostCount = 0;
  expect: string | undefined = undefined;
  upgrade: string | undefined = undefined;
  connectionClose = false;
  connectionKeepAlive = false;
  connectionUpgrade = false;
  /** Whether every line has exactly one space after its colon and none after its value. */
  isPlain = true;
  /** Whether Content-Length or Transfer-Encoding had white space before its colon. */
  hasPaddedFraming = false;

  constructor(of: "requests" | "responses") {
    this.areOfResponses = of === "responses";
  }

  reset(): void {
    this.contentLength = undefined;
    this.contentLengthCount = 0;
    this.contentLengthDiffers = false;
    this.transferEncoding = undefined;
    this.transferEncodingCount = 0;
    this.transferEncodingDiffers = false;
    this.host = undefined;
    this.hostCount = 0;
    this.expect = undefined;
    this.upgrade = undefined;
    this.connectionClose = false;
    this.connectionKeepAlive = false;
    this.connectionUpgrade = false;
    this.isPlain = true;
    this.hasPaddedFraming = false;
  }

  /** Records a field if it is one that matters to the codec. */
  note(name: string, value: string): void {
    switch (name.length) {
      case 4:
        if (isName(name, "host")) {
          this.host = value;
          this.hostCount++;
        }
        break;
      case 6:
        if (isName(name, "expect")) this.expect = value;
        break;
      case 7:
        if (isName(name, "upgrade")) {
          this.upgrade = this.upgrade === undefined ? value : `${this.upgrade}, ${value}`;
        }
        break;
      case 10:
        if (isName(name, "connection")) this.#noteConnection(value);
        break;
      case 14:
        if (isName(name, "content-length")) {
          this.contentLengthDiffers ||= this.contentLengthCount > 0 && value !== this.contentLength;
          this.contentLength = value;
          this.contentLengthCount++;
        }
        break;
      case 17:
        if (isName(name, "transfer-encoding")) {
          this.transferEncodingDiffers ||=
            this.transferEncoding !== undefined && value.toLowerCase() !== this.transferEncoding.toLowerCase();
          this.transferEncoding = value;
          this.transferEncodingCount++;
        }
        break;
      default:
    }
  }

  #noteConnection(value: string): void {
    if (value === "keep-alive") {
      this.connectionKeepAlive = true;
      return;
    }
    for (const part of value.toLowerCase().split(",")) {
      const option = part.trim();
      if (option === "close") this.connectionClose = true;
      else if (option === "keep-alive") this.connectionKeepAlive = true;
      else if (option === "upgrade") this.connectionUpgrade = true;
    }
  }
}

/** The field lines from `start` to the empty line, if {@link readFieldLines} found them plain. */
export function plainLines(text: string, start: number, facts: HeadFacts): FieldLines {
  return facts.isPlain ? text.slice(start, -2) : undefined;
}

/**
 * Parses field lines from `at` to the empty line at the end (RFC 9112 section 5; strict, except for white space before
 * a colon in responses).
 * @param isClean  the text contains only field-value characters and CR LF pairs
 * @throws Http1Error for the first invalid byte in reading order
 */
export function readFieldLines(
  text: string,
  at: number,
  isClean: boolean,
  fieldCount: number,
  facts: HeadFacts,
): RawFields {
  const fields: RawFields = [];
  const maxEntries = 2 * fieldCount;
  while (text.charCodeAt(at) !== CR) {
    const nameStart = at;
    let code = text.charCodeAt(at);
    while (TCHAR[code] === 1) code = text.charCodeAt(++at);
    const nameEnd = at;
    if (code !== COLON || at === nameStart) at = paddedColon(text, at, nameStart, fields.length === 0, facts);
    const name = text.slice(nameStart, nameEnd);

    code = text.charCodeAt(++at);
    const plainStart = code === SP ? at + 1 : -1;
    while (code === SP || code === TAB) code = text.charCodeAt(++at);
    const valueStart = at;
    if (valueStart !== plainStart) facts.isPlain = false;
    if (isClean) {
      at = text.indexOf("\r", at);
    } else {
      while (FIELD_VALUE[code] === 1) code = text.charCodeAt(++at);
      if (code !== CR || text.charCodeAt(at + 1) !== LF) throw new Http1Error(strayByteCode(code));
    }
    let valueEnd = at;
    while (valueEnd > valueStart && isBlank(text.charCodeAt(valueEnd - 1))) valueEnd--;

    if (fields.length >= maxEntries) throw new Http1Error("too-many-fields");
    const value = text.slice(valueStart, valueEnd);
    if (valueEnd < at) {
      facts.isPlain = false;
      checkTrailingBlanks(name, text.slice(valueEnd, at));
    }
    fields.push(name, value);
    facts.note(name, value);
    at += 2;
  }
  if (at + 2 !== text.length || text.charCodeAt(at + 1) !== LF) throw new Http1Error("bad-line-end");
  return fields;
}

/**
 * Refuses a tab after a Transfer-Encoding value. RFC 9110 allows it as white space, but common parsers, including
 * Node's, then do not recognize `chunked` and end the message elsewhere.
 * @throws Http1Error `bad-transfer-encoding`
 */
export function checkTrailingBlanks(name: string, blanks: string): void {
  if (isName(name, "transfer-encoding") && blanks.includes("\t")) throw new Http1Error("bad-transfer-encoding");
}

/** Index of the colon after the white space at `nameEnd`. Throws Http1Error if none, or in a request. */
function paddedColon(text: string, nameEnd: number, nameStart: number, isFirst: boolean, facts: HeadFacts): number {
  const at = blanksEnd(text, nameEnd);
  const isPadded = at > nameEnd && nameEnd > nameStart && text.charCodeAt(at) === COLON;
  if (!isPadded || !facts.areOfResponses) throw new Http1Error(nameErrorCode(text, nameEnd, nameStart, isFirst));
  facts.isPlain = false;
  facts.hasPaddedFraming ||= isFramingName(text.slice(nameStart, nameEnd));
  return at;
}

/** Index of the first character from `at` that is neither SP nor HTAB. */
function blanksEnd(text: string, at: number): number {
  let end = at;
  while (isBlank(text.charCodeAt(end))) end++;
  return end;
}

/** Whether the field determines the end of the body. */
function isFramingName(name: string): boolean {
  return isName(name, "content-length") || isName(name, "transfer-encoding");
}

/** SP or HTAB. */
export function isBlank(code: number): boolean {
  return code === SP || code === TAB;
}

/** The error code for an invalid byte in a value, method or target. */
export function strayByteCode(code: number): "bad-line-end" | "control-character" {
  return code === CR || code === LF ? "bad-line-end" : "control-character";
}

function nameErrorCode(text: string, at: number, nameStart: number, isFirst: boolean): Http1Error["code"] {
  const code = text.charCodeAt(at);
  const isFirstByte = at === nameStart;
  if (isBlank(code)) {
    if (isFirstByte) return isFirst ? "space-before-field" : "line-folding";
    return text.charCodeAt(blanksEnd(text, at)) === COLON ? "space-before-colon" : "bad-field-name";
  }
  if (code === CR && text.charCodeAt(at + 1) === LF) return "bad-field-name";
  if (code === CR || code === LF) return "bad-line-end";
  return code < SP || code === 0x7f ? "control-character" : "bad-field-name";
}

const MAX_LENGTH_DIGITS = 15;

/** Parses Content-Length: at most 15 digits, to be exact. Throws Http1Error `bad-content-length`. */
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

/** Strict framing from Content-Length or Transfer-Encoding, one of which is present. Throws Http1Error. */
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

/** Remaining hops of a request; defined for TRACE and OPTIONS only (RFC 9110, 7.6.2). */
const MAX_FORWARDS = "max-forwards";
const COUNTER = /^[0-9]+$/;

/** Longer than any chain; larger counters need not be exact. */
const MAX_COUNTER = 2 ** 31 - 1;

/** Fields with credentials or client addresses, left out of TRACE responses. */
const SENSITIVE =
  /^(?:proxy-|forwarded$|x-forwarded-|x-real-ip$)|auth|cookie|token|secret|key|pass|session|credential|jwt|signature|csrf|xsrf|assertion|client-ip|connecting-ip|client-cert/;

const isCounted = (method: string): boolean => method === "OPTIONS" || method === "TRACE";

/** The decremented counter; values that are not numbers, and those of other methods, are unchanged. */
export function countedDown(method: string, value: string): string {
  if (!isCounted(method) || !COUNTER.test(value)) return value;
  return String(Math.max(0, Math.min(Number(value) - 1, MAX_COUNTER)));
}

/** Decrements each Max-Forwards in place. */
export function countDownForwards(method: string, fields: RawFields): void {
  if (!isCounted(method)) return;
  for (let at = 0; at < fields.length; at += 2) {
    if (fields[at]?.toLowerCase() === MAX_FORWARDS) fields[at + 1] = countedDown(method, fields[at + 1] ?? "");
  }
}

/** Whether a TRACE or OPTIONS request must be handled by this recipient instead of being forwarded. */
export function isLastRecipient(method: string, fields: Readonly<RawFields>): boolean {
  if (!isCounted(method)) return false;
  const value = fieldValue(fields, MAX_FORWARDS) ?? "";
  return COUNTER.test(value) && Number(value) === 0;
}

/** A request as TRACE returns it. */
export interface TracedRequest {
  readonly method: string;
  readonly target: string;
  readonly version: string;
  readonly fields: Readonly<RawFields>;
}

/**
 * The `message/http` body of a TRACE response (RFC 9110, 9.3.8): the request as received, without fields that may
 * carry a secret and those for whose lower-case name `isSecret` is true.
 */
export function tracedRequest(
  { method, target, version, fields }: TracedRequest,
  isSecret: (lowerName: string) => boolean = () => false,
): Buffer {
  let text = `${method} ${target} HTTP/${version}\r\n`;
  for (let at = 0; at < fields.length; at += 2) {
    const name = fields[at] ?? "";
    const lowerName = name.toLowerCase();
    if (!SENSITIVE.test(lowerName) && !isSecret(lowerName)) text += `${name}: ${fields[at + 1] ?? ""}\r\n`;
  }
  return Buffer.from(`${text}\r\n`, "latin1");
}
