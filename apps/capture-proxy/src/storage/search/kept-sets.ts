import type { TrafficFilter } from "@headworks/capture-contract";
import type { SqlValue } from "../database.ts";
import { planFilter, type FilterPlan } from "./filter-plan.ts";
import { FilteredSet, type EntrySource } from "./filtered-set.ts";
import type { SessionScope, ToReader } from "../read/reader-messages.ts";

/** Cached sets for scrolling; least recently used are evicted. */
const MAX_SETS = 16;
/** Lifetime of a set that depends on the current time. */
const TIMED_SET_MS = 1000;
/** Above this size the sort order is reused for a while although entries arrived. */
const LARGE_SET = 100_000;
const LARGE_SET_MS = 2000;

/** A condition on `entry` under the alias `e`. */
export interface Condition {
  readonly where: string;
  readonly values: readonly SqlValue[];
}

interface KeptOrder {
  readonly generation: number;
  readonly madeMs: number;
  /** Ascending by column, then by number. */
  readonly seqs: readonly number[];
}

/** A condition for exactly what the plan finds; `all` is called only if SQL cannot express it. */
export function conditionOf(scope: SessionScope, plan: FilterPlan, all: () => readonly number[]): Condition {
  return plan.predicate === undefined
    ? {
        where: `session = ? AND seq > ? AND (${plan.where})`,
        values: [scope.number, scope.floorSeq, ...plan.values],
      }
    : { where: "seq IN (SELECT value FROM json_each(?))", values: [JSON.stringify(all())] };
}

/** A filter's set with its requested orders. */
export class KeptSet {
  readonly set: FilteredSet;
  readonly #source: EntrySource;
  readonly #scope: SessionScope;
  readonly #orders = new Map<string, KeptOrder>();

  constructor(source: EntrySource, scope: SessionScope, filter: TrafficFilter) {
    this.#source = source;
    this.#scope = scope;
    this.set = new FilteredSet(source, scope, planFilter(filter, Date.now()));
  }

  /** Whether the set is still valid. */
  get isGood(): boolean {
    return !(this.set.plan.isTimed && Date.now() - this.set.createdMs > TIMED_SET_MS);
  }

  /** Ascending by column, then by number. */
  ordered(column: string): readonly number[] {
    const { set } = this;
    const known = this.#orders.get(column);
    const ageMs = Date.now() - (known?.madeMs ?? 0);
    const isGood =
      known?.generation === set.generation || ((known?.seqs.length ?? 0) > LARGE_SET && ageMs < LARGE_SET_MS);
    if (known !== undefined && isGood) return known.seqs;
    const condition = conditionOf(this.#scope, set.plan, () => set.all());
    const seqs = orderedSeqs(this.#source, condition, `${column}, seq`);
    this.#orders.set(column, { generation: set.generation, madeMs: Date.now(), seqs });
    return seqs;
  }
}

export function orderedSeqs({ database }: EntrySource, { where, values }: Condition, order = "seq"): number[] {
  const row = database
    .prepare(`SELECT group_concat(seq) AS seqs FROM (SELECT seq FROM entry e WHERE ${where} ORDER BY ${order})`)
    .get(...values);
  return typeof row?.["seqs"] === "string" ? (JSON.parse(`[${row["seqs"]}]`) as number[]) : [];
}

/** Cache of sets by session and filter. */
export class KeptSets {
  readonly #source: EntrySource;
  readonly #sets = new Map<string, KeptSet>();

  constructor(source: EntrySource) {
    this.#source = source;
  }

  /** The cached set, or a new, empty one. */
  of(scope: SessionScope, filter: TrafficFilter): KeptSet {
    const { session_id: _session, ...rest } = filter;
    const key = JSON.stringify([scope.number, scope.floorSeq, filterKey(rest)]);
    const known = this.#sets.get(key);
    this.#sets.delete(key);
    const kept = known?.isGood === true ? known : new KeptSet(this.#source, scope, filter);
    this.#sets.set(key, kept);
    const [oldest] = this.#sets.keys();
    if (this.#sets.size > MAX_SETS && oldest !== undefined) this.#sets.delete(oldest);
    return kept;
  }

  /** Entries were rewritten or removed, or have new stream data. */
  note({ changedSeqs, streamedSeqs, removedSeqs, reset }: Extract<ToReader, { readonly kind: "change" }>): void {
    if (reset) this.#sets.clear();
    for (const { set } of this.#sets.values()) {
      set.note(changedSeqs, removedSeqs);
      if (set.plan.needs.streams) set.note(streamedSeqs, []);
    }
  }
}

/** Independent of the order of parameters. */
function filterKey(filter: TrafficFilter): unknown[] {
  return Object.entries(filter).sort(([left], [right]) => (left < right ? -1 : 1));
}
