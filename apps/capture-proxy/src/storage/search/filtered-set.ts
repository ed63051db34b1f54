import { setImmediate as nextTurn } from "node:timers/promises";
import type { TrafficFilter } from "@headworks/capture-contract";
import {
  allOf,
  compileQuery,
  EVERYTHING,
  fromParameters,
  indexable,
  needs,
  parseQuery,
} from "@headworks/query-language";
import type { Needs, Plan, PlanColumn, Predicate, Query } from "@headworks/query-language";
import type { Database, SqlRow, SqlValue, Statement } from "../database.ts";
import type { SessionScope, ToReader } from "../read/reader-client.ts";
import { RECORD_COLUMNS, RECORD_HEAD_COLUMNS, RowRecord } from "../read/row-record.ts";
import type { StoredBodies } from "../stored-bodies.ts";
import { EntryStreams, STREAM_COLUMNS } from "../streams/entry-streams.ts";
import { requiredTextOf, type TextFinding, type TextIndex } from "./text-index.ts";
import { PREFILTER_COLUMNS, PREFILTER_JOINS, TextPrefilter } from "./text-prefilter.ts";

/** A compiled filter: an SQL condition and a predicate for what SQL cannot decide. */
interface FilterPlan {
  /** Condition on `entry` under the alias `e`. */
  readonly where: string;
  readonly values: readonly SqlValue[];
  /** Undefined if the condition suffices. */
  readonly predicate: Predicate | undefined;
  readonly needs: Needs;
  readonly query: Query;
  readonly isEverything: boolean;
  /** Depends on the current time: results must not be cached for long. */
  readonly isTimed: boolean;
}

/** Filters are validated by the API; this is for callers that skip it. */
class FilterError extends Error {
  override readonly name = "FilterError";
}

/** Throws {@link FilterError} for an invalid filter. */
export function planFilter(filter: TrafficFilter, nowMs: number): FilterPlan {
  const query = queryOfFilter(filter);
  const { plan, exact } = indexable(query, { nowMs });
  const values: SqlValue[] = [];
  const where = sqlOfPlan(plan, values);
  return {
    where,
    values,
    predicate: exact ? undefined : compileQuery(query, { nowMs }),
    needs: needs(query),
    query,
    isEverything: exact && plan.kind === "any",
    isTimed: isTimed(query),
  };
}

/** The conjunction of all parts of a filter. */
function queryOfFilter(filter: TrafficFilter): Query {
  const { q, session_id: _session, min_size, max_size, min_time, max_time, ...texts } = filter;
  const typed = q === undefined ? { ok: true as const, query: EVERYTHING } : parseQuery(q);
  if (!typed.ok) throw new FilterError(`q: ${typed.error.message} (at character ${typed.error.start + 1})`);
  const parameters = fromParameters({
    ...texts,
    min_size: numberText(min_size),
    max_size: numberText(max_size),
    min_time: numberText(min_time),
    max_time: numberText(max_time),
  });
  if (!parameters.ok) throw new FilterError(`${parameters.error.parameter}: ${parameters.error.message}`);
  return allOf([typed.query, parameters.query]);
}

function numberText(value: number | undefined): string | undefined {
  return value === undefined ? undefined : String(value);
}

function isTimed(query: Query): boolean {
  switch (query.kind) {
    case "and":
    case "or":
      return query.terms.some(isTimed);
    case "not":
      return isTimed(query.term);
    case "preset":
      return isTimed(query.query);
    case "since":
    case "before":
      return query.moment.kind === "ago";
    default:
      return false;
  }
}

const COLUMNS: Readonly<Record<PlanColumn, string>> = {
  id: "id",
  seq: "e.seq",
  method: "method",
  scheme: "scheme",
  host: "host",
  port: "port",
  path: "(CASE instr(path, '?') WHEN 0 THEN path ELSE substr(path, 1, instr(path, '?') - 1) END)",
  status: "status",
  requestType: "request_type",
  responseType: "response_type",
  resourceType: "resource_type",
  requestSizeBytes: "request_size",
  responseSizeBytes: "response_size",
  durationMs: "(duration_us / 1000.0)",
  timestampMs: "started_ms",
  state: "(CASE state WHEN 0 THEN 'pending' WHEN 1 THEN 'complete' WHEN 2 THEN 'failed' ELSE 'closed' END)",
  isPassthrough: "(CASE flags & 2 WHEN 0 THEN 'false' ELSE 'true' END)",
  ...STREAM_COLUMNS,
};

function sqlOfPlan(plan: Plan, values: SqlValue[]): string {
  switch (plan.kind) {
    case "any":
      return "TRUE";
    case "and":
      return `(${plan.terms.map((term) => sqlOfPlan(term, values)).join(" AND ")})`;
    case "or":
      return `(${plan.terms.map((term) => sqlOfPlan(term, values)).join(" OR ")})`;
    case "not":
      return `NOT COALESCE(${sqlOfPlan(plan.term, values)}, FALSE)`;
    case "present":
      return `COALESCE(${COLUMNS[plan.column]} <> '', FALSE)`;
    case "number":
      values.push(plan.value);
      return `COALESCE(${COLUMNS[plan.column]} ${plan.op} ?, FALSE)`;
    case "text":
      return `COALESCE(${textTest(`lower(${COLUMNS[plan.column]})`, plan.op, plan.value, values)}, FALSE)`;
  }
}

function textTest(
  column: string,
  op: "equals" | "contains" | "startsWith" | "endsWith",
  value: string,
  values: SqlValue[],
): string {
  values.push(value);
  switch (op) {
    case "equals":
      return `${column} = ?`;
    case "contains":
      return `instr(${column}, ?) > 0`;
    case "startsWith":
      return `instr(${column}, ?) = 1`;
    case "endsWith":
      values.push(value);
      return value === "" ? `? = ?` : `substr(${column}, -length(?)) = ?`;
  }
}

/** Entry numbers of a filter, newest first, growing at both ends: scans go backwards, new entries go in front. */
export class SeqSet {
  /** Descending. */
  #older: number[] = [];
  /** Ascending, all above the first of `older`. */
  #newer: number[] = [];

  get length(): number {
    return this.#older.length + this.#newer.length;
  }

  /** Indexed from the newest. */
  at(index: number): number | undefined {
    const newer = this.#newer.length;
    return index < newer ? this.#newer[newer - 1 - index] : this.#older[index - newer];
  }

  /** Newest first. */
  slice(from: number, count: number): number[] {
    const found: number[] = [];
    for (let index = from; index < Math.min(from + count, this.length); index += 1) found.push(this.at(index) ?? 0);
    return found;
  }

  /** Newest first. */
  all(): number[] {
    return this.slice(0, this.length);
  }

  /** Must be below all others. */
  addOldest(seq: number): void {
    this.#older.push(seq);
  }

  /** Must be above all others. */
  addNewest(seq: number): void {
    this.#newer.push(seq);
  }

  /** Must not be contained yet. */
  insert(seq: number): void {
    const newest = this.#newer[0];
    if (newest !== undefined && seq > newest) {
      this.#newer.splice(
        lowerBound(this.#newer, (value) => value > seq),
        0,
        seq,
      );
    } else {
      this.#older.splice(
        lowerBound(this.#older, (value) => value < seq),
        0,
        seq,
      );
    }
  }

  removeAll(seqs: ReadonlySet<number>): void {
    this.#older = this.#older.filter((seq) => !seqs.has(seq));
    this.#newer = this.#newer.filter((seq) => !seqs.has(seq));
  }

  /** Index of the first number below `seq`. */
  indexBelow(seq: number): number {
    let low = 0;
    let high = this.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.at(middle) ?? 0) < seq) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}

/** Maximum time before other requests run. */
const TURN_MS = 15;
const CHUNK_ROWS = 64;
/** Entry numbers per text index query. */
const WINDOW_ROWS = 4096;

/** The request was cancelled. */
export class CancelledError extends Error {
  override readonly name = "CancelledError";

  constructor() {
    super("The request was cancelled");
  }
}

/** Set when a request is cancelled. */
export interface Cancellation {
  readonly cancelled: boolean;
}

export interface EntrySource {
  readonly database: Database;
  readonly bodies: StoredBodies;
  /** Without an index every entry is scanned. */
  readonly index: TextIndex | undefined;
}

/** A window of candidate entries. */
interface Window {
  /** Ascending. */
  readonly seqs: number[];
  /** The window covers all entries from this number on; undefined: all that exist. */
  readonly downTo: number | undefined;
}

/** The entries of a session that match a filter; extended on demand and updated with the store. */
export class FilteredSet {
  readonly plan: FilterPlan;
  readonly seqs = new SeqSet();
  readonly createdMs = Date.now();
  /** Changes whenever the set may have changed. */
  generation = 0;
  readonly #database: Database;
  readonly #scope: SessionScope;
  readonly #bodies: StoredBodies;
  readonly #streams: EntryStreams | undefined;
  readonly #older: Statement;
  readonly #newer: Statement;
  readonly #whole: Statement;
  readonly #picked: Statement;
  readonly #prefilter: TextPrefilter | undefined;
  readonly #find: (() => TextFinding | undefined) | undefined;
  readonly #index: TextIndex | undefined;
  #finding: TextFinding | undefined;
  #window: Window | undefined;
  /** Entries above this number are unchecked. */
  #highest = 0;
  /** Entries below this number are unchecked. */
  #lowest = Number.MAX_SAFE_INTEGER;
  #isComplete = false;
  #hasBegun = false;
  #changed = new Set<number>();
  #removed = new Set<number>();
  #turn: Promise<void> = Promise.resolve();

  constructor({ database, bodies, index }: EntrySource, scope: SessionScope, plan: FilterPlan) {
    this.#database = database;
    this.#bodies = bodies;
    this.#scope = scope;
    this.plan = plan;
    this.#streams = plan.predicate !== undefined && plan.needs.streams ? new EntryStreams(database) : undefined;
    this.#prefilter = plan.predicate === undefined ? undefined : TextPrefilter.of(plan.query, bodies);
    const heads = this.#needsHeads() ? "JOIN head h ON h.seq = e.seq" : "";
    const parts = this.#prefilter === undefined ? [this.#columns(), heads] : [PREFILTER_COLUMNS, PREFILTER_JOINS];
    const source = `SELECT ${parts[0]} FROM entry e INDEXED BY entry_by_session ${parts[1]} WHERE e.session = ? AND`;
    this.#picked = database.prepare(
      `SELECT ${parts[0]} FROM entry e ${parts[1]} WHERE e.seq IN (SELECT value FROM json_each(?)) ORDER BY e.seq DESC`,
    );
    const required = plan.predicate === undefined ? undefined : requiredTextOf(plan.query);
    this.#index = required === undefined ? undefined : index;
    this.#find = required === undefined || index === undefined ? undefined : () => index.find(required);
    this.#whole = database.prepare(`SELECT ${this.#columns()} FROM entry e ${heads} WHERE e.seq = ?`);
    // Columns of the condition belong to `entry e`; joined tables share only `seq`, which conditions qualify.
    this.#older = database.prepare(`${source} e.seq > ? AND e.seq < ? AND (${plan.where}) ORDER BY e.seq DESC LIMIT ?`);
    this.#newer = database.prepare(`${source} e.seq > ? AND (${plan.where}) ORDER BY e.seq LIMIT ?`);
  }

  /** Everything was checked; `seqs` is final. */
  get isComplete(): boolean {
    return this.#isComplete;
  }

  /** Applied by the next `extend`. */
  note(changed: readonly number[], removed: readonly number[]): void {
    for (const seq of changed) this.#changed.add(seq);
    for (const seq of removed) this.#removed.add(seq);
  }

  /**
   * Updates the set and checks older entries until `enough` or the end. Calls are serialized. Rejects with {@link
   * CancelledError} on cancellation.
   */
  async extend(cancellation: Cancellation, enough: (set: FilteredSet) => boolean): Promise<void> {
    const before = this.#turn;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#turn = promise;
    await before;
    try {
      await this.#extend(cancellation, enough);
    } finally {
      resolve();
    }
  }

  async #extend(cancellation: Cancellation, enough: (set: FilteredSet) => boolean): Promise<void> {
    if (cancellation.cancelled) throw new CancelledError();
    if (!this.#hasBegun) this.#begin();
    this.#applyChanges();
    // Late entries below the checked range are in no earlier window.
    this.#window = undefined;
    if (this.plan.predicate === undefined) return this.#collect();
    await this.#scan(
      cancellation,
      (turnEndsMs) => this.#addNewer(turnEndsMs),
      () => false,
    );
    if (!this.#isComplete) await this.#scan(cancellation, (turnEndsMs) => this.#addOlder(turnEndsMs), enough);
  }

  /** Runs once, even if nothing is found: a set started in an empty session must treat later entries as newer. */
  #begin(): void {
    this.#hasBegun = true;
    this.#highest = Math.max(this.#newestSeq(), this.#scope.floorSeq);
    this.#lowest = this.#highest + 1;
  }

  /** Runs steps in time slices, yielding in between, until nothing is left. */
  async #scan(
    cancellation: Cancellation,
    step: (turnEndsMs: number) => boolean,
    enough: (set: FilteredSet) => boolean,
  ): Promise<void> {
    let turnEndsMs = performance.now() + TURN_MS;
    while (!enough(this) && step(turnEndsMs)) {
      if (performance.now() < turnEndsMs) continue;
      await nextTurn();
      if (cancellation.cancelled) throw new CancelledError();
      turnEndsMs = performance.now() + TURN_MS;
    }
  }

  /** Without a predicate SQL returns all numbers as one text, many times cheaper than rows. */
  #collect(): void {
    const { values } = this.plan;
    if (!this.#isComplete) {
      for (const seq of this.#numbers(
        "e.seq > ? AND e.seq < ?",
        [this.#scope.floorSeq, this.#lowest],
        values,
        "DESC",
      )) {
        this.seqs.addOldest(seq);
      }
      this.#isComplete = true;
      this.generation += 1;
    }
    // Read first: entries committed between the two queries count as newer next time.
    const newest = this.#newestSeq();
    for (const seq of this.#numbers("e.seq > ? AND e.seq <= ?", [this.#highest, newest], values, "ASC")) {
      this.seqs.addNewest(seq);
      this.generation += 1;
    }
    this.#highest = Math.max(this.#highest, newest);
  }

  #newestSeq(): number {
    const row = this.#database.prepare("SELECT MAX(seq) AS seq FROM entry WHERE session = ?").get(this.#scope.number);
    return Number(row?.["seq"] ?? 0);
  }

  #numbers(
    range: string,
    bounds: readonly number[],
    values: readonly SqlValue[],
    order: "ASC" | "DESC",
    limit = -1,
  ): number[] {
    const row = this.#database
      .prepare(
        `SELECT group_concat(seq) AS seqs FROM (SELECT e.seq AS seq FROM entry e INDEXED BY entry_by_session
         WHERE e.session = ? AND ${range} AND (${this.plan.where}) ORDER BY e.seq ${order} LIMIT ?)`,
      )
      .get(this.#scope.number, ...bounds, ...values, limit);
    const seqs = row?.["seqs"];
    return typeof seqs === "string" ? (JSON.parse(`[${seqs}]`) as number[]) : [];
  }

  #addOlder(turnEndsMs: number): boolean {
    if (this.#find !== undefined && this.#finding?.version !== this.#index?.version) this.#finding = this.#find();
    if (this.#finding !== undefined) return this.#addPicked(this.#finding, turnEndsMs);
    const bounds = [this.#scope.number, this.#scope.floorSeq, this.#lowest, ...this.plan.values];
    const rows = this.#older.all(...bounds, CHUNK_ROWS);
    this.#index?.noteMissed(rows.length);
    if (this.#scanRows(rows, turnEndsMs) < rows.length) return true;
    this.#isComplete = rows.length < CHUNK_ROWS;
    return !this.#isComplete;
  }

  /** Returns how many rows were checked in time. */
  #scanRows(rows: readonly SqlRow[], turnEndsMs: number): number {
    for (const [index, row] of rows.entries()) {
      const seq = Number(row["seq"]);
      if (this.#matches(row)) {
        this.seqs.addOldest(seq);
        this.generation += 1;
      }
      this.#lowest = seq;
      if (performance.now() > turnEndsMs) return index + 1;
    }
    return rows.length;
  }

  /** Like `addOlder`, skipping entries that the index excludes. */
  #addPicked(finding: TextFinding, turnEndsMs: number): boolean {
    const { seqs, downTo } = (this.#window ??= this.#nextWindow(finding));
    const picked = seqs.slice(-CHUNK_ROWS);
    const rows = picked.length === 0 ? [] : this.#picked.all(JSON.stringify(picked));
    if (this.#scanRows(rows, turnEndsMs) < rows.length) {
      while ((seqs.at(-1) ?? 0) >= this.#lowest) seqs.pop();
      return true;
    }
    seqs.length -= picked.length;
    if (seqs.length > 0) return true;
    this.#window = undefined;
    this.#lowest = downTo ?? this.#lowest;
    this.#isComplete = downTo === undefined;
    return !this.#isComplete;
  }

  #nextWindow(finding: TextFinding): Window {
    const bounds = [this.#scope.floorSeq, this.#lowest];
    const numbers = this.#numbers("e.seq > ? AND e.seq < ?", bounds, this.plan.values, "DESC", WINDOW_ROWS);
    const unknown = numbers.reduce((count, seq) => (finding.isIndexed(seq) ? count : count + 1), 0);
    this.#index?.noteMissed(unknown);
    return {
      seqs: numbers.filter((seq) => !finding.isIndexed(seq) || finding.mayMatch(seq)).reverse(),
      downTo: numbers.length < WINDOW_ROWS ? undefined : numbers.at(-1),
    };
  }

  #addNewer(turnEndsMs: number): boolean {
    const rows = this.#newer.all(this.#scope.number, this.#highest, ...this.plan.values, CHUNK_ROWS);
    for (const row of rows) {
      const seq = Number(row["seq"]);
      if (this.#matches(row)) {
        this.seqs.addNewest(seq);
        this.generation += 1;
      }
      this.#highest = seq;
      if (performance.now() > turnEndsMs) return true;
    }
    return rows.length === CHUNK_ROWS;
  }

  #matches(row: SqlRow): boolean {
    if (this.#prefilter === undefined) return this.#satisfies(row);
    if (!this.#prefilter.mayMatch(row)) return false;
    const whole = this.#whole.get(row["seq"] ?? null);
    return whole !== undefined && this.#satisfies(whole);
  }

  #satisfies(row: SqlRow): boolean {
    return this.plan.predicate?.(new RowRecord(row, this.#scope.id, this.#bodies, this.#streams)) ?? true;
  }

  #applyChanges(): void {
    if (this.#changed.size === 0 && this.#removed.size === 0) return;
    const changed = [...this.#changed].filter((seq) => !this.#removed.has(seq));
    this.seqs.removeAll(new Set([...this.#changed, ...this.#removed]));
    this.#changed = new Set();
    this.#removed = new Set();
    this.generation += 1;
    if (changed.length === 0) return;
    const heads = this.#needsHeads() ? "JOIN head h ON h.seq = e.seq" : "";
    const rows = this.#database
      .prepare(
        `SELECT ${this.#columns()} FROM entry e ${heads} WHERE e.session = ? AND e.seq > ? AND (${this.plan.where})
         AND e.seq IN (SELECT value FROM json_each(?))`,
      )
      .all(this.#scope.number, this.#scope.floorSeq, ...this.plan.values, JSON.stringify(changed));
    for (const row of rows) {
      const seq = Number(row["seq"]);
      const isScanned = seq <= this.#highest && (this.#isComplete || seq >= this.#lowest);
      if (isScanned && this.#satisfies(row)) this.seqs.insert(seq);
    }
  }

  #needsHeads(): boolean {
    const { predicate, needs } = this.plan;
    return predicate !== undefined && (needs.headFields || needs.requestBody || needs.responseBody);
  }

  #columns(): string {
    if (this.plan.predicate === undefined) return "e.seq";
    return this.#needsHeads() ? `${RECORD_COLUMNS}, ${RECORD_HEAD_COLUMNS}` : RECORD_COLUMNS;
  }
}

/** First index for which `holds` is true; `holds` must be monotonic. */
function lowerBound(values: readonly number[], holds: (value: number) => boolean): number {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (holds(values[middle] ?? 0)) high = middle;
    else low = middle + 1;
  }
  return low;
}

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

interface CachedOrder {
  readonly generation: number;
  readonly createdMs: number;
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
class CachedSet {
  readonly set: FilteredSet;
  readonly #source: EntrySource;
  readonly #scope: SessionScope;
  readonly #orders = new Map<string, CachedOrder>();

  constructor(source: EntrySource, scope: SessionScope, filter: TrafficFilter) {
    this.#source = source;
    this.#scope = scope;
    this.set = new FilteredSet(source, scope, planFilter(filter, Date.now()));
  }

  /** Whether the set is still valid. */
  get isValid(): boolean {
    return !(this.set.plan.isTimed && Date.now() - this.set.createdMs > TIMED_SET_MS);
  }

  /** Ascending by column, then by number. */
  ordered(column: string): readonly number[] {
    const { set } = this;
    const known = this.#orders.get(column);
    const ageMs = Date.now() - (known?.createdMs ?? 0);
    const isValid =
      known?.generation === set.generation || ((known?.seqs.length ?? 0) > LARGE_SET && ageMs < LARGE_SET_MS);
    if (known !== undefined && isValid) return known.seqs;
    const condition = conditionOf(this.#scope, set.plan, () => set.seqs.all());
    const seqs = orderedSeqs(this.#source, condition, `${column}, seq`);
    this.#orders.set(column, { generation: set.generation, createdMs: Date.now(), seqs });
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
export class FilteredSetCache {
  readonly #source: EntrySource;
  readonly #sets = new Map<string, CachedSet>();

  constructor(source: EntrySource) {
    this.#source = source;
  }

  /** The cached set, or a new, empty one. */
  of(scope: SessionScope, filter: TrafficFilter): CachedSet {
    const { session_id: _session, ...rest } = filter;
    const key = JSON.stringify([scope.number, scope.floorSeq, filterKey(rest)]);
    const known = this.#sets.get(key);
    this.#sets.delete(key);
    const cached = known?.isValid === true ? known : new CachedSet(this.#source, scope, filter);
    this.#sets.set(key, cached);
    const [oldest] = this.#sets.keys();
    if (this.#sets.size > MAX_SETS && oldest !== undefined) this.#sets.delete(oldest);
    return cached;
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
