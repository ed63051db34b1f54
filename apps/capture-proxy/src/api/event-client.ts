import type { Duplex } from "node:stream";
import type { WebSocket } from "ws";
import type {
  ServerMessage,
  SubscribeFilter,
  TrafficEvent,
  TrafficFilter,
  TrafficSnapshot,
} from "@headworks/capture-contract";
import {
  allOf,
  compileQuery,
  formatQuery,
  fromParameters,
  needs,
  parseQuery,
  type Query,
  type QueryRecord,
} from "@headworks/query-language";

/** A compiled subscription filter, or a sentence with the reason for its refusal. */
type EventFilter =
  | { readonly kind: "all" }
  | {
      readonly kind: "some";
      readonly matches: (row: TrafficSnapshot) => boolean;
      /** The same in the query language, for the store. */
      readonly query: string;
    }
  | { readonly kind: "refused"; readonly message: string };

/**
 * Compiles a subscription filter. Live rows have no header fields, bodies, notes or stream messages, so a filter that
 * needs those is refused; `search` applies to the URL.
 */
export function compileEventFilter(filter: SubscribeFilter | null | undefined, nowMs: number): EventFilter {
  const terms: Query[] = [];
  const parameters = fromParameters({
    ...(given(filter?.method) && { method: filter?.method ?? undefined }),
    ...(given(filter?.status_code) && { status_code: filter?.status_code ?? undefined }),
  });
  if (!parameters.ok) return { kind: "refused", message: parameters.error.message };
  terms.push(parameters.query);
  if (given(filter?.search)) {
    const value = { kind: "literal", text: filter?.search ?? "" } as const;
    terms.push({ kind: "field", field: "url", key: null, test: { kind: "text", mode: "matches", values: [value] } });
  }
  if (given(filter?.q)) {
    const parsed = parseQuery(filter?.q ?? "");
    if (!parsed.ok) return { kind: "refused", message: parsed.error.message };
    terms.push(parsed.query);
  }
  const query = allOf(terms);
  if (query.kind === "all") return { kind: "all" };
  const missing = missingMaterial(query);
  if (missing !== undefined) {
    return { kind: "refused", message: `Live rows carry no ${missing}; this filter cannot be applied to them` };
  }
  const text = formatQuery(query);
  // Parts within their own limits may together exceed the limit of one query.
  const whole = parseQuery(text);
  if (!whole.ok) return { kind: "refused", message: whole.error.message };
  const predicate = compileQuery(query, { nowMs });
  return { kind: "some", matches: (row) => predicate(recordOf(row)), query: text };
}

function given(text: string | null | undefined): boolean {
  return text !== undefined && text !== null && text.trim() !== "";
}

function missingMaterial(query: Query): string | undefined {
  const { headFields, requestBody, responseBody, streams } = needs(query);
  // Messages may arrive after their row was filtered out, and are stored later.
  if (streams) return "messages and no outcome of streams";
  if (requestBody || responseBody) return "bodies";
  if (headFields) return "header fields";
  return usesNotes(query) ? "notes" : undefined;
}

function usesNotes(query: Query): boolean {
  switch (query.kind) {
    case "and":
    case "or":
      return query.terms.some(usesNotes);
    case "not":
      return usesNotes(query.term);
    case "preset":
      return usesNotes(query.query);
    case "field":
      return query.field === "note";
    default:
      return false;
  }
}

const DEFAULT_PORTS: Readonly<Record<string, number>> = { http: 80, ws: 80, https: 443, wss: 443 };
const NO_FIELDS: readonly string[] = [];

function recordOf(row: TrafficSnapshot): QueryRecord {
  const mark = row.path.indexOf("?");
  return {
    id: row.id,
    seq: row.seq,
    sessionId: row.session_id,
    method: row.method,
    scheme: row.scheme,
    host: row.host,
    port: portOf(row),
    path: mark === -1 ? row.path : row.path.slice(0, mark),
    query: mark === -1 ? "" : row.path.slice(mark + 1),
    url: row.url,
    status: row.status_code ?? undefined,
    httpVersion: row.http_version ?? undefined,
    requestType: essence(row.content_type),
    responseType: essence(row.response_content_type),
    resourceType: row.resource_type,
    requestSizeBytes: row.request_size,
    responseSizeBytes: row.response_size ?? undefined,
    durationMs: row.duration_ms ?? undefined,
    ttfbMs: row.ttfb_ms ?? undefined,
    timestampMs: Date.parse(row.timestamp),
    clientAddress: row.client_addr ?? undefined,
    state: row.state,
    isPassthrough: row.is_passthrough,
    modified: row.modified,
    applied: row.applied,
    note: undefined,
    hasRequestBody: row.has_request_body,
    hasResponseBody: row.has_response_body,
    requestFields: () => NO_FIELDS,
    responseFields: () => NO_FIELDS,
    requestText: () => undefined,
    responseText: () => undefined,
  };
}

function essence(type: string | null): string | undefined {
  return type?.split(";", 1)[0]?.trim().toLowerCase();
}

function portOf({ url, scheme }: TrafficSnapshot): number {
  const start = url.indexOf("://");
  const end = url.indexOf("/", start + 3);
  const authority = url.slice(start + 3, end === -1 ? undefined : end);
  const port = /:([0-9]+)$/.exec(authority)?.[1];
  return port === undefined ? (DEFAULT_PORTS[scheme] ?? 0) : Number(port);
}

/** A client with more unsent bytes is behind: it receives nothing until they are sent. */
const BEHIND_BYTES = 4 * 1024 * 1024;
/** If more events than this arrive before its first rows, a client receives none of them and starts again. */
const MAX_HELD_EVENTS = 10_000;

/** The events of one flush, and the encodings shared by all unfiltered clients. */
export interface Flush {
  readonly events: readonly TrafficEvent[];
  /** The JSON text of the event's message at an index, made at most once. */
  readonly text: (index: number) => string;
  /** All messages as separate frames. */
  readonly frames: () => Buffer;
  /** All messages as one frame with a JSON array. */
  readonly batch: () => Buffer;
}

/** The newest stored rows that match, newest first. The signal aborts when the client is gone. */
export type LatestRows = (
  limit: number,
  filter: TrafficFilter,
  signal: AbortSignal,
) => Promise<readonly TrafficSnapshot[]>;

export interface ClientParts {
  readonly id: string;
  readonly webSocket: WebSocket;
  /** The connection below `webSocket`, for frames that were encoded once for all clients. */
  readonly socket: Duplex;
  /** From `?batch=1`. */
  readonly isBatched: boolean;
  /** The filter until the first Subscribe. */
  readonly filter: EventFilter;
  readonly latestRows: LatestRows;
  readonly nowMs: () => number;
  readonly onFailure: (error: unknown) => void;
}

export const INITIAL_ROWS = 100;

/** One connection on `/ws`: its subscription and its backlog. */
export class EventClient {
  readonly id: string;
  readonly webSocket: WebSocket;
  /** A pong arrived since the last heartbeat. */
  isAlive = true;
  isSubscribed = true;
  channels: ReadonlySet<string> = new Set();
  readonly #parts: ClientParts;
  /** Aborts when the connection is over. */
  readonly #gone = new AbortController();
  #filter: EventFilter;
  /** Pending entries this client was shown under its filter; they may stop matching when they complete. */
  readonly #shownPending = new Set<string>();
  #held: HeldFlushes | undefined;
  #wantedRows: number | undefined;
  #missed = 0;
  #missedFrames = 0;
  #isBehind = false;

  constructor(parts: ClientParts) {
    this.id = parts.id;
    this.webSocket = parts.webSocket;
    this.#filter = parts.filter;
    this.#parts = parts;
    parts.socket.on("drain", () => this.#catchUp());
    parts.webSocket.on("close", () => this.#gone.abort());
  }

  /** Sends one message outside the flushes. */
  send(message: ServerMessage): void {
    this.#write(textFrames([JSON.stringify(message)]));
  }

  subscribe(filter: SubscribeFilter | null | undefined, channels: readonly string[]): void {
    const compiled = compileEventFilter(filter, this.#parts.nowMs());
    if (compiled.kind === "refused") return this.send({ type: "Error", data: { message: compiled.message } });
    this.#filter = compiled;
    this.#shownPending.clear();
    this.isSubscribed = true;
    this.channels = new Set(channels);
  }

  unsubscribe(): void {
    this.isSubscribed = false;
    this.channels = new Set();
    this.#shownPending.clear();
    this.#missed = 0;
    this.#missedFrames = 0;
  }

  get isBatched(): boolean {
    return this.#parts.isBatched;
  }

  /** Delivers encoded frames of streams; `missed` more were dropped for all clients. */
  deliverFrames(bytes: Buffer, count: number, missed: number): void {
    if (this.webSocket.bufferedAmount > BEHIND_BYTES) this.#isBehind = true;
    if (this.#isBehind) {
      this.#missedFrames += count + missed;
      return;
    }
    this.#write(bytes);
    if (missed > 0) this.send({ type: "Resync", data: { missed, channel: "frames" } });
  }

  /** Sends the latest rows. A call while rows are being fetched is served after them. */
  sendInitialRows(limit: number): void {
    if (this.#held !== undefined) {
      this.#wantedRows = limit;
      return;
    }
    this.#held = { flushes: [], eventCount: 0 };
    this.#fetchRows(limit).then(
      () => this.#release(),
      (error: unknown) => {
        if (this.#gone.signal.aborted) return;
        this.#parts.onFailure(error);
        this.send({ type: "Error", data: { message: "The latest entries cannot be read now" } });
        this.#release();
      },
    );
  }

  /** Sends a flush, holds it back, or counts it as missed. */
  deliver(flush: Flush): void {
    if (!this.isSubscribed) return;
    if (this.#held !== undefined) return hold(this.#held, flush);
    if (this.webSocket.bufferedAmount > BEHIND_BYTES) this.#isBehind = true;
    if (this.#isBehind) {
      this.#missed += flush.events.length;
      return;
    }
    const bytes =
      this.#filter.kind === "some"
        ? this.#filtered(flush, this.#filter.matches)
        : this.#parts.isBatched
          ? flush.batch()
          : flush.frames();
    if (bytes.length > 0) this.#write(bytes);
  }

  async #fetchRows(limit: number): Promise<void> {
    let filter: EventFilter;
    let rows: readonly TrafficSnapshot[];
    do {
      filter = this.#filter;
      const q = queryOf(filter);
      rows = limit === 0 ? [] : await this.#parts.latestRows(limit, q === undefined ? {} : { q }, this.#gone.signal);
      // The filter may have changed meanwhile; subscribing to the same one again does not count.
    } while (queryOf(filter) !== queryOf(this.#filter));
    if (filter.kind === "some") {
      for (const { id, state } of rows) if (state === "pending") this.#shownPending.add(id);
    }
    this.send({ type: "InitialTraffic", data: rows });
  }

  #release(): void {
    const held = this.#held;
    this.#held = undefined;
    for (const flush of held?.flushes ?? []) this.deliver(flush);
    if (held !== undefined && held.eventCount > MAX_HELD_EVENTS) {
      this.#missed += held.eventCount;
      this.#isBehind ||= this.webSocket.bufferedAmount > BEHIND_BYTES;
      if (!this.#isBehind) this.#startAgain();
    }
    const wanted = this.#wantedRows;
    this.#wantedRows = undefined;
    if (wanted !== undefined) this.sendInitialRows(wanted);
  }

  /** All bytes are sent: a client that was behind starts again from the latest rows. */
  #catchUp(): void {
    if (!this.#isBehind) return;
    this.#isBehind = false;
    const missedFrames = this.#missedFrames;
    this.#missedFrames = 0;
    if (missedFrames > 0) this.send({ type: "Resync", data: { missed: missedFrames, channel: "frames" } });
    this.#startAgain();
  }

  /** Reports the number of missed events and sends the latest rows instead. */
  #startAgain(): void {
    const missed = this.#missed;
    this.#missed = 0;
    if (missed === 0 || !this.isSubscribed) return;
    this.#shownPending.clear();
    this.send({ type: "Resync", data: { missed } });
    this.sendInitialRows(INITIAL_ROWS);
  }

  #filtered(flush: Flush, matches: (row: TrafficSnapshot) => boolean): Buffer {
    const texts: string[] = [];
    for (const [index, event] of flush.events.entries()) {
      if (event.type !== "Added" && event.type !== "Updated") {
        texts.push(flush.text(index));
        continue;
      }
      const { id, state } = event.data;
      if (matches(event.data)) {
        texts.push(flush.text(index));
        if (state === "pending") this.#shownPending.add(id);
        else this.#shownPending.delete(id);
      } else if (this.#shownPending.delete(id)) {
        texts.push(JSON.stringify({ type: "Traffic", data: { type: "Deleted", data: [id] } } satisfies ServerMessage));
      }
    }
    if (texts.length === 0) return EMPTY;
    return this.#parts.isBatched ? textFrames([`[${texts.join(",")}]`]) : textFrames(texts);
  }

  #write(frames: Buffer): void {
    if (this.webSocket.readyState === this.webSocket.OPEN) this.#parts.socket.write(frames);
  }
}

/** Flushes held back while initial rows are fetched, so that the rows come first. */
interface HeldFlushes {
  /** Emptied once there are too many, since the rest would have gaps. */
  flushes: Flush[];
  /** Includes dropped flushes. */
  eventCount: number;
}

function hold(held: HeldFlushes, flush: Flush): void {
  held.eventCount += flush.events.length;
  if (held.eventCount > MAX_HELD_EVENTS) held.flushes = [];
  else held.flushes.push(flush);
}

/** The query for the store; undefined selects everything. */
function queryOf(filter: EventFilter): string | undefined {
  return filter.kind === "some" ? filter.query : undefined;
}

const EMPTY = Buffer.alloc(0);

/**
 * Encodes texts as unfragmented, unmasked WebSocket text frames (RFC 6455, 5.2) in one buffer. The bytes are the same
 * for all clients, so one encoding is written to every socket.
 */
export function textFrames(texts: readonly string[]): Buffer {
  let sizeBytes = 0;
  const lengths = texts.map((text) => {
    const lengthBytes = Buffer.byteLength(text);
    sizeBytes += headBytes(lengthBytes) + lengthBytes;
    return lengthBytes;
  });
  const frames = Buffer.allocUnsafe(sizeBytes);
  let at = 0;
  for (const [index, text] of texts.entries()) {
    const lengthBytes = lengths[index] ?? 0;
    at = writeHead(frames, at, lengthBytes);
    at += frames.write(text, at, "utf8");
  }
  return frames;
}

const FINAL_TEXT = 0x81;

function headBytes(lengthBytes: number): number {
  return lengthBytes < 126 ? 2 : lengthBytes < 65_536 ? 4 : 10;
}

function writeHead(frames: Buffer, at: number, lengthBytes: number): number {
  frames[at] = FINAL_TEXT;
  if (lengthBytes < 126) {
    frames[at + 1] = lengthBytes;
    return at + 2;
  }
  if (lengthBytes < 65_536) {
    frames[at + 1] = 126;
    frames.writeUInt16BE(lengthBytes, at + 2);
    return at + 4;
  }
  frames[at + 1] = 127;
  frames.writeBigUInt64BE(BigInt(lengthBytes), at + 2);
  return at + 10;
}
