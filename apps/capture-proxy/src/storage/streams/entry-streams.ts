import type { Direction } from "@headworks/query-language";
import type { Database, SqlRow, Statement } from "../database.ts";
import { FLAG_FINAL, FRAME_DIRECTIONS, FRAME_TYPES, STREAM_KINDS } from "./stream-message.ts";

const WEBSOCKET = STREAM_KINDS.indexOf("websocket");
const GRPC = STREAM_KINDS.indexOf("grpc");
const TEXT = FRAME_TYPES.indexOf("text");
const BINARY = FRAME_TYPES.indexOf("binary");
const CONTINUATION = FRAME_TYPES.indexOf("continuation");

/** Of one connection a search looks at so many messages, the newest first, and at so many bytes of them in all. */
const MAX_SEARCHED_MESSAGES = 50_000;
const MAX_SEARCHED_BYTES = 16_777_216;

const NOTHING = Buffer.alloc(0);

/** By the id: there are as many streams of a kind as there are calls, and SQLite would rather go through those. */
const OWN = "FROM stream s INDEXED BY stream_by_id WHERE s.id = e.id AND s.is_gone = 0";

/** The same facts as conditions see them, for the entry called `e`. */
export const STREAM_COLUMNS = {
  grpcStatus: `(SELECT s.close_code ${OWN} AND s.kind = ${GRPC})`,
  incoming: `(SELECT 'in' ${OWN} AND s.frames_received > 0)`,
  outgoing: `(SELECT 'out' ${OWN} AND s.frames_sent > 0)`,
  webSocketMessages: `(SELECT s.frames_stored ${OWN} AND s.kind = ${WEBSOCKET} AND s.frames_stored > 0)`,
} as const;

/** What queries ask about the streams of entries. */
export class EntryStreams {
  readonly #streams: Statement;
  readonly #texts: Statement;

  constructor(database: Database) {
    this.#streams = database.prepare(
      "SELECT number, kind, close_code, frames_sent, frames_received, frames_stored, floor_ordinal, last_ordinal FROM stream " +
        "WHERE id = ? AND is_gone = 0",
    );
    this.#texts = database.prepare(
      // Beginnings of binary messages for their type alone: what continues them is no text.
      `SELECT direction, type, flags, iif(type = ${BINARY}, NULL, substr(payload, 1, ${MAX_SEARCHED_BYTES})) AS payload ` +
        "FROM stream_frame WHERE stream = ? AND ordinal > ? AND direction IN (?, ?) AND " +
        `(type IN (${TEXT}, ${CONTINUATION}) OR type = ${BINARY} AND flags & ${FLAG_FINAL} = 0) ` +
        `ORDER BY ordinal DESC LIMIT ${MAX_SEARCHED_MESSAGES}`,
    );
  }

  /** The streams of an entry; hardly ever more than one. */
  of(entryId: string): StreamFacts {
    return new StreamFacts(this.#streams.all(entryId), (stream, directions) => this.#textsOf(stream, directions));
  }

  *#textsOf(stream: SqlRow, directions: readonly Direction[]): Generator<string> {
    const codes = directions.map((direction) => FRAME_DIRECTIONS.indexOf(direction === "in" ? "receive" : "send"));
    const [one = -1, other = one] = codes;
    // Frames are numbered without gaps, but for those that could not be stored.
    const below = Math.max(Number(stream["floor_ordinal"]), Number(stream["last_ordinal"]) - MAX_SEARCHED_MESSAGES);
    const rows = this.#texts.iterate(stream["number"] ?? null, below, one, other);
    for (const { isText, payload } of messagesBackwards(framesOf(rows))) if (isText) yield payload.toString("utf8");
  }
}

/** Up to the bytes that a search looks at. */
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

/** What is known of the streams of one entry. */
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

  /** Texts of stored WebSocket messages that went one of these ways, newest first, within the limits of a search. */
  webSocketTexts(directions: readonly Direction[]): Iterable<string> {
    return this.#webSocket === undefined ? [] : this.#textsOf(this.#webSocket, directions);
  }

  get #webSocket(): SqlRow | undefined {
    return this.#rows.find((row) => row["kind"] === WEBSOCKET);
  }
}

/** A data frame of a WebSocket connection, RFC 6455, section 5.4. */
export interface FrameOfMessage {
  /** Equal for frames of the same side. */
  readonly direction: number;
  /** Not a continuation. */
  readonly isFirst: boolean;
  readonly isFinal: boolean;
  /** Of first frames; what a continuation is, its first frame says. */
  readonly isText: boolean;
  readonly payload: Buffer;
}

/** A message with the payloads of all its frames. */
interface JoinedMessage {
  /** Also where the first frame is not among the frames, so that nobody can tell. */
  readonly isText: boolean;
  readonly payload: Buffer;
}

/**
 * Puts messages together from the frames of both sides, the newest first. Frames of a message that are missing leave its
 * parts: each run of frames that belong together is told as a message.
 */
export function* messagesBackwards(frames: Iterable<FrameOfMessage>): Generator<JoinedMessage> {
  // By direction: the frames of a message whose beginning has not been seen yet, the last one first.
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
