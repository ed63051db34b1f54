import type { Direction } from "@headworks/query-language";
import type { Database, SqlRow, Statement } from "../database.ts";
import { FLAG_FINAL, FRAME_DIRECTIONS, FRAME_TYPES, STREAM_KINDS } from "./stream-store.ts";

const WEBSOCKET = STREAM_KINDS.indexOf("websocket");
const GRPC = STREAM_KINDS.indexOf("grpc");
const TEXT = FRAME_TYPES.indexOf("text");
const BINARY = FRAME_TYPES.indexOf("binary");
const CONTINUATION = FRAME_TYPES.indexOf("continuation");
/** Messages searched per connection, newest first; {@link MAX_SEARCHED_BYTES} bounds their bytes. */
const MAX_SEARCHED_MESSAGES = 50_000;
const MAX_SEARCHED_BYTES = 16_777_216;
const NOTHING = Buffer.alloc(0);
/** Forces the id index: SQLite would scan all streams of a kind, which may be as many as calls. */
const OWN = "FROM stream s INDEXED BY stream_by_id WHERE s.id = e.id AND s.is_gone = 0";

/** The same facts as SQL expressions over the entry `e`. */
export const STREAM_COLUMNS = {
  grpcStatus: `(SELECT s.close_code ${OWN} AND s.kind = ${GRPC})`,
  incoming: `(SELECT 'in' ${OWN} AND s.frames_received > 0)`,
  outgoing: `(SELECT 'out' ${OWN} AND s.frames_sent > 0)`,
  webSocketMessages: `(SELECT s.frames_stored ${OWN} AND s.kind = ${WEBSOCKET} AND s.frames_stored > 0)`,
} as const;

/** Stream facts for queries. */
export class EntryStreams {
  readonly #streams: Statement;
  readonly #texts: Statement;

  constructor(database: Database) {
    this.#streams = database.prepare(
      "SELECT number, kind, close_code, frames_sent, frames_received, frames_stored, floor_ordinal, last_ordinal FROM stream " +
        "WHERE id = ? AND is_gone = 0",
    );
    this.#texts = database.prepare(
      // Of binary messages only the type is needed: their continuations are not text either.
      `SELECT direction, type, flags, iif(type = ${BINARY}, NULL, substr(payload, 1, ${MAX_SEARCHED_BYTES})) AS payload ` +
        "FROM stream_frame WHERE stream = ? AND ordinal > ? AND direction IN (?, ?) AND " +
        `(type IN (${TEXT}, ${CONTINUATION}) OR type = ${BINARY} AND flags & ${FLAG_FINAL} = 0) ` +
        `ORDER BY ordinal DESC LIMIT ${MAX_SEARCHED_MESSAGES}`,
    );
  }

  /** Rarely more than one stream. */
  of(entryId: string): StreamFacts {
    return new StreamFacts(this.#streams.all(entryId), (stream, directions) => this.#textsOf(stream, directions));
  }

  *#textsOf(stream: SqlRow, directions: readonly Direction[]): Generator<string> {
    const codes = directions.map((direction) => FRAME_DIRECTIONS.indexOf(direction === "in" ? "receive" : "send"));
    const [one = -1, other = one] = codes;
    // Ordinals are contiguous except for frames that were not stored.
    const below = Math.max(Number(stream["floor_ordinal"]), Number(stream["last_ordinal"]) - MAX_SEARCHED_MESSAGES);
    const rows = this.#texts.iterate(stream["number"] ?? null, below, one, other);
    for (const { isText, payload } of messagesBackwards(framesOf(rows))) if (isText) yield payload.toString("utf8");
  }
}

/** Stops at the byte limit of a search. */
function* framesOf(rows: Iterable<SqlRow>): Generator<FrameOfMessage> {
  let leftBytes = MAX_SEARCHED_BYTES;
  for (const { direction, type, flags, payload } of rows) {
    const bytes =
      payload instanceof Uint8Array
        ? Buffer.from(payload.buffer, payload.byteOffset, Math.min(payload.byteLength, leftBytes))
        : NOTHING;
    leftBytes -= bytes.length;
    yield {
      direction: Number(direction),
      isFirst: type !== CONTINUATION,
      isFinal: (Number(flags) & FLAG_FINAL) !== 0,
      isText: type !== BINARY,
      payload: bytes,
    };
    if (leftBytes <= 0) return;
  }
}

export class StreamFacts {
  readonly #rows: readonly SqlRow[];
  readonly #textsOf: (stream: SqlRow, directions: readonly Direction[]) => Iterable<string>;

  constructor(
    rows: readonly SqlRow[],
    textsOf: (stream: SqlRow, directions: readonly Direction[]) => Iterable<string>,
  ) {
    this.#rows = rows;
    this.#textsOf = textsOf;
  }

  get grpcStatus(): number | undefined {
    const code = this.#rows.find((row) => row["kind"] === GRPC)?.["close_code"];
    return code === null || code === undefined ? undefined : Number(code);
  }

  get incoming(): "in" | undefined {
    return this.#rows.some((row) => Number(row["frames_received"]) > 0) ? "in" : undefined;
  }

  get outgoing(): "out" | undefined {
    return this.#rows.some((row) => Number(row["frames_sent"]) > 0) ? "out" : undefined;
  }

  get webSocketMessages(): number | undefined {
    const stored = Number(this.#webSocket?.["frames_stored"] ?? 0);
    return stored > 0 ? stored : undefined;
  }

  /** Texts of stored WebSocket messages in the given directions, newest first, within the search limits. */
  webSocketTexts(directions: readonly Direction[]): Iterable<string> {
    return this.#webSocket === undefined ? [] : this.#textsOf(this.#webSocket, directions);
  }

  get #webSocket(): SqlRow | undefined {
    return this.#rows.find((row) => row["kind"] === WEBSOCKET);
  }
}

/** A WebSocket data frame (RFC 6455 section 5.4). */
export interface FrameOfMessage {
  /** Equal for frames of one side. */
  readonly direction: number;
  /** Not a continuation. */
  readonly isFirst: boolean;
  readonly isFinal: boolean;
  /** For first frames; continuations inherit it. */
  readonly isText: boolean;
  readonly payload: Buffer;
}

interface JoinedMessage {
  /** Also true if the first frame is missing and the type unknown. */
  readonly isText: boolean;
  readonly payload: Buffer;
}

/** Joins the frames of both sides into messages, newest first; missing frames separate messages. */
export function* messagesBackwards(frames: Iterable<FrameOfMessage>): Generator<JoinedMessage> {
  // By direction: frames of a message whose first frame is still to come, last one first.
  const unfinished = new Map<number, Buffer[]>();
  for (const { direction, isFirst, isFinal, isText, payload } of frames) {
    const later = unfinished.get(direction);
    if (isFinal && later !== undefined) {
      unfinished.delete(direction);
      yield joined(later, true);
    }
    if (isFirst) {
      const rest = isFinal ? undefined : later;
      if (rest === undefined) yield { isText, payload };
      else {
        unfinished.delete(direction);
        rest.push(payload);
        yield joined(rest, isText);
      }
    } else if (isFinal || later === undefined) unfinished.set(direction, [payload]);
    else later.push(payload);
  }
  for (const rest of unfinished.values()) yield joined(rest, true);
}

function joined(lastFirst: readonly Buffer[], isText: boolean): JoinedMessage {
  return { isText, payload: Buffer.concat(lastFirst.toReversed()) };
}
