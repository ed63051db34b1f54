import type { TrafficFilter } from "@headworks/capture-contract";
import type { SqlValue } from "../database.ts";
import { planFilter, type FilterPlan } from "./filter-plan.ts";
import { FilteredSet, type EntrySource } from "./filtered-set.ts";
import type { SessionScope, ToReader } from "../read/reader-messages.ts";

/** Sets kept for scrolling; the least lately used goes. */
const MAX_SETS = 16;
/** A set whose meaning depends on the present is good for so long. */
const TIMED_SET_MS = 1000;
/** The order of so many entries is kept a little although entries came in. */
const LARGE_SET = 100_000;
const LARGE_SET_MS = 2000;

/** A condition on `entry`, called `e`. */
export interface Condition {
  readonly where: string;
  readonly values: readonly SqlValue[];
}

interface KeptOrder {
  readonly generation: number;
  readonly madeMs: number;
  /** Ascending by the column, then by number. */
  readonly seqs: readonly number[];
}

/** A condition that holds for exactly what the plan finds; `all` is asked only where SQL alone cannot say that. */
export function conditionOf(scope: SessionScope, plan: FilterPlan, all: () => readonly number[]): Condition {
  return plan.predicate === undefined
    ? {
        where: `session = ? AND seq > ? AND (${plan.where})`,
        values: [scope.number, scope.floorSeq, ...plan.values],
      }
    : { where: "seq IN (SELECT value FROM json_each(?))", values: [JSON.stringify(all())] };
}

/** What a filter found, and the orders in which it was asked for. */
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

  /** Whether it still means what it meant. */
  get isGood(): boolean {
    return !(this.set.plan.isTimed && Date.now() - this.set.createdMs > TIMED_SET_MS);
  }

  /** The numbers of its entries, ascending by the column, then by number. */
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

/** The numbers of all entries for which the condition holds. */
export function orderedSeqs({ database }: EntrySource, { where, values }: Condition, order = "seq"): number[] {
  const row = database
    .prepare(`SELECT group_concat(seq) AS seqs FROM (SELECT seq FROM entry e WHERE ${where} ORDER BY ${order})`)
    .get(...values);
  return typeof row?.["seqs"] === "string" ? (JSON.parse(`[${row["seqs"]}]`) as number[]) : [];
}

/** The sets that filters found lately, by session and filter. */
export class KeptSets {
  readonly #source: EntrySource;
  readonly #sets = new Map<string, KeptSet>();

  constructor(source: EntrySource) {
    this.#source = source;
  }

  /** The one that is kept, or a new one that nothing was looked for in yet. */
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

  /** Entries were rewritten or removed, or their streams went on. */
  note({ changedSeqs, streamedSeqs, removedSeqs, reset }: Extract<ToReader, { readonly kind: "change" }>): void {
    if (reset) this.#sets.clear();
    for (const { set } of this.#sets.values()) {
      set.note(changedSeqs, removedSeqs);
      if (set.plan.needs.streams) set.note(streamedSeqs, []);
    }
  }
}

/** The same filter always has the same key, whatever the order of its parameters. */
function filterKey(filter: TrafficFilter): unknown[] {
  return Object.entries(filter).sort(([left], [right]) => (left < right ? -1 : 1));
}
