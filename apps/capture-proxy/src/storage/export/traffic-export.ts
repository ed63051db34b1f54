import type { CaptureSession, Failure, TlsInfo } from "@headworks/capture-contract";
import { harEntryTexts, harEpilogue, harPrologue, toHarEntry } from "@headworks/har";
import type { HarBody, HarEntry, HarExchange, HarExchangeTimings, HarPage, HarWebSocketMessage } from "@headworks/har";
import { decodeContentSync } from "@headworks/http-fields/content-coding";
import { fieldValue } from "@headworks/http1";
import type { Database, SqlRow, SqlValue } from "../database.ts";
import {
  entryOfRow,
  entryState,
  type FoundEntry,
  milliseconds,
  numberOrNull,
  parsed,
  shownEffect,
  storedFields,
  storedTls,
  urlOfRow,
} from "../read/stored-entry.ts";
import { textOf } from "../read/row-record.ts";
import { readFilePart, type StoredBodies } from "../stored-bodies.ts";
import {
  FLAG_COMPRESSED,
  FLAG_FINAL,
  FRAME_DIRECTIONS,
  FRAME_EFFECTS,
  FRAME_TYPES,
  STREAM_KINDS,
  STREAM_STATES,
} from "../streams/stream-store.ts";
import { BODY_STATES, FLAG_PASSTHROUGH } from "../write/entry-record.ts";

const CHUNK_CHARACTERS = 262_144;
/** Larger bodies are truncated in a HAR, whose readers load whole documents; a native export is complete. */
const HAR_BODY_BYTES = 67_108_864;

/** Looks up an entry's row with its head; undefined if it was removed. */
interface ExportSource {
  readonly seqs: readonly number[];
  whole(seq: number): FoundEntry | undefined;
  readonly bodies: StoredBodies;
  /** Messages of a WebSocket connection by entry id. */
  readonly webSocketMessages: (id: string) => readonly HarWebSocketMessage[] | undefined;
}

/** Produces a document lazily, piece by piece. */
export class TrafficExport {
  /** Fewer are written if entries are removed meanwhile. */
  readonly total: number;
  readonly #texts: Iterator<string, undefined>;
  #isFinished = false;

  constructor(total: number, texts: Iterator<string, undefined>) {
    this.total = total;
    this.#texts = texts;
  }

  /** Undefined after the last piece. */
  next(): Uint8Array | undefined {
    if (this.#isFinished) return undefined;
    const pieces: string[] = [];
    for (let characters = 0; characters < CHUNK_CHARACTERS;) {
      const step = this.#texts.next();
      if (step.done === true) {
        this.#isFinished = true;
        break;
      }
      characters += step.value.length;
      pieces.push(step.value);
    }
    // Encoded one by one: joined, long texts could exceed the maximum string length.
    const encoder = new TextEncoder();
    const encoded = pieces.length > 1 && pieces.every((piece) => piece.length <= CHUNK_CHARACTERS);
    return encoded ? encoder.encode(pieces.join("")) : Buffer.concat(pieces.map((piece) => encoder.encode(piece)));
  }
}

/** HAR 1.2, oldest first. */
export function harExport(source: ExportSource, version: string): TrafficExport {
  return new TrafficExport(source.seqs.length, harTexts(source, version));
}

function* harTexts(source: ExportSource, version: string): Generator<string, undefined> {
  yield harPrologue({ creator: { name: "Weir", version } });
  const pages = new Map<string, HarPage>();
  let index = 0;
  for (const seq of source.seqs) {
    const found = source.whole(seq);
    if (found === undefined) continue;
    const { sessionId } = found;
    const entry = harEntry(found.row, sessionId, source);
    const page = pages.get(sessionId);
    // ISO 8601 times in one format and zone compare as strings.
    if (page === undefined || entry.startedDateTime < page.startedDateTime) {
      pages.set(sessionId, sessionPage(sessionId, entry.startedDateTime));
    }
    yield* harEntryTexts({ pageref: sessionId, ...entry }, index);
    index += 1;
  }
  yield harEpilogue([...pages.values()]);
  return undefined;
}

/** The capture session as a page: some HAR readers show only entries with a page. */
function sessionPage(id: string, startedDateTime: string): HarPage {
  return { startedDateTime, id, title: `Capture session ${id}`, pageTimings: { onContentLoad: -1, onLoad: -1 } };
}

function harEntry(row: SqlRow, sessionId: string, { bodies, webSocketMessages }: ExportSource): HarEntry {
  const decode = (bytes: Uint8Array, coding: string): Uint8Array | undefined => {
    const { bytes: decoded, stop } = decodeContentSync(bytes, coding, { maxBytes: HAR_BODY_BYTES });
    return stop === "limit" ? undefined : decoded;
  };
  const isWebSocket = row["scheme"] === "ws" || row["scheme"] === "wss";
  const messages = isWebSocket ? webSocketMessages(String(row["id"])) : undefined;
  const exchange = { ...harExchangeOf(row, sessionId, bodies, HAR_BODY_BYTES), webSocketMessages: messages };
  return toHarEntry(exchange, decode);
}

/** The version written, and the only one read. */
export const SESSION_FORMAT_VERSION = "1.0";
/** Larger bodies go to `bodies` in parts, so that no reader or writer needs a whole one in memory. */
export const MAX_EMBEDDED_BODY_BYTES = 4_194_304;
/** A multiple of three: the concatenated base64 parts equal the base64 of the whole. */
const PART_BYTES = 786_432;
const SIDES = ["request", "response"] as const;

/**
 * The native document of a session: `version`, `exported_at`, `session`, `bodies` (if there are large ones; ordered
 * parts `{entry, side, data}`), `entries`, and `streams` and `frames` if there are any. Entries are oldest first, as
 * the API shows them plus `scheme`, `port`, `duration_ms` and `ttfb_ms`. Lossless.
 */
export function sessionExport(source: SessionSource, session: CaptureSession, exportedAt: string): TrafficExport {
  return new TrafficExport(source.seqs.length, sessionTexts(source, session, exportedAt));
}

interface SessionSource extends ExportSource {
  /** Entries with a body above {@link MAX_EMBEDDED_BODY_BYTES}. */
  readonly largeSeqs: readonly number[];
  /** Members with streams and frames. */
  readonly streamTexts: () => Iterable<string>;
}

function* sessionTexts(
  source: SessionSource,
  session: CaptureSession,
  exportedAt: string,
): Generator<string, undefined> {
  const { id, name, created_at, updated_at, request_count, notes, tags } = session;
  const head = JSON.stringify({
    version: SESSION_FORMAT_VERSION,
    exported_at: exportedAt,
    session: { id, name, created_at, updated_at, request_count, notes, tags },
  });
  yield head.slice(0, -1);
  yield* bodyTexts(source);
  yield ',"entries":[';
  let index = 0;
  for (const seq of source.seqs) {
    const found = source.whole(seq);
    if (found === undefined) continue;
    yield `${index === 0 ? "\n" : ",\n"}${JSON.stringify(nativeEntry(found.row, found.sessionId, source))}`;
    index += 1;
  }
  yield "\n]";
  yield* source.streamTexts();
  yield "}\n";
  return undefined;
}

function* bodyTexts(source: SessionSource): Generator<string> {
  let isFirst = true;
  for (const seq of source.largeSeqs) {
    const found = source.whole(seq);
    if (found === undefined) continue;
    for (const side of SIDES) {
      if (Number(found.row[`${side}_body_stored`]) <= MAX_EMBEDDED_BODY_BYTES) continue;
      for (const data of bodyParts(source, seq, side)) {
        const part = { entry: String(found.row["id"]), side, data: Buffer.from(data).toString("base64") };
        yield `${isFirst ? ',"bodies":[\n' : ",\n"}${JSON.stringify(part)}`;
        isFirst = false;
      }
    }
  }
  if (!isFirst) yield "\n]";
}

function* bodyParts(source: ExportSource, seq: number, side: "request" | "response"): Generator<Uint8Array> {
  const body = source.bodies.locate(seq, side);
  if (body === undefined) return;
  for (let start = 0; ; start += PART_BYTES) {
    const end = start + PART_BYTES;
    const part = typeof body === "string" ? readFilePart(body, start, end) : body.subarray(start, end);
    if (part === undefined || part.length === 0) return;
    yield part;
  }
}

function nativeEntry(row: SqlRow, sessionId: string, { bodies }: ExportSource): unknown {
  const shown = (side: "request" | "response"): Parameters<typeof entryOfRow>[2] => {
    const stored = Number(row[`${side}_body_stored`]);
    const isEmbedded = stored > 0 && stored <= MAX_EMBEDDED_BODY_BYTES;
    return {
      bytes: isEmbedded ? bodies.read(Number(row["seq"]), side, stored) : undefined,
      fields: storedFields(row[`${side}_fields`]) ?? [],
    };
  };
  return {
    ...entryOfRow(row, sessionId, shown("request"), shown("response")),
    scheme: row["scheme"],
    port: row["port"],
    duration_ms: milliseconds(row["duration_us"]),
    ttfb_ms: milliseconds(row["ttfb_us"]),
  };
}

/** `_weir.more`: facts of a stored entry that HAR cannot express. */
interface HarExtras {
  readonly state: string;
  readonly source: string;
  readonly flags: number;
  /** `tcp` for tunnels, whose HAR URL uses a known scheme. */
  readonly scheme: string;
  /** Where the URL does not determine it. */
  readonly path: string;
  readonly port: number;
  readonly durationUs: number | null;
  readonly ttfbUs: number | null;
  readonly failure: Failure | null;
  readonly tls: TlsInfo | null;
  readonly requestTrailers: string[] | null;
  readonly responseTrailers: string[] | null;
  readonly requestBody: HarBodyFacts;
  readonly responseBody: HarBodyFacts;
}

/** Storage state of a body. */
interface HarBodyFacts {
  readonly size: number;
  readonly state: string;
}

/** Converts a stored entry to an exchange of the HAR package; bodies are truncated at `maxBodyBytes`. */
function harExchangeOf(row: SqlRow, sessionId: string, bodies: StoredBodies, maxBodyBytes: number): HarExchange {
  const failure = parsed<Failure>(row["failure"]);
  return {
    startedMs: Number(row["started_ms"]),
    request: {
      method: String(row["method"]),
      url: harUrl(row),
      httpVersion: textOf(row["request_version"]) ?? "HTTP/1.1",
      ...fieldsOf(row, "request"),
      body: harBody(row, "request", bodies, maxBodyBytes),
      ...missingBody(row, "request"),
    },
    response:
      row["response_fields"] === null
        ? undefined
        : {
            status: Number(row["status"]),
            reason: textOf(row["status_message"]) ?? "",
            httpVersion: textOf(row["response_version"]) ?? "HTTP/1.1",
            ...fieldsOf(row, "response"),
            body: harBody(row, "response", bodies, maxBodyBytes),
            ...missingBody(row, "response"),
          },
    timings: harTimings(row),
    serverAddress: textOf(row["server_addr"]),
    clientAddress: textOf(row["client_addr"]),
    connectionId: row["connection_id"] === null ? undefined : String(row["connection_id"]),
    note: textOf(row["note"]),
    webSocketMessages: undefined,
    weir: {
      id: String(row["id"]),
      session: sessionId,
      isPassthrough: (Number(row["flags"]) & FLAG_PASSTHROUGH) !== 0,
      failure: failure?.message,
      more: { ...extrasOf(row, failure), ...effectExtras(row) },
    },
  };
}

/** Replaces schemes unknown to HAR readers: `tcp://host:22/` becomes `https://host:22/`. */
function harUrl(row: SqlRow): string {
  if (row["scheme"] !== "tcp") return urlOfRow(row);
  // A CONNECT rejected for its port has none.
  const hasPort = Number(row["port"]) > 0;
  return urlOfRow({ ...row, scheme: "https", ...(!hasPort && { method: "", port: 443 }) });
}

function fieldsOf(row: SqlRow, side: "request" | "response"): Pick<HarExchange["request"], "fields" | "mediaType"> {
  const fields = storedFields(row[`${side}_fields`]) ?? [];
  const mediaType = textOf(row[`${side}_type`]);
  const isSaid = mediaType === undefined || fieldValue(fields, "content-type") !== undefined;
  return isSaid ? { fields } : { fields, mediaType };
}

function extrasOf(row: SqlRow, failure: Failure | null): HarExtras {
  return {
    state: entryState(row),
    source: String(row["source"]),
    flags: Number(row["flags"]),
    scheme: String(row["scheme"]),
    path: String(row["path"]),
    port: Number(row["port"]),
    durationUs: numberOrNull(row["duration_us"]),
    ttfbUs: numberOrNull(row["ttfb_us"]),
    failure,
    tls: storedTls(row["tls"]),
    requestTrailers: parsed<string[]>(row["request_trailers"]),
    responseTrailers: parsed<string[]>(row["response_trailers"]),
    requestBody: bodyFacts(row, "request"),
    responseBody: bodyFacts(row, "response"),
  };
}

const NO_BODY = { body: null, body_encoding: null, body_size: 0, body_stored_size: 0, body_state: "none" } as const;

/** Rule effects as entries show them; an unreplaced body is the one in the HAR. */
function effectExtras(row: SqlRow): Partial<ReturnType<typeof shownEffect>> {
  return row["trace"] === null || row["trace"] === undefined ? {} : shownEffect(row, NO_BODY, NO_BODY, 0);
}

function bodyFacts(row: SqlRow, side: "request" | "response"): HarBodyFacts {
  return {
    size: Number(row[`${side}_body_size`]),
    state: BODY_STATES[Number(row[`${side}_body_state`]) as 0 | 1 | 2 | 3],
  };
}

function missingBody(row: SqlRow, side: "request" | "response"): { readonly missingBodyBytes?: number } {
  const { size, state } = bodyFacts(row, side);
  return size > 0 && state === "not_stored" ? { missingBodyBytes: size } : {};
}

function harBody(
  row: SqlRow,
  side: "request" | "response",
  bodies: StoredBodies,
  maxBodyBytes: number,
): HarBody | undefined {
  const { size, state } = bodyFacts(row, side);
  if (size === 0 || state === "not_stored") return undefined;
  const stored = Math.min(Number(row[`${side}_body_stored`]), maxBodyBytes);
  const bytes = bodies.read(Number(row["seq"]), side, stored) ?? new Uint8Array(0);
  return { bytes, isEncoded: true, isTruncated: bytes.length < size, transferredBytes: size };
}

function harTimings(row: SqlRow): HarExchangeTimings {
  const stages = parsed<(number | null)[]>(row["timings"]) ?? [];
  const stage = (index: number): number | undefined => stages[index] ?? undefined;
  return {
    blocked: stage(0),
    dns: stage(1),
    connect: stage(2),
    tls: stage(3),
    send: stage(4),
    wait: stage(5),
    receive: stage(6),
  };
}

/** Frames read per page, which bounds memory. */
const PAGE_FRAMES = 200;
/** Limit of a connection's messages in a HAR, whose readers load whole documents; a native export is complete. */
const HAR_BYTES = 67_108_864;
const DROPPED = FRAME_EFFECTS.indexOf("dropped") + 1;
const LAST_DATA_OPCODE = 2;
const FIRST_CONTROL_OPCODE = 8;

/** Members `streams` and `frames` of a native document. A frame refers to its stream by index. */
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
