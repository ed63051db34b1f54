import type { Condition } from "@headworks/capture-contract";
import { FIELDS_OF_KIND, type FieldKind } from "./kinds.ts";
import { fieldProblems } from "./field-problems.ts";

/** One problem with a condition: a JSON pointer below what was given, and what is wrong there. */
export interface ConditionIssue {
  readonly path: string;
  readonly message: string;
}

/** A condition as the API shows it, or everything that is wrong with it. */
export type ConditionResult =
  | { readonly ok: true; readonly condition: Condition }
  | { readonly ok: false; readonly issues: readonly ConditionIssue[] };

/** How deep conditions nest, and how many parts they have in all. */
export const MAX_CONDITION_DEPTH = 32;
export const MAX_PARTS = 1000;
const MAX_ISSUES = 50;

/** Members of the shorthand and the kinds they stand for. */
const SHORTHAND = {
  url_pattern: { type: "url_pattern", field: "pattern" },
  host_pattern: { type: "host", field: "pattern" },
  path_pattern: { type: "path_pattern", field: "pattern" },
  method: { type: "method", field: "method" },
} as const;
type ShorthandName = keyof typeof SHORTHAND;

/**
 * Reads a condition of unknown shape: the kinds of the contract under all their names, or the shorthand
 * `{"url_pattern", "host_pattern", "path_pattern", "method"}`, whose members must all hold. Gives every problem with its
 * place, `at` in front of each. What it gives is spelled as the API shows it and can be compiled.
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
 * Reads the condition of a rule's body: its member `condition`, or the shorthand's members in its place. Other members are
 * the caller's business. Issues begin with `at`, such as `body`.
 */
export function parseRuleCondition(body: object, at = ""): ConditionResult {
  const names = shorthandNames(body);
  const given: unknown = Object.hasOwn(body, "condition") ? Reflect.get(body, "condition") : undefined;
  const [first] = names;
  if (given === undefined && first === undefined) {
    return { ok: false, issues: [{ path: `${at}/condition`, message: "is required" }] };
  }
  if (given !== undefined && first !== undefined) {
    return { ok: false, issues: [{ path: `${at}/${first}`, message: "cannot stand beside condition; put it inside" }] };
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

  /** Fields in the order of the table; what is optional and null is left out. */
  #leaf(
    type: string,
    input: Readonly<Record<string, unknown>>,
    place: (field: string) => string,
  ): Condition | undefined {
    const fields = FIELDS_OF_KIND.get(type)?.fields ?? {};
    const read: Record<string, unknown> = { type };
    let isWhole = true;
    for (const [name, field] of Object.entries(fields)) {
      const value: unknown = Object.hasOwn(input, name) ? input[name] : undefined;
      if (value === undefined || (value === null && field.nullIsAbsent === true)) {
        if (field.optional === true) continue;
        this.#issue(place(name), "is required");
        isWhole = false;
        continue;
      }
      const problem = fieldProblems[field.check](value, type);
      if (problem === undefined) read[name] = value;
      else {
        this.#issue(place(name), problem);
        isWhole = false;
      }
    }
    // The table gives each kind exactly its members.
    return isWhole ? (read as unknown as Condition) : undefined;
  }

  #issue(path: string, message: string): undefined {
    if (this.issues.length < MAX_ISSUES) this.issues.push({ path, message });
  }
}

/** A name inside a JSON pointer (RFC 6901 section 3). */
function escaped(name: string): string {
  return name.slice(0, 100).replaceAll("~", "~0").replaceAll("/", "~1");
}
