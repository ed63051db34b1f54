import type { HarWebSocketMessage } from "@headworks/har";
import type { Database, SqlRow, SqlValue } from "../database.ts";
import {
  FLAG_COMPRESSED,
  FLAG_FINAL,
  FRAME_DIRECTIONS,
  FRAME_EFFECTS,
  FRAME_TYPES,
  STREAM_KINDS,
  STREAM_STATES,
} from "./stream-message.ts";

/** Frames read per page, which bounds memory. */
const PAGE_FRAMES = 200;
/** Limit of a connection's messages in a HAR, whose readers load whole documents; a native export is complete. */
const HAR_BYTES = 67_108_864;
const DROPPED = FRAME_EFFECTS.indexOf("dropped") + 1;
const LAST_DATA_OPCODE = 2;
const FIRST_CONTROL_OPCODE = 8;

/**
 * Members `streams` and `frames` of a native document, after its entries; omitted if empty. A frame refers to its
 * stream by index.
 */
export function* streamTexts(database: Database, sessionNumber: number): Generator<string> {
  const streams = database
    .prepare("SELECT * FROM stream WHERE session = ? AND is_gone = 0 ORDER BY number")
    .all(sessionNumber);
  if (streams.length === 0) return;
  yield ',"streams":[';
  for (const [index, row] of streams.entries()) {
    yield `${index === 0 ? "\n" : ",\n"}${JSON.stringify(streamDocument(row))}`;
  }
  yield '\n],"frames":[';
  let isFirst = true;
  for (const [index, row] of streams.entries()) {
    for (const frame of framesOf(database, row)) {
      yield `${isFirst ? "\n" : ",\n"}${JSON.stringify(frameDocument(index, frame))}`;
      isFirst = false;
    }
  }
  yield "\n]";
}

/** Joined messages as sent in the format of browsers, and control frames. */
export function harMessages(database: Database, entryId: string): readonly HarWebSocketMessage[] | undefined {
  const stream = database.prepare("SELECT * FROM stream WHERE id = ? AND kind = 0 AND is_gone = 0").get(entryId);
  if (stream === undefined) return undefined;
  const messages: HarWebSocketMessage[] = [];
  const begun = new Map<number, { readonly atMs: number; readonly opcode: number; readonly parts: Uint8Array[] }>();
  let bytes = 0;
  for (const row of framesOf(database, stream)) {
    const [opcode, direction, flags] = [Number(row["opcode"]), Number(row["direction"]), Number(row["flags"])];
    const isControl = opcode >= FIRST_CONTROL_OPCODE;
    if ((opcode > LAST_DATA_OPCODE && !isControl) || Number(row["effect"]) === DROPPED) continue;
    const payload = bytesOf(row["payload"]);
    bytes += payload.length;
    if (bytes > HAR_BYTES) break;
    const [from, atMs] = [direction === 0 ? "client" : "server", Number(row["at_ms"])] as const;
    if (isControl) {
      messages.push({ from, atMs, opcode, data: payload });
      continue;
    }
    if (opcode !== 0) begun.set(direction, { atMs, opcode, parts: [] });
    const message = begun.get(direction);
    if (message === undefined) continue;
    message.parts.push(payload);
    if ((flags & FLAG_FINAL) === 0) continue;
    begun.delete(direction);
    messages.push({
      from,
      atMs: message.atMs,
      opcode: message.opcode,
      data: message.parts.length === 1 ? payload : Buffer.concat(message.parts),
    });
  }
  return messages;
}

function* framesOf(database: Database, stream: SqlRow): Generator<SqlRow> {
  const page = database.prepare(
    `SELECT * FROM stream_frame WHERE stream = ? AND ordinal > ? ORDER BY ordinal LIMIT ${PAGE_FRAMES}`,
  );
  let last = Number(stream["floor_ordinal"]);
  for (;;) {
    const rows = page.all(stream["number"] ?? null, last);
    yield* rows;
    const end = rows.at(-1);
    if (end === undefined || rows.length < PAGE_FRAMES) return;
    last = Number(end["ordinal"]);
  }
}

function streamDocument(row: SqlRow): unknown {
  return {
    entry: row["id"],
    kind: STREAM_KINDS[Number(row["kind"])],
    state: STREAM_STATES[Number(row["state"])],
    method: row["method"],
    url: row["url"],
    host: row["host"],
    path: row["path"],
    client_addr: row["client_addr"],
    server_addr: row["server_addr"],
    request_fields: JSON.parse(String(row["request_fields"])) as unknown,
    response_fields: row["response_fields"] === null ? null : (JSON.parse(String(row["response_fields"])) as unknown),
    subprotocol: row["subprotocol"],
    close_code: row["close_code"],
    close_reason: row["close_reason"],
    attributes: JSON.parse(String(row["attributes"])) as unknown,
    created_ms: row["created_ms"],
    closed_ms: row["closed_ms"],
    last_ms: row["last_ms"],
    frames_sent: row["frames_sent"],
    frames_received: row["frames_received"],
    bytes_sent: row["bytes_sent"],
    bytes_received: row["bytes_received"],
    frames_not_stored: row["frames_not_stored"],
    last_ordinal: row["last_ordinal"],
  };
}

function frameDocument(stream: number, row: SqlRow): unknown {
  const flags = Number(row["flags"]);
  return {
    stream,
    ordinal: row["ordinal"],
    direction: FRAME_DIRECTIONS[Number(row["direction"])],
    type: FRAME_TYPES[Number(row["type"])],
    opcode: row["opcode"],
    final: (flags & FLAG_FINAL) !== 0,
    compressed: (flags & FLAG_COMPRESSED) !== 0,
    effect: FRAME_EFFECTS[Number(row["effect"]) - 1] ?? null,
    at_ms: row["at_ms"],
    size: row["size"],
    wire_size: row["wire_size"],
    mask: row["mask"],
    data: Buffer.from(bytesOf(row["payload"])).toString("base64"),
    original: row["original"] instanceof Uint8Array ? Buffer.from(row["original"]).toString("base64") : null,
    attributes: row["attributes"] === null ? null : (JSON.parse(String(row["attributes"])) as unknown),
  };
}

function bytesOf(value: SqlValue | undefined): Uint8Array {
  return value instanceof Uint8Array ? value : new Uint8Array(0);
}
