import type { ConfigDocument } from "@headworks/gateway-contract";
import { pointer, type FieldPath } from "./pointer.ts";

export type ChangedKind =
  | "gateway"
  | "admin"
  | "analytics"
  | "listener"
  | "upstream"
  | "service"
  | "route"
  | "consumer"
  | "policy"
  | "webhook";

/** One difference between two documents. Contains no values, since these may be secret. */
export interface Change {
  readonly kind: ChangedKind;
  /** Name of the entity, or URL of a webhook; empty for singleton sections. */
  readonly name: string;
  /** `moved`: only the position among its siblings changed, which is the tie-break for equal route matches. */
  readonly change: "added" | "removed" | "changed" | "moved";
  /** JSON pointers of changed values, relative to the entity. */
  readonly pointers: readonly string[];
}

/** Changes from `before` to `after` in section order; empty if both are equivalent. */
export function diffDocuments(before: ConfigDocument | undefined, after: ConfigDocument): Change[] {
  const named = (
    kind: ChangedKind,
    get: (document: ConfigDocument) => readonly { readonly name: string }[],
  ): Change[] => diffLists(kind, before === undefined ? [] : get(before), get(after), ({ name }) => name);
  return [
    ...diffSection("gateway", before?.gateway ?? {}, after.gateway),
    ...diffSection("admin", before?.admin, after.admin),
    ...diffSection("analytics", before?.analytics, after.analytics),
    ...named("listener", (document) => document.listeners),
    ...named("upstream", (document) => document.upstreams),
    ...named("service", (document) => document.services),
    ...named("route", (document) => document.routes),
    ...named("consumer", (document) => document.consumers),
    ...named("policy", (document) => document.policies),
    ...diffLists("webhook", before?.webhooks ?? [], after.webhooks, ({ url }) => url),
  ];
}

function diffSection(kind: ChangedKind, before: unknown, after: unknown): Change[] {
  if (before === undefined && after === undefined) return [];
  if (before === undefined) return [{ kind, name: "", change: "added", pointers: [] }];
  if (after === undefined) return [{ kind, name: "", change: "removed", pointers: [] }];
  const pointers = differences(before, after, []);
  return pointers.length === 0 ? [] : [{ kind, name: "", change: "changed", pointers }];
}

function diffLists<T>(
  kind: ChangedKind,
  before: readonly T[],
  after: readonly T[],
  nameOf: (entity: T) => string,
): Change[] {
  const old = new Map(before.map((entity) => [nameOf(entity), entity]));
  const names = new Set(after.map(nameOf));
  const changes: Change[] = [];
  for (const entity of before) {
    if (!names.has(nameOf(entity))) changes.push({ kind, name: nameOf(entity), change: "removed", pointers: [] });
  }
  const moved = kind === "route" ? movedNames(before.map(nameOf), after.map(nameOf)) : new Set<string>();
  for (const entity of after) {
    const name = nameOf(entity);
    const was = old.get(name);
    if (was === undefined) {
      changes.push({ kind, name, change: "added", pointers: [] });
      continue;
    }
    const pointers = differences(was, entity, []);
    if (pointers.length > 0) changes.push({ kind, name, change: "changed", pointers });
    else if (moved.has(name)) changes.push({ kind, name, change: "moved", pointers: [] });
  }
  return changes;
}

/**
 * The minimal set of names to move to get from one order to the other; additions and removals do not count as moves.
 */
function movedNames(before: readonly string[], after: readonly string[]): Set<string> {
  const oldRank = new Map(before.map((name, rank) => [name, rank]));
  const kept = after.filter((name) => oldRank.has(name));
  const ranks = kept.map((name) => oldRank.get(name) ?? 0);
  const staying = longestIncrease(ranks);
  return new Set(kept.filter((_, at) => !staying.has(at)));
}

/** Indexes of a longest strictly increasing subsequence, O(n log n). */
function longestIncrease(ranks: readonly number[]): Set<number> {
  const tails: number[] = [];
  const previous: number[] = [];
  for (const [at, rank] of ranks.entries()) {
    let low = 0;
    let high = tails.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((ranks[tails[middle] ?? 0] ?? 0) < rank) low = middle + 1;
      else high = middle;
    }
    previous.push(low === 0 ? -1 : (tails[low - 1] ?? -1));
    tails[low] = at;
  }
  const members = new Set<number>();
  for (let at = tails.at(-1) ?? -1; at >= 0; at = previous[at] ?? -1) members.add(at);
  return members;
}

function differences(before: unknown, after: unknown, fieldPath: FieldPath): string[] {
  if (isSame(before, after)) return [];
  if (!isContainer(before) || !isContainer(after) || Array.isArray(before) !== Array.isArray(after)) {
    return [pointer(fieldPath)];
  }
  // Lists of different lengths differ as a whole: pairing members by index would name the wrong ones.
  if (Array.isArray(before) && Array.isArray(after) && before.length !== after.length) return [pointer(fieldPath)];
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  return Array.from(names).flatMap((name) => differences(before[name], after[name], [...fieldPath, name]));
}

/** Allocation-free comparison: most of two documents is equal. */
function isSame(before: unknown, after: unknown): boolean {
  if (Object.is(before, after)) return true;
  if (!isContainer(before) || !isContainer(after) || Array.isArray(before) !== Array.isArray(after)) return false;
  for (const name in before) if (!isSame(before[name], after[name])) return false;
  for (const name in after) if (before[name] === undefined && after[name] !== undefined) return false;
  return true;
}

function isContainer(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}
