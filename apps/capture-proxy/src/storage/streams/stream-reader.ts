import { setImmediate as nextTurn } from "node:timers/promises";
import { type Database, openDatabase, type SqlRow, type SqlValue } from "../database.ts";
import type { SessionNames } from "../read/reader-client.ts";
import { numberOrNull, parsed, textOrNull } from "../read/stored-entry.ts";
import { CancelledError, type Cancellation } from "../search/filtered-set.ts";
import {
  type AttributeCondition,
  FLAG_COMPRESSED,
  FLAG_FINAL,
  FRAME_DIRECTIONS,
  FRAME_EFFECTS,
  FRAME_TYPES,
  type FrameQuery,
  STATE_CLOSED,
  STATE_CLOSING,
  type StoredFrame,
  STREAM_KINDS,
  STREAM_STATES,
  type StreamGroup,
  type StreamGroupQuery,
  type StreamKind,
  type StreamQuery,
  type StreamRow,
  type StreamStats,
} from "./stream-store.ts";

/** Searched bytes of a frame, or of the joined frames of a message. */
const SEARCHED_BYTES = 8_388_608;
/** Maximum frames joined for a search. */
const MAX_FRAMES = 10_000;
const CONTINUATION = FRAME_TYPES.indexOf("continuation");
/** Frame types allowed between the frames of a message (RFC 6455 section 5.4). */
const CONTROL = ["ping", "pong", "close"].map((type) => FRAME_TYPES.findIndex((known) => known === type));
/** Columns that a search needs. */
const SEARCHED_COLUMNS = `f.stream, substr(f.payload, 1, ${SEARCHED_BYTES}) AS searched`;

/** Case-insensitive text search in frames. Text that spans frames of a WebSocket message matches its last frame. */
class FrameSearch {
  readonly #before: ReturnType<Database["prepare"]>;

  constructor(database: Database) {
    this.#before = database.prepare(
      `SELECT type, flags, substr(payload, 1, ${SEARCHED_BYTES}) AS searched FROM stream_frame WHERE stream = ? ` +
        `AND direction = ? AND ordinal < ? AND type NOT IN (${CONTROL.join(", ")}) ORDER BY ordinal DESC LIMIT ${MAX_FRAMES}`,
    );
  }

  /** `lowerText` must be lower-case. */
  holds(row: SqlRow, lowerText: string): boolean {
    const payload = payloadOf(row);
    if (payload === undefined) return false;
    if (lowered(payload).includes(lowerText)) return true;
    const endsMessage = row["type"] === CONTINUATION && (Number(row["flags"]) & FLAG_FINAL) !== 0;
    return endsMessage && this.#liesAcross(row, payload, lowerText);
  }

  #liesAcross(last: SqlRow, payload: Buffer, lowerText: string): boolean {
    const lastFirst = [payload];
    let sizeBytes = payload.length;
    const { stream = null, direction = null, ordinal = null } = last;
    for (const row of this.#before.iterate(stream, direction, ordinal)) {
      const isContinuation = row["type"] === CONTINUATION;
      // Intermediate frames were not stored.
      if (isContinuation && (Number(row["flags"]) & FLAG_FINAL) !== 0) break;
      const piece = payloadOf(row);
      if (piece !== undefined) lastFirst.push(piece);
      sizeBytes += piece?.length ?? 0;
      if (!isContinuation || sizeBytes > SEARCHED_BYTES) break;
    }
    if (!lowered(Buffer.concat(lastFirst.toReversed())).includes(lowerText)) return false;
    return !lastFirst.some((piece) => lowered(piece).includes(lowerText));
  }
}

/** Default payload limit in lists. */
const PAYLOAD_BYTES = 65_536;
/** Payload budget of one reply; further frames are returned without payload. */
const RESPONSE_BYTES = 33_554_432;
/** Frames searched before other requests run. */
const SEARCHED_AT_ONCE = 1000;

const FRAME_COLUMNS =
  "f.number, f.ordinal, f.kind, f.direction, f.type, f.opcode, f.flags, f.effect, f.at_ms, f.size, f.wire_size, " +
  "f.mask, f.attributes, length(f.payload) AS stored, s.id AS stream_id";

/** Reads streams and frames on one thread with its own connection. */
export class StreamReader {
  readonly #database: Database;

  constructor(path: string) {
    this.#database = openDatabase(path, { readOnly: true, cacheBytes: 8_388_608 });
  }

  close(): void {
    this.#database.close();
  }

  /** Newest first. */
  listStreams(query: StreamQuery, sessions: SessionNames): { streams: StreamRow[]; total: number } {
    const where = withIds(
      withAttributes(visibleStreams(sessions, query.sessionId, query.kind), query.attributes),
      query.ids,
    );
    const total = Number(
      this.#database.prepare(`SELECT COUNT(*) AS total FROM stream s WHERE ${where.sql}`).get(...where.values)?.[
        "total"
      ],
    );
    const rows = this.#database
      .prepare(`SELECT s.* FROM stream s WHERE ${where.sql} ORDER BY s.number DESC LIMIT ? OFFSET ?`)
      .all(...where.values, query.limit, query.offset);
    return { streams: rows.map((row) => streamOfRow(row, sessions)), total };
  }

  listGroups(query: StreamGroupQuery, sessions: SessionNames): { groups: StreamGroup[]; total: number } {
    const attribute = attributeValue(query.attribute);
    const visible = visibleStreams(sessions, undefined, query.kind);
    const sql = `FROM stream s WHERE ${visible.sql} AND ${attribute.sql} IS NOT NULL`;
    const values = [...visible.values, ...attribute.values];
    const total = this.#database
      .prepare(`SELECT COUNT(DISTINCT ${attribute.sql}) AS total ${sql}`)
      .get(...attribute.values, ...values)?.["total"];
    const rows = this.#database
      .prepare(
        `WITH groups AS (SELECT MAX(s.number) AS newest, ${attribute.sql} AS value, COUNT(*) AS streams, ` +
          `SUM(s.state <> ${STATE_CLOSED}) AS open, SUM(s.state = ${STATE_CLOSING}) AS closing, SUM(s.frames_sent + s.frames_received) AS frames, ` +
          "SUM(s.bytes_sent + s.bytes_received) AS bytes, MIN(s.created_ms) AS created_ms, MAX(s.last_ms) AS last_ms " +
          `${sql} GROUP BY value) ` +
          "SELECT g.*, n.host, n.client_addr, n.server_addr FROM groups g JOIN stream n ON n.number = g.newest " +
          "ORDER BY g.newest DESC LIMIT ? OFFSET ?",
      )
      .all(...attribute.values, ...values, query.limit, query.offset);
    return { groups: rows.map(groupOfRow), total: Number(total) };
  }

  getStream(id: string, sessions: SessionNames): StreamRow | undefined {
    const row = this.#database.prepare("SELECT * FROM stream WHERE id = ? AND is_gone = 0").get(id);
    return row === undefined || !sessions.has(Number(row["session"])) ? undefined : streamOfRow(row, sessions);
  }

  async listFrames(
    query: FrameQuery,
    sessions: SessionNames,
    cancellation: Cancellation,
  ): Promise<{ frames: StoredFrame[]; total: number }> {
    const where = this.#frames(query, sessions);
    if (where === undefined) return { frames: [], total: 0 };
    const search = query.search?.toLowerCase();
    if (search !== undefined && search !== "") return await this.#search(query, search, where, cancellation);
    const direction = query.order === "asc" ? "ASC" : "DESC";
    const rows = this.#database
      .prepare(
        `SELECT ${FRAME_COLUMNS} FROM stream_frame f JOIN stream s ON s.number = f.stream WHERE ${where.sql} ` +
          `ORDER BY ${orderOf(query)} ${direction} LIMIT ? OFFSET ?`,
      )
      .all(...where.values, query.limit, query.offset);
    return { frames: this.#shown(rows, query), total: this.#count(query, where) };
  }

  frameBytes(id: string, ordinal: number, sessions: SessionNames): Uint8Array | undefined {
    const row = this.#database
      .prepare(
        "SELECT f.payload, s.session FROM stream s JOIN stream_frame f ON f.stream = s.number " +
          "WHERE s.id = ? AND s.is_gone = 0 AND f.ordinal = ? AND f.ordinal > s.floor_ordinal",
      )
      .get(id, ordinal);
    const payload = row?.["payload"];
    return payload instanceof Uint8Array && sessions.has(Number(row?.["session"])) ? payload : undefined;
  }

  stats(kind: StreamKind, sessions: SessionNames): StreamStats {
    const where = visibleStreams(sessions, undefined, kind);
    const sums = this.#database
      .prepare(
        `SELECT COUNT(*) AS streams, IFNULL(SUM(state <> ${STATE_CLOSED}), 0) AS open, IFNULL(SUM(frames_sent), 0) AS frames_sent, ` +
          "IFNULL(SUM(frames_received), 0) AS frames_received, IFNULL(SUM(bytes_sent), 0) AS bytes_sent, " +
          "IFNULL(SUM(bytes_received), 0) AS bytes_received, IFNULL(SUM(frames_not_stored), 0) AS not_stored, " +
          "IFNULL(SUM(frames_stored), 0) AS frames_stored, IFNULL(SUM(stored_bytes), 0) AS stored_bytes " +
          `FROM stream s WHERE ${where.sql}`,
      )
      .get(...where.values);
    const types = this.#database
      .prepare(
        "SELECT f.type, COUNT(*) AS frames FROM stream s JOIN stream_frame f ON f.stream = s.number " +
          `AND f.ordinal > s.floor_ordinal WHERE ${where.sql} GROUP BY f.type`,
      )
      .all(...where.values);
    return {
      streams: Number(sums?.["streams"]),
      openStreams: Number(sums?.["open"]),
      framesSent: Number(sums?.["frames_sent"]),
      framesReceived: Number(sums?.["frames_received"]),
      bytesSent: Number(sums?.["bytes_sent"]),
      bytesReceived: Number(sums?.["bytes_received"]),
      framesNotStored: Number(sums?.["not_stored"]),
      framesStored: Number(sums?.["frames_stored"]),
      storedBytes: Number(sums?.["stored_bytes"]),
      byType: Object.fromEntries(
        types.map((row): [string, number] => [FRAME_TYPES[Number(row["type"])] ?? "binary", Number(row["frames"])]),
      ),
    };
  }

  /** Undefined for an unknown stream. */
  #frames(query: FrameQuery, sessions: SessionNames): Where | undefined {
    const parts: string[] = ["f.ordinal > s.floor_ordinal"];
    const values: SqlValue[] = [];
    if (query.streamId === undefined) {
      const visible = visibleStreams(sessions, undefined, query.kind);
      parts.push(visible.sql);
      values.push(...visible.values);
    } else {
      const row = this.#database.prepare("SELECT * FROM stream WHERE id = ? AND is_gone = 0").get(query.streamId);
      if (row === undefined || !sessions.has(Number(row["session"]))) return undefined;
      if (query.kind !== undefined && STREAM_KINDS[Number(row["kind"])] !== query.kind) return undefined;
      parts.push("f.stream = ?");
      values.push(Number(row["number"]));
    }
    if (query.direction !== undefined) {
      parts.push("f.direction = ?");
      values.push(FRAME_DIRECTIONS.indexOf(query.direction));
    }
    if (query.type !== undefined) {
      parts.push("f.type = ?");
      values.push(FRAME_TYPES.indexOf(query.type));
    }
    if (query.afterOrdinal !== undefined) {
      parts.push("f.ordinal > ?");
      values.push(query.afterOrdinal);
    }
    return withAttributes({ sql: parts.join(" AND "), values }, query.attributes);
  }

  #count(query: FrameQuery, where: Where): number {
    if (query.direction === undefined && query.type === undefined && query.afterOrdinal === undefined) {
      // Sums maintained by the writer: counting a million rows per page is too slow.
      const streams = where.sql.replace("f.ordinal > s.floor_ordinal AND ", "").replace("f.stream", "s.number");
      const row = this.#database
        .prepare(`SELECT IFNULL(SUM(frames_stored), 0) AS total FROM stream s WHERE ${streams}`)
        .get(...where.values);
      return Number(row?.["total"]);
    }
    const row = this.#database
      .prepare(`SELECT COUNT(*) AS total FROM stream_frame f JOIN stream s ON s.number = f.stream WHERE ${where.sql}`)
      .get(...where.values);
    return Number(row?.["total"]);
  }

  /** Searches payloads in steps, yielding in between. */
  async #search(
    query: FrameQuery,
    search: string,
    where: Where,
    cancellation: Cancellation,
  ): Promise<{ frames: StoredFrame[]; total: number }> {
    const isAscending = query.order === "asc";
    const order = orderOf(query);
    const step = this.#database.prepare(
      `SELECT ${FRAME_COLUMNS}, ${SEARCHED_COLUMNS} FROM stream_frame f JOIN stream s ` +
        `ON s.number = f.stream WHERE ${where.sql} AND ${order} ${isAscending ? ">" : "<"} ? ` +
        `ORDER BY ${order} ${isAscending ? "ASC" : "DESC"} LIMIT ${SEARCHED_AT_ONCE}`,
    );
    const frameSearch = new FrameSearch(this.#database);
    const column = order === "f.ordinal" ? "ordinal" : "number";
    const found: SqlRow[] = [];
    let total = 0;
    let last = isAscending ? -1 : Number.MAX_SAFE_INTEGER;
    for (;;) {
      let searched = 0;
      for (const row of step.iterate(...where.values, last)) {
        searched += 1;
        last = Number(row[column]);
        if (!frameSearch.holds(row, search)) continue;
        total += 1;
        const { searched: _searched, ...rest } = row;
        if (total > query.offset && found.length < query.limit) found.push(rest);
      }
      if (searched < SEARCHED_AT_ONCE) break;
      await nextTurn();
      if (cancellation.cancelled) throw new CancelledError();
    }
    return { frames: this.#shown(found, query), total };
  }

  #shown(rows: readonly SqlRow[], query: FrameQuery): StoredFrame[] {
    const bytes = query.payloadBytes ?? PAYLOAD_BYTES;
    const read = this.#database.prepare(
      "SELECT substr(payload, 1, ?) AS payload, substr(original, 1, ?) AS original FROM stream_frame WHERE number = ?",
    );
    let left = RESPONSE_BYTES;
    return rows.map((row) => {
      const max = Math.max(0, Math.min(bytes, left));
      const content = max === 0 ? undefined : read.get(max, max, row["number"] ?? null);
      const payload = bytesOf(content?.["payload"]) ?? new Uint8Array(0);
      const original = bytesOf(content?.["original"]);
      left -= payload.length + (original?.length ?? 0);
      return frameOfRow(row, payload, original ?? null);
    });
  }
}

function visibleStreams(sessions: SessionNames, sessionId: string | undefined, kind: StreamKind | undefined): Where {
  const numbers: number[] = [];
  for (const [number, { id }] of sessions) if (sessionId === undefined || id === sessionId) numbers.push(number);
  const parts = ["s.is_gone = 0", `s.session IN (${numbers.join(", ")})`];
  const values: SqlValue[] = [];
  if (kind !== undefined) {
    parts.push("s.kind = ?");
    values.push(STREAM_KINDS.indexOf(kind));
  }
  return { sql: parts.join(" AND "), values };
}

/** One stream: its own order, which is indexed. Several: order of arrival. */
function orderOf(query: FrameQuery): "f.ordinal" | "f.number" {
  return query.streamId === undefined ? "f.number" : "f.ordinal";
}

function bytesOf(value: SqlValue | undefined): Uint8Array | undefined {
  return value instanceof Uint8Array ? value : undefined;
}

function streamOfRow(row: SqlRow, sessions: SessionNames): StreamRow {
  return {
    id: String(row["id"]),
    kind: STREAM_KINDS[Number(row["kind"])] ?? "websocket",
    sessionId: sessions.get(Number(row["session"]))?.id ?? "",
    state: STREAM_STATES[Number(row["state"])] ?? "closed",
    method: String(row["method"]),
    url: String(row["url"]),
    host: String(row["host"]),
    path: String(row["path"]),
    clientAddress: textOrNull(row["client_addr"]),
    serverAddress: textOrNull(row["server_addr"]),
    requestFields: parsed<string[]>(row["request_fields"]) ?? [],
    responseFields: parsed<string[]>(row["response_fields"]) ?? null,
    subprotocol: textOrNull(row["subprotocol"]),
    closeCode: numberOrNull(row["close_code"]),
    closeReason: textOrNull(row["close_reason"]),
    attributes: parsed<Record<string, string>>(row["attributes"]) ?? {},
    createdMs: Number(row["created_ms"]),
    closedMs: numberOrNull(row["closed_ms"]),
    framesSent: Number(row["frames_sent"]),
    framesReceived: Number(row["frames_received"]),
    bytesSent: Number(row["bytes_sent"]),
    bytesReceived: Number(row["bytes_received"]),
    framesNotStored: Number(row["frames_not_stored"]),
    framesStored: Number(row["frames_stored"]),
  };
}

function groupOfRow(row: SqlRow): StreamGroup {
  return {
    value: String(row["value"]),
    streams: Number(row["streams"]),
    openStreams: Number(row["open"]),
    closingStreams: Number(row["closing"]),
    frames: Number(row["frames"]),
    bytes: Number(row["bytes"]),
    createdMs: Number(row["created_ms"]),
    lastMs: Number(row["last_ms"]),
    host: String(row["host"]),
    clientAddress: textOrNull(row["client_addr"]),
    serverAddress: textOrNull(row["server_addr"]),
  };
}

function frameOfRow(row: SqlRow, payload: Uint8Array, original: Uint8Array | null): StoredFrame {
  const flags = Number(row["flags"]);
  return {
    streamId: String(row["stream_id"]),
    kind: STREAM_KINDS[Number(row["kind"])] ?? "websocket",
    ordinal: Number(row["ordinal"]),
    direction: FRAME_DIRECTIONS[Number(row["direction"])] ?? "send",
    type: FRAME_TYPES[Number(row["type"])] ?? "binary",
    opcode: Number(row["opcode"]),
    isFinal: (flags & FLAG_FINAL) !== 0,
    atMs: Number(row["at_ms"]),
    payload,
    storedBytes: Number(row["stored"]),
    sizeBytes: Number(row["size"]),
    wireBytes: Number(row["wire_size"]),
    isCompressed: (flags & FLAG_COMPRESSED) !== 0,
    mask: numberOrNull(row["mask"]),
    effect: FRAME_EFFECTS[Number(row["effect"]) - 1] ?? null,
    original,
    attributes: parsed<Record<string, string>>(row["attributes"]) ?? null,
  };
}

/** SQL over the table `stream` as `s`, with its parameters. */
interface Where {
  readonly sql: string;
  readonly values: readonly SqlValue[];
}

/** NULL if the stream lacks the attribute. */
function attributeValue(attribute: string): Where {
  return { sql: "json_extract(s.attributes, ?)", values: [`$.${JSON.stringify(attribute)}`] };
}

function withAttributes(where: Where, conditions: readonly AttributeCondition[] | undefined): Where {
  if (conditions === undefined || conditions.length === 0) return where;
  const added = conditions.map(conditionSql);
  return {
    sql: [where.sql, ...added.map(({ sql }) => sql)].join(" AND "),
    values: [...where.values, ...added.flatMap(({ values }) => values)],
  };
}

function withIds(where: Where, ids: readonly string[] | undefined): Where {
  if (ids === undefined) return where;
  const marks = ids.map(() => "?").join(", ");
  return { sql: `${where.sql} AND s.id IN (${marks})`, values: [...where.values, ...ids] };
}

function conditionSql({ attribute, match, text }: AttributeCondition): Where {
  const value = attributeValue(attribute);
  const lower = text.toLowerCase();
  switch (match) {
    case "equals":
      return { sql: `${value.sql} = ?`, values: [...value.values, text] };
    case "contains":
      return { sql: `instr(lower(${value.sql}), ?) > 0`, values: [...value.values, lower] };
    case "name":
      // With a leading dot on both sides a suffix match ends at a name boundary.
      return {
        sql: `substr(lower('.' || ${value.sql}), -length(?)) = ?`,
        values: [...value.values, `.${lower}`, `.${lower}`],
      };
  }
}

function payloadOf(row: SqlRow): Buffer | undefined {
  const payload = row["searched"];
  if (!(payload instanceof Uint8Array)) return undefined;
  return Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength);
}

function lowered(payload: Buffer): string {
  return payload.toString("utf8").toLowerCase();
}
