import { COLON, CR, FIELD_VALUE, LF, SP, TAB, TCHAR } from "./characters.ts";
import { Http1Error } from "./http1-error.ts";
import type { FieldLines, RawFields } from "./message.ts";

/** What the fields of one head say about framing, the connection and routing. Reused from head to head. */
export class HeadFacts {
  /** Of responses: white space between a field name and its colon is removed (RFC 9112 section 5.1), not refused. */
  readonly areOfResponses: boolean;
  /** Values of Content-Length in order; undefined when there is none. */
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
  /** Whether every line has exactly one space behind its colon and none behind its value. */
  isPlain = true;
  /** Whether white space stood before the colon of Content-Length or Transfer-Encoding. */
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

  /** Takes note of a field if it is one of the few that matter to the codec. */
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

/** Whether `name` is `lowerName` in any letter case. */
function isName(name: string, lowerName: string): boolean {
  // The first letter decides most comparisons without making a lower-cased copy.
  return (name.charCodeAt(0) | 0x20) === lowerName.charCodeAt(0) && name.toLowerCase() === lowerName;
}

/** The lines of a head from `start` to its empty line, if {@link readFieldLines} found them plain. */
export function plainLines(text: string, start: number, facts: HeadFacts): FieldLines {
  return facts.isPlain ? text.slice(start, -2) : undefined;
}

/**
 * Parses field lines of `text` from `at` to the empty line at its end (RFC 9112 section 5, nothing tolerated but, in
 * responses, white space before a colon).
 * @param isClean  the text is nothing but field-value characters and pairs of CR LF
 * @throws Http1Error for the first byte, in reading order, that does not belong there.
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
      checkBlanksBehind(name, text.slice(valueEnd, at));
    }
    fields.push(name, value);
    facts.note(name, value);
    at += 2;
  }
  if (at + 2 !== text.length || text.charCodeAt(at + 1) !== LF) throw new Http1Error("bad-line-end");
  return fields;
}

/**
 * Refuses a tab behind a Transfer-Encoding value. It is white space by RFC 9110, but widely used parsers, Node's among
 * them, then no longer see `chunked`: they end the message somewhere else.
 * @throws Http1Error `bad-transfer-encoding`
 */
export function checkBlanksBehind(name: string, blanks: string): void {
  if (isName(name, "transfer-encoding") && blanks.includes("\t")) throw new Http1Error("bad-transfer-encoding");
}

/**
 * The place of the colon behind white space that stands at `nameEnd`, as far as that may be.
 * @throws Http1Error where there is none, or in a request
 */
function paddedColon(text: string, nameEnd: number, nameStart: number, isFirst: boolean, facts: HeadFacts): number {
  const at = blanksEnd(text, nameEnd);
  const isPadded = at > nameEnd && nameEnd > nameStart && text.charCodeAt(at) === COLON;
  if (!isPadded || !facts.areOfResponses) throw new Http1Error(nameErrorCode(text, nameEnd, nameStart, isFirst));
  facts.isPlain = false;
  facts.hasPaddedFraming ||= isFramingName(text.slice(nameStart, nameEnd));
  return at;
}

/** The first place from `at` where neither SP nor HTAB stands. */
function blanksEnd(text: string, at: number): number {
  let end = at;
  while (isBlank(text.charCodeAt(end))) end++;
  return end;
}

/** Whether a field of that name says where the body ends. */
function isFramingName(name: string): boolean {
  return isName(name, "content-length") || isName(name, "transfer-encoding");
}

/** SP or HTAB. */
export function isBlank(code: number): boolean {
  return code === SP || code === TAB;
}

/** The code for a byte that ended a value, a method or a target although it may not stand there. */
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
