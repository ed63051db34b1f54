import { isAlias, isCollection, isMap, isScalar, isSeq, type Pair, type YAMLMap } from "yaml";
import type { Issue, IssueCode } from "@headworks/gateway-contract";
import { nearestName, suggestion } from "./nearest-name.ts";
import { ownChoice, ownName, rightForm } from "./other-gateways.ts";
import { MissingValues } from "./placeholders.ts";
import { type FieldPath, pointer } from "./pointer.ts";
import { branchNames, chosenBranch, type Schema } from "./schema-shape.ts";
import type { Steps } from "./steps.ts";
import { keyText, MAX_ISSUES, MEMBERS_OF_A_STEP, offsetOf, type YamlSource } from "./yaml-source.ts";

/** Marks an unreadable value, which has been reported. */
export const UNREADABLE: unique symbol = Symbol("unreadable");

/** Limit against alias expansion attacks. */
const MAX_ALIASED_VALUES = 100_000;

/** Converts nodes to values by a schema and reports all violations, which become placeholders. */
export class StructureReader {
  readonly issues: Issue[] = [];
  /** Issues above the limit. */
  unlisted = 0;
  readonly gaps = new MissingValues();
  readonly #source: YamlSource;
  /** Members of sections already read in steps. */
  readonly #readAlready = new Map<unknown, unknown>();
  /** The current path, shared and mutated: thousands of values are read for each issue. */
  readonly #fieldPath: (string | number)[] = [];
  #aliasDepth = 0;
  #aliasedValues = 0;

  constructor(source: YamlSource) {
    this.#source = source;
  }

  /** The root value, or {@link UNREADABLE}. Members of sections are read in steps before their parents. */
  *rootSteps(schema: Schema, root: unknown): Steps<unknown> {
    const sections = new Set<string>();
    for (const { key, value: list } of isMap(root) ? root.items : []) {
      const name = keyText(key);
      if (name === undefined || sections.has(name) || !isSeq(list)) continue;
      sections.add(name);
      const items = Object.hasOwn(schema.properties ?? {}, name) ? schema.properties?.[name]?.items : undefined;
      if (items === undefined) continue;
      const offset = offsetOf(list) ?? offsetOf(key);
      for (const [at, item] of list.items.entries()) {
        if (isCollection(item)) {
          this.#fieldPath.push(name, at);
          this.#readAlready.set(item, this.#read(items, item, offset));
          this.#fieldPath.length = 0;
        }
        if (at % MEMBERS_OF_A_STEP === MEMBERS_OF_A_STEP - 1) yield;
      }
    }
    return this.#read(schema, root, undefined);
  }

  /** The value of a node at the current path, or {@link UNREADABLE}. */
  #read(schema: Schema, node: unknown, keyOffset: number | undefined): unknown {
    const offset = isEmpty(node) ? (keyOffset ?? offsetOf(node)) : (offsetOf(node) ?? keyOffset);
    // Dangling aliases and unknown tags were reported while parsing.
    if (isAlias(node) ? this.#source.resolve(node) === undefined : hasUnknownTag(node)) return UNREADABLE;
    if (!isAlias(node)) return this.#readResolved(schema, node, offset);
    this.#aliasDepth += 1;
    try {
      return this.#readResolved(schema, this.#source.resolve(node), offset);
    } finally {
      this.#aliasDepth -= 1;
    }
  }

  #readResolved(schema: Schema, node: unknown, offset: number | undefined): unknown {
    if (this.#aliasDepth > 0 && ++this.#aliasedValues > MAX_ALIASED_VALUES) {
      if (this.#aliasedValues === MAX_ALIASED_VALUES + 1) {
        this.#report("syntax", offset, `Aliases may stand for at most ${MAX_ALIASED_VALUES} values altogether`);
      }
      return UNREADABLE;
    }
    if (schema.anyOf !== undefined) return this.#readUnion(schema, schema.anyOf, node, offset);
    if (schema.type === "object") return this.#readObject(schema, node, offset);
    if (schema.type === "array") return this.#readList(schema, node, offset);
    return this.#readScalar(schema, node, offset);
  }

  #readScalar(schema: Schema, node: unknown, offset: number | undefined): unknown {
    if (!isScalar(node)) return this.#wrongType(schema, node, offset);
    const value = scalarValue(schema, node.value);
    if (value === undefined) return this.#wrongType(schema, node, offset);
    const problem = constraintProblem(schema, value);
    if (problem === undefined) return value;
    this.#report(problem.code, offset, `${named(this.#fieldPath)} ${problem.message}`);
    return UNREADABLE;
  }

  #wrongType(schema: Schema, node: unknown, offset: number | undefined): typeof UNREADABLE {
    const hasNone = isEmpty(node);
    const quotes = schema.type === "string" && isScalar(node) && !hasNone ? "; put it in quotes" : "";
    const instead = hasNone ? "it has no value" : (numberFormProblem(schema, node) ?? `it is ${kindOf(node)}`);
    this.#report(
      "type",
      offset,
      `${named(this.#fieldPath)} must be ${expected(schema)}; ${instead}${quotes}${rightForm(this.#fieldPath, schema, node)}`,
    );
    return UNREADABLE;
  }

  #readList(schema: Schema, node: unknown, offset: number | undefined): unknown {
    if (!isSeq(node)) return this.#wrongType(schema, node, offset);
    const list = node;
    const values: unknown[] = [];
    let unread: Set<number> | undefined;
    const mayBeReadAlready = this.#fieldPath.length === 1 && this.#aliasDepth === 0;
    for (const [at, item] of list.items.entries()) {
      // Reads each item once, so that issues are not reported twice.
      const value =
        mayBeReadAlready && this.#readAlready.has(item)
          ? this.#readAlready.get(item)
          : this.#readBelow(at, schema.items ?? {}, item, offset);
      if (value === UNREADABLE) (unread ??= new Set()).add(at);
      values.push(value === UNREADABLE ? this.#placeholder(at, schema.items ?? {}, true) : value);
    }
    const read = unread === undefined ? values : values.filter((_, at) => unread?.has(at) !== true);
    const problem = constraintProblem(schema, read, list.items.length);
    if (problem !== undefined) this.#report(problem.code, offset, `${named(this.#fieldPath)} ${problem.message}`);
    // `slice` gives exact capacity; a grown array reserves 17 elements for the life of the document.
    return values.slice();
  }

  #readBelow(step: string | number, schema: Schema, node: unknown, keyOffset: number | undefined): unknown {
    this.#fieldPath.push(step);
    const value = this.#read(schema, node, keyOffset);
    this.#fieldPath.pop();
    return value;
  }

  #placeholder(step: string | number, schema: Schema, isRequired: boolean): unknown {
    return this.gaps.add([...this.#fieldPath, step], schema, isRequired);
  }

  #readObject(schema: Schema, node: unknown, offset: number | undefined): unknown {
    if (!isMap(node)) return this.#wrongType(schema, node, offset);
    const map = node;
    const isRecord = schema.properties === undefined;
    const value: Record<string, unknown> = isRecord ? (Object.create(null) as Record<string, unknown>) : {};
    let known = 0;
    let surplus = 0;
    let absent: Set<string> | undefined;
    // A misspelled required field is not also reported as missing.
    let meant: Set<string> | undefined;
    const isWritten = (name: string): boolean => Object.hasOwn(value, name) || absent?.has(name) === true;
    for (const pair of map.items) {
      const key = keyText(pair.key);
      // Non-text and duplicate keys were reported while parsing.
      if (key === undefined || isWritten(key)) continue;
      const inner = memberOf(schema, key);
      const member = inner === undefined ? undefined : this.#readMember(schema, inner, pair, key);
      if (member === undefined) (absent ??= new Set()).add(key);
      else value[key] = member;
      if (inner !== undefined) {
        known += 1;
        continue;
      }
      surplus += 1;
      const name = this.#reportUnknown(Object.keys(schema.properties ?? {}), key, offsetOf(pair.key));
      if (name !== undefined) (meant ??= new Set()).add(name);
    }
    for (const name of schema.required ?? []) {
      if (isWritten(name)) continue;
      this.#report("required", offset, missing(this.#fieldPath, name), [...this.#fieldPath, name]);
      value[name] = this.#placeholder(name, memberOf(schema, name) ?? {}, true);
    }
    for (const name of meant ?? []) {
      if (!isWritten(name)) value[name] = this.#placeholder(name, memberOf(schema, name) ?? {}, false);
    }
    // Unknown fields count toward the minimum but not the maximum, since they must be removed.
    const count = Math.max(known, Math.min(known + surplus, schema.minProperties ?? 0));
    const problem = constraintProblem(schema, value, count);
    if (problem !== undefined) this.#report(problem.code, offset, `${named(this.#fieldPath)} ${problem.message}`);
    return value;
  }

  /** The value of a member or its placeholder; undefined for an absent value. */
  #readMember(schema: Schema, inner: Schema, pair: Pair, key: string): unknown {
    // A section with all lines commented out has no value and counts as empty.
    if (this.#fieldPath.length === 0 && isEmpty(pair.value) && isSection(inner)) return undefined;
    const value = this.#readBelow(key, inner, pair.value, offsetOf(pair.key));
    return value === UNREADABLE ? this.#placeholder(key, inner, schema.required?.includes(key) === true) : value;
  }

  /** Returns the suggested name, if any. */
  #reportUnknown(names: readonly string[], key: string, keyOffset: number | undefined): string | undefined {
    const fieldPath = this.#fieldPath;
    if (this.issues.length >= MAX_ISSUES) {
      this.unlisted += 1;
      return undefined;
    }
    const own = ownName(fieldPath, key);
    const meant = own === undefined ? nearestName(key, names) : undefined;
    const where = fieldPath.length === 0 ? "the document" : named(fieldPath);
    const hint =
      own === undefined ? (meant === undefined ? "" : `. Did you mean "${meant}"?`) : `; here that is ${own}`;
    this.#report("unknown_field", keyOffset, `"${key}" is not a field of ${where}${hint}`, [...fieldPath, key]);
    return own !== undefined && names.includes(own) ? own : meant;
  }

  #readUnion(schema: Schema, branches: readonly Schema[], node: unknown, offset: number | undefined): unknown {
    if (!isMap(node)) return this.#wrongType({ ...schema, type: "object" }, node, offset);
    const typeNode = node.items.find((pair) => keyText(pair.key) === "type");
    const type = this.#source.resolve(typeNode?.value);
    const name = isScalar(type) && typeof type.value === "string" ? type.value : undefined;
    const branch = name === undefined ? undefined : chosenBranch(branches, name);
    if (branch !== undefined) return this.#readObject(branch, node, offset);
    const names = branchNames(branches);
    const choices = names.map((known) => `"${known}"`).join(", ");
    const typeFieldPath = [...this.#fieldPath, "type"];
    if (typeNode === undefined) {
      this.#report("required", offset, `${named(this.#fieldPath)} needs "type", one of ${choices}`, typeFieldPath);
      return this.#readAsAny(branches, node, offset);
    }
    const meant = name === undefined ? "" : choiceHint(name, names);
    const at = offsetOf(typeNode.value) ?? offsetOf(typeNode.key);
    this.#report("bad_value", at, `${named(typeFieldPath)} must be one of ${choices}${meant}`, typeFieldPath);
    return this.#readAsAny(branches, node, offset);
  }

  /** Reads a union with every branch that shares most fields; reports issues common to all. */
  #readAsAny(branches: readonly Schema[], map: YAMLMap, offset: number | undefined): unknown {
    if (this.gaps.areTooMany) return UNREADABLE;
    const fit = ({ properties = {} }: Schema): number =>
      map.items.filter(({ key }) => Object.hasOwn(properties, keyText(key) ?? "")).length;
    const best = Math.max(...branches.map(fit));
    const before = this.issues.length;
    const { unlisted } = this;
    const { mark } = this.gaps;
    const typeFieldPath = [...this.#fieldPath, "type"];
    const typePath = pointer(typeFieldPath);
    let common: Issue[] | undefined;
    const values: unknown[] = [];
    for (const branch of branches) {
      if (fit(branch) < best) continue;
      values.push(this.#readObject(branch, map, offset));
      const found = this.issues.splice(before);
      common = common?.filter((issue) => found.some((other) => isSame(issue, other))) ?? found;
    }
    this.issues.push(...(common ?? []).filter(({ path }) => path !== typePath));
    this.unlisted = unlisted;
    this.gaps.settle(mark);
    return this.gaps.addReadings(this.#fieldPath, typeFieldPath, values);
  }

  #report(code: IssueCode, offset: number | undefined, message: string, fieldPath: FieldPath = this.#fieldPath): void {
    if (this.issues.length >= MAX_ISSUES) {
      this.unlisted += 1;
      return;
    }
    const position = offset === undefined ? {} : this.#source.position(offset);
    this.issues.push({ code, path: pointer(fieldPath), message, severity: "error", ...position });
  }
}

function isEmpty(node: unknown): boolean {
  return node === undefined || node === null || (isScalar(node) && node.value === null);
}

function hasUnknownTag(node: unknown): boolean {
  const tag = isScalar(node) || isMap(node) || isSeq(node) ? node.tag : undefined;
  return tag !== undefined && !tag.startsWith("tag:yaml.org,2002:");
}

function isSection(schema: Schema): boolean {
  return schema.type === "array" || (schema.type === "object" && (schema.required ?? []).length === 0);
}

/** The schema of a mapping's member; undefined for an unknown one. */
function memberOf(schema: Schema, key: string): Schema | undefined {
  if (schema.properties === undefined) return Object.values(schema.patternProperties ?? {})[0] ?? {};
  return Object.hasOwn(schema.properties, key) ? schema.properties[key] : undefined;
}

function isSame(one: Issue, other: Issue): boolean {
  return one.code === other.code && one.path === other.path;
}

function missing(fieldPath: FieldPath, name: string): string {
  return fieldPath.length === 0 ? `"${name}" is required` : `${named(fieldPath)} needs "${name}"`;
}

/** A path in readable form: `routes[0].match.path`. */
export function named(fieldPath: FieldPath): string {
  let text = "";
  for (const step of fieldPath) {
    if (typeof step === "number") text += `[${step}]`;
    else text += text === "" ? step : `.${step}`;
  }
  return text === "" ? "The document" : text;
}

function expected(schema: Schema): string {
  switch (schema.type) {
    case "object":
      return "a mapping";
    case "array":
      return "a list";
    case "string":
      return "a text";
    case "boolean":
      return "true or false";
    case "integer":
      return "a whole number";
    default:
      return "a number";
  }
}

/** The type error of a number field; undefined if it is no number at all. Integers are bigints. */
function numberFormProblem(schema: Schema, node: unknown): string | undefined {
  if ((schema.type !== "integer" && schema.type !== "number") || !isScalar(node)) return undefined;
  if (typeof node.value !== "number") return undefined;
  if (!Number.isFinite(node.value)) return "it is not finite";
  return Number.isInteger(node.value)
    ? "it is too large to be exact in this form; write all its digits"
    : "it has a fraction";
}

function kindOf(node: unknown): string {
  if (isMap(node)) return "a mapping";
  if (isSeq(node)) return "a list";
  if (!isScalar(node)) return "nothing";
  switch (typeof node.value) {
    case "string":
      return "a text";
    case "boolean":
      return "true or false";
    default:
      return "a number";
  }
}

const MAX_UINT64 = 0xffff_ffff_ffff_ffffn;

/**
 * Converts a scalar to its schema's type; undefined for another type. Integers are numbers, `x-uint64` values bigints.
 */
function scalarValue(schema: Schema, raw: unknown): string | number | bigint | boolean | undefined {
  const type = schema.type ?? typeof schema.const;
  switch (type) {
    case "string":
      return typeof raw === "string" ? raw : undefined;
    case "boolean":
      return typeof raw === "boolean" ? raw : undefined;
    case "integer":
      return schema["x-uint64"] === true ? exactInteger(raw) : wholeNumber(raw);
    case "number":
      if (typeof raw === "bigint") return Number(raw);
      return typeof raw === "number" && Number.isFinite(raw) ? raw : undefined;
    default:
      return undefined;
  }
}

function exactInteger(raw: unknown): bigint | undefined {
  if (typeof raw === "bigint") return raw;
  return typeof raw === "number" && Number.isSafeInteger(raw) ? BigInt(raw) : undefined;
}

/** Precision loss above 2^53 is harmless: all bounds lie below. */
function wholeNumber(raw: unknown): number | undefined {
  if (typeof raw === "bigint") return Number(raw);
  return typeof raw === "number" && Number.isInteger(raw) ? raw : undefined;
}

interface Problem {
  readonly code: IssueCode;
  /** Completes a sentence that begins with the field. */
  readonly message: string;
}

/**
 * The schema violation of a value of the right type. `count` is the number of written members, which may exceed the
 * readable ones. Messages never quote the document, which may contain secrets.
 */
function constraintProblem(schema: Schema, value: unknown, count = 0): Problem | undefined {
  if (schema.const !== undefined && value !== schema.const) {
    return { code: "bad_value", message: `must be ${JSON.stringify(schema.const)}` };
  }
  if (schema.enum !== undefined && !(schema.enum as unknown[]).includes(value)) {
    return choiceProblem(schema.enum, value);
  }
  if (typeof value === "bigint") {
    // A 0 below the minimum is left to the check that suggests what was intended.
    return value >= 0n && value <= MAX_UINT64 ? undefined : outOfRange(schema.minimum ?? 0, MAX_UINT64, value);
  }
  if (typeof value === "number") return numberProblem(schema, value);
  if (typeof value === "string") return textProblem(schema, value);
  if (Array.isArray(value)) return listProblem(schema, value, count);
  if (typeof value === "object") {
    return countProblem(schema.minProperties ?? 0, schema.maxProperties, count, "field");
  }
  return undefined;
}

/** `. Did you mean "x"?`, or an empty string. */
function choiceHint(written: string, choices: readonly string[]): string {
  const own = ownChoice(written, choices);
  return own === undefined ? suggestion(written, choices) : `. Did you mean "${own}"?`;
}

function choiceProblem(choices: readonly (string | number)[], value: unknown): Problem {
  const meant = typeof value === "string" ? choiceHint(value, choices.map(String)) : "";
  return {
    code: "bad_value",
    message: `must be one of ${choices.map((choice) => JSON.stringify(choice)).join(", ")}${meant}`,
  };
}

function boundsProblem(min: number, max: number, value: number): Problem | undefined {
  return value >= min && value <= max ? undefined : outOfRange(min, max, value);
}

function outOfRange(min: number, max: bigint | number, value: bigint | number): Problem {
  return { code: "out_of_range", message: `must be a whole number from ${min} to ${max}; it is ${value}` };
}

function numberProblem(schema: Schema, value: number): Problem | undefined {
  if (schema.type === "integer") {
    return boundsProblem(schema.minimum ?? 0, schema.maximum ?? Number.MAX_SAFE_INTEGER, value);
  }
  const { exclusiveMinimum: above, minimum = -Infinity, maximum = Infinity } = schema;
  if (value <= maximum && value >= minimum && (above === undefined || value > above)) return undefined;
  const min = above === undefined ? `at least ${minimum}` : `above ${above}`;
  return { code: "out_of_range", message: `must be ${min} and at most ${maximum}; it is ${value}` };
}

function textProblem(schema: Schema, value: string): Problem | undefined {
  const characters = value.length <= (schema.maxLength ?? Infinity) ? value.length : Array.from(value).length;
  const { minLength = 0, maxLength } = schema;
  if (characters < minLength) return { code: "out_of_range", message: "must not be empty" };
  if (maxLength !== undefined && characters > maxLength) {
    return { code: "out_of_range", message: `may have at most ${maxLength} characters; it has ${characters}` };
  }
  if (schema.pattern === undefined || compiled(schema.pattern).test(value)) return undefined;
  return { code: "bad_value", message: `must be ${schema["x-expects"] ?? `like ${schema.pattern}`}` };
}

const patterns = new Map<string, RegExp>();

/** Patterns come from the schema, never from the document. */
function compiled(pattern: string): RegExp {
  let found = patterns.get(pattern);
  if (found === undefined) patterns.set(pattern, (found = new RegExp(pattern, "u")));
  return found;
}

function listProblem(schema: Schema, value: readonly unknown[], count: number): Problem | undefined {
  if (schema.uniqueItems === true && new Set(value).size < value.length) {
    return { code: "bad_value", message: "has the same value twice" };
  }
  return countProblem(schema.minItems ?? 0, schema.maxItems, count, "value");
}

function countProblem(min: number, max: number | undefined, count: number, what: string): Problem | undefined {
  if (count < min) {
    return { code: "out_of_range", message: `needs at least ${min} ${what}${min === 1 ? "" : "s"}` };
  }
  if (max === undefined || count <= max) return undefined;
  return { code: "out_of_range", message: `may have at most ${max} ${what}${max === 1 ? "" : "s"}; it has ${count}` };
}
