import { dependsOnReading } from "@headworks/http-fields";
import { isNumeric, numberKey, type Numeric, parseJsonPath, parseNumber, selectJson } from "@headworks/json";
import { compilePattern } from "@headworks/linear-pattern";
import { asksReadableForm, type Field, fieldOf, type TextField } from "./fields.ts";
import { compileRanges, inExactRange } from "./numbers.ts";
import type { FieldTest, Moment, Query, TextValue } from "./query.ts";
import {
  DIRECTIONS,
  type Direction,
  Evaluation,
  fieldLines,
  foldAscii,
  foldUnicode,
  inBothReadings,
  type QueryRecord,
  READABLE,
} from "./record.ts";

/** A compiled comparison. `folded` is the text in lower case when `usesFolded` asks for it, else the text itself. */
interface TextMatch {
  readonly usesFolded: boolean;
  readonly matches: (text: string) => boolean;
}

/** How the texts of a field are compared. */
type TextManner = Pick<TextField, "literal" | "fold" | "caseless" | "floating" | "aliases">;

/** The alternative of a value that the alias table of the field knows. */
export function aliasOf(manner: TextManner, text: string): string {
  const { aliases } = manner;
  const key = foldAscii(text);
  return aliases !== undefined && Object.hasOwn(aliases, key) ? (aliases[key] ?? text) : text;
}

/** Compiles one value of an everyday comparison. */
function compileValue(value: TextValue, manner: TextManner): TextMatch {
  const fold = manner.fold === "ascii" ? foldAscii : foldUnicode;
  if (value.kind === "pattern") {
    const pattern = compilePattern(value.source, value.flags);
    return { usesFolded: false, matches: (text) => pattern.test(text) };
  }
  if (value.kind === "wildcard") {
    const parts = value.parts.map(fold);
    return { usesFolded: true, matches: (text) => matchesWildcard(text, parts, manner.floating ?? false) };
  }
  const needle = fold(aliasOf(manner, value.text));
  if (manner.literal === "equals") return { usesFolded: true, matches: (text) => text === needle };
  return { usesFolded: true, matches: (text) => text.includes(needle) };
}

/** Compiles a whole-value comparison, as of `:=` and `:!=`. */
function compileEquality(text: string, manner: TextManner): TextMatch {
  const fold = manner.fold === "ascii" ? foldAscii : foldUnicode;
  if (manner.caseless === true) {
    const folded = fold(aliasOf(manner, text));
    return { usesFolded: true, matches: (candidate) => candidate === folded };
  }
  return { usesFolded: false, matches: (candidate) => candidate === text };
}

/** The comparisons of a text test in the order of its values. Patterns cannot be part of equality. */
function compileValues(test: FieldTest & { readonly kind: "text" }, manner: TextManner): readonly TextMatch[] {
  return test.values.map((value) =>
    test.mode === "matches"
      ? compileValue(value, manner)
      : compileEquality(value.kind === "literal" ? value.text : "", manner),
  );
}

/** Linear in the text for each part: the first place where a part fits is always good enough. */
function matchesWildcard(text: string, parts: readonly string[], floating: boolean): boolean {
  const last = parts.length - 1;
  let at = 0;
  for (let index = 0; index <= last; index += 1) {
    const part = parts[index] ?? "";
    if (!floating && index === 0) {
      if (!text.startsWith(part)) return false;
      at = part.length;
    } else if (!floating && index === last) {
      return text.length - part.length >= at && text.endsWith(part);
    } else {
      const found = text.indexOf(part, at);
      if (found === -1) return false;
      at = found + part.length;
    }
  }
  return true;
}

/** The terms of a conjunction without the directions that are a part of its other terms; see {@link directionsOf}. */
export function separateTerms(terms: readonly Query[]): readonly Query[] {
  return terms.some(testsMessages) ? terms.filter((term) => !testsDirection(term)) : terms;
}

function testsMessages(term: Query): boolean {
  return term.kind === "field" && term.field === "ws.text";
}

function testsDirection(term: Query): boolean {
  return term.kind === "field" && term.field === "dir";
}

/**
 * The ways that messages may have gone by the `dir:` terms of a conjunction: beside `ws.text:` they are about the message
 * that is looked for, not about any other of the same connection.
 */
export function directionsOf(terms: readonly Query[]): readonly Direction[] {
  const tests = terms.flatMap((term) => (term.kind === "field" && term.field === "dir" ? [term.test] : []));
  return DIRECTIONS.filter((direction) => tests.every((test) => isAllowed(test, direction)));
}

function isAllowed(test: FieldTest, direction: Direction): boolean {
  if (test.kind !== "text") return test.kind === "exists";
  const isListed = test.values.some((value) => value.kind === "literal" && value.text === direction);
  return isListed === (test.mode !== "differs");
}

/** Compiles a test of the texts of messages that went one of these ways; texts are taken one by one until it is decided. */
function compileMessages(
  test: FieldTest,
  field: TextField,
  directions: readonly Direction[],
): (record: QueryRecord) => boolean {
  if (test.kind === "number" || directions.length === 0) return () => false;
  const matches = test.kind === "exists" ? [] : compileValues(test, field);
  const folds = matches.some(({ usesFolded }) => usesFolded);
  const differs = test.kind === "text" && test.mode === "differs";
  return (record) => {
    let isPresent = false;
    for (const text of record.webSocketTexts?.(directions) ?? []) {
      isPresent ||= text !== "";
      if (test.kind === "exists" && isPresent) return true;
      const folded = folds ? foldUnicode(text) : text;
      if (matches.some((match) => match.matches(match.usesFolded ? folded : text))) return !differs;
    }
    return differs && isPresent;
  };
}

/** Whether a record satisfies a query. Never throws for a record whose methods do not throw. */
export type Predicate = (record: QueryRecord) => boolean;

/** Inputs of a query besides the record. */
export interface CompileOptions {
  /** The present, milliseconds since 1970; `since:10m` counts back from here. */
  readonly nowMs: number;
}

interface Step {
  /** Cheaper steps run first: 0 columns, 1 header fields and facts of streams, 2 bodies, 3 messages. */
  readonly cost: number;
  readonly holds: (record: QueryRecord, evaluation: Evaluation) => boolean;
}

/**
 * Turns a query into closures. Everything that depends on the query alone (lower case, patterns, paths) is done here,
 * once; terms about columns run before those about headers, and those before bodies. The predicate is not re-entrant:
 * a record's methods must not call it.
 */
export function compileQuery(query: Query, options: CompileOptions): Predicate {
  const step = compileStep(query, options);
  const evaluation = new Evaluation();
  if (step.cost < 2) return (record) => step.holds(record, evaluation);
  return (record) => {
    try {
      return step.holds(record, evaluation);
    } finally {
      evaluation.reset();
    }
  };
}

function compileStep(query: Query, options: CompileOptions): Step {
  switch (query.kind) {
    case "all":
      return { cost: 0, holds: () => true };
    case "and":
    case "or":
      return compileJoin(query.kind, query.terms, options);
    case "not": {
      const term = compileStep(query.term, options);
      return { cost: term.cost, holds: (record, evaluation) => !term.holds(record, evaluation) };
    }
    case "preset":
      return compileStep(query.query, options);
    case "anywhere":
      return compileAnywhere(query.value);
    case "since": {
      const from = momentMs(query.moment, options.nowMs);
      return { cost: 0, holds: (record) => record.timestampMs >= from };
    }
    case "before": {
      const until = momentMs(query.moment, options.nowMs);
      return { cost: 0, holds: (record) => record.timestampMs < until };
    }
    case "json":
      return compileJson(query.side === "req" ? "request" : "response", query.path, query.test);
    case "field":
      return compileField(fieldOf(query.field), query.key, query.test);
  }
}

/** The time a moment stands for, given the present. */
export function momentMs(moment: Moment, nowMs: number): number {
  return moment.kind === "at" ? moment.epochMs : nowMs - moment.ms;
}

function compileJoin(kind: "and" | "or", terms: readonly Query[], options: CompileOptions): Step {
  const steps = (
    kind === "and" ? compileTogether(terms, options) : terms.map((term) => compileStep(term, options))
  ).sort((left, right) => left.cost - right.cost);
  const cost = steps.at(-1)?.cost ?? 0;
  const deciding = kind === "or";
  return {
    cost,
    holds: (record, evaluation) => {
      for (const step of steps) if (step.holds(record, evaluation) === deciding) return deciding;
      return !deciding;
    },
  };
}

const COSTS = {
  columns: 0,
  stream: 1,
  fields: 1,
  requestBody: 2,
  responseBody: 2,
  bothBodies: 2,
  messages: 3,
} as const;

function compileField(field: Field, key: string | null, test: FieldTest, directions = DIRECTIONS): Step {
  const cost = COSTS[field.reads];
  const { value } = field;
  if (value.type === "number") return { cost, holds: compileNumber(value.read, test) };
  if (field.reads === "messages") return { cost, holds: compileMessages(test, value, directions) };
  if (test.kind === "exists") return existence(value, key, cost);
  if (test.kind === "number") return { cost, holds: () => false };
  if (field.reads === "requestBody" || field.reads === "responseBody" || field.reads === "bothBodies") {
    const sides = field.reads === "requestBody" ? REQUEST : field.reads === "responseBody" ? RESPONSE : BOTH;
    return { cost, holds: compileBodies(sides, test, value) };
  }
  const { readable } = value;
  if (readable !== undefined && asksReadableForm(value, test)) {
    const readForms = (record: QueryRecord, evaluation: Evaluation): readonly string[] => {
      const texts = value.read(record, key, evaluation);
      return [...texts, ...texts.map(readable)];
    };
    return { cost, holds: compileTexts(readForms, test, { ...value, fold: "unicode" }) };
  }
  // Only what is asked decides whether the octets of fields are read twice: the usual question is plain ASCII.
  const readsTwice = field.reads === "fields" && test.values.some(dependsOnReadingOf);
  const read = (record: QueryRecord, evaluation: Evaluation): readonly string[] => value.read(record, key, evaluation);
  const readBoth: typeof read = (record, evaluation) => inBothReadings(read(record, evaluation));
  return { cost, holds: compileTexts(readsTwice ? readBoth : read, test, value) };
}

function existence({ exists, mayBeEmpty, read }: TextField, key: string | null, cost: number): Step {
  if (exists !== undefined) return { cost: COSTS.columns, holds: exists };
  const counts = mayBeEmpty === true ? (): boolean => true : (text: string): boolean => text !== "";
  return { cost, holds: (record, evaluation) => read(record, key, evaluation).some(counts) };
}

function dependsOnReadingOf(value: TextValue): boolean {
  switch (value.kind) {
    case "literal":
      return dependsOnReading(value.text);
    case "wildcard":
      return value.parts.some((part) => dependsOnReading(part));
    case "pattern":
      return dependsOnReading(value.source, true);
  }
}

/** The terms of a conjunction; directions that stand beside texts of messages became part of those. */
function compileTogether(terms: readonly Query[], options: CompileOptions): Step[] {
  const directions = directionsOf(terms);
  return separateTerms(terms).map((term) =>
    term.kind === "field"
      ? compileField(fieldOf(term.field), term.key, term.test, directions)
      : compileStep(term, options),
  );
}

const REQUEST = ["request"] as const;
const RESPONSE = ["response"] as const;
const BOTH = ["request", "response"] as const;

function compileNumber(read: (record: QueryRecord) => number | undefined, test: FieldTest): Step["holds"] {
  if (test.kind === "exists") return (record) => read(record) !== undefined;
  if (test.kind === "text") return () => false;
  const holdsFor = compileRanges(test.ranges);
  const wanted = test.mode === "matches";
  return (record) => {
    const value = read(record);
    return value !== undefined && holdsFor(value) === wanted;
  };
}

type TextTest = FieldTest & { readonly kind: "text" };

function compileTexts(
  read: (record: QueryRecord, evaluation: Evaluation) => readonly string[],
  test: TextTest,
  manner: TextManner,
): Step["holds"] {
  const matches = compileValues(test, manner);
  const fold = manner.fold === "ascii" ? foldAscii : foldUnicode;
  const differs = test.mode === "differs";
  const single = matches[0];
  if (!differs && matches.length === 1 && single !== undefined) {
    return (record, evaluation) => {
      for (const text of read(record, evaluation)) {
        if (single.matches(single.usesFolded ? fold(text) : text)) return true;
      }
      return false;
    };
  }
  return (record, evaluation) => {
    const texts = read(record, evaluation);
    if (differs && texts.every((text) => text === "")) return false;
    for (const text of texts) {
      const folded = fold(text);
      if (matches.some((match) => match.matches(match.usesFolded ? folded : text))) return !differs;
    }
    return differs;
  };
}

function compileBodies(sides: readonly ("request" | "response")[], test: TextTest, manner: TextField): Step["holds"] {
  const matches = compileValues(test, manner);
  const differs = test.mode === "differs";
  return (record, evaluation) => {
    let present = false;
    for (const side of sides) {
      const text = evaluation.text(record, side);
      if (text === undefined) continue;
      present ||= text !== "";
      if (matches.some((match) => bodyMatches(match, record, side, evaluation))) return !differs;
    }
    return differs && present;
  };
}

function bodyMatches(
  match: TextMatch,
  record: QueryRecord,
  side: "request" | "response",
  evaluation: Evaluation,
): boolean {
  const text = match.usesFolded ? evaluation.folded(record, side) : evaluation.text(record, side);
  return text !== undefined && match.matches(text);
}

const ANYWHERE: TextManner = { literal: "contains", fold: "unicode", floating: true };

/** Free text: the URL first, because it is at hand, then the header lines, then the bodies. */
function compileAnywhere(value: TextValue): Step {
  const match = compileValue(value, ANYWHERE);
  const holdsFor = (text: string): boolean => match.matches(match.usesFolded ? foldUnicode(text) : text);
  const readsTwice = dependsOnReadingOf(value);
  const readings = readsTwice ? inBothReadings : (lines: readonly string[]): readonly string[] => lines;
  return {
    cost: 2,
    holds: (record, evaluation) =>
      holdsFor(record.url) ||
      (readsTwice && holdsFor(READABLE.url(record.url))) ||
      readings(fieldLines(record.requestFields())).some(holdsFor) ||
      readings(fieldLines(record.responseFields())).some(holdsFor) ||
      bodyMatches(match, record, "request", evaluation) ||
      bodyMatches(match, record, "response", evaluation),
  };
}

const JSON_TEXT: TextManner = { literal: "equals", fold: "unicode" };

/** JSON values compare by content: strings by their characters, numbers by their value or text, literals as JSON writes them. */
function compileJson(side: "request" | "response", path: string, test: FieldTest): Step {
  const parsed = parseJsonPath(path);
  if (!parsed.ok) throw new RangeError(`\`${path}\` is not a JSON path`);
  const { steps } = parsed;
  const select = (record: QueryRecord, evaluation: Evaluation): readonly unknown[] => {
    const root = evaluation.json(record, side);
    return root === undefined ? [] : selectJson(root, steps);
  };
  if (test.kind === "exists") return { cost: 2, holds: (record, evaluation) => select(record, evaluation).length > 0 };
  if (test.kind === "number") {
    const holdsFor = (value: Numeric): boolean => test.ranges.some((range) => inExactRange(range, value));
    const wanted = test.mode === "matches";
    return {
      cost: 2,
      holds: (record, evaluation) => {
        const numbers = select(record, evaluation).filter(isNumeric);
        return numbers.length > 0 && numbers.some(holdsFor) === wanted;
      },
    };
  }
  const spelling = spellings(test);
  return {
    cost: 2,
    holds: compileTexts(
      (record, evaluation) => select(record, evaluation).flatMap((value) => scalarText(value, spelling)),
      test,
      JSON_TEXT,
    ),
  };
}

/** The numbers that a test names, as it spells them, by their value: `1.0` in a body is what `1` asks for. */
function spellings({ values }: TextTest): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const value of values) {
    const number = value.kind === "literal" ? parseNumber(value.text) : undefined;
    if (number !== undefined && value.kind === "literal") found.set(numberKey(number), value.text);
  }
  return found;
}

/** Objects and arrays have no text of their own: ask for their members. */
function scalarText(value: unknown, spelling: ReadonlyMap<string, string>): readonly string[] {
  if (typeof value === "string") return [value];
  if (typeof value === "boolean" || value === null) return [String(value)];
  if (!isNumeric(value)) return [];
  return [(spelling.size === 0 ? undefined : spelling.get(numberKey(value))) ?? String(value)];
}
