import type { Condition, MessageSide } from "@headworks/capture-contract";
import { readJson } from "@headworks/json";

/** Field that a line of the builder tests. */
export type Subject =
  | "host"
  | "path"
  | "url"
  | "method"
  | "scheme"
  | "port"
  | "path_segment"
  | "query_param"
  | "header"
  | "content_type"
  | "body"
  | "json"
  | "graphql_operation"
  | "graphql_type"
  | "graphql_variable"
  | "status";

/** `is`, `begins` and `contains` take literal text; `matches` takes a pattern. */
export type Comparison = "is" | "begins" | "contains" | "matches" | "there" | "equals";

/** One line of the builder, values as typed. */
export interface TestDraft {
  readonly key: number;
  readonly kind: "test";
  readonly not: boolean;
  readonly subject: Subject;
  readonly comparison: Comparison;
  /** Name of the header or parameter, JSON path, or index of the segment. */
  readonly name: string;
  readonly value: string;
  /** Null: the message being processed. */
  readonly side: MessageSide | null;
}

/** A group of conditions. An empty group matches everything. */
export interface GroupDraft {
  readonly key: number;
  readonly kind: "group";
  readonly not: boolean;
  readonly op: "and" | "or";
  readonly items: readonly ConditionDraft[];
}

export type ConditionDraft = TestDraft | GroupDraft;

interface SubjectSpec {
  readonly label: string;
  readonly comparisons: readonly Comparison[];
  /** Label of `name`, for subjects that have one. */
  readonly name?: string;
  readonly example: string;
  /** Whether it can test either message. */
  readonly sided?: true;
  readonly choices?: readonly string[];
}

const TEXT: readonly Comparison[] = ["is", "begins", "contains", "matches"];
const NAMED: readonly Comparison[] = ["equals", "matches", "there"];

/** All subjects, in menu order. */
export const SUBJECTS: Readonly<Record<Subject, SubjectSpec>> = {
  host: { label: "Host", comparisons: TEXT, example: "api.example.com" },
  path: { label: "Path", comparisons: TEXT, example: "/orders" },
  url: { label: "URL", comparisons: TEXT, example: "https://api.example.com/orders" },
  method: { label: "Method", comparisons: ["is"], example: "GET" },
  scheme: { label: "Scheme", comparisons: ["is"], example: "https", choices: ["https", "http", "wss", "ws"] },
  port: { label: "Port", comparisons: ["is"], example: "443" },
  path_segment: { label: "Path segment", comparisons: ["is"], name: "Index, from 0", example: "orders" },
  query_param: { label: "Query parameter", comparisons: NAMED, name: "Name", example: "42" },
  header: { label: "Header", comparisons: NAMED, name: "Name", example: "application/json", sided: true },
  content_type: { label: "Content type", comparisons: ["contains", "matches"], example: "json", sided: true },
  body: { label: "Body", comparisons: ["contains", "matches"], example: "order_id", sided: true },
  json: { label: "JSON body", comparisons: NAMED, name: "Path", example: "42", sided: true },
  graphql_operation: { label: "GraphQL operation", comparisons: ["is"], example: "GetOrders" },
  graphql_type: {
    label: "GraphQL kind",
    comparisons: ["is"],
    example: "query",
    choices: ["query", "mutation", "subscription"],
  },
  graphql_variable: { label: "GraphQL variable", comparisons: ["equals"], name: "Name", example: "42" },
  status: { label: "Status", comparisons: ["is"], example: "404, 5xx, 400-499" },
};

export const COMPARISON_LABELS: Readonly<Record<Comparison, string>> = {
  is: "is",
  equals: "equals",
  begins: "begins with",
  contains: "contains",
  matches: "matches pattern",
  there: "exists",
};

/** Subjects and comparisons offered by a builder. */
export interface Vocabulary {
  /** Comparisons per subject; the first subject is the default of new lines. */
  readonly comparisons: ReadonlyMap<Subject, readonly Comparison[]>;
  /** Whether lines and groups can be negated. */
  readonly hasNot: boolean;
}

export const EVERYTHING: Vocabulary = {
  comparisons: new Map((Object.keys(SUBJECTS) as Subject[]).map((each) => [each, SUBJECTS[each].comparisons])),
  hasNot: true,
};

let lastKey = 0;
const nextKey = (): number => (lastKey += 1);

export function newTest(subject: Subject = "host"): TestDraft {
  return {
    key: nextKey(),
    kind: "test",
    not: false,
    subject,
    comparison: SUBJECTS[subject].comparisons[0] ?? "is",
    name: subject === "json" ? "$." : "",
    value: SUBJECTS[subject].choices?.[0] ?? "",
    side: null,
  };
}

export function newGroup(items: readonly ConditionDraft[], op: "and" | "or" = "and"): GroupDraft {
  return { key: nextKey(), kind: "group", not: false, op, items };
}

/** Changes the subject of a line and keeps the values that still apply. */
export function withSubject(test: TestDraft, subject: Subject, vocabulary = EVERYTHING): TestDraft {
  const comparisons = vocabulary.comparisons.get(subject) ?? [];
  const spec = SUBJECTS[subject];
  const fresh = newTest(subject);
  return {
    ...test,
    subject,
    comparison: comparisons.includes(test.comparison) ? test.comparison : (comparisons[0] ?? fresh.comparison),
    name: spec.name === undefined ? "" : test.name === "" ? fresh.name : test.name,
    value: spec.choices === undefined || spec.choices.includes(test.value) ? test.value : fresh.value,
    side: spec.sided === true ? test.side : null,
  };
}

function test(parts: Partial<TestDraft> & Pick<TestDraft, "subject" | "comparison">): TestDraft {
  return { key: nextKey(), kind: "test", not: false, name: "", value: "", side: null, ...parts };
}

function patternTest(subject: Subject, pattern: string, parts: Partial<TestDraft> = {}): TestDraft {
  const literal = asLiteral(pattern);
  const allowed = SUBJECTS[subject].comparisons;
  return literal !== null && allowed.includes(literal.comparison)
    ? test({ ...parts, subject, comparison: literal.comparison, value: literal.text })
    : test({ ...parts, subject, comparison: "matches", value: pattern });
}

/** A JSON value as typed: strings without quotes, unless they would parse as another type. */
function jsonText(value: unknown): string {
  if (typeof value === "string" && readValue(value) === value) return value;
  return JSON.stringify(value) ?? "null";
}

/** Parses text as JSON, preserving the digits of numbers; other text is a string. */
function readValue(text: string): unknown {
  try {
    return readJson(text);
  } catch {
    return text;
  }
}

function named(
  subject: "query_param" | "header" | "json",
  name: string,
  value: unknown,
  side: MessageSide | null,
): TestDraft {
  if (value === undefined || (value === null && subject !== "json")) {
    return test({ subject, comparison: "there", name, side });
  }
  const text = subject !== "json" && typeof value === "string" ? value : jsonText(value);
  return test({ subject, comparison: "equals", name, value: text, side });
}

export function draftOfCondition(condition: Condition): GroupDraft {
  const draft = draftOf(condition);
  return draft.kind === "group" && !draft.not ? draft : newGroup([draft]);
}

function draftOf(condition: Condition): ConditionDraft {
  switch (condition.type) {
    case "all":
      return newGroup([]);
    case "and":
    case "or":
      return newGroup(condition.conditions.map(draftOf), condition.type);
    case "not": {
      const inner = draftOf(condition.condition);
      return { ...inner, not: !inner.not };
    }
    case "url_pattern":
      return patternTest("url", condition.pattern);
    case "path_pattern":
      return patternTest("path", condition.pattern);
    case "host":
      return patternTest("host", condition.pattern);
    case "method":
      return test({ subject: "method", comparison: "is", value: condition.method });
    case "scheme":
      return test({ subject: "scheme", comparison: "is", value: condition.scheme });
    case "port":
      return test({ subject: "port", comparison: "is", value: String(condition.port) });
    case "path_segment":
      return test({
        subject: "path_segment",
        comparison: "is",
        name: String(condition.index),
        value: condition.value,
      });
    case "status_code":
      return test({ subject: "status", comparison: "is", value: String(condition.range) });
    default:
      return messageDraft(condition);
  }
}

type MessageCondition = Exclude<
  Condition,
  {
    readonly type:
      | "all"
      | "and"
      | "or"
      | "not"
      | "url_pattern"
      | "path_pattern"
      | "host"
      | "method"
      | "scheme"
      | "port"
      | "path_segment"
      | "status_code";
  }
>;

function messageDraft(condition: MessageCondition): TestDraft {
  const side = "side" in condition ? (condition.side ?? null) : null;
  switch (condition.type) {
    case "query_param":
      return named("query_param", condition.name, condition.value, null);
    case "query_param_pattern":
      return test({
        subject: "query_param",
        comparison: "matches",
        name: condition.name,
        value: condition.pattern,
      });
    case "header":
      return named("header", condition.name, condition.value, side);
    case "header_pattern":
      return test({ subject: "header", comparison: "matches", name: condition.name, value: condition.pattern, side });
    case "content_type":
      return patternTest("content_type", condition.pattern, { side });
    case "body_pattern":
      return patternTest("body", condition.pattern, { side });
    case "json_path":
      return named("json", condition.path, condition.value, side);
    case "json_path_pattern":
      return test({ subject: "json", comparison: "matches", name: condition.path, value: condition.pattern, side });
    case "graph_q_l_operation":
    case "graphql_operation":
      return test({ subject: "graphql_operation", comparison: "is", value: condition.operation_name });
    case "graph_q_l_type":
    case "graphql_type":
      return test({ subject: "graphql_type", comparison: "is", value: condition.operation_type });
    case "graph_q_l_variable":
    case "graphql_variable":
      return test({
        subject: "graphql_variable",
        comparison: "equals",
        name: condition.name,
        value: jsonText(condition.value),
      });
  }
}

/** The condition of a draft, or the problems of incomplete lines by key. */
export type BuiltCondition =
  | { readonly ok: true; readonly condition: Condition }
  | { readonly ok: false; readonly problems: ReadonlyMap<number, string> };

export function conditionOf(draft: GroupDraft): BuiltCondition {
  const problems = new Map<number, string>();
  const condition = build(draft, problems);
  return problems.size > 0 ? { ok: false, problems } : { ok: true, condition };
}

function build(draft: ConditionDraft, problems: Map<number, string>): Condition {
  const inner = draft.kind === "group" ? buildGroup(draft, problems) : buildTest(draft, problems);
  return draft.not ? { type: "not", condition: inner } : inner;
}

function buildGroup(group: GroupDraft, problems: Map<number, string>): Condition {
  const conditions = group.items.map((item) => build(item, problems));
  const [first, second] = conditions;
  if (first === undefined) return { type: "all" };
  return second === undefined ? first : { type: group.op, conditions };
}

const WHOLE_NUMBER = /^\d{1,5}$/u;

function testProblem({ subject, comparison, name, value }: TestDraft): string | null {
  const spec = SUBJECTS[subject];
  if (spec.name !== undefined && name.trim() === "") return `${spec.name} is missing`;
  if (comparison === "there") return null;
  if (subject === "port" && !(WHOLE_NUMBER.test(value) && Number(value) >= 1 && Number(value) <= 65_535)) {
    return "Enter a port from 1 to 65535";
  }
  if (subject === "path_segment" && !(WHOLE_NUMBER.test(name) && Number(name) <= 1000)) {
    return "Enter a segment index; 0 is the first";
  }
  const mayBeEmpty = comparison === "equals" || subject === "path_segment";
  return value === "" && !mayBeEmpty ? "Enter a value" : null;
}

function buildTest(draft: TestDraft, problems: Map<number, string>): Condition {
  const problem = testProblem(draft);
  if (problem !== null) problems.set(draft.key, problem);
  const { subject, comparison, value } = draft;
  const name = draft.name.trim();
  const pattern = comparison === "matches" ? value : literalPattern(comparison, value);
  const side = draft.side === null ? {} : { side: draft.side };
  switch (subject) {
    case "host":
      return { type: "host", pattern };
    case "path":
      return { type: "path_pattern", pattern };
    case "url":
      return { type: "url_pattern", pattern };
    case "method":
      return { type: "method", method: value.trim() };
    case "scheme":
      return { type: "scheme", scheme: value.trim() };
    case "port":
      return { type: "port", port: Number(value) };
    case "path_segment":
      return { type: "path_segment", index: Number(name), value };
    case "query_param":
      if (comparison === "matches") return { type: "query_param_pattern", name, pattern };
      return { type: "query_param", name, ...(comparison === "there" ? {} : { value }) };
    case "header":
      if (comparison === "matches") return { type: "header_pattern", name, pattern, ...side };
      return { type: "header", name, ...(comparison === "there" ? {} : { value }), ...side };
    case "content_type":
      return { type: "content_type", pattern, ...side };
    case "body":
      return { type: "body_pattern", pattern, ...side };
    case "json":
      if (comparison === "matches") return { type: "json_path_pattern", path: name, pattern, ...side };
      return { type: "json_path", path: name, ...(comparison === "there" ? {} : { value: readValue(value) }), ...side };
    case "graphql_operation":
      return { type: "graphql_operation", operation_name: value.trim() };
    case "graphql_type":
      return {
        type: "graphql_type",
        operation_type: value === "mutation" || value === "subscription" ? value : "query",
      };
    case "graphql_variable":
      return { type: "graphql_variable", name, value: readValue(value) };
    case "status":
      return { type: "status_code", range: value.trim() };
  }
}

/** The draft with the line or group of `key` replaced, or removed if `next` is null. */
export function replaceDraft(group: GroupDraft, key: number, next: ConditionDraft | null): GroupDraft {
  return {
    ...group,
    items: group.items.flatMap((item): readonly ConditionDraft[] => {
      if (item.key === key) return next === null ? [] : [next];
      return [item.kind === "group" ? replaceDraft(item, key, next) : item];
    }),
  };
}

/** A condition in words for lists: `GET, host api.example.com, path begins with /orders`. */
export function conditionSentence(condition: Condition): string {
  const draft = draftOfCondition(condition);
  return draft.items.length === 0 ? "Everything" : groupWords(draft);
}

function groupWords(group: GroupDraft): string {
  return group.items.map(words).join(group.op === "and" ? ", " : " or ");
}

function words(draft: ConditionDraft): string {
  if (draft.kind === "group") {
    const inner = draft.items.length === 0 ? "everything" : groupWords(draft);
    if (draft.not) return `not (${inner})`;
    return draft.items.length > 1 ? `(${inner})` : inner;
  }
  const text = testWords(draft);
  return draft.not ? `not ${text}` : text;
}

const SIDES = { request: "request ", response: "response " } as const;

function testWords({ subject, comparison, name, value, side }: TestDraft): string {
  // The method is self-explanatory and needs no label.
  if (subject === "method") return value.toUpperCase();
  const label = SUBJECTS[subject].label;
  const about =
    `${side === null ? label.charAt(0).toLowerCase() + label.slice(1) : SIDES[side] + label.toLowerCase()}`.replace(
      /^(?:uRL|jSON|graphQL)/u,
      (word) => ({ uRL: "URL", jSON: "JSON" })[word] ?? "GraphQL",
    );
  const named = name === "" ? about : `${about} ${name}`;
  if (comparison === "there") return named;
  const verb =
    comparison === "is" || comparison === "equals" ? (name === "" ? "" : " =") : ` ${COMPARISON_LABELS[comparison]}`;
  return `${named}${verb.replace(" pattern", "")} ${value === "" ? "nothing" : value}`;
}

const SPECIAL = /[\\^$.|?*+()[\]{}]/gu;

/** A pattern matching literal text: exactly, as a prefix, or anywhere. */
export function literalPattern(comparison: string, text: string): string {
  const escaped = text.replaceAll(SPECIAL, "\\$&");
  if (comparison === "is") return `^${escaped}$`;
  return comparison === "begins" ? `^${escaped}` : escaped;
}

/** The literal text of a pattern; null for patterns that are not literal. */
export function asLiteral(
  pattern: string,
): { readonly comparison: "is" | "begins" | "contains"; readonly text: string } | null {
  const isAnchored = pattern.startsWith("^");
  const isClosed = isAnchored && /[^\\](?:\\\\)*\$$/u.test(pattern);
  const inner = pattern.slice(isAnchored ? 1 : 0, isClosed ? -1 : undefined);
  let text = "";
  for (let at = 0; at < inner.length; at++) {
    const char = inner.charAt(at);
    if (char === "\\") {
      at += 1;
      const next = inner.charAt(at);
      // `\d`, `\b` and similar are classes, not literals.
      if (next === "" || /[0-9A-Za-z]/u.test(next)) return null;
      text += next;
    } else if (/[\^$.|?*+()[\]{}]/u.test(char)) {
      return null;
    } else {
      text += char;
    }
  }
  if (text === "") return null;
  return { comparison: isClosed ? "is" : isAnchored ? "begins" : "contains", text };
}
