import type { Database, SqlRow } from "../database.ts";
import { FLAG_FINAL, FRAME_TYPES } from "./stream-message.ts";

/** Bytes that a search looks at, of a frame or of the frames of a message together. */
const SEARCHED_BYTES = 8_388_608;
/** Frames of one message that are put together for a search. */
const MAX_FRAMES = 10_000;
const CONTINUATION = FRAME_TYPES.indexOf("continuation");
/** Types of frames that may come between those of a message (RFC 6455, 5.4). */
const CONTROL = ["ping", "pong", "close"].map((type) => FRAME_TYPES.findIndex((known) => known === type));

/** What a search has to know of a frame, for the list of columns of its question. */
export const SEARCHED_COLUMNS = `f.stream, substr(f.payload, 1, ${SEARCHED_BYTES}) AS looked`;

/**
 * Looks for texts in frames, in any case of letters. A text that lies across the frames of a WebSocket message is found with
 * the last of them.
 */
export class FrameSearch {
  readonly #before: ReturnType<Database["prepare"]>;

  constructor(database: Database) {
    this.#before = database.prepare(
      `SELECT type, flags, substr(payload, 1, ${SEARCHED_BYTES}) AS looked FROM stream_frame WHERE stream = ? ` +
        `AND direction = ? AND ordinal < ? AND type NOT IN (${CONTROL.join(", ")}) ORDER BY ordinal DESC LIMIT ${MAX_FRAMES}`,
    );
  }

  /** Whether a row of the frames' table holds a text that is in lower case. */
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
      // The frames between were not stored.
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

function payloadOf(row: SqlRow): Buffer | undefined {
  const payload = row["looked"];
  if (!(payload instanceof Uint8Array)) return undefined;
  return Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength);
}

function lowered(payload: Buffer): string {
  return payload.toString("utf8").toLowerCase();
}
