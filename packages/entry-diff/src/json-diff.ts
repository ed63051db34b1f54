import { isNumeric, type Json, type JsonStep, numberKey, type Numeric, parseJsonPath } from "@headworks/json";
import { diffSequences } from "./text-diff.ts";

/** Path from the root as names and indexes. */
export type JsonLocation = readonly (string | number)[];

export interface IgnoredPaths {
  readonly isEmpty: boolean;
  matches(path: JsonLocation): boolean;
}

/** An invalid pattern by its index. */
interface PathIssue {
  readonly index: number;
  readonly message: string;
}

/** Parses JSONPath without filters (`$.items[*].at`, `$..etag`) or JSON Pointers (`/items/0/at`). */
export function compileIgnoredPaths(
  patterns: readonly string[],
): { readonly ok: true; readonly paths: IgnoredPaths } | { readonly ok: false; readonly issues: readonly PathIssue[] } {
  const issues: PathIssue[] = [];
  const compiled: (readonly JsonStep[])[] = [];
  for (const [index, pattern] of patterns.entries()) {
    const steps = stepsOf(pattern.trim());
    if (typeof steps === "string") issues.push({ index, message: steps });
    else compiled.push(steps);
  }
  if (issues.length > 0) return { ok: false, issues };
  return {
    ok: true,
    paths: {
      isEmpty: compiled.length === 0,
      matches: (path) => compiled.some((steps) => reaches(steps, path)),
    },
  };
}

function stepsOf(pattern: string): readonly JsonStep[] | string {
  if (pattern.startsWith("/")) {
    if (/~(?![01])/u.test(pattern)) return "a JSON Pointer has only ~0 and ~1";
    return pattern
      .slice(1)
      .split("/")
      .map((token) => ({ kind: "member", name: token.replaceAll("~1", "/").replaceAll("~0", "~") }));
  }
  const parsed = parseJsonPath(pattern);
  return parsed.ok ? parsed.steps : parsed.message;
}

/** Whether the steps match the path. All partial matches advance together, so a pattern costs its length per step. */
function reaches(steps: readonly JsonStep[], path: JsonLocation): boolean {
  let open = new Set([0]);
  for (const key of path) {
    const next = new Set<number>();
    for (const at of open) {
      const step = steps[at];
      if (step === undefined) continue;
      if (step.kind === "descendants") next.add(at);
      if (accepts(step, key)) next.add(at + 1);
    }
    open = next;
  }
  return open.has(steps.length);
}

function accepts(step: JsonStep, key: string | number): boolean {
  switch (step.kind) {
    case "member":
      // A pointer does not distinguish object members from list indexes.
      return step.name === String(key);
    case "element":
      return step.index === key;
    case "children":
      return true;
    case "descendants":
      return step.name === null || step.name === key;
  }
}

/** Assigns equal numbers to equal parts of JSON documents, so that comparing parts takes constant time. */
class JsonTree {
  readonly #ignored: IgnoredPaths;
  readonly #numbers = new Map<string, number>();
  readonly #exact = new WeakMap<object, number>();

  constructor(ignored: IgnoredPaths) {
    this.#ignored = ignored;
  }

  /** Equal for equal values. */
  exactId(value: Json): number {
    if (typeof value !== "object" || value === null || isNumeric(value)) return this.#numbered(scalarKey(value));
    const known = this.#exact.get(value);
    if (known !== undefined) return known;
    const id = this.#containerId(value, (member) => this.exactId(member));
    this.#exact.set(value, id);
    return id;
  }

  /** Equal for values that differ only on ignored paths. */
  id(value: Json, path: JsonLocation): number {
    if (this.#ignored.isEmpty) return this.exactId(value);
    if (typeof value !== "object" || value === null || isNumeric(value)) return this.exactId(value);
    return this.#containerId(value, (member, key) => {
      const at = [...path, key];
      return this.#ignored.matches(at) ? undefined : this.id(member, at);
    });
  }

  #containerId(
    value: readonly Json[] | Members,
    idOf: (member: Json, key: string | number) => number | undefined,
  ): number {
    if (Array.isArray(value)) {
      return this.#numbered(`[${(value as readonly Json[]).map((member, index) => idOf(member, index) ?? "*").join()}`);
    }
    const members = Object.entries(value as Members)
      .map(([name, member]) => [name, idOf(member, name)] as const)
      .filter(([, id]) => id !== undefined)
      .map(([name, id]) => `${JSON.stringify(name)}${String(id)}`);
    return this.#numbered(`{${members.sort().join()}`);
  }

  #numbered(key: string): number {
    const known = this.#numbers.get(key);
    if (known !== undefined) return known;
    this.#numbers.set(key, this.#numbers.size);
    return this.#numbers.size - 1;
  }
}

type Members = { readonly [name: string]: Json };

function scalarKey(value: null | boolean | string | Numeric): string {
  if (typeof value === "string") return `"${value}`;
  return isNumeric(value) ? `#${numberKey(value)}` : String(value);
}

/** Positions are the left side's: an added element goes before the left element of its position. */
export interface JsonChange {
  /** JSON Pointer (RFC 6901). */
  readonly path: string;
  readonly op: "add" | "remove" | "replace";
  readonly left?: Json;
  readonly right?: Json;
  readonly is_type_change?: true;
}

export interface JsonDiff {
  readonly changes: JsonChange[];
  /** Differences on ignored paths. */
  readonly ignoredChanges: number;
  /** Further changes are not listed. */
  readonly isTruncated: boolean;
}

const NOTHING_IGNORED: IgnoredPaths = { isEmpty: true, matches: () => false };

/** Compares JSON values: members in any order, lists by a shortest edit script, numbers exactly. */
export function diffJson(
  left: Json,
  right: Json,
  options: { readonly ignored?: IgnoredPaths; readonly maxChanges?: number } = {},
): JsonDiff {
  return new Comparison(options.ignored ?? NOTHING_IGNORED, options.maxChanges ?? Number.POSITIVE_INFINITY).run(
    left,
    right,
  );
}

class Comparison {
  readonly #ignored: IgnoredPaths;
  readonly #maxChanges: number;
  readonly #tree: JsonTree;
  readonly #changes: JsonChange[] = [];
  #ignoredChanges = 0;
  #isTruncated = false;

  constructor(ignored: IgnoredPaths, maxChanges: number) {
    this.#ignored = ignored;
    this.#maxChanges = maxChanges;
    this.#tree = new JsonTree(ignored);
  }

  run(left: Json, right: Json): JsonDiff {
    this.#compare(left, right, [], []);
    return { changes: this.#changes, ignoredChanges: this.#ignoredChanges, isTruncated: this.#isTruncated };
  }

  /** The two paths differ after insertions or removals in lists. */
  #compare(left: Json, right: Json, path: JsonLocation, rightPath: JsonLocation): void {
    if (this.#tree.exactId(left) === this.#tree.exactId(right)) return;
    if (this.#isIgnored(path, rightPath)) return;
    if (Array.isArray(left) && Array.isArray(right)) return this.#compareLists(left, right, path, rightPath);
    if (kindOf(left) === "object" && kindOf(right) === "object") {
      return this.#compareMembers(left as Members, right as Members, path, rightPath);
    }
    const typeChange = kindOf(left) === kindOf(right) ? {} : { is_type_change: true as const };
    this.#add({ path: pointer(path), op: "replace", left, right, ...typeChange });
  }

  #compareMembers(left: Members, right: Members, path: JsonLocation, rightPath: JsonLocation): void {
    for (const [name, value] of Object.entries(left)) {
      const at = [...path, name];
      if (Object.hasOwn(right, name)) this.#compare(value, right[name] as Json, at, [...rightPath, name]);
      else if (!this.#isIgnored(at, at)) this.#add({ path: pointer(at), op: "remove", left: value });
    }
    for (const [name, value] of Object.entries(right)) {
      if (Object.hasOwn(left, name)) continue;
      const at = [...path, name];
      if (!this.#isIgnored(at, [...rightPath, name])) this.#add({ path: pointer(at), op: "add", right: value });
    }
  }

  #compareLists(left: readonly Json[], right: readonly Json[], path: JsonLocation, rightPath: JsonLocation): void {
    const ids = (list: readonly Json[], at: JsonLocation): number[] =>
      list.map((value, index) => this.#tree.id(value, [...at, index]));
    const runs = diffSequences(ids(left, path), ids(right, rightPath));
    for (let index = 0; index < runs.length; index += 1) {
      const run = runs[index] as (typeof runs)[number];
      if (run.kind === "same") {
        // Equal apart from ignored paths, which are counted.
        for (let step = 0; step < run.count; step += 1) {
          this.#pair(left, right, run.left + step, run.right + step, path, rightPath);
        }
        continue;
      }
      const next = runs[index + 1];
      const follows = next !== undefined && next.kind !== "same" ? next : undefined;
      if (follows) index += 1;
      const removed = run.kind === "removed" ? run : follows;
      const added = run.kind === "added" ? run : follows;
      this.#replaceRun(left, right, removed ?? { ...run, count: 0 }, added ?? { ...run, count: 0 }, path, rightPath);
    }
  }

  /** Compares replaced elements pairwise. */
  #replaceRun(
    left: readonly Json[],
    right: readonly Json[],
    removed: { readonly left: number; readonly count: number },
    added: { readonly right: number; readonly count: number },
    path: JsonLocation,
    rightPath: JsonLocation,
  ): void {
    const paired = Math.min(removed.count, added.count);
    for (let step = 0; step < paired; step += 1) {
      this.#pair(left, right, removed.left + step, added.right + step, path, rightPath);
    }
    for (let step = paired; step < removed.count; step += 1) {
      const at = [...path, removed.left + step];
      if (!this.#isIgnored(at, at)) {
        this.#add({ path: pointer(at), op: "remove", left: left[removed.left + step] as Json });
      }
    }
    for (let step = paired; step < added.count; step += 1) {
      const at = [...path, removed.left + removed.count];
      const addedPath = [...rightPath, added.right + step];
      if (!this.#isIgnored(addedPath, addedPath)) {
        this.#add({ path: pointer(at), op: "add", right: right[added.right + step] as Json });
      }
    }
  }

  #pair(
    left: readonly Json[],
    right: readonly Json[],
    leftIndex: number,
    rightIndex: number,
    path: JsonLocation,
    rightPath: JsonLocation,
  ): void {
    this.#compare(left[leftIndex] as Json, right[rightIndex] as Json, [...path, leftIndex], [...rightPath, rightIndex]);
  }

  #isIgnored(path: JsonLocation, rightPath: JsonLocation): boolean {
    if (this.#ignored.isEmpty) return false;
    const isIgnored = this.#ignored.matches(path) || this.#ignored.matches(rightPath);
    if (isIgnored) this.#ignoredChanges += 1;
    return isIgnored;
  }

  #add(change: JsonChange): void {
    if (this.#changes.length < this.#maxChanges) this.#changes.push(change);
    else this.#isTruncated = true;
  }
}

function kindOf(value: Json): "null" | "boolean" | "number" | "string" | "list" | "object" {
  if (value === null) return "null";
  if (Array.isArray(value)) return "list";
  if (isNumeric(value)) return "number";
  return typeof value as "boolean" | "object" | "string";
}

function pointer(path: JsonLocation): string {
  return path.map((key) => `/${String(key).replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}

/** Rebuilds the right document from complete changes. */
export function applyJsonChanges(left: Json, changes: readonly JsonChange[]): Json {
  return applied(
    left,
    changes.map((change) => ({ change, keys: keysOf(change.path) })),
    0,
  );
}

interface Pending {
  readonly change: JsonChange;
  readonly keys: readonly string[];
}

function keysOf(path: string): string[] {
  return path
    .split("/")
    .slice(1)
    .map((key) => key.replaceAll("~1", "/").replaceAll("~0", "~"));
}

function applied(value: Json, pending: readonly Pending[], depth: number): Json {
  const [first] = pending;
  if (first === undefined) return value;
  if (first.keys.length === depth) return first.change.right as Json;
  const byKey = Map.groupBy(pending, ({ keys }) => keys[depth] ?? "");
  if (Array.isArray(value)) return appliedToList(value as readonly Json[], byKey, depth);
  const members = new Map(Object.entries(value as Members));
  for (const [name, changes] of byKey) {
    const own = changes.find(({ keys }) => keys.length === depth + 1)?.change;
    if (own?.op === "remove") members.delete(name);
    else if (own) members.set(name, own.right as Json);
    else members.set(name, applied(members.get(name) as Json, changes, depth + 1));
  }
  return Object.fromEntries(members);
}

function appliedToList(list: readonly Json[], byKey: ReadonlyMap<string, readonly Pending[]>, depth: number): Json {
  const made: Json[] = [];
  for (let index = 0; index <= list.length; index += 1) {
    const changes = byKey.get(String(index)) ?? [];
    const here = changes.filter(({ keys }) => keys.length === depth + 1).map(({ change }) => change);
    for (const { op, right } of here) if (op === "add") made.push(right as Json);
    if (index === list.length || here.some(({ op }) => op === "remove")) continue;
    const inner = changes.filter(({ keys, change }) => keys.length > depth + 1 || change.op === "replace");
    made.push(applied(list[index] as Json, inner, depth + 1));
  }
  return made;
}
