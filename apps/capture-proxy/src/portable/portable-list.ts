import { compileValueValidator } from "@headworks/contract-kit/server";
import type { TSchema } from "typebox";
import type { ImportCounts, ImportMode, ImportOutcome, PortableRules } from "#slice.ts";

/** One problem with a rule: a JSON pointer below the rule (`/pattern`, empty for the whole), and what is wrong. */
export interface RuleIssue {
  readonly path: string;
  readonly message: string;
}

/** Parts that make a list of rules portable. `T` is the form of a rule in the API. */
export interface PortableListParts<T extends { readonly id: string }> {
  readonly key: string;
  readonly schemaVersion: number;
  /** All of them hold for one rule: what the API shows, and what it takes in an update, which has the limits. */
  readonly schemas: readonly TSchema[];
  /** Oldest first. */
  list(): readonly T[];
  /** A second text besides the id that no two rules share, where there is one. */
  uniqueText?(rule: T): string;
  /** Checks beyond the schemas. */
  check(rule: T): readonly RuleIssue[];
  /**
   * Writes the list: afterwards exactly these rules are stored, in this order, each as it is given, id, times and hits
   * included. Called inside a transaction; must not touch what is in memory.
   */
  write(rules: readonly T[]): void;
  /** The stored rules are others now: compile them, forget counts that are not stored yet, and announce it. */
  reload(): void;
}

/** Portable rules of a slice that keeps a list of rules with ids. */
export function portableList<T extends { readonly id: string }>(parts: PortableListParts<T>): PortableRules {
  const validators = parts.schemas.map((schema) => compileValueValidator(schema, ""));
  const validate = (rule: unknown): readonly RuleIssue[] =>
    validators.map((validator) => validator(rule)).find((issues) => issues.length > 0) ?? [];
  return {
    key: parts.key,
    schemaVersion: parts.schemaVersion,
    exportRules: () => parts.list(),
    importRules: (data, { mode, dryRun }): ImportOutcome => {
      const keysOf = (rule: T): readonly string[] => [
        `id ${rule.id}`,
        ...(parts.uniqueText === undefined ? [] : [`text ${parts.uniqueText(rule)}`]),
      ];
      const issues = listIssues(data, validate, (rule) => parts.check(rule as T));
      if (issues.length === 0) issues.push(...repeated(data as readonly T[], keysOf));
      if (issues.length > 0) return { issues };
      const { rules, counts } = joined(parts.list(), data as readonly T[], mode, keysOf);
      if (!dryRun && counts.added + counts.updated + counts.removed > 0) parts.write(rules);
      return { counts };
    },
    reload: () => parts.reload(),
  };
}

/** Enough to see what is wrong; a wrong document has the same issue in every rule. */
const MAX_ISSUES = 50;

function listIssues(
  data: unknown,
  validate: (value: unknown) => readonly RuleIssue[],
  check: (rule: unknown) => readonly RuleIssue[],
): RuleIssue[] {
  if (!Array.isArray(data)) return [{ path: "", message: "must be a list of rules" }];
  const issues: RuleIssue[] = [];
  for (const [index, rule] of (data as readonly unknown[]).entries()) {
    const shape = validate(rule);
    for (const { path, message } of shape.length > 0 ? shape : check(rule)) {
      issues.push({ path: `/${index}${path}`, message });
    }
    if (issues.length >= MAX_ISSUES) return issues.slice(0, MAX_ISSUES);
  }
  return issues;
}

function repeated<T>(rules: readonly T[], keysOf: (rule: T) => readonly string[]): RuleIssue[] {
  const seen = new Set<string>();
  const issues: RuleIssue[] = [];
  for (const [index, rule] of rules.entries()) {
    const keys = keysOf(rule);
    const known = keys.find((key) => seen.has(key));
    if (known !== undefined) issues.push({ path: `/${index}`, message: `an earlier rule has the same ${known}` });
    for (const key of keys) seen.add(key);
  }
  return issues.slice(0, MAX_ISSUES);
}

/** The list after an import. A merge keeps the order of what is there and puts new rules behind. */
function joined<T>(
  present: readonly T[],
  given: readonly T[],
  mode: ImportMode,
  keysOf: (rule: T) => readonly string[],
): { readonly rules: readonly T[]; readonly counts: ImportCounts } {
  const waiting = new Map(given.flatMap((rule) => keysOf(rule).map((key) => [key, rule] as const)));
  const taken = new Set<T>();
  const rules: T[] = [];
  const counts = { added: 0, updated: 0, removed: 0, unchanged: 0 };
  for (const old of present) {
    const keys = keysOf(old).filter((key) => waiting.has(key));
    const rule = keys.map((key) => waiting.get(key)).find((found) => found !== undefined && !taken.has(found));
    if (rule !== undefined) {
      taken.add(rule);
      rules.push(rule);
      counts[isSame(old, rule) ? "unchanged" : "updated"] += 1;
    } else if (mode === "replace" || keys.length > 0) counts.removed += 1;
    else rules.push(old);
  }
  const added = given.filter((rule) => !taken.has(rule));
  counts.added = added.length;
  if (mode === "merge") return { rules: [...rules, ...added], counts };
  // The order of rules is part of what they do.
  if (counts.added + counts.updated + counts.removed === 0 && rules.some((rule, index) => rule !== given[index])) {
    return { rules: given, counts: { ...counts, updated: counts.unchanged, unchanged: 0 } };
  }
  return { rules: given, counts };
}

/** Equal as JSON, whatever the order of members. */
function isSame(left: unknown, right: unknown): boolean {
  if (left === right) return true;
  if (typeof left !== "object" || typeof right !== "object" || left === null || right === null) return false;
  if (Array.isArray(left) !== Array.isArray(right)) return false;
  const names = Object.keys(left);
  if (names.length !== Object.keys(right).length) return false;
  return names.every(
    (name) =>
      Object.hasOwn(right, name) && isSame(Reflect.get(left, name) as unknown, Reflect.get(right, name) as unknown),
  );
}
