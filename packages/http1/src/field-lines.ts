import { COLON, CR, FIELD_VALUE, LF, SP, TAB, TCHAR } from "./characters.ts";
import { Http1Error } from "./http1-error.ts";
import type { FieldLines, RawFields } from "./message.ts";

/** Facts from the fields of one head about framing, connection and routing. Reused for every head. */
export class HeadFacts {
  /**
   * In responses, white space between field name and colon is removed (RFC 9112 section 5.1); in requests it is
   * refused.
   */
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

/** Case-insensitive comparison. */
function isName(name: string, lowerName: string): boolean {
  // Comparing the first letter avoids most lower-cased copies.
  return (name.charCodeAt(0) | 0x20) === lowerName.charCodeAt(0) && name.toLowerCase() === lowerName;
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
 * Refuses a tab after a Transfer-Encoding value. RFC 9110 allows it as white space, but common parsers, including
 * Node's, then do not recognize `chunked` and end the message elsewhere.
 * @throws Http1Error `bad-transfer-encoding`
 */
export function checkBlanksBehind(name: string, blanks: string): void {
  if (isName(name, "transfer-encoding") && blanks.includes("\t")) throw new Http1Error("bad-transfer-encoding");
}

/**
 * Index of the colon after the white space at `nameEnd`.
 * @throws Http1Error if there is none, or in a request
 */
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
