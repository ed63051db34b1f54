import { FIELD_VALUE, isToken, consistsOf } from "./characters.ts";
import { checkBlanksBehind, isBlank, type HeadFacts } from "./field-lines.ts";
import { Http1Error } from "./http1-error.ts";
import type { Oddity, RawFields, ResponseHead, Version } from "./message.ts";
import { actualFraming, readStatus, responseHead, tolerantFraming, type StatusLine } from "./response-head.ts";

type Tolerate = (oddity: Oddity) => void;

const START = /^(?:HTTP\/|ICY )/i;
const STATUS_LINE = /^(HTTP\/([0-9])(?:\.([0-9]))?|ICY)([ \t]+)([0-9]{3})(?:([ \t]+)(.*))?$/i;
const FRAMING_NAME = /content-length|transfer-encoding/i;
/** A folded line that a reader without folding takes for a framing field. */
const FRAMING_FIELD = /^[ \t]+(?:content-length|transfer-encoding)[ \t]*:/i;

/**
 * Parses a response head refused by the strict parser the way browsers do. Each deviation is reported; one that
 * affects framing fields is refused, because readers disagree there.
 * @throws Http1Error
 */
export function parseTolerantly(
  text: string,
  method: string,
  fieldCount: number,
  facts: HeadFacts,
  earlier: readonly Oddity[],
): ResponseHead {
  if (!START.test(text)) throw new Http1Error("bad-status-line");
  const oddities = new Set<Oddity>(earlier);
  const tolerate: Tolerate = (oddity) => void oddities.add(oddity);
  const lines = splitLines(text, tolerate);
  const line = readStatusLine(lines[0] ?? "", tolerate);
  const fields = readFields(lines, 1, fieldCount, tolerate);
  facts.reset();
  for (let at = 0; at < fields.length; at += 2) facts.note(fields[at] ?? "", fields[at + 1] ?? "");
  const framing = actualFraming(method, line.status, tolerantFraming(line.version, facts, tolerate));
  return responseHead(line, fields, undefined, framing, facts, [...oddities], text.length);
}

/**
 * Parses a trailer section refused by the strict parser.
 * @throws Http1Error
 */
export function parseTrailersTolerantly(text: string, fieldCount: number, tolerate: Tolerate): RawFields {
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

function readStatusLine(text: string, tolerate: Tolerate): StatusLine {
  const match = STATUS_LINE.exec(text);
  if (match === null) throw new Http1Error("bad-status-line");
  const [, protocol = "", major, minor, spaceBefore, digits = "", spaceBehind, reason = ""] = match;
  const status = readStatus(digits, 0);
  if (status === undefined) throw new Http1Error("bad-status-line");
  if (spaceBehind === undefined) tolerate("missing-reason-space");
  if (spaceBefore !== " " || (spaceBehind ?? " ") !== " ") tolerate("status-line-spacing");
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
    checkBlanksBehind(name, line.slice(line.lastIndexOf(value) + value.length));
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
