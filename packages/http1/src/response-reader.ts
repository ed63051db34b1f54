import type { SharedBytes } from "@headworks/sockets";
import {
  allowedTrailers,
  checkTrailingBlanks,
  fieldFraming,
  HeadFacts,
  isBlank,
  plainLines,
  readContentLength,
  readFieldLines,
  strayByteCode,
} from "./fields.ts";
import { consistsOf, CR, FIELD_VALUE, isToken, LF, SP } from "./grammar.ts";
import { MessageReader, type MessageSink } from "./message-reader.ts";
import {
  demand,
  type FieldLines,
  type Framing,
  Http1Error,
  type Http1ErrorCode,
  lengthFraming,
  type Limits,
  NO_BODY,
  type Oddity,
  type RawFields,
  RESPONSE_LIMITS,
  type ResponseHead,
  UNTIL_CLOSE,
  type Version,
} from "./message.ts";

/** Shared by all readers while they parse a head; idle ones keep nothing. */
const sharedFacts = new HeadFacts("responses");

/** A message sink that also receives informational responses (1xx other than 101). */
export interface ResponseSink extends MessageSink<ResponseHead> {
  onInformational(head: ResponseHead): void;
}

export interface ResponseReaderOptions {
  /** Accepts what browsers accept and records each oddity; otherwise refuses it. */
  readonly lenient: boolean;
  readonly limits?: Partial<Limits>;
}

const MAX_EMPTY_LINES = 16;
const HTTP_START = "HTTP/";
const RADIO_START = "ICY ";

/** Reads responses from arbitrarily split input. Never throws; the sink gets at most one error. */
export class ResponseReader extends MessageReader<ResponseHead> {
  readonly #sink: ResponseSink;
  readonly #lenient: boolean;
  readonly #tolerate = (oddity: Oddity): void => {
    if (!this.#oddities.includes(oddity)) this.#oddities.push(oddity);
  };
  #oddities: Oddity[] = [];
  #method: string | undefined;
  #offersUpgrade = false;
  #informationalCount = 0;
  #emptyLines = 0;
  #afterLeadingCr = false;

  constructor(sink: ResponseSink, options: ResponseReaderOptions) {
    let tolerate: ((oddity: Oddity) => void) | undefined;
    if (options.lenient) tolerate = (oddity) => this.#tolerate(oddity);
    super(sink, { ...RESPONSE_LIMITS, ...options.limits }, { dropsExtensions: true, tolerate });
    this.#sink = sink;
    this.#lenient = options.lenient;
  }

  /**
   * Oddities tolerated so far in the current response. If there are any, close the connection after it. A strict
   * reader reports one for white space before the colon of a framing field.
   */
  get oddities(): readonly Oddity[] {
    return this.#oddities;
  }

  /**
   * Announces a request; required before each response, whose framing depends on the method. Other input is refused.
   * Implies `next` after a complete response.
   * @param upgrade  the protocols offered; without it a 101 is refused
   * @throws Error while a response is in progress
   */
  expect(method: string, upgrade?: string): void {
    demand(this.state !== "body" && !this.hasPartialHead, "the next response is expected only after the current one");
    this.next();
    this.#method = method;
    this.#offersUpgrade = upgrade !== undefined;
    this.#informationalCount = 0;
    this.#emptyLines = 0;
    this.#afterLeadingCr = false;
    if (this.#oddities.length > 0) this.#oddities = [];
  }

  /** Prepares for another `expect`; input before it is refused. */
  override next(): void {
    if (this.state === "ended") this.#method = undefined;
    super.next();
  }

  protected override readHead(chunk: SharedBytes, from: number): number {
    const method = this.#method;
    if (method === undefined) throw new Http1Error("unexpected-answer");
    const { collector } = this;
    let at = from;
    if (this.#lenient && collector.heldBytes === 0) {
      at = this.#skipEmptyLines(chunk, from);
      if (at === chunk.length) return at;
    }
    let end = collector.heldBytes === 0 ? collector.takeClean(chunk, at) : -1;
    if (end < 0) {
      end = collector.take(chunk, at);
      if (end < 0) {
        if (collector.overflowed) throw new Http1Error("head-too-large");
        this.#checkStart();
        return chunk.length;
      }
    }
    const head = this.#parse(collector.text, method);
    this.#deliver(head);
    return end;
  }

  #parse(text: string, method: string): ResponseHead {
    if (!this.#lenient) return this.#parseStrictly(text, method);
    if (this.#oddities.length === 0) {
      try {
        return this.#parseStrictly(text, method);
      } catch {
        // Not plain; the tolerant parser decides.
      }
    }
    return parseTolerantly(text, method, this.limits.fieldCount, sharedFacts, this.#oddities);
  }

  #parseStrictly(text: string, method: string): ResponseHead {
    return parseResponseHead(text, this.collector.isClean, method, this.limits.fieldCount, sharedFacts);
  }

  #deliver(head: ResponseHead): void {
    for (const oddity of head.oddities) this.#tolerate(oddity);
    if (head.status >= 200 || head.status === 101) {
      if (head.status === 101 && !this.#offersUpgrade) throw new Http1Error("unexpected-upgrade");
      this.beginBody(head, head.framing);
      return;
    }
    this.#informationalCount++;
    if (this.#informationalCount > this.limits.informationalCount) throw new Http1Error("too-many-informational");
    this.collector.reset();
    this.#sink.onInformational(head);
  }

  #skipEmptyLines(chunk: SharedBytes, from: number): number {
    let at = from;
    for (; at < chunk.length; at++) {
      const byte = chunk[at];
      if (byte === LF) {
        this.#afterLeadingCr = false;
        this.#tolerate("leading-empty-line");
        this.#emptyLines++;
        if (this.#emptyLines > MAX_EMPTY_LINES) throw new Http1Error("leading-empty-line");
      } else if (this.#afterLeadingCr) {
        throw new Http1Error("bad-line-end");
      } else if (byte === CR) {
        this.#afterLeadingCr = true;
      } else {
        break;
      }
    }
    return at;
  }

  /** Input that does not start like a response is refused immediately. */
  #checkStart(): void {
    const { collector } = this;
    let start = "";
    for (let index = 0; index < Math.min(HTTP_START.length, collector.heldBytes); index++) {
      start += String.fromCharCode(collector.heldByte(index));
    }
    if (HTTP_START.startsWith(start)) return;
    const upperStart = start.toUpperCase();
    const mayStart = HTTP_START.startsWith(upperStart) || RADIO_START.startsWith(upperStart.slice(0, 4));
    if (this.#lenient && mayStart) return;
    throw new Http1Error(startErrorCode(start));
  }

  protected override parseTrailers(text: string): RawFields {
    const fields = this.#readTrailers(text);
    const allowed = allowedTrailers(fields);
    if (allowed !== fields) {
      if (!this.#lenient) throw new Http1Error("forbidden-trailer");
      this.#tolerate("dropped-trailer");
    }
    return allowed;
  }

  #readTrailers(text: string): RawFields {
    const { fieldCount } = this.limits;
    sharedFacts.reset();
    if (!this.#lenient) return readFieldLines(text, 0, false, fieldCount, sharedFacts);
    try {
      return readFieldLines(text, 0, false, fieldCount, sharedFacts);
    } catch {
      return parseTrailersTolerantly(text, fieldCount, this.#tolerate);
    }
  }

  protected override endsWithoutLastLine(): boolean {
    if (!this.#lenient || !this.onlyLastLineMissing) return false;
    this.#tolerate("missing-last-line");
    return true;
  }

  protected override asError(code: Http1ErrorCode): Http1Error {
    return new Http1Error(code, 502);
  }
}

const NO_ODDITIES: readonly Oddity[] = Object.freeze([]);

/** Another reader may have ended the message elsewhere, so nothing may follow it on its connection. */
const PADDED_FRAMING: readonly Oddity[] = Object.freeze(["space-before-colon"]);
const VERSION_LENGTH = "HTTP/1.1".length;
const STATUS_AT = VERSION_LENGTH + 1;
const REASON_AT = STATUS_AT + 4;

interface StatusLine {
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
function parseResponseHead(
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
function startErrorCode(text: string): Http1Error["code"] {
  if (text.startsWith("\r") || text.startsWith("\n")) return "leading-empty-line";
  return "bad-status-line";
}

/** Three digits at `at`, 100 to 999, or undefined. */
function readStatus(text: string, at: number): number | undefined {
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

/** No body for 1xx, 204, 304, in responses to HEAD, and for 2xx to CONNECT (RFC 9112 section 6.3). */
function actualFraming(method: string, status: number, declared: Framing): Framing {
  const isBodiless =
    status < 200 || status === 204 || status === 304 || method === "HEAD" || (method === "CONNECT" && status < 300);
  return isBodiless ? NO_BODY : declared;
}

function responseHead(
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
function tolerantFraming(version: Version, facts: HeadFacts, tolerate: (oddity: Oddity) => void): Framing {
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

type Tolerate = (oddity: Oddity) => void;

const TOLERANT_START = /^(?:HTTP\/|ICY )/i;
const STATUS_LINE = /^(HTTP\/([0-9])(?:\.([0-9]))?|ICY)([ \t]+)([0-9]{3})(?:([ \t]+)(.*))?$/i;
const FRAMING_NAME = /content-length|transfer-encoding/i;

/** A folded line that a reader without folding takes for a framing field. */
const FRAMING_FIELD = /^[ \t]+(?:content-length|transfer-encoding)[ \t]*:/i;

/**
 * Parses a response head refused by the strict parser the way browsers do. Each deviation is reported; one that
 * affects framing fields is refused, because readers disagree there.
 * @throws Http1Error
 */
function parseTolerantly(
  text: string,
  method: string,
  fieldCount: number,
  facts: HeadFacts,
  earlier: readonly Oddity[],
): ResponseHead {
  if (!TOLERANT_START.test(text)) throw new Http1Error("bad-status-line");
  const oddities = new Set<Oddity>(earlier);
  const tolerate: Tolerate = (oddity) => void oddities.add(oddity);
  const lines = splitLines(text, tolerate);
  const line = readStatusLineTolerantly(lines[0] ?? "", tolerate);
  const fields = readFields(lines, 1, fieldCount, tolerate);
  facts.reset();
  for (let at = 0; at < fields.length; at += 2) facts.note(fields[at] ?? "", fields[at + 1] ?? "");
  const framing = actualFraming(method, line.status, tolerantFraming(line.version, facts, tolerate));
  return responseHead(line, fields, undefined, framing, facts, [...oddities], text.length);
}

/** Parses a trailer section refused by the strict parser. Throws Http1Error. */
function parseTrailersTolerantly(text: string, fieldCount: number, tolerate: Tolerate): RawFields {
  return readFields(splitLines(text, tolerate), 0, fieldCount, tolerate);
}

/** The lines before the final empty one. */
function splitLines(text: string, tolerate: Tolerate): string[] {
  if (text.includes("\0")) throw new Http1Error("control-character");
  const lines = text.split("\n");
  for (let index = 0; index < lines.length - 1; index++) {
    const line = lines[index] ?? "";
    if (line.endsWith("\r")) lines[index] = line.slice(0, -1);
    else tolerate("bare-lf");
  }
  if (lines.some((line) => line.includes("\r"))) throw new Http1Error("bad-line-end");
  return lines.slice(0, -2);
}

function readStatusLineTolerantly(text: string, tolerate: Tolerate): StatusLine {
  const match = STATUS_LINE.exec(text);
  if (match === null) throw new Http1Error("bad-status-line");
  const [, protocol = "", major, minor, spaceBefore, digits = "", spaceAfter, reason = ""] = match;
  const status = readStatus(digits, 0);
  if (status === undefined) throw new Http1Error("bad-status-line");
  if (spaceAfter === undefined) tolerate("missing-reason-space");
  if (spaceBefore !== " " || (spaceAfter ?? " ") !== " ") tolerate("status-line-spacing");
  if (!consistsOf(reason, FIELD_VALUE)) tolerate("control-character");
  return { version: versionOf(protocol, major, minor, tolerate), status, reason, end: 0 };
}

function versionOf(
  protocol: string,
  major: string | undefined,
  minor: string | undefined,
  tolerate: Tolerate,
): Version {
  if (protocol === "HTTP/1.1") return "1.1";
  if (protocol === "HTTP/1.0") return "1.0";
  tolerate("odd-version");
  const isOld = major === undefined || major === "0" || (major === "1" && (minor ?? "0") === "0");
  return isOld ? "1.0" : "1.1";
}

function readFields(lines: string[], from: number, fieldCount: number, tolerate: Tolerate): RawFields {
  const fields: RawFields = [];
  let afterDropped = false;
  for (let index = from; index < lines.length; index++) {
    const line = lines[index] ?? "";
    if (isBlank(line.charCodeAt(0))) {
      if (FRAMING_FIELD.test(line)) throw new Http1Error("ambiguous-framing");
      // The continuation of a dropped line is dropped too, never joined to the field before.
      if (!afterDropped) foldInto(fields, line, tolerate);
      continue;
    }
    const colon = line.indexOf(":");
    const rawName = colon < 0 ? line : line.slice(0, colon);
    const name = trimBlanks(rawName);
    afterDropped = colon < 0 || !isToken(name);
    if (afterDropped) {
      // Others may obey what is dropped here; with a framing field that would allow smuggling.
      if (FRAMING_NAME.test(rawName)) throw new Http1Error("ambiguous-framing");
      tolerate("dropped-line");
      continue;
    }
    if (name !== rawName) {
      tolerate("space-before-colon");
    }
    const value = trimBlanks(line.slice(colon + 1));
    checkTrailingBlanks(name, line.slice(line.lastIndexOf(value) + value.length));
    if (!consistsOf(value, FIELD_VALUE)) tolerate("control-character");
    if (fields.length >= 2 * fieldCount) throw new Http1Error("too-many-fields");
    fields.push(name, value);
  }
  return fields;
}

function foldInto(fields: RawFields, line: string, tolerate: Tolerate): void {
  const name = fields[fields.length - 2];
  const value = fields[fields.length - 1];
  if (name === undefined || value === undefined) throw new Http1Error("space-before-field");
  if (FRAMING_NAME.test(name)) throw new Http1Error("line-folding");
  tolerate("line-folding");
  const continuation = trimBlanks(line);
  if (!consistsOf(continuation, FIELD_VALUE)) tolerate("control-character");
  if (continuation !== "") fields[fields.length - 1] = value === "" ? continuation : `${value} ${continuation}`;
}

/** Trims SP and HTAB only. A loop, because a regular expression would be quadratic. */
function trimBlanks(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && isBlank(text.charCodeAt(start))) start++;
  while (end > start && isBlank(text.charCodeAt(end - 1))) end--;
  return text.slice(start, end);
}
