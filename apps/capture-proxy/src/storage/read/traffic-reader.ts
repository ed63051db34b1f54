import type {
  MatchPreview,
  RequestData,
  ResponseData,
  TrafficEntry,
  TrafficFilter,
  TrafficSnapshot,
  TrafficSummary,
  TreeNode,
} from "@headworks/capture-contract";
import { decodeContent } from "@headworks/http-fields/content-coding";
import { fieldValues } from "@headworks/http1";
import { bodyText } from "#exchange/shown-message.ts";
import { openDatabase, TRAFFIC_MIGRATIONS } from "../database.ts";
import type { Database, SqlRow, SqlValue, Statement } from "../database.ts";
import {
  harExport,
  harMessages,
  MAX_EMBEDDED_BODY_BYTES,
  sessionExport,
  streamTexts,
  type TrafficExport,
} from "../export/traffic-export.ts";
import { conditionOf, FilteredSetCache, orderedSeqs, planFilter } from "../search/filtered-set.ts";
import type { Cancellation, Condition, EntrySource } from "../search/filtered-set.ts";
import { TextIndex } from "../search/text-index.ts";
import { StoredBodies } from "../stored-bodies.ts";
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
} from "./reader-client.ts";
import {
  EFFECT_COLUMNS,
  entryOfRow,
  type FoundEntry,
  originalBodyBytes,
  SNAPSHOT_COLUMNS,
  snapshotOfRow,
  storedFields,
  withoutReplacedBodies,
} from "./stored-entry.ts";

class CursorError extends Error {
  override readonly name = "CursorError";
}

const SLICES = 60;
const IS_ERROR = "(state = 2 OR COALESCE(status >= 400, FALSE))";
const PATH = "(CASE instr(path, '?') WHEN 0 THEN path ELSE substr(path, 1, instr(path, '?') - 1) END)";
const BARE_HOST = "(CASE WHEN instr(host, ':') > 0 THEN '[' || host || ']' ELSE host END)";
const HOST_AND_PORT = `(${BARE_HOST} || ':' || port)`;
const IS_DEFAULT_PORT = "((port = 443 AND scheme IN ('https', 'wss')) OR (port = 80 AND scheme IN ('http', 'ws')))";
const HOST = `(CASE WHEN ${IS_DEFAULT_PORT} THEN ${BARE_HOST} ELSE ${HOST_AND_PORT} END)`;
const MAX_NODES = 5000;
/** Newest entries used for completion. */
const RECENT_ENTRIES = 100_000;
const RECENT_HEADS = 2000;

const VALUE_COLUMNS: Readonly<Record<string, string>> = {
  host: "host",
  method: "method",
  status: "CAST(status AS TEXT)",
  path: PATH,
  type: "resource_type",
  scheme: "scheme",
  mime: "response_type",
  client: "rtrim(rtrim(client_addr, '0123456789'), ':')",
};

const APPLICATION_VERSION = "0.1.0";
/** Once a page is full, the scan for the total stops after this time. */
const TOTAL_BUDGET_MS = 250;
/** Windows within this many rows of the top are sorted by SQL without caching the order. */
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

interface Total {
  readonly total: number;
  /** False if older entries are unchecked: the total may grow. */
  readonly isComplete: boolean;
}

/** Reads the traffic database on one thread. Requests yield to each other. */
export class TrafficReader {
  readonly bodies: StoredBodies;
  readonly entryReader: EntryReader;
  /** On the searching thread only. */
  readonly index: TextIndex | undefined;
  readonly #source: EntrySource;
  readonly #database: Database;
  readonly #row: Statement;
  readonly #sets: FilteredSetCache;

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
    this.entryReader = new EntryReader(this.#database, this.bodies);
    this.#sets = new FilteredSetCache(this.#source);
  }

  close(): void {
    this.index?.close();
    this.#database.close();
  }

  /** Entries were rewritten or removed, or have new stream data. */
  note(change: Extract<ToReader, { readonly kind: "change" }>): void {
    this.#sets.note(change);
    this.index?.noteRemoved(change.removedSeqs.length, change.reset);
  }

  /** A window of rows. The total of a filter that needs a scan may be incomplete: see the budget. */
  async rows(request: RowsRequest, cancellation: Cancellation): Promise<Total & { rows: TrafficSnapshot[] }> {
    const { seqs, total, isComplete } = await this.#window(request, cancellation);
    return { rows: this.#snapshots(seqs, request.scope), total, isComplete };
  }

  async latest(
    scope: SessionScope,
    limit: number,
    filter: TrafficFilter,
    cancellation: Cancellation,
  ): Promise<TrafficSnapshot[]> {
    const request = { op: "rows", scope, filter, sort: "seq", order: "desc", offset: 0, limit } as const;
    return (await this.rows(request, cancellation)).rows;
  }

  async count(scope: SessionScope, filter: TrafficFilter, cancellation: Cancellation): Promise<number> {
    const plan = planFilter(filter, Date.now());
    if (plan.isEverything) return scope.entryCount;
    if (plan.predicate === undefined) return this.#countWhere(scope, plan.where, plan.values);
    const { set } = this.#sets.of(scope, filter);
    await set.extend(cancellation, () => false);
    return set.seqs.length;
  }

  /** A condition for exactly the entries that the filter finds. */
  async #condition(scope: SessionScope, filter: TrafficFilter, cancellation: Cancellation): Promise<Condition> {
    const plan = planFilter(filter, Date.now());
    if (plan.predicate === undefined) return conditionOf(scope, plan, () => []);
    const { set } = this.#sets.of(scope, filter);
    await set.extend(cancellation, () => false);
    return conditionOf(scope, plan, () => set.seqs.all());
  }

  /** An export of the entries matching now, oldest first. */
  async openExport(request: ExportRequest, cancellation: Cancellation): Promise<TrafficExport> {
    const { scope, filter, ids, sessions, session } = request;
    const condition =
      ids === undefined
        ? await this.#condition(scope, filter, cancellation)
        : { where: "id IN (SELECT value FROM json_each(?))", values: [JSON.stringify(ids)] };
    const seqs = orderedSeqs(this.#source, condition);
    const whole = (seq: number) => this.entryReader.bySeq(seq, sessions);
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

  async summary(scope: SessionScope, filter: TrafficFilter, cancellation: Cancellation): Promise<unknown> {
    const { where, values } = await this.#condition(scope, filter, cancellation);
    return summarize(this.#database, scope.entryCount, where, values);
  }

  async tree(
    scope: SessionScope,
    filter: TrafficFilter,
    ofHost: string | undefined,
    cancellation: Cancellation,
  ): Promise<unknown> {
    const { where, values } = await this.#condition(scope, filter, cancellation);
    return treeOf(this.#database, ofHost, where, values);
  }

  values(scope: SessionScope, field: string, prefix: string, limit: number): unknown {
    return valuesOf(this.#database, scope, field, prefix, limit);
  }

  async preview(request: PreviewRequest, cancellation: Cancellation): Promise<MatchPreview> {
    const { seqs, ...counts } = await matchPreview(this.#source, request, cancellation);
    const explanation = explainMatch(this.#source, request);
    const sample = this.#snapshots(seqs, request.scope);
    return { ...counts, sample, ...(explanation === undefined ? {} : { explanation }) };
  }

  /** A page of full entries, newest first. */
  async entries(
    request: EntriesRequest,
    cancellation: Cancellation,
  ): Promise<Total & { page: unknown; bodiesOmitted: number }> {
    const { scope, filter, limit, cursor } = request;
    const plan = planFilter(filter, Date.now());
    let seqs: number[];
    let total: number;
    let isComplete = true;
    if (cursor === undefined) {
      ({ seqs, total, isComplete } = await this.#window(
        { ...request, op: "rows", sort: "seq", order: "desc" },
        cancellation,
        true,
      ));
    } else {
      const before = cursor === "" ? Number.MAX_SAFE_INTEGER : seqOfCursor(cursor);
      if (plan.isEverything) {
        seqs = this.#newest(scope, limit + 1, 0, before);
        total = scope.entryCount;
      } else {
        const { set } = this.#sets.of(scope, filter);
        await set.extend(cancellation, ({ seqs: found }) => found.length - found.indexBelow(before) > limit);
        seqs = set.seqs.slice(set.seqs.indexBelow(before), limit + 1);
        total = set.seqs.length;
        isComplete = set.isComplete;
      }
    }
    const shown = seqs.slice(0, limit);
    const { entries, bodiesOmitted, nextIndex } = this.entryReader.page(shown, request);
    const totals = { total, isComplete, bodiesOmitted };
    if (cursor === undefined) return { page: entries, ...totals };
    const last = shown[nextIndex - 1];
    const isMore = seqs.length > nextIndex && last !== undefined;
    return { page: { entries, next_cursor: isMore ? cursorOfSeq(last) : null }, ...totals };
  }

  /** Undefined for cleared or deleted entries. */
  snapshot(id: string, sessions: SessionNames): TrafficSnapshot | undefined {
    const found = this.entryReader.byId(id, sessions);
    return found === undefined ? undefined : snapshotOfRow(found.row, found.sessionId);
  }

  async #window(
    request: RowsRequest,
    cancellation: Cancellation,
    wholeTotal = false,
  ): Promise<Total & { seqs: number[] }> {
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
    const cached = this.#sets.of(scope, filter);
    const { set } = cached;
    const startedMs = performance.now();
    const isOrdered = column === undefined && order === "desc";
    await set.extend(cancellation, ({ seqs: found }) => {
      if (!isOrdered || wholeTotal) return false;
      return found.length >= offset + limit && performance.now() - startedMs > TOTAL_BUDGET_MS;
    });
    if (column === undefined) {
      const from = order === "desc" ? offset : Math.max(0, set.seqs.length - offset - limit);
      const seqs = set.seqs.slice(
        from,
        order === "desc" ? limit : Math.max(0, Math.min(limit, set.seqs.length - offset)),
      );
      return { seqs: order === "desc" ? seqs : seqs.reverse(), total: set.seqs.length, isComplete: set.isComplete };
    }
    const sorted = cached.ordered(column);
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

/**
 * Hosts (with non-default ports), or with `ofHost` its paths, which may be named with any port; most frequent first.
 */
function treeOf(
  database: Database,
  ofHost: string | undefined,
  where: string,
  values: readonly SqlValue[],
): TreeNode[] {
  const name = ofHost === undefined ? HOST : PATH;
  const condition = ofHost === undefined ? where : `${where} AND ? IN (${HOST}, ${HOST_AND_PORT})`;
  const bound = ofHost === undefined ? values : [...values, asciiLower(ofHost)];
  return database
    .prepare(
      `SELECT ${name} AS name, COUNT(*) AS count, SUM(state = 2 OR COALESCE(status >= 400, FALSE)) AS errors,
         SUM(COALESCE(response_size, 0)) AS bytes, MAX(started_ms) AS last
       FROM entry e WHERE ${condition} GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT ${MAX_NODES}`,
    )
    .all(...bound)
    .map((row) => ({
      name: String(row["name"]),
      count: Number(row["count"]),
      errors: Number(row["errors"]),
      response_bytes: Number(row["bytes"]),
      last_timestamp: new Date(Number(row["last"])).toISOString(),
    }));
}

/** Field values with a prefix, ignoring case, most frequent first. */
function valuesOf(
  database: Database,
  scope: SessionScope,
  field: string,
  prefix: string,
  limit: number,
): { value: string; count: number }[] {
  if (field === "header") return headerNames(database, scope, prefix, limit);
  const column = VALUE_COLUMNS[field];
  if (column === undefined) return [];
  const folded = asciiLower(prefix);
  return database
    .prepare(
      `SELECT value, COUNT(*) AS count FROM (
         SELECT ${column} AS value FROM entry WHERE session = ? AND seq > ? ORDER BY seq DESC LIMIT ${RECENT_ENTRIES}
       ) WHERE value IS NOT NULL AND substr(lower(value), 1, length(?)) = ? GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT ?`,
    )
    .all(scope.number, scope.floorSeq, folded, folded, limit)
    .map((row) => ({ value: String(row["value"]), count: Number(row["count"]) }));
}

function headerNames(
  database: Database,
  scope: SessionScope,
  prefix: string,
  limit: number,
): { value: string; count: number }[] {
  const counts = new Map<string, number>();
  const wanted = prefix.toLowerCase();
  const rows = database
    .prepare(
      `SELECT h.request_fields, h.response_fields FROM entry e JOIN head h ON h.seq = e.seq
       WHERE e.session = ? AND e.seq > ? ORDER BY e.seq DESC LIMIT ${RECENT_HEADS}`,
    )
    .iterate(scope.number, scope.floorSeq);
  for (const row of rows) {
    for (const fields of [storedFields(row["request_fields"]), storedFields(row["response_fields"])]) {
      for (let index = 0; fields !== null && index < fields.length; index += 2) {
        const name = (fields[index] ?? "").toLowerCase();
        if (name.startsWith(wanted)) counts.set(name, (counts.get(name) ?? 0) + 1);
      }
    }
  }
  return [...counts]
    .map(([value, count]) => ({ value, count }))
    .sort((left, right) => right.count - left.count || (left.value < right.value ? -1 : 1))
    .slice(0, limit);
}

/** Like SQL's `lower`. */
function asciiLower(text: string): string {
  return text.replaceAll(/[A-Z]/gu, (letter) => letter.toLowerCase());
}

/** Totals of the entries matching a condition on `entry`; `total` is the session's count. */
function summarize(database: Database, total: number, where: string, values: readonly SqlValue[]): TrafficSummary {
  const groups = database
    .prepare(
      `SELECT resource_type AS type, COALESCE(status / 100, 0) AS class, COUNT(*) AS count, SUM(state = 0) AS pending,
         SUM(request_size) AS request_bytes, SUM(response_size) AS response_bytes, SUM(${IS_ERROR}) AS errors,
         MIN(started_ms) AS first, MAX(started_ms) AS last
       FROM entry e WHERE ${where} GROUP BY 1, 2`,
    )
    .all(...values);
  const byType: Record<string, number> = {};
  const byClass: Record<string, number> = {};
  const sum = { matched: 0, pending: 0, request: 0, response: 0, errors: 0, first: Number.MAX_SAFE_INTEGER, last: 0 };
  for (const group of groups) {
    const count = Number(group["count"]);
    const type = String(group["type"]);
    const statusClass = Number(group["class"]);
    byType[type] = (byType[type] ?? 0) + count;
    if (statusClass > 0) byClass[`${statusClass}xx`] = (byClass[`${statusClass}xx`] ?? 0) + count;
    sum.matched += count;
    sum.pending += Number(group["pending"]);
    sum.request += Number(group["request_bytes"]);
    sum.response += Number(group["response_bytes"] ?? 0);
    sum.errors += Number(group["errors"]);
    sum.first = Math.min(sum.first, Number(group["first"]));
    sum.last = Math.max(sum.last, Number(group["last"]));
  }
  const durations = durationsUs(database, where, values);
  return {
    total,
    matched: sum.matched,
    pending: sum.pending,
    request_bytes: sum.request,
    response_bytes: sum.response,
    duration_p50_ms: percentileMs(durations, 0.5),
    duration_p95_ms: percentileMs(durations, 0.95),
    errors: sum.errors,
    by_type: byType,
    by_status_class: byClass,
    first_timestamp: sum.matched === 0 ? null : new Date(sum.first).toISOString(),
    last_timestamp: sum.matched === 0 ? null : new Date(sum.last).toISOString(),
    histogram: sum.matched === 0 ? [] : histogram(database, where, values, sum.first, sum.last),
  };
}

/** Ascending. One concatenated text is ten times cheaper than a row each. */
function durationsUs(database: Database, where: string, values: readonly SqlValue[]): Float64Array {
  const row = database.prepare(`SELECT group_concat(duration_us) AS all_us FROM entry e WHERE ${where}`).get(...values);
  const text = row?.["all_us"];
  return typeof text === "string" ? Float64Array.from(JSON.parse(`[${text}]`) as number[]).sort() : new Float64Array(0);
}

/** Nearest rank. */
function percentileMs(sortedUs: Float64Array, share: number): number | null {
  const us = sortedUs[Math.max(0, Math.ceil(sortedUs.length * share) - 1)];
  return us === undefined ? null : us / 1000;
}

function histogram(
  database: Database,
  where: string,
  values: readonly SqlValue[],
  firstMs: number,
  lastMs: number,
): TrafficSummary["histogram"] {
  const sliceMs = Math.max(1, Math.ceil((lastMs - firstMs + 1) / SLICES));
  const slices = Math.floor((lastMs - firstMs) / sliceMs) + 1;
  const buckets = Array.from({ length: slices }, (_, index) => ({
    start: new Date(firstMs + index * sliceMs).toISOString(),
    count: 0,
    errors: 0,
  }));
  // Numbers are bound as REAL, so integer division needs a cast.
  const rows = database
    .prepare(
      `SELECT CAST((started_ms - ?) / ? AS INTEGER) AS slice, COUNT(*) AS count, SUM(${IS_ERROR}) AS errors FROM entry e WHERE ${where} GROUP BY 1`,
    )
    .all(firstMs, sliceMs, ...values);
  for (const row of rows) {
    const bucket = buckets[Number(row["slice"])];
    if (bucket === undefined) continue;
    bucket.count = Number(row["count"]);
    bucket.errors = Number(row["errors"]);
  }
  return buckets;
}

/** base64url makes the number opaque. */
function cursorOfSeq(seq: number): string {
  return Buffer.from(JSON.stringify({ s: seq })).toString("base64url");
}

/** Throws for an invalid cursor. */
function seqOfCursor(cursor: string): number {
  try {
    const parsedCursor: unknown = JSON.parse(Buffer.from(cursor, "base64url").toString());
    if (typeof parsedCursor === "object" && parsedCursor !== null && "s" in parsedCursor) {
      const { s } = parsedCursor;
      if (typeof s === "number" && Number.isSafeInteger(s) && s >= 0) return s;
    }
  } catch {
    // Not JSON: rejected below.
  }
  throw new CursorError("cursor: this is not a cursor of this service");
}

/** Body budget of a list page, and of one entry; larger bodies are fetched by range. */
const PAGE_BODY_BYTES = 33_554_432;
const ENTRY_BODY_BYTES = 67_108_864;

interface FilledPage {
  readonly entries: TrafficEntry[];
  /** Entries whose bodies were left out. */
  readonly bodiesOmitted: number;
  /** Index of the next page's first entry. */
  readonly nextIndex: number;
}

/** Full entries as the API returns them. */
class EntryReader {
  readonly #bodies: StoredBodies;
  readonly #bySeq: Statement;
  readonly #byId: Statement;

  constructor(database: Database, bodies: StoredBodies) {
    this.#bodies = bodies;
    const whole = `SELECT e.*, h.*, ${EFFECT_COLUMNS} FROM entry e JOIN head h ON h.seq = e.seq LEFT JOIN effect f ON f.seq = e.seq`;
    this.#bySeq = database.prepare(`${whole} WHERE e.seq = ?`);
    this.#byId = database.prepare(`${whole} WHERE e.id = ?`);
  }

  /** Undefined for cleared or deleted entries. */
  bySeq(seq: number, sessions: SessionNames): FoundEntry | undefined {
    return visible(this.#bySeq.get(seq), sessions);
  }

  /** Undefined for cleared or deleted entries. */
  byId(id: string, sessions: SessionNames): FoundEntry | undefined {
    return visible(this.#byId.get(id), sessions);
  }

  /** Undefined for cleared or deleted entries. */
  async entry(
    id: string,
    sessions: SessionNames,
    includeBodies: boolean,
    decompressed: boolean,
  ): Promise<TrafficEntry | undefined> {
    const found = this.byId(id, sessions);
    if (found === undefined) return undefined;
    const entry = this.#entry(found, includeBodies);
    return includeBodies && decompressed ? await decodedEntry(entry, this.#bodies, ENTRY_BODY_BYTES) : entry;
  }

  /** The first entry always has its bodies; one that exceeds the budget starts the next page. */
  page(shown: readonly number[], { scope, includeBodies, cursor }: EntriesRequest): FilledPage {
    const entries: TrafficEntry[] = [];
    let roomBytes = PAGE_BODY_BYTES;
    let bodiesOmitted = 0;
    for (const [index, seq] of shown.entries()) {
      const row = this.#bySeq.get(seq);
      if (row === undefined) continue;
      const bodyBytes = includeBodies ? allGivenBytes(row) : 0;
      const isFitting = bodyBytes <= roomBytes || entries.length === 0;
      if (!isFitting && cursor !== undefined) return { entries, bodiesOmitted, nextIndex: index };
      if (isFitting) roomBytes = Math.max(0, roomBytes - bodyBytes);
      else bodiesOmitted += 1;
      entries.push(this.#entry({ row, sessionId: scope.id }, includeBodies && isFitting));
    }
    return { entries, bodiesOmitted, nextIndex: shown.length };
  }

  #entry({ row, sessionId }: FoundEntry, includeBodies: boolean): TrafficEntry {
    const seq = Number(row["seq"]);
    const read = (side: "request" | "response"): Uint8Array | undefined => {
      const bytes = includeBodies ? givenBytes(row, side) : 0;
      return bytes > 0 ? this.#bodies.read(seq, side, bytes) : undefined;
    };
    return entryOfRow(
      includeBodies ? row : withoutReplacedBodies(row),
      sessionId,
      { bytes: read("request"), fields: storedFields(row["request_fields"]) ?? [] },
      { bytes: read("response"), fields: storedFields(row["response_fields"]) ?? [] },
    );
  }
}

function visible(row: SqlRow | undefined, sessions: SessionNames): FoundEntry | undefined {
  const session = sessions.get(Number(row?.["session"]));
  return row === undefined || session === undefined || Number(row["seq"]) <= session.floorSeq
    ? undefined
    : { row, sessionId: session.id };
}

/** Body bytes included in a returned entry. */
function givenBytes(row: SqlRow, side: "request" | "response"): number {
  const stored = Number(row[`${side}_body_stored`]);
  return stored <= ENTRY_BODY_BYTES ? stored : 0;
}

/** Includes the bodies from before the rules. */
function allGivenBytes(row: SqlRow): number {
  const passedOn = { request: givenBytes(row, "request"), response: givenBytes(row, "response") };
  return passedOn.request + passedOn.response + originalBodyBytes(row, passedOn);
}

/**
 * Removes content codings and the fields that name them. A damaged body, or one not in its coding, is returned as far
 * as decoded, or as is, and keeps the fields. A body larger than `maxBytes` when decoded stays as stored.
 */
async function decodedEntry(entry: TrafficEntry, bodies: StoredBodies, maxBytes: number): Promise<TrafficEntry> {
  const decode = async <T extends RequestData | ResponseData>(
    message: T,
    stored: Uint8Array | undefined,
  ): Promise<T> => {
    const codings = fieldValues(message.headers_list.flat(), "content-encoding");
    if (stored === undefined || codings.length === 0) return message;
    const { bytes, stop } = await decodeContent(stored, codings, { maxBytes });
    const isCut = message.body_state === "truncated" && stop === "truncated";
    if (stop === "limit") return message;
    if (stop !== undefined && !isCut) return { ...message, ...bodyText(bytes) };
    const isOther = (name: string): boolean => name.toLowerCase() !== "content-encoding";
    return {
      ...message,
      ...bodyText(bytes),
      headers: Object.fromEntries(Object.entries(message.headers).filter(([name]) => isOther(name))),
      headers_list: message.headers_list.filter(([name]) => isOther(name)),
    };
  };
  const read = (message: RequestData | ResponseData, side: "request" | "response"): Uint8Array | undefined =>
    message.body === null ? undefined : bodies.read(entry.seq, side, maxBytes);
  const { request, response, original_request: sent, original_response: received } = entry;
  return {
    ...entry,
    request: await decode(request, read(request, "request")),
    response: response && (await decode(response, read(response, "response"))),
    original_request: sent && (await decode(sent, originalBytes(sent))),
    original_response: received && (await decode(received, originalBytes(received))),
  };
}

/** Inverse of `body_encoding`. */
function originalBytes({ body, body_encoding: encoding }: RequestData | ResponseData): Uint8Array | undefined {
  if (body === null) return undefined;
  return encoding === "base64" ? Buffer.from(body.slice("base64:".length), "base64") : Buffer.from(body, "utf8");
}
