import { parseJsonPath } from "@headworks/json";
import { checkPattern } from "@headworks/linear-pattern";
import { bareValue, type Field, fieldNames, findField } from "./fields.ts";
import { foldAscii } from "./record.ts";
import { comparison, parseDuration, parseInstant, parseNumber, parseRange } from "./numbers.ts";
import {
  allOf,
  anyOf,
  BUILT_IN_PRESETS,
  EVERYTHING,
  type FieldTest,
  type NumberRange,
  type Presets,
  type Query,
  type QueryError,
  type TextValue,
} from "./query.ts";
import { scan, type ScannedItem, type ScannedTerm, type ScannedValue, type Span } from "./scan.ts";

/** Result of parsing: a query, or the first error in the text. */
export type ParseResult =
  | { readonly ok: true; readonly query: Query }
  | { readonly ok: false; readonly error: QueryError };

/** Knowledge from outside the text. */
export interface ParseOptions {
  /** Saved filters by name, in addition to the built-in ones. */
  readonly presets?: Presets;
}

const MAX_TEXT_LENGTH = 16_384;
const MAX_NESTING = 64;
const MAX_VALUES = 500;
const MAX_PRESETS = 100;

class Refusal extends Error {
  readonly span: Span;

  constructor(message: string, span: Span) {
    super(message);
    this.span = span;
  }
}

/**
 * Parses a query. An empty text is the query that everything satisfies. Errors carry a sentence for users and the
 * place in UTF-16 offsets. Texts over 16,384 characters and nesting over 64 levels are refused.
 */
export function parseQuery(text: string, options: ParseOptions = {}): ParseResult {
  try {
    return {
      ok: true,
      query: parseText(text, { known: { ...options.presets, ...BUILT_IN_PRESETS }, expansions: 0 }, []),
    };
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    return { ok: false, error: { message: error.message, start: error.span.start, end: error.span.end } };
  }
}

/** All presets, and how many were expanded so far: presets that name presets must not grow a query without end. */
interface PresetBook {
  readonly known: Presets;
  expansions: number;
}

function parseText(text: string, presets: PresetBook, enclosing: readonly string[]): Query {
  if (text.length > MAX_TEXT_LENGTH) {
    throw new Refusal(`a query may have at most ${MAX_TEXT_LENGTH} characters`, {
      start: MAX_TEXT_LENGTH,
      end: text.length,
    });
  }
  return new Parser(scan(text), text, presets, enclosing).run();
}

class Parser {
  readonly #items: readonly ScannedItem[];
  readonly #text: string;
  readonly #presets: PresetBook;
  readonly #enclosing: readonly string[];
  #next = 0;
  #depth = 0;

  constructor(items: readonly ScannedItem[], text: string, presets: PresetBook, enclosing: readonly string[]) {
    this.#items = items;
    this.#text = text;
    this.#presets = presets;
    this.#enclosing = enclosing;
  }

  run(): Query {
    if (this.#items.length === 0) return EVERYTHING;
    const query = this.#alternatives();
    const rest = this.#items[this.#next];
    if (rest !== undefined) throw new Refusal("this `)` has no `(`", rest);
    return query;
  }

  #alternatives(): Query {
    const terms = [this.#conjunction()];
    while (this.#items[this.#next]?.type === "or") {
      this.#next += 1;
      terms.push(this.#conjunction());
    }
    return anyOf(terms);
  }

  #conjunction(): Query {
    const terms = [this.#negation()];
    for (;;) {
      const item = this.#items[this.#next];
      if (item === undefined || item.type === "or" || item.type === "close") return allOf(terms);
      if (item.type === "and") this.#next += 1;
      terms.push(this.#negation());
    }
  }

  #negation(): Query {
    let negated = false;
    for (;;) {
      const item = this.#items[this.#next];
      if (item?.type !== "not" && item?.type !== "minus") break;
      negated = !negated;
      this.#next += 1;
    }
    const term = this.#primary();
    return negated ? { kind: "not", term } : term;
  }

  #primary(): Query {
    const item = this.#items[this.#next];
    if (item === undefined) throw new Refusal(this.#missing(), { start: this.#text.length, end: this.#text.length });
    this.#next += 1;
    if (item.type === "open") return this.#group(item);
    if (item.type === "preset") return this.#preset(item.name, item);
    if (item.type === "term") return parseTerm(item, this.#text);
    throw new Refusal(`a term is expected here, not \`${this.#text.slice(item.start, item.end)}\``, item);
  }

  #missing(): string {
    const last = this.#items.at(-1);
    const written = last === undefined ? "" : this.#text.slice(last.start, last.end);
    return last?.type === "open" ? "the group is not closed: `)` is missing" : `a term is missing after \`${written}\``;
  }

  #group(open: Span): Query {
    this.#depth += 1;
    if (this.#depth > MAX_NESTING) throw new Refusal(`groups may be nested at most ${MAX_NESTING} deep`, open);
    const query = this.#alternatives();
    const close = this.#items[this.#next];
    if (close?.type !== "close") throw new Refusal("the group is not closed: `)` is missing", open);
    this.#next += 1;
    this.#depth -= 1;
    return query;
  }

  #preset(name: string, span: Span): Query {
    const { known } = this.#presets;
    const text = Object.hasOwn(known, name) ? known[name] : undefined;
    if (text === undefined) {
      const near = suggestion(name, Object.keys(known));
      throw new Refusal(`unknown preset \`@${name}\`${near === undefined ? "" : `; did you mean \`@${near}\`?`}`, span);
    }
    if (this.#enclosing.includes(name)) throw new Refusal(`the preset \`@${name}\` contains itself`, span);
    this.#presets.expansions += 1;
    if (this.#presets.expansions > MAX_PRESETS) throw new Refusal(`more than ${MAX_PRESETS} presets are used`, span);
    try {
      return { kind: "preset", name, query: parseText(text, this.#presets, [...this.#enclosing, name]) };
    } catch (error) {
      if (error instanceof Refusal) throw new Refusal(`in the preset \`@${name}\`: ${error.message}`, span);
      throw error;
    }
  }
}

function parseTerm(term: ScannedTerm & { readonly problem?: QueryError }, text: string): Query {
  const { field } = term;
  if (field === undefined) {
    if (term.problem !== undefined) throw new Refusal(term.problem.message, term.problem);
    const value = term.values[0];
    if (value === undefined) throw new Refusal("a value is missing", term);
    refuseMissingColon(value, text);
    return { kind: "anywhere", value: textValue(value) };
  }
  const name = foldAscii(field.name);
  const row = findField(name);
  if (row === undefined && !["json", "since", "before"].includes(name)) throw unknownField(field.name, field);
  if (term.problem !== undefined) throw new Refusal(term.problem.message, term.problem);
  if (term.values.length > MAX_VALUES) throw new Refusal(`a list may have at most ${MAX_VALUES} values`, term);
  if (row !== undefined) return fieldTerm(row, term, text);
  return name === "json" ? jsonTerm(term) : momentTerm(name === "since" ? "since" : "before", term);
}

function unknownField(name: string, span: Span): Refusal {
  const near = suggestion(name, fieldNames());
  if (near !== undefined) return new Refusal(`unknown field \`${name}\`; did you mean \`${near}\`?`, span);
  const known = fieldNames().join(", ");
  return new Refusal(
    `unknown field \`${name}\`; put it in quotes to search for the text, or use one of: ${known}`,
    span,
  );
}

/** `status>=400` would otherwise be searched for as text, which is never what was meant. */
function refuseMissingColon(value: ScannedValue, text: string): void {
  if (value.kind !== "word") return;
  const written = /^([A-Za-z.]+)(!=|>=|<=|=|>|<)/.exec(text.slice(value.start, value.end));
  const name = written?.[1] ?? "";
  if (written === null || findField(name) === undefined) return;
  throw new Refusal(
    `a colon is missing: write \`${name}:${written[2]}…\`, or use quotes to search for the text`,
    value,
  );
}

function fieldTerm(row: Field, term: ScannedTerm, text: string): Query {
  const key = term.field?.key;
  if (key !== undefined && row.keyed === undefined) throw new Refusal(`\`${row.name}\` takes no name in brackets`, key);
  const name = key?.text.trim();
  if (name === "") throw new Refusal(`the name in the brackets of \`${row.name}[…]\` is missing`, term);
  const written = name === undefined ? null : row.keyed === "caseless" ? foldAscii(name) : name;
  return { kind: "field", field: row.name, key: written, test: fieldTest(row, term, text) };
}

function fieldTest(row: Field, term: ScannedTerm, text: string): FieldTest {
  const operator = (term.operator?.text ?? ":").slice(1);
  if (testsExistence(term)) return { kind: "exists" };
  if (row.value.type === "number") return numberTest(row.name, row.value.unit, operator, term, text);
  if (operator !== "" && operator !== "=" && operator !== "!=") {
    throw new Refusal(`\`${row.name}\` is text and cannot be compared with \`${operator}\``, term.operator ?? term);
  }
  const { choices, aliases } = row.value;
  const values = term.values.map((value) => {
    const written = operator === "" ? textValue(value) : { kind: "literal" as const, text: plainText(value, operator) };
    const parsed = bareValue(row, written);
    if (choices === undefined) {
      const hint = BARLESS.has(row.name) ? listHint(row.name, value, text, /(?<!\\)\|/u) : undefined;
      if (hint !== undefined) throw new Refusal(hint, value);
      return parsed;
    }
    const folded = parsed.kind === "literal" ? foldAscii(parsed.text) : "";
    const choice = aliases !== undefined && Object.hasOwn(aliases, folded) ? aliases[folded] : folded;
    if (choice === undefined || !choices.includes(choice)) {
      throw new Refusal(listHint(row.name, value, text) ?? `\`${row.name}\` is one of ${choices.join(", ")}`, value);
    }
    return { kind: "literal" as const, text: choice };
  });
  return { kind: "text", mode: operator === "" ? "matches" : operator === "=" ? "equals" : "differs", values };
}

/** Fields whose values have no bar: a value with one is a list. */
const BARLESS: ReadonlySet<string> = new Set(["host", "method", "scheme", "ext", "type", "proto", "client"]);

/** The sentence about several values without parentheses, such as `4xx|5xx`; undefined for one value. In quotes it is one. */
function listHint(name: string, value: ScannedValue, text: string, separator = /(?<!\\)[|,]/u): string | undefined {
  if (value.kind !== "word") return undefined;
  const values = text
    .slice(value.start, value.end)
    .split(separator)
    .filter((each) => each !== "");
  return values.length < 2 ? undefined : `several values need parentheses: \`${name}:(${values.join("|")})\``;
}

function testsExistence(term: ScannedTerm): boolean {
  const [value] = term.values;
  return (
    term.values.length === 1 &&
    term.operator?.text === ":" &&
    value?.kind === "word" &&
    value.parts.length === 2 &&
    value.parts.every((part) => part === "")
  );
}

const EXAMPLES = {
  count: "`443` or `1..1024`",
  status: "`404`, `5xx` or `400..499`",
  grpcStatus: "`0`, `NOT_FOUND` or `1..16`",
  duration: "`200ms`, `1s` or `10m`",
  size: "`10kb`, `2MB` or `1024`",
  time: "`2026-11-21` or `2026-11-21T10:00:00Z`",
};

function numberTest(
  name: string,
  unit: keyof typeof EXAMPLES,
  operator: string,
  term: ScannedTerm,
  source: string,
): FieldTest {
  const ranges: NumberRange[] = term.values.map((value) => {
    const text = value.kind === "pattern" ? undefined : value.kind === "quoted" ? value.text : value.parts.join("*");
    const compares = operator !== "" && operator !== "=" && operator !== "!=";
    const number = text === undefined ? undefined : compares ? parseNumber(text, unit) : parseRange(text, unit);
    if (number === undefined) {
      throw new Refusal(listHint(name, value, source) ?? `\`${name}\` needs a value such as ${EXAMPLES[unit]}`, value);
    }
    return "minExcluded" in number ? number : comparison(operator, number);
  });
  return { kind: "number", mode: operator === "!=" ? "differs" : "matches", ranges };
}

function momentTerm(kind: "since" | "before", term: ScannedTerm): Query {
  const [value] = term.values;
  const text = value?.kind === "word" ? value.parts.join("*") : value?.kind === "quoted" ? value.text : "";
  if (term.operator?.text !== ":" || term.values.length !== 1) {
    throw new Refusal(`\`${kind}\` takes one time, such as \`${kind}:10m\``, term);
  }
  const ms = parseDuration(text);
  if (ms !== undefined && ms >= 0) return { kind, moment: { kind: "ago", ms } };
  const instant = parseInstant(text);
  if (instant === undefined) {
    throw new Refusal(
      `\`${kind}\` needs an age such as \`10m\` or a time such as \`2026-11-21T10:00:00Z\``,
      value ?? term,
    );
  }
  return { kind, moment: { kind: "at", epochMs: instant.start } };
}

function jsonTerm(term: ScannedTerm): Query {
  const key = term.field?.key;
  const form = "write `json(resp,$.a.b):value` or `json(req,$.a.b):value`";
  const match = /^\s*(req|resp)\s*,\s*(\S.*)$/s.exec(key?.text ?? "");
  if (key === undefined || match === null) throw new Refusal(form, term.field ?? term);
  const path = (match[2] ?? "").trimEnd();
  const parsed = parseJsonPath(path);
  if (!parsed.ok) {
    const offset = key.start + key.text.indexOf(path, key.text.indexOf(","));
    throw new Refusal(parsed.message, { start: offset + parsed.at, end: key.end });
  }
  return { kind: "json", side: match[1] === "req" ? "req" : "resp", path, test: jsonTest(term) };
}

function jsonTest(term: ScannedTerm): FieldTest {
  const operator = (term.operator?.text ?? ":").slice(1);
  if (testsExistence(term)) return { kind: "exists" };
  const [first] = term.values;
  const isRange =
    operator === "" &&
    first?.kind === "word" &&
    first.parts.length === 1 &&
    parseRange(first.parts.join(""), "count") !== undefined &&
    first.parts.join("").includes("..");
  if (!isRange && operator === "" && first?.kind === "word" && LONG_RANGE.test(first.parts.join("*"))) {
    throw new Refusal(
      "a range of `json` takes numbers of at most 16 digits; ask for one number with all of its digits",
      first,
    );
  }
  if (isRange || (operator !== "" && operator !== "=" && operator !== "!=")) {
    return numberTest("json", "count", operator, term, "");
  }
  const values = term.values.map((value) =>
    operator === "" ? textValue(value) : { kind: "literal" as const, text: plainText(value, operator) },
  );
  return { kind: "text", mode: operator === "" ? "matches" : operator === "=" ? "equals" : "differs", values };
}

/** A range of numbers; one with a number that a double does not keep is no range yet. */
const LONG_RANGE = /^-?[0-9.]*[0-9]\.\.-?[0-9]|^-?[0-9][0-9.]*\.\.$|^\.\.-?[0-9][0-9.]*$/;

function plainText(value: ScannedValue, operator: string): string {
  if (value.kind === "quoted") return value.text;
  if (value.kind === "word") return value.parts.join("*");
  throw new Refusal(`\`:${operator}\` compares whole values; use \`:\` with a pattern`, value);
}

function textValue(value: ScannedValue): TextValue {
  if (value.kind === "quoted") return { kind: "literal", text: value.text };
  if (value.kind === "word") {
    const [first] = value.parts;
    return value.parts.length === 1 && first !== undefined
      ? { kind: "literal", text: first }
      : { kind: "wildcard", parts: value.parts };
  }
  const checked = checkPattern(value.source, value.flags);
  if (checked.ok) return { kind: "pattern", source: value.source, flags: value.flags };
  const offset = value.start + 1;
  throw new Refusal(`in the pattern: ${checked.error.message}`, {
    start: offset + checked.error.start,
    end: offset + checked.error.end,
  });
}

/** The known word that a mistyped one most likely stands for: at most two edits away, or begun like it. */
function suggestion(word: string, known: readonly string[]): string | undefined {
  const wanted = word.toLowerCase();
  if (wanted.length < 2 || wanted.length > 64) return undefined;
  let best: string | undefined;
  let bestDistance = wanted.length <= 3 ? 2 : 3;
  for (const candidate of known) {
    const distance = candidate.startsWith(wanted) ? 1 : editDistance(wanted, candidate.toLowerCase());
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

/** Optimal string alignment: insert, delete, replace, or swap two neighbours. */
function editDistance(left: string, right: string): number {
  let before: number[] = [];
  let previous = Array.from({ length: right.length + 1 }, (_, index) => index);
  for (let i = 1; i <= left.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= right.length; j += 1) {
      const same = left[i - 1] === right[j - 1];
      let cost = Math.min((previous[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (previous[j - 1] ?? 0) + (same ? 0 : 1));
      if (i > 1 && j > 1 && left[i - 1] === right[j - 2] && left[i - 2] === right[j - 1]) {
        cost = Math.min(cost, (before[j - 2] ?? 0) + 1);
      }
      row.push(cost);
    }
    before = previous;
    previous = row;
  }
  return previous[right.length] ?? 0;
}
