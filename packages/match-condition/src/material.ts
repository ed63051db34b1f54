import { fieldValues, parseBodyJson } from "@headworks/query-language";
import { parseUrlEncoded, utf8Reading, type QueryParameter } from "@headworks/http-fields";
import type { MessageSide } from "@headworks/capture-contract";
import { NOT_READ, type BodyText, type MatchSubject } from "./subject.ts";

/** A parsed body with its source: the body may be read between two evaluations. */
interface ParsedBody {
  readonly text: string;
  readonly value: unknown;
}

/** Cache by subject. */
const parsedBodies: Readonly<Record<MessageSide, WeakMap<MatchSubject, ParsedBody>>> = {
  request: new WeakMap(),
  response: new WeakMap(),
};

export function bodyText(subject: MatchSubject, side: MessageSide): BodyText {
  return side === "request" ? subject.requestText() : subject.responseText();
}

/** Undefined for a body that is not JSON. */
export function bodyJson(subject: MatchSubject, side: MessageSide): unknown {
  const text = bodyText(subject, side);
  if (text === NOT_READ) return NOT_READ;
  if (text === undefined) return undefined;
  const known = parsedBodies[side].get(subject);
  if (known?.text === text) return known.value;
  const value = parseBodyJson(text);
  parsedBodies[side].set(subject, { text, value });
  return value;
}

export function headerValues(subject: MatchSubject, side: MessageSide, lowerName: string): readonly string[] {
  return fieldValues(side === "request" ? subject.requestFields() : subject.responseFields(), lowerName);
}

let lastQuery = "";
let lastParameters: readonly QueryParameter[] = [];

/** Decoded values in order. Caches the last query, which many rules share. */
export function queryValues(query: string, name: string): string[] {
  if (query === "") return [];
  if (query !== lastQuery) {
    lastParameters = parseUrlEncoded(utf8Reading(query) ?? query);
    lastQuery = query;
  }
  const values: string[] = [];
  for (const parameter of lastParameters) if (parameter.name === name) values.push(parameter.value);
  return values;
}

/** Still percent-encoded; undefined beyond the last segment. */
export function pathSegment(path: string, index: number): string | undefined {
  let start = path.startsWith("/") ? 1 : 0;
  for (let at = 0; ; at += 1) {
    const end = path.indexOf("/", start);
    if (at === index) return path.slice(start, end === -1 ? undefined : end);
    if (end === -1) return undefined;
    start = end + 1;
  }
}
