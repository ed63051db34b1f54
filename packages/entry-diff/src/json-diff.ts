import { isNumeric, type Json } from "@headworks/json";
import { JsonTree } from "./json-tree.ts";
import type { JsonPlace, IgnoredPaths } from "./ignored-paths.ts";
import { diffSequences } from "./sequence-diff.ts";

/**
 * List positions are those of the left side: an added element goes before the left element of that position, in the
 * order of the changes.
 */
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

/**
 * Compares JSON values: members by name in any order, list elements by a shortest edit script, numbers by exact value
 * (`1.0` equals `1`).
 */
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
  #compare(left: Json, right: Json, place: JsonPlace, rightPlace: JsonPlace): void {
    if (this.#tree.exactId(left) === this.#tree.exactId(right)) return;
    if (this.#isIgnored(place, rightPlace)) return;
    if (Array.isArray(left) && Array.isArray(right)) return this.#compareLists(left, right, place, rightPlace);
    if (kindOf(left) === "object" && kindOf(right) === "object") {
      return this.#compareMembers(left as Members, right as Members, place, rightPlace);
    }
    const typeChange = kindOf(left) === kindOf(right) ? {} : { is_type_change: true as const };
    this.#add({ path: pointer(place), op: "replace", left, right, ...typeChange });
  }

  #compareMembers(left: Members, right: Members, place: JsonPlace, rightPlace: JsonPlace): void {
    for (const [name, value] of Object.entries(left)) {
      const at = [...place, name];
      if (Object.hasOwn(right, name)) this.#compare(value, right[name] as Json, at, [...rightPlace, name]);
      else if (!this.#isIgnored(at, at)) this.#add({ path: pointer(at), op: "remove", left: value });
    }
    for (const [name, value] of Object.entries(right)) {
      if (Object.hasOwn(left, name)) continue;
      const at = [...place, name];
      if (!this.#isIgnored(at, [...rightPlace, name])) this.#add({ path: pointer(at), op: "add", right: value });
    }
  }

  #compareLists(left: readonly Json[], right: readonly Json[], place: JsonPlace, rightPlace: JsonPlace): void {
    const ids = (list: readonly Json[], at: JsonPlace): number[] =>
      list.map((value, index) => this.#tree.id(value, [...at, index]));
    const runs = diffSequences(ids(left, place), ids(right, rightPlace));
    for (let index = 0; index < runs.length; index += 1) {
      const run = runs[index] as (typeof runs)[number];
      if (run.kind === "same") {
        // Equal apart from ignored paths, which are counted.
        for (let step = 0; step < run.count; step += 1) {
          this.#pair(left, right, run.left + step, run.right + step, place, rightPlace);
        }
        continue;
      }
      const next = runs[index + 1];
      const follows = next !== undefined && next.kind !== "same" ? next : undefined;
      if (follows) index += 1;
      const removed = run.kind === "removed" ? run : follows;
      const added = run.kind === "added" ? run : follows;
      this.#replaceRun(left, right, removed ?? { ...run, count: 0 }, added ?? { ...run, count: 0 }, place, rightPlace);
    }
  }

  /** Compares replaced elements pairwise. */
  #replaceRun(
    left: readonly Json[],
    right: readonly Json[],
    removed: { readonly left: number; readonly count: number },
    added: { readonly right: number; readonly count: number },
    place: JsonPlace,
    rightPlace: JsonPlace,
  ): void {
    const paired = Math.min(removed.count, added.count);
    for (let step = 0; step < paired; step += 1) {
      this.#pair(left, right, removed.left + step, added.right + step, place, rightPlace);
    }
    for (let step = paired; step < removed.count; step += 1) {
      const at = [...place, removed.left + step];
      if (!this.#isIgnored(at, at)) {
        this.#add({ path: pointer(at), op: "remove", left: left[removed.left + step] as Json });
      }
    }
    for (let step = paired; step < added.count; step += 1) {
      const at = [...place, removed.left + removed.count];
      const ownPlace = [...rightPlace, added.right + step];
      if (!this.#isIgnored(ownPlace, ownPlace)) {
        this.#add({ path: pointer(at), op: "add", right: right[added.right + step] as Json });
      }
    }
  }

  #pair(
    left: readonly Json[],
    right: readonly Json[],
    leftIndex: number,
    rightIndex: number,
    place: JsonPlace,
    rightPlace: JsonPlace,
  ): void {
    this.#compare(
      left[leftIndex] as Json,
      right[rightIndex] as Json,
      [...place, leftIndex],
      [...rightPlace, rightIndex],
    );
  }

  #isIgnored(place: JsonPlace, rightPlace: JsonPlace): boolean {
    if (this.#ignored.isEmpty) return false;
    const isIgnored = this.#ignored.matches(place) || this.#ignored.matches(rightPlace);
    if (isIgnored) this.#ignoredChanges += 1;
    return isIgnored;
  }

  #add(change: JsonChange): void {
    if (this.#changes.length < this.#maxChanges) this.#changes.push(change);
    else this.#isTruncated = true;
  }
}

type Members = { readonly [name: string]: Json };

function kindOf(value: Json): "null" | "boolean" | "number" | "string" | "list" | "object" {
  if (value === null) return "null";
  if (Array.isArray(value)) return "list";
  if (isNumeric(value)) return "number";
  return typeof value as "boolean" | "object" | "string";
}

function pointer(place: JsonPlace): string {
  return place.map((key) => `/${String(key).replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
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
