/** The plainest possible reading of a query, written apart from the compiler to check it. Only for tests. */
import { Evaluation, type QueryRecord, READABLE } from "../src/record.ts";
import { fieldOf } from "../src/fields.ts";
import type { FieldTest, NumberRange, Query, TextValue } from "../src/query.ts";

/** Whether the record satisfies the query, decided without any preparation. */
export function interpret(query: Query, record: QueryRecord, nowMs: number): boolean {
  switch (query.kind) {
    case "all":
      return true;
    case "and":
      return interpretTogether(query.terms, record, nowMs);
    case "or":
      return query.terms.some((term) => interpret(term, record, nowMs));
    case "not":
      return !interpret(query.term, record, nowMs);
    case "preset":
      return interpret(query.query, record, nowMs);
    case "since":
    case "before": {
      const at = query.moment.kind === "at" ? query.moment.epochMs : nowMs - query.moment.ms;
      return query.kind === "since" ? record.timestampMs >= at : record.timestampMs < at;
    }
    case "anywhere":
      return [
        record.url,
        ...(/[^\0-\x7f]|\\[uUxXpP]/.test(valueSource(query.value)) ? [READABLE.url(record.url)] : []),
        ...lines(record.requestFields()),
        ...lines(record.responseFields()),
        record.requestText(),
        record.responseText(),
      ]
        .filter((text) => text !== undefined)
        .some((text) => compare(query.value, text, { lower: unicodeLower, whole: false, floating: true }));
    case "json":
      return interpretJson(query.side === "req" ? record.requestText() : record.responseText(), query.path, query.test);
    case "field":
      return interpretField(query.field, query.key, query.test, record);
  }
}

/** Beside `ws.text:`, `dir:` is about the same message; groups in parentheses speak of messages of their own. */
function interpretTogether(terms: readonly Query[], record: QueryRecord, nowMs: number): boolean {
  const isAbout = (name: string) => (term: Query) => term.kind === "field" && term.field === name;
  if (!terms.some(isAbout("ws.text"))) return terms.every((term) => interpret(term, record, nowMs));
  const ways = (["in", "out"] as const).filter((way) =>
    terms.filter(isAbout("dir")).every((term) => {
      const seen: QueryRecord = {
        ...record,
        incoming: way === "in" ? way : undefined,
        outgoing: way === "out" ? way : undefined,
      };
      return interpret(term, seen, nowMs);
    }),
  );
  const narrowed: QueryRecord = {
    ...record,
    webSocketTexts: (directions) => record.webSocketTexts?.(directions.filter((way) => ways.includes(way))) ?? [],
  };
  return terms
    .filter((term) => !isAbout("dir")(term))
    .every((term) => interpret(term, term.kind === "field" ? narrowed : record, nowMs));
}

const unicodeLower = (text: string): string => text.toLowerCase();
const asciiLower = (text: string): string => text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());

function lines(fields: readonly string[]): string[] {
  return fields.flatMap((name, index) => (index % 2 === 0 ? [`${name}: ${fields[index + 1] ?? ""}`] : []));
}

function texts(name: string, key: string | null, record: QueryRecord): string[] | undefined {
  const both = [record.requestFields(), record.responseFields()];
  const headers = (sides: readonly (readonly string[])[]): string[] =>
    sides.flatMap((fields) =>
      lines(fields).flatMap((line) => {
        const colon = line.indexOf(": ");
        if (key === null) return [line];
        return line.slice(0, colon).toLowerCase() === key ? [line.slice(colon + 2)] : [];
      }),
    );
  if (name === "header") return headers(both);
  if (name === "req.header") return headers(both.slice(0, 1));
  if (name === "resp.header") return headers(both.slice(1));
  const bodies = {
    body: [record.requestText(), record.responseText()],
    "req.body": [record.requestText()],
    "resp.body": [record.responseText()],
  };
  if (name === "body" || name === "req.body" || name === "resp.body") {
    return bodies[name].filter((text) => text !== undefined);
  }
  return undefined;
}

function interpretField(name: string, key: string | null, test: FieldTest, record: QueryRecord): boolean {
  const { value } = fieldOf(name);
  if (value.type === "number") {
    const number = value.read(record);
    if (test.kind === "exists") return number !== undefined;
    if (number === undefined || test.kind !== "number") return false;
    return test.ranges.some((range) => within(range, number)) === (test.mode === "matches");
  }
  let found = texts(name, key, record) ?? [...value.read(record, key, new Evaluation())];
  if (test.kind === "exists") {
    if (name === "req.body") return record.hasRequestBody;
    if (name === "resp.body") return record.hasResponseBody;
    if (name === "body") return record.hasRequestBody || record.hasResponseBody;
    return found.some((text) => text !== "" || name.endsWith("header") || name === "cookie");
  }
  if (test.kind !== "text") return false;
  let lower = value.fold === "ascii" ? asciiLower : unicodeLower;
  const { readable } = value;
  if (readable !== undefined && test.values.some(isNoUrlText)) {
    found = [...found, ...found.map(readable)];
    lower = unicodeLower;
  }
  const wanted = test.values.map((one): TextValue => {
    const alias =
      one.kind === "literal"
        ? Object.entries(value.aliases ?? {}).find(([from]) => from === asciiLower(one.text))
        : undefined;
    return alias === undefined || (test.mode !== "matches" && value.caseless !== true)
      ? one
      : { kind: "literal", text: alias[1] };
  });
  if (test.mode === "matches") {
    const manner = { lower, whole: value.literal === "equals", floating: value.floating ?? false };
    return found.some((text) => wanted.some((one) => compare(one, text, manner)));
  }
  const equal = (text: string): boolean =>
    wanted.some(
      (one) =>
        one.kind === "literal" && (value.caseless === true ? lower(one.text) === lower(text) : one.text === text),
    );
  return test.mode === "equals" ? found.some(equal) : found.some((text) => text !== "") && !found.some(equal);
}

/** Escapes of patterns may stand for any character; in other values they are backslashes. */
function valueSource(value: TextValue): string {
  if (value.kind === "pattern") return value.source;
  return (value.kind === "literal" ? value.text : value.parts.join("")).replaceAll("\\", "");
}

function isNoUrlText(value: TextValue): boolean {
  return /[^!-~]|\\[uUxXpP]/.test(valueSource(value));
}

function within(range: NumberRange, value: number): boolean {
  const low = range.min === null || value > range.min || (value === range.min && !range.minExcluded);
  const high = range.max === null || value < range.max || (value === range.max && !range.maxExcluded);
  return low && high;
}

function compare(
  value: TextValue,
  text: string,
  manner: { lower: (text: string) => string; whole: boolean; floating: boolean },
): boolean {
  if (value.kind === "pattern") return new RegExp(value.source, value.flags).test(text);
  const candidate = manner.lower(text);
  if (value.kind === "literal") {
    const needle = manner.lower(value.text);
    return manner.whole ? candidate === needle : candidate.includes(needle);
  }
  const source = value.parts.map((part) => manner.lower(part).replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&")).join("[^]*");
  return new RegExp(manner.floating ? source : `^(?:${source})$`).test(candidate);
}

const SELECT: Readonly<Record<string, (root: unknown) => unknown[]>> = {
  $: (root) => [root],
  "$.a.b[0]": (root) =>
    get(root, "a")
      .flatMap((value) => get(value, "b"))
      .flatMap((value) => (Array.isArray(value) ? members(value).slice(0, 1) : [])),
  "$..x": deep,
  "$['a)b'].*": (root) => get(root, "a)b").flatMap(members),
};

function members(value: unknown): unknown[] {
  return typeof value === "object" && value !== null ? Object.values<unknown>({ ...value }) : [];
}

function get(value: unknown, name: string): unknown[] {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return [];
  return Object.entries<unknown>({ ...value }).flatMap(([key, member]) => (key === name ? [member] : []));
}

function deep(root: unknown): unknown[] {
  if (typeof root !== "object" || root === null) return [];
  return [...get(root, "x"), ...members(root).flatMap(deep)];
}

function interpretJson(text: string | undefined, path: string, test: FieldTest): boolean {
  let root: unknown;
  try {
    root = JSON.parse(text ?? "");
  } catch {
    return false;
  }
  const values = SELECT[path]?.(root) ?? [];
  if (test.kind === "exists") return values.length > 0;
  if (test.kind === "number") {
    const numbers = values.filter((value) => typeof value === "number");
    return (
      numbers.length > 0 &&
      numbers.some((value) => test.ranges.some((range) => within(range, value))) === (test.mode === "matches")
    );
  }
  const written = values.filter((value) => typeof value !== "object" || value === null).map(String);
  if (test.mode === "matches") {
    return written.some((one) =>
      test.values.some((value) => compare(value, one, { lower: unicodeLower, whole: true, floating: false })),
    );
  }
  const equal = (one: string): boolean => test.values.some((value) => value.kind === "literal" && value.text === one);
  return test.mode === "equals" ? written.some(equal) : written.some((one) => one !== "") && !written.some(equal);
}
