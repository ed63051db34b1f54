// Tested by open-capture-store.test.ts
import type { MatchPreview, TrafficEntry, TrafficFilter, TrafficSnapshot } from "@headworks/capture-contract";
import { openDatabase, TRAFFIC_MIGRATIONS } from "./database.ts";
import type { Database, SqlRow, SqlValue, Statement } from "./database.ts";
import { entryOfRow, SNAPSHOT_COLUMNS, snapshotOfRow } from "./entry-shapes.ts";
import { storedFields } from "./stored-json.ts";
import { planFilter } from "./filter-plan.ts";
import { FilteredSet } from "./filtered-set.ts";
import type { EntrySource, Interest } from "./filtered-set.ts";
import { explainMatch, matchPreview } from "./match-preview.ts";
import type {
  EntriesRequest,
  ExportRequest,
  PreviewRequest,
  ReaderSetup,
  RowsRequest,
  SessionNames,
  SessionScope,
  ToReader,
} from "./reader-messages.ts";
import { EFFECT_COLUMNS, withoutReplacedBodies } from "./rule-effects.ts";
import { decodedEntry } from "./decoded-entry.ts";
import { cursorOfSeq, seqOfCursor } from "./seq-cursor.ts";
import { StoredBodies } from "./stored-bodies.ts";
import { TextIndex } from "./text-index.ts";
import { LARGEST_EMBEDDED_BODY_BYTES, sessionExport } from "./session-export.ts";
import { harExport } from "./traffic-export.ts";
import type { TrafficExport } from "./traffic-export.ts";
import { harMessages, streamTexts } from "./stream-documents.ts";
import { summarize } from "./traffic-summary.ts";
import { treeOf, valuesOf } from "./traffic-values.ts";

/** Named in exports. */
const APPLICATION_VERSION = "0.1.0";
/** When a page is full, the scan for the total goes on no longer than this. */
const TOTAL_BUDGET_MS = 250;
/** Sets kept for scrolling; the least lately used goes. */
const KEPT_SETS = 16;
/** A set whose meaning depends on the present is good for so long. */
const TIMED_SET_MS = 1000;
/** Sorting is left to SQL, without keeping the order, for windows within this many rows of the top. */
const TOP_ROWS = 2000;
/** The order of so many entries is kept a little although entries came in. */
const LARGE_SET = 100_000;
const LARGE_SET_MS = 2000;
/** Bodies of one page of a list, and of one entry; larger ones are to be fetched by range. */
const PAGE_BODY_BYTES = 33_554_432;
const ENTRY_BODY_BYTES = 67_108_864;

const SORT_COLUMNS: Readonly<Record<string, string>> = {
  timestamp: "started_ms",
  method: "method",
  status: "status",
  host: "host",
  path: "path",
  type: "resource_type",
  size: "response_size",
  request_size: "request_size",
  duration: "duration_us",
  ttfb: "ttfb_us",
};

/** How many entries a filter finds. */
export interface Total {
  readonly total: number;
  /** False while older entries were not looked at yet: there may be more. */
  readonly isComplete: boolean;
}

interface FilledPage {
  readonly entries: TrafficEntry[];
  /** Entries that have bodies and came without them. */
  readonly bodiesOmitted: number;
  /** Where the next page starts in what was to be shown. */
  readonly nextIndex: number;
}

interface KeptOrder {
  readonly generation: number;
  readonly madeMs: number;
  /** Ascending by the column, then by number. */
  readonly seqs: readonly number[];
}

interface KeptSet {
  readonly set: FilteredSet;
  readonly orders: Map<string, KeptOrder>;
}

/** The reading side of the traffic database on one thread. Questions take turns, so that none holds up the others. */
export class TrafficReader {
  readonly bodies: StoredBodies;
  /** Of the thread that searches. */
  readonly index: TextIndex | undefined;
  readonly #source: EntrySource;
  readonly #database: Database;
  readonly #row: Statement;
  readonly #whole: Statement;
  readonly #byId: Statement;
  readonly #sets = new Map<string, KeptSet>();

  constructor(setup: ReaderSetup) {
    this.#database = openDatabase(setup.path, {
      readOnly: true,
      migrations: TRAFFIC_MIGRATIONS,
      cacheBytes: 33_554_432,
    });
    this.bodies = new StoredBodies(this.#database, setup.bodiesFolder);
    const { index } = setup;
    this.index = index === undefined ? undefined : new TextIndex(index, this.#database, this.bodies);
    this.#source = { database: this.#database, bodies: this.bodies, index: this.index };
    this.#row = this.#database.prepare(`SELECT ${SNAPSHOT_COLUMNS} FROM entry WHERE seq = ?`);
    const whole = `SELECT e.*, h.*, ${EFFECT_COLUMNS} FROM entry e JOIN head h ON h.seq = e.seq LEFT JOIN effect f ON f.seq = e.seq`;
    this.#whole = this.#database.prepare(`${whole} WHERE e.seq = ?`);
    this.#byId = this.#database.prepare(`${whole} WHERE e.id = ?`);
  }

  close(): void {
    this.index?.close();
    this.#database.close();
  }

  /** Entries were rewritten or removed, or their streams went on. */
  note({ changedSeqs, streamedSeqs, removedSeqs, reset }: Extract<ToReader, { readonly kind: "change" }>): void {
    if (reset) this.#sets.clear();
    for (const { set } of this.#sets.values()) {
      set.note(changedSeqs, removedSeqs);
      if (set.plan.needs.streams) set.note(streamedSeqs, []);
    }
    this.index?.noteRemoved(removedSeqs.length, reset);
  }

  /** A window of rows. The total of a filter that needs looking into entries may still grow: see the budget. */
  async rows(request: RowsRequest, interest: Interest): Promise<Total & { rows: TrafficSnapshot[] }> {
    const { seqs, total, isComplete } = await this.#window(request, interest);
    return { rows: this.#snapshots(seqs, request.scope), total, isComplete };
  }

  async latest(
    scope: SessionScope,
    limit: number,
    filter: TrafficFilter,
    interest: Interest,
  ): Promise<TrafficSnapshot[]> {
    const request = { op: "rows", scope, filter, sort: "seq", order: "desc", offset: 0, limit } as const;
    return (await this.rows(request, interest)).rows;
  }

  async count(scope: SessionScope, filter: TrafficFilter, interest: Interest): Promise<number> {
    const plan = planFilter(filter, Date.now());
    if (plan.isEverything) return scope.entryCount;
    if (plan.predicate === undefined) return this.#countWhere(scope, plan.where, plan.values);
    const { set } = this.#keptSet(scope, filter);
    await set.extend(interest, () => false);
    return set.length;
  }

  /** A condition on `entry`, called `e`, that holds for exactly what the filter finds. */
  async #condition(
    scope: SessionScope,
    filter: TrafficFilter,
    interest: Interest,
  ): Promise<{ where: string; values: SqlValue[] }> {
    const plan = planFilter(filter, Date.now());
    if (plan.predicate === undefined) {
      return {
        where: `session = ? AND seq > ? AND (${plan.where})`,
        values: [scope.number, scope.floorSeq, ...plan.values],
      };
    }
    const { set } = this.#keptSet(scope, filter);
    await set.extend(interest, () => false);
    return { where: "seq IN (SELECT value FROM json_each(?))", values: [JSON.stringify(set.all())] };
  }

  /** An export of the entries that match now, oldest first. */
  async openExport(request: ExportRequest, interest: Interest): Promise<TrafficExport> {
    const { scope, filter, ids, sessions, session } = request;
    const condition =
      ids === undefined
        ? await this.#condition(scope, filter, interest)
        : { where: "id IN (SELECT value FROM json_each(?))", values: [JSON.stringify(ids)] };
    const row = this.#database
      .prepare(`SELECT group_concat(seq) AS seqs FROM (SELECT seq FROM entry e WHERE ${condition.where} ORDER BY seq)`)
      .get(...condition.values);
    const seqs = typeof row?.["seqs"] === "string" ? (JSON.parse(`[${row["seqs"]}]`) as number[]) : [];
    const whole = (seq: number): { row: SqlRow; sessionId: string } | undefined => {
      const found = this.#whole.get(seq);
      const owner = sessions.get(Number(found?.["session"]));
      return found === undefined || owner === undefined || seq <= owner.floorSeq
        ? undefined
        : { row: found, sessionId: owner.id };
    };
    const webSocketMessages = (id: string) => harMessages(this.#database, id);
    const source = { seqs, whole, bodies: this.bodies, webSocketMessages };
    if (session === undefined) return harExport(source, APPLICATION_VERSION);
    const large = this.#database
      .prepare(
        `SELECT seq FROM entry e WHERE (${condition.where}) AND MAX(request_body_stored, response_body_stored) > ? ORDER BY seq`,
      )
      .all(...condition.values, LARGEST_EMBEDDED_BODY_BYTES);
    const largeSeqs = large.map((row) => Number(row["seq"]));
    const streams = (): Iterable<string> => streamTexts(this.#database, scope.number);
    return sessionExport({ ...source, largeSeqs, streamTexts: streams }, session, request.exportedAt);
  }

  async summary(scope: SessionScope, filter: TrafficFilter, interest: Interest): Promise<unknown> {
    const { where, values } = await this.#condition(scope, filter, interest);
    return summarize(this.#database, scope.entryCount, where, values);
  }

  async tree(
    scope: SessionScope,
    filter: TrafficFilter,
    ofHost: string | undefined,
    interest: Interest,
  ): Promise<unknown> {
    const { where, values } = await this.#condition(scope, filter, interest);
    return treeOf(this.#database, ofHost, where, values);
  }

  values(scope: SessionScope, field: string, prefix: string, limit: number): unknown {
    return valuesOf(this.#database, scope, field, prefix, limit);
  }

  /** What a condition would have matched lately. */
  async preview(request: PreviewRequest, interest: Interest): Promise<MatchPreview> {
    const { seqs, ...counts } = await matchPreview(this.#source, request, interest);
    const explanation = explainMatch(this.#source, request);
    const sample = this.#snapshots(seqs, request.scope);
    return { ...counts, sample, ...(explanation === undefined ? {} : { explanation }) };
  }

  /** A page of full entries, newest first, as the API answers it. */
  async entries(
    request: EntriesRequest,
    interest: Interest,
  ): Promise<Total & { page: unknown; bodiesOmitted: number }> {
    const { scope, filter, limit, cursor } = request;
    const plan = planFilter(filter, Date.now());
    let seqs: number[];
    let total: number;
    let isComplete = true;
    if (cursor === undefined) {
      ({ seqs, total, isComplete } = await this.#window(
        { ...request, op: "rows", sort: "seq", order: "desc" },
        interest,
        true,
      ));
    } else {
      const before = cursor === "" ? Number.MAX_SAFE_INTEGER : seqOfCursor(cursor);
      if (plan.isEverything) {
        seqs = this.#newest(scope, limit + 1, 0, before);
        total = scope.entryCount;
      } else {
        const { set } = this.#keptSet(scope, filter);
        await set.extend(interest, (found) => found.length - found.placeBelow(before) > limit);
        seqs = set.slice(set.placeBelow(before), limit + 1);
        total = set.length;
        isComplete = set.isComplete;
      }
    }
    const shown = seqs.slice(0, limit);
    const { entries, bodiesOmitted, nextIndex } = this.#filled(shown, request);
    const totals = { total, isComplete, bodiesOmitted };
    if (cursor === undefined) return { page: entries, ...totals };
    const last = shown[nextIndex - 1];
    const isMore = seqs.length > nextIndex && last !== undefined;
    return { page: { entries, next_cursor: isMore ? cursorOfSeq(last) : null }, ...totals };
  }

  /**
   * The entries of a page. The first one always has its bodies; where those of another find no room, it is the next
   * page's first, or without pages goes without them.
   */
  #filled(shown: readonly number[], { scope, includeBodies, cursor }: EntriesRequest): FilledPage {
    const entries: TrafficEntry[] = [];
    let roomBytes = PAGE_BODY_BYTES;
    let bodiesOmitted = 0;
    for (const [index, seq] of shown.entries()) {
      const row = this.#whole.get(seq);
      if (row === undefined) continue;
      const bodyBytes = includeBodies ? givenBytes(row, "request") + givenBytes(row, "response") : 0;
      const isFitting = bodyBytes <= roomBytes || entries.length === 0;
      if (!isFitting && cursor !== undefined) return { entries, bodiesOmitted, nextIndex: index };
      if (isFitting) roomBytes = Math.max(0, roomBytes - bodyBytes);
      else bodiesOmitted += 1;
      entries.push(this.#entry(row, scope.id, includeBodies && isFitting));
    }
    return { entries, bodiesOmitted, nextIndex: shown.length };
  }

  async entry(
    id: string,
    sessions: SessionNames,
    includeBodies: boolean,
    decompressed: boolean,
  ): Promise<TrafficEntry | undefined> {
    const row = this.visibleRow(id, sessions);
    const session = sessions.get(Number(row?.["session"]));
    if (row === undefined || session === undefined) return undefined;
    const entry = this.#entry(row, session.id, includeBodies);
    return includeBodies && decompressed ? await decodedEntry(entry, this.bodies, ENTRY_BODY_BYTES) : entry;
  }

  /** The list row of an entry. */
  snapshot(id: string, sessions: SessionNames): TrafficSnapshot | undefined {
    const row = this.visibleRow(id, sessions);
    const session = sessions.get(Number(row?.["session"]));
    return row === undefined || session === undefined ? undefined : snapshotOfRow(row, session.id);
  }

  /** The row of an entry with its head; undefined for what was cleared or deleted. */
  visibleRow(id: string, sessions: SessionNames): SqlRow | undefined {
    const row = this.#byId.get(id);
    const session = sessions.get(Number(row?.["session"]));
    return row === undefined || session === undefined || Number(row["seq"]) <= session.floorSeq ? undefined : row;
  }

  #entry(row: SqlRow, sessionId: string, includeBodies: boolean): TrafficEntry {
    const seq = Number(row["seq"]);
    const read = (side: "request" | "response"): Uint8Array | undefined => {
      const bytes = includeBodies ? givenBytes(row, side) : 0;
      return bytes > 0 ? this.bodies.read(seq, side, bytes) : undefined;
    };
    return entryOfRow(
      includeBodies ? row : withoutReplacedBodies(row),
      sessionId,
      { bytes: read("request"), fields: storedFields(row["request_fields"]) ?? [] },
      { bytes: read("response"), fields: storedFields(row["response_fields"]) ?? [] },
    );
  }

  async #window(request: RowsRequest, interest: Interest, wholeTotal = false): Promise<Total & { seqs: number[] }> {
    const { scope, filter, sort, order, offset, limit } = request;
    const plan = planFilter(filter, Date.now());
    const column = SORT_COLUMNS[sort];
    if (column === undefined && plan.isEverything) {
      const seqs = order === "desc" ? this.#newest(scope, limit, offset) : this.#oldest(scope, limit, offset);
      return { seqs, total: scope.entryCount, isComplete: true };
    }
    if (column !== undefined && plan.predicate === undefined && offset + limit <= TOP_ROWS) {
      const total = plan.isEverything ? scope.entryCount : this.#countWhere(scope, plan.where, plan.values);
      return { seqs: this.#top(request, column, plan.where, plan.values), total, isComplete: true };
    }
    const kept = this.#keptSet(scope, filter);
    const { set } = kept;
    const startedMs = performance.now();
    const isOrdered = column === undefined && order === "desc";
    await set.extend(interest, (found) => {
      if (!isOrdered || wholeTotal) return false;
      return found.length >= offset + limit && performance.now() - startedMs > TOTAL_BUDGET_MS;
    });
    if (column === undefined) {
      const from = order === "desc" ? offset : Math.max(0, set.length - offset - limit);
      const seqs = set.slice(from, order === "desc" ? limit : Math.max(0, Math.min(limit, set.length - offset)));
      return { seqs: order === "desc" ? seqs : seqs.reverse(), total: set.length, isComplete: set.isComplete };
    }
    const sorted = this.#ordered(kept, scope, sort, column);
    const total = { total: sorted.length, isComplete: set.isComplete };
    if (order === "asc") return { seqs: sorted.slice(offset, offset + limit), ...total };
    const end = sorted.length - offset;
    return { seqs: end <= 0 ? [] : sorted.slice(Math.max(0, end - limit), end).reverse(), ...total };
  }

  #keptSet(scope: SessionScope, filter: TrafficFilter): KeptSet {
    const { session_id: _session, ...rest } = filter;
    const key = JSON.stringify([scope.number, scope.floorSeq, filterKey(rest)]);
    const known = this.#sets.get(key);
    this.#sets.delete(key);
    const isGood = known !== undefined && !(known.set.plan.isTimed && Date.now() - known.set.createdMs > TIMED_SET_MS);
    const kept = isGood
      ? known
      : {
          set: new FilteredSet(this.#source, scope, planFilter(filter, Date.now())),
          orders: new Map<string, KeptOrder>(),
        };
    this.#sets.set(key, kept);
    const [oldest] = this.#sets.keys();
    if (this.#sets.size > KEPT_SETS && oldest !== undefined) this.#sets.delete(oldest);
    return kept;
  }

  #ordered(kept: KeptSet, scope: SessionScope, sort: string, column: string): readonly number[] {
    const { set, orders } = kept;
    const known = orders.get(sort);
    const ageMs = Date.now() - (known?.madeMs ?? 0);
    if (
      known !== undefined &&
      (known.generation === set.generation || (known.seqs.length > LARGE_SET && ageMs < LARGE_SET_MS))
    ) {
      return known.seqs;
    }
    const { where, values } = set.plan;
    const [condition, bound]: [string, SqlValue[]] =
      set.plan.predicate === undefined
        ? [`session = ? AND seq > ? AND (${where})`, [scope.number, scope.floorSeq, ...values]]
        : ["seq IN (SELECT value FROM json_each(?))", [JSON.stringify(set.all())]];
    const row = this.#database
      .prepare(
        `SELECT group_concat(seq) AS seqs FROM (SELECT seq FROM entry e WHERE ${condition} ORDER BY ${column}, seq)`,
      )
      .get(...bound);
    const seqs = typeof row?.["seqs"] === "string" ? (JSON.parse(`[${row["seqs"]}]`) as number[]) : [];
    orders.set(sort, { generation: set.generation, madeMs: Date.now(), seqs });
    return seqs;
  }

  #countWhere(scope: SessionScope, where: string, values: readonly SqlValue[]): number {
    const row = this.#database
      .prepare(
        `SELECT COUNT(*) AS count FROM entry e INDEXED BY entry_by_session WHERE session = ? AND seq > ? AND (${where})`,
      )
      .get(scope.number, scope.floorSeq, ...values);
    return Number(row?.["count"] ?? 0);
  }

  #top(request: RowsRequest, column: string, where: string, values: readonly SqlValue[]): number[] {
    const direction = request.order === "asc" ? "ASC" : "DESC";
    const { scope, limit, offset } = request;
    return this.#database
      .prepare(
        `SELECT seq FROM entry e INDEXED BY entry_by_session WHERE session = ? AND seq > ? AND (${where})
         ORDER BY ${column} ${direction}, seq ${direction} LIMIT ? OFFSET ?`,
      )
      .all(scope.number, scope.floorSeq, ...values, limit, offset)
      .map((row) => Number(row["seq"]));
  }

  #newest(scope: SessionScope, limit: number, offset: number, below = Number.MAX_SAFE_INTEGER): number[] {
    return this.#database
      .prepare("SELECT seq FROM entry WHERE session = ? AND seq > ? AND seq < ? ORDER BY seq DESC LIMIT ? OFFSET ?")
      .all(scope.number, scope.floorSeq, below, limit, offset)
      .map((row) => Number(row["seq"]));
  }

  #oldest(scope: SessionScope, limit: number, offset: number): number[] {
    return this.#database
      .prepare("SELECT seq FROM entry WHERE session = ? AND seq > ? ORDER BY seq LIMIT ? OFFSET ?")
      .all(scope.number, scope.floorSeq, limit, offset)
      .map((row) => Number(row["seq"]));
  }

  #snapshots(seqs: readonly number[], scope: SessionScope): TrafficSnapshot[] {
    return seqs.flatMap((seq) => {
      const row = this.#row.get(seq);
      return row === undefined ? [] : [snapshotOfRow(row, scope.id)];
    });
  }
}

/** How many bytes of a body an entry is given with. */
function givenBytes(row: SqlRow, side: "request" | "response"): number {
  const stored = Number(row[`${side}_body_stored`]);
  return stored <= ENTRY_BODY_BYTES ? stored : 0;
}

/** The same filter always has the same key, whatever the order of its parameters. */
function filterKey(filter: TrafficFilter): unknown[] {
  return Object.entries(filter).sort(([left], [right]) => (left < right ? -1 : 1));
}
