import type { Condition, MockRequestCondition } from "@headworks/capture-contract";
import { isShallowJson, parseJsonPath } from "@headworks/json";
import { MAX_VALUE_DEPTH, parseStatusRange, PATTERN_MODES } from "./leaves.ts";
import { type PatternMode, readPattern } from "./text-pattern.ts";

const MAX_NAME_LENGTH = 255;
const MAX_VALUE_LENGTH = 65_536;
const MAX_PATTERN_LENGTH = 1000;

/** RFC 9110 section 5.6.2. */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** The issue of a member's value, undefined when valid; `type` is the kind of condition. */
const fieldProblems: Readonly<Record<FieldCheck, (value: unknown, type: string) => string | undefined>> = {
  pattern: patternProblem,
  name: (value) => filledProblem(value, MAX_NAME_LENGTH),
  headerName: (value) =>
    filledProblem(value, MAX_NAME_LENGTH) ?? (TOKEN.test(String(value)) ? undefined : "is not a header field name"),
  word: (value) => filledProblem(value, MAX_NAME_LENGTH),
  text: (value) => textProblem(value, MAX_VALUE_LENGTH),
  port: integer(1, 65_535),
  index: integer(0, 1000),
  side: oneOf(["request", "response"]),
  jsonPath: jsonPathProblem,
  json: jsonProblem,
  operationType: oneOf(["query", "mutation", "subscription"]),
  statusRange: statusProblem,
};

const pattern = { check: "pattern" } as const;
const name = { check: "name" } as const;
const header = { check: "headerName" } as const;
const value = { check: "text", optional: true, nullIsAbsent: true } as const;
const side = { check: "side", optional: true, nullIsAbsent: true } as const;
const path = { check: "jsonPath" } as const;
const json = { check: "json" } as const;

// Parsed by the parser itself.
const nested = { check: "json" } as const;

const KINDS: readonly (Kind & { readonly aliases?: readonly string[] })[] = [
  { type: "all", fields: {} },
  { type: "url_pattern", fields: { pattern } },
  { type: "path_pattern", fields: { pattern } },
  { type: "host", fields: { pattern } },
  { type: "method", fields: { method: { check: "word" } } },
  { type: "scheme", fields: { scheme: { check: "word" } } },
  { type: "port", fields: { port: { check: "port" } } },
  { type: "path_segment", fields: { index: { check: "index" }, value: { check: "text" } } },
  { type: "query_param", fields: { name, value } },
  { type: "query_param_pattern", fields: { name, pattern } },
  { type: "header", fields: { name: header, value, side } },
  { type: "header_pattern", fields: { name: header, pattern, side } },
  { type: "content_type", fields: { pattern, side } },
  { type: "body_pattern", fields: { pattern, side } },
  { type: "json_path", fields: { path, value: { ...json, optional: true }, side } },
  { type: "json_path_pattern", fields: { path, pattern, side } },
  { type: "graph_q_l_operation", aliases: ["graphql_operation"], fields: { operation_name: name } },
  { type: "graph_q_l_type", aliases: ["graphql_type"], fields: { operation_type: { check: "operationType" } } },
  { type: "graph_q_l_variable", aliases: ["graphql_variable"], fields: { name, value: json } },
  { type: "status_code", fields: { range: { check: "statusRange" } } },
  { type: "and", fields: { conditions: nested } },
  { type: "or", fields: { conditions: nested } },
  { type: "not", fields: { condition: nested } },
];

/** Kinds by name, including aliases. A map, so that inherited names are not found. */
export const FIELDS_OF_KIND: ReadonlyMap<string, Kind> = new Map(
  KINDS.flatMap((kind) => [kind.type, ...(kind.aliases ?? [])].map((known) => [known, kind] as const)),
);

export interface ConditionIssue {
  readonly path: string;
  readonly message: string;
}

/** The canonical condition, or all issues. */
export type ConditionResult =
  | { readonly ok: true; readonly condition: Condition }
  | { readonly ok: false; readonly issues: readonly ConditionIssue[] };

/** Bounds of nesting, and of parts in total. */
export const MAX_CONDITION_DEPTH = 32;
export const MAX_PARTS = 1000;
const MAX_ISSUES = 50;

const SHORTHAND = {
  url_pattern: { type: "url_pattern", field: "pattern" },
  host_pattern: { type: "host", field: "pattern" },
  path_pattern: { type: "path_pattern", field: "pattern" },
  method: { type: "method", field: "method" },
} as const;

type ShorthandName = keyof typeof SHORTHAND;

/**
 * Parses a condition of unknown shape: the kinds of the contract under all their names, or the shorthand
 * `{"url_pattern", "host_pattern", "path_pattern", "method"}`, whose members are joined by `and`. Reports all issues,
 * their paths prefixed with `at`. The result has canonical names and compiles.
 */
export function parseCondition(input: unknown, at = ""): ConditionResult {
  const reader = new ConditionReader();
  const condition =
    isRecord(input) && !Object.hasOwn(input, "type") && shorthandNames(input).length > 0
      ? reader.shorthand(input, at)
      : reader.read(input, at, 1);
  if (condition === undefined || reader.issues.length > 0) return { ok: false, issues: reader.issues };
  return { ok: true, condition };
}

/**
 * Parses the condition in a rule's body: its member `condition`, or the shorthand's members instead. Other members are
 * ignored. Paths of issues begin with `at`, such as `body`.
 */
export function parseRuleCondition(body: object, at = ""): ConditionResult {
  const names = shorthandNames(body);
  const given: unknown = Object.hasOwn(body, "condition") ? Reflect.get(body, "condition") : undefined;
  const [first] = names;
  if (given === undefined && first === undefined) {
    return { ok: false, issues: [{ path: `${at}/condition`, message: "is required" }] };
  }
  if (given !== undefined && first !== undefined) {
    return {
      ok: false,
      issues: [{ path: `${at}/${first}`, message: "cannot be combined with condition; move it inside" }],
    };
  }
  if (given !== undefined) return parseCondition(given, `${at}/condition`);
  return parseCondition(Object.fromEntries(names.map((name) => [name, Reflect.get(body, name) as unknown])), at);
}

function shorthandNames(input: object): ShorthandName[] {
  return (Object.keys(SHORTHAND) as ShorthandName[]).filter(
    (name) => Object.hasOwn(input, name) && Reflect.get(input, name) !== undefined,
  );
}

function isRecord(input: unknown): input is Readonly<Record<string, unknown>> {
  return typeof input === "object" && input !== null && !Array.isArray(input);
}

class ConditionReader {
  readonly issues: ConditionIssue[] = [];
  #parts = 0;

  shorthand(input: Readonly<Record<string, unknown>>, at: string): Condition | undefined {
    for (const name of Object.keys(input)) {
      if (!Object.hasOwn(SHORTHAND, name)) this.#issue(`${at}/${escaped(name)}`, "unknown property");
    }
    const conditions: Condition[] = [];
    for (const name of shorthandNames(input)) {
      const { type, field } = SHORTHAND[name];
      const condition = this.#leaf(type, { [field]: input[name] }, (_field) => `${at}/${name}`);
      if (condition !== undefined) conditions.push(condition);
    }
    const [first] = conditions;
    return conditions.length === 1 ? first : { type: "and", conditions };
  }

  read(input: unknown, at: string, depth: number): Condition | undefined {
    if (!isRecord(input)) return this.#issue(at, "must be an object with a type");
    this.#parts += 1;
    if (this.#parts > MAX_PARTS) {
      return this.#parts === MAX_PARTS + 1
        ? this.#issue(at, `a condition may have at most ${MAX_PARTS} parts`)
        : undefined;
    }
    if (depth > MAX_CONDITION_DEPTH) return this.#issue(at, `conditions may nest at most ${MAX_CONDITION_DEPTH} deep`);
    const type = Object.hasOwn(input, "type") ? input["type"] : undefined;
    if (typeof type !== "string") return this.#issue(`${at}/type`, "is required and must be a text");
    const kind = FIELDS_OF_KIND.get(type);
    if (kind === undefined) {
      const names = [...FIELDS_OF_KIND.keys()].join(", ");
      return this.#issue(`${at}/type`, `must be one of ${names}`);
    }
    this.#unknownFields(input, kind.fields, at);
    if (kind.type === "not") return this.#not(input, at, depth);
    if (kind.type === "and" || kind.type === "or") return this.#join(kind.type, input, at, depth);
    return this.#leaf(kind.type, input, (field) => `${at}/${field}`);
  }

  #not(input: Readonly<Record<string, unknown>>, at: string, depth: number): Condition | undefined {
    if (!Object.hasOwn(input, "condition")) return this.#issue(`${at}/condition`, "is required");
    const condition = this.read(input["condition"], `${at}/condition`, depth + 1);
    return condition && { type: "not", condition };
  }

  #join(
    type: "and" | "or",
    input: Readonly<Record<string, unknown>>,
    at: string,
    depth: number,
  ): Condition | undefined {
    const given = Object.hasOwn(input, "conditions") ? input["conditions"] : undefined;
    if (!Array.isArray(given)) return this.#issue(`${at}/conditions`, "must be a list of conditions");
    if (given.length === 0) return this.#issue(`${at}/conditions`, "must have at least one condition");
    const conditions: Condition[] = [];
    for (const [index, part] of (given as readonly unknown[]).entries()) {
      if (this.#parts > MAX_PARTS || this.issues.length >= MAX_ISSUES) break;
      const condition = this.read(part, `${at}/conditions/${index}`, depth + 1);
      if (condition !== undefined) conditions.push(condition);
    }
    return { type, conditions };
  }

  #unknownFields(
    input: Readonly<Record<string, unknown>>,
    fields: Readonly<Record<string, FieldKind>>,
    at: string,
  ): void {
    for (const name of Object.keys(input)) {
      if (name !== "type" && !Object.hasOwn(fields, name)) this.#issue(`${at}/${escaped(name)}`, "unknown property");
    }
  }

  /** Fields in the order of the table; optional nulls are dropped. */
  #leaf(
    type: string,
    input: Readonly<Record<string, unknown>>,
    pointerOf: (field: string) => string,
  ): Condition | undefined {
    const fields = FIELDS_OF_KIND.get(type)?.fields ?? {};
    const read: Record<string, unknown> = { type };
    let isWhole = true;
    for (const [name, field] of Object.entries(fields)) {
      const value: unknown = Object.hasOwn(input, name) ? input[name] : undefined;
      if (value === undefined || (value === null && field.nullIsAbsent === true)) {
        if (field.optional === true) continue;
        this.#issue(pointerOf(name), "is required");
        isWhole = false;
        continue;
      }
      const problem = fieldProblems[field.check](value, type);
      if (problem === undefined) read[name] = value;
      else {
        this.#issue(pointerOf(name), problem);
        isWhole = false;
      }
    }
    // The table lists exactly the members of each kind.
    return isWhole ? (read as unknown as Condition) : undefined;
  }

  #issue(path: string, message: string): undefined {
    if (this.issues.length < MAX_ISSUES) this.issues.push({ path, message });
  }
}

/** Escapes a name for a JSON pointer (RFC 6901 section 3). */
function escaped(name: string): string {
  return name.slice(0, 100).replaceAll("~", "~0").replaceAll("/", "~1");
}

interface FieldKind {
  readonly check: FieldCheck;
  readonly optional?: true;
  /** `null` means the same as an absent member. */
  readonly nullIsAbsent?: true;
}

interface Kind {
  readonly type: Condition["type"];
  readonly fields: Readonly<Record<string, FieldKind>>;
}

type FieldCheck =
  | "pattern"
  | "name"
  | "headerName"
  | "word"
  | "text"
  | "port"
  | "index"
  | "side"
  | "jsonPath"
  | "json"
  | "operationType"
  | "statusRange";

function textProblem(value: unknown, maxLength: number): string | undefined {
  if (typeof value !== "string") return "must be a text";
  return value.length > maxLength ? `may have at most ${maxLength} characters` : undefined;
}

function filledProblem(value: unknown, maxLength: number): string | undefined {
  const problem = textProblem(value, maxLength);
  return problem ?? (String(value).trim() === "" ? "must not be blank" : undefined);
}

function oneOf(choices: readonly string[]): (value: unknown) => string | undefined {
  return (value) =>
    typeof value === "string" && choices.includes(value) ? undefined : `must be one of ${choices.join(", ")}`;
}

function integer(min: number, max: number): (value: unknown) => string | undefined {
  return (value) =>
    Number.isInteger(value) && Number(value) >= min && Number(value) <= max
      ? undefined
      : `must be an integer from ${min} to ${max}`;
}

function patternProblem(value: unknown, type: string): string | undefined {
  const problem = filledProblem(value, MAX_PATTERN_LENGTH);
  if (problem !== undefined) return problem;
  const manners: Readonly<Record<string, PatternMode>> = PATTERN_MODES;
  const mode = manners[type];
  if (mode === undefined) throw new TypeError(`${type} has no pattern`);
  const reading = readPattern(String(value), mode);
  return "message" in reading ? `${reading.message} (at character ${reading.start + 1})` : undefined;
}

function jsonPathProblem(value: unknown): string | undefined {
  const problem = filledProblem(value, MAX_PATTERN_LENGTH);
  if (problem !== undefined) return problem;
  const parsed = parseJsonPath(String(value));
  return parsed.ok ? undefined : `${parsed.message} (at character ${parsed.at + 1})`;
}

function jsonProblem(value: unknown): string | undefined {
  if (!isShallowJson(value, MAX_VALUE_DEPTH)) return `may nest at most ${MAX_VALUE_DEPTH} deep`;
  return JSON.stringify(value).length > MAX_VALUE_LENGTH
    ? `may have at most ${MAX_VALUE_LENGTH} characters`
    : undefined;
}

function statusProblem(value: unknown): string | undefined {
  const isKnown = typeof value === "string" || typeof value === "number";
  if (isKnown && String(value).length <= MAX_NAME_LENGTH && parseStatusRange(value) !== undefined) return undefined;
  return "must be such as 404, 5xx, 400-499 or 404,5xx";
}

/** Converts the request condition of a conditional mock response into a rule condition. */
export function conditionOfResponse(condition: MockRequestCondition): Condition {
  switch (condition.type) {
    case "header_equals":
      return { type: "header", name: condition.name, value: condition.value };
    case "header_matches":
      return { type: "header_pattern", name: condition.name, pattern: condition.pattern };
    case "query_param_equals":
      return { type: "query_param", name: condition.name, value: condition.value };
    case "json_path_equals":
      return { type: "json_path", path: condition.path, value: condition.value };
    case "json_path_matches":
      return { type: "json_path_pattern", path: condition.path, pattern: condition.pattern };
    case "body_matches":
      return { type: "body_pattern", pattern: condition.pattern };
    case "and":
    case "or":
      return { type: condition.type, conditions: condition.conditions.map(conditionOfResponse) };
  }
}
