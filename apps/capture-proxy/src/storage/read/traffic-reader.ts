import type { MatchPreview, TrafficEntry, TrafficFilter, TrafficSnapshot } from "@headworks/capture-contract";
import { openDatabase, TRAFFIC_MIGRATIONS } from "../database.ts";
import type { Database, SqlRow, SqlValue, Statement } from "../database.ts";
import { SNAPSHOT_COLUMNS, snapshotOfRow } from "./entry-shapes.ts";
import { planFilter } from "../search/filter-plan.ts";
import type { EntrySource, Interest } from "../search/filtered-set.ts";
import { conditionOf, KeptSets, orderedSeqs, type Condition } from "../search/kept-sets.ts";
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
import { cursorOfSeq, seqOfCursor } from "../search/seq-cursor.ts";
import { StoredBodies } from "./stored-bodies.ts";
import { TextIndex } from "../search/text-index.ts";
import { MAX_EMBEDDED_BODY_BYTES, sessionExport } from "../export/session-export.ts";
import { harExport } from "../export/traffic-export.ts";
import type { TrafficExport } from "../export/traffic-export.ts";
import { harMessages, streamTexts } from "../streams/stream-documents.ts";
import { summarize } from "./traffic-summary.ts";
import { treeOf, valuesOf } from "./traffic-values.ts";
import { WholeEntries } from "./whole-entries.ts";

/** Named in exports. */
const APPLICATION_VERSION = "0.1.0";
/** When a page is full, the scan for the total goes on no longer than this. */
const TOTAL_BUDGET_MS = 250;
/** Sorting is left to SQL, without keeping the order, for windows within this many rows of the top. */
const TOP_ROWS = 2000;
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

/** The reading side of the traffic database on one thread. Questions take turns, so that none holds up the others. */
export class TrafficReader {
  readonly bodies: StoredBodies;
  /** Of the thread that searches. */
  readonly index: TextIndex | undefined;
  readonly #source: EntrySource;
  readonly #database: Database;
  readonly #row: Statement;
  readonly #whole: WholeEntries;
  readonly #sets: KeptSets;

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
    this.#whole = new WholeEntries(this.#database, this.bodies);
    this.#sets = new KeptSets(this.#source);
  }

  close(): void {
    this.index?.close();
    this.#database.close();
  }

  /** Entries were rewritten or removed, or their streams went on. */
  note(change: Extract<ToReader, { readonly kind: "change" }>): void {
    this.#sets.note(change);
    this.index?.noteRemoved(change.removedSeqs.length, change.reset);
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
    const { set } = this.#sets.of(scope, filter);
    await set.extend(interest, () => false);
    return set.length;
  }

  /** A condition that holds for exactly what the filter finds. */
  async #condition(scope: SessionScope, filter: TrafficFilter, interest: Interest): Promise<Condition> {
    const plan = planFilter(filter, Date.now());
    if (plan.predicate === undefined) return conditionOf(scope, plan, () => []);
    const { set } = this.#sets.of(scope, filter);
    await set.extend(interest, () => false);
    return conditionOf(scope, plan, () => set.all());
  }

  /** An export of the entries that match now, oldest first. */
  async openExport(request: ExportRequest, interest: Interest): Promise<TrafficExport> {
    const { scope, filter, ids, sessions, session } = request;
    const condition =
      ids === undefined
        ? await this.#condition(scope, filter, interest)
        : { where: "id IN (SELECT value FROM json_each(?))", values: [JSON.stringify(ids)] };
    const seqs = orderedSeqs(this.#source, condition);
    const whole = (seq: number) => this.#whole.bySeq(seq, sessions);
    const webSocketMessages = (id: string) => harMessages(this.#database, id);
    const source = { seqs, whole, bodies: this.bodies, webSocketMessages };
    if (session === undefined) return harExport(source, APPLICATION_VERSION);
    const large = this.#database
      .prepare(
        `SELECT seq FROM entry e WHERE (${condition.where}) AND MAX(request_body_stored, response_body_stored) > ? ORDER BY seq`,
      )
      .all(...condition.values, MAX_EMBEDDED_BODY_BYTES);
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
        const { set } = this.#sets.of(scope, filter);
        await set.extend(interest, (found) => found.length - found.placeBelow(before) > limit);
        seqs = set.slice(set.placeBelow(before), limit + 1);
        total = set.length;
        isComplete = set.isComplete;
      }
    }
    const shown = seqs.slice(0, limit);
    const { entries, bodiesOmitted, nextIndex } = this.#whole.page(shown, request);
    const totals = { total, isComplete, bodiesOmitted };
    if (cursor === undefined) return { page: entries, ...totals };
    const last = shown[nextIndex - 1];
    const isMore = seqs.length > nextIndex && last !== undefined;
    return { page: { entries, next_cursor: isMore ? cursorOfSeq(last) : null }, ...totals };
  }

  /** One entry; undefined for what was cleared or deleted. */
  async entry(
    id: string,
    sessions: SessionNames,
    includeBodies: boolean,
    decompressed: boolean,
  ): Promise<TrafficEntry | undefined> {
    return await this.#whole.entry(id, sessions, includeBodies, decompressed);
  }

  /** The list row of an entry; undefined for what was cleared or deleted. */
  snapshot(id: string, sessions: SessionNames): TrafficSnapshot | undefined {
    const found = this.#whole.byId(id, sessions);
    return found === undefined ? undefined : snapshotOfRow(found.row, found.sessionId);
  }

  /** The row of an entry with its head; undefined for what was cleared or deleted. */
  visibleRow(id: string, sessions: SessionNames): SqlRow | undefined {
    return this.#whole.byId(id, sessions)?.row;
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
    const kept = this.#sets.of(scope, filter);
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
    const sorted = kept.ordered(column);
    const total = { total: sorted.length, isComplete: set.isComplete };
    if (order === "asc") return { seqs: sorted.slice(offset, offset + limit), ...total };
    const end = sorted.length - offset;
    return { seqs: end <= 0 ? [] : sorted.slice(Math.max(0, end - limit), end).reverse(), ...total };
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
