import { randomUUID } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { type RawData, type WebSocket, WebSocketServer } from "ws";
import {
  type ChangeTopic,
  ClientMessage,
  type FrameEvent,
  type Notice,
  type ServerMessage,
  SubscribeFilter,
  type TaskProgress,
  type TrafficEvent,
  type TrafficSnapshot,
} from "@headworks/capture-contract";
import { oneOf, strictObject, Type } from "@headworks/contract-kit";
import { compileValueValidator } from "@headworks/contract-kit/server";
import { closeText } from "@headworks/websocket";
import type { Clock, EventSink, RunTask, TaskResult, TaskStart } from "#slice.ts";
import type { FrameListener, FrameRecord } from "#storage/streams/stream-store.ts";
import { ApiError, validationError } from "./api-error.ts";
import { parseSearch } from "./bind.ts";
import {
  type ClientParts,
  compileEventFilter,
  EventClient,
  type Flush,
  INITIAL_ROWS,
  type LatestRows,
  textFrames,
} from "./event-client.ts";
import { SECURITY_FIELDS } from "./gate.ts";
import { errorResponse, type ErrorResponse, rawResponse, refusalResponse } from "./respond-error.ts";

/** Twenty flushes a second are below what users notice; each costs one write per client. */
const FLUSH_MS = 50;
const HEARTBEAT_MS = 30_000;
const MAX_MESSAGE_BYTES = 65_536;
const MAX_CLIENTS = 64;

interface EventHubOptions {
  readonly clock: Clock;
  readonly latestRows: LatestRows;
  readonly log: { warn(facts: object, message: string): void };
  readonly maxClients?: number;
}

const validateMessage = compileValueValidator(ClientMessage, "message");
const validateParameters = compileValueValidator(
  strictObject({ ...SubscribeFilter.properties, batch: Type.Optional(oneOf(["0", "1"])) }),
  "query",
);

/** Distributes the events of slices to the clients on `/ws`. Nothing runs until one connects. */
export class EventHub implements EventSink {
  readonly #options: EventHubOptions;
  readonly #server = new WebSocketServer({
    noServer: true,
    maxPayload: MAX_MESSAGE_BYTES,
    perMessageDeflate: false,
    clientTracking: false,
  });
  readonly #clients = new Set<EventClient>();
  readonly #frames: FrameFeed;
  #queue: TrafficEvent[] = [];
  #isArmed = false;
  #stopHeartbeat: (() => void) | undefined;
  #isClosed = false;
  hasListeners = false;

  constructor(options: EventHubOptions) {
    this.#options = options;
    this.#frames = new FrameFeed(options.clock, this.#clients);
    this.#server.on("wsClientError", (error, socket) => {
      socket.end(rawResponse(refusalResponse("BAD_REQUEST", error.message), SECURITY_FIELDS));
    });
  }

  /** Called with each frame of a stream. */
  get frame(): FrameListener {
    return this.#frames.add;
  }

  get clientCount(): number {
    return this.#clients.size;
  }

  /** Runs for every exchange on the proxy thread: it must do no more than append. */
  traffic(event: TrafficEvent): void {
    if (!this.hasListeners) return;
    this.#queue.push(event);
    if (this.#isArmed) return;
    this.#isArmed = true;
    this.#options.clock.after(FLUSH_MS, () => this.#flush());
  }

  changed(topic: ChangeTopic): void {
    this.#announce("changes", { type: "Changed", data: { topic } });
  }

  notice(notice: Notice): void {
    for (const client of this.#clients) client.send({ type: "Notice", data: notice });
  }

  async task<T extends TaskResult>(start: TaskStart, run: RunTask<T>): Promise<T> {
    let progress = progressOf(start);
    const report = (change: Partial<TaskProgress>): void => {
      progress = { ...progress, ...change };
      this.#announce("tasks", { type: "Task", data: progress });
    };
    try {
      const result = await run(({ bytes, entries }) => report({ bytes, entries }));
      report({ done: true, entries: "completed" in result ? result.completed : result.imported_count });
      return result;
    } catch (error) {
      report({ done: true, error: errorResponse(error).body.error });
      throw error;
    }
  }

  /** Completes a WebSocket handshake that passed the gate; returns the refusal if it cannot. */
  accept(request: IncomingMessage, socket: Duplex, head: Buffer): ErrorResponse | undefined {
    if (this.#isClosed) return refusalResponse("SERVICE_UNAVAILABLE", "The service is stopping");
    if (this.#clients.size >= (this.#options.maxClients ?? MAX_CLIENTS)) {
      return refusalResponse("SERVICE_UNAVAILABLE", "Too many clients are listening");
    }
    let clientOptions: ClientOptions;
    try {
      clientOptions = clientOptionsOf(request.url ?? "", this.#options.clock.now());
    } catch (error) {
      return errorResponse(error);
    }
    this.#server.handleUpgrade(request, socket, head, (webSocket) => this.#welcome(webSocket, socket, clientOptions));
    return undefined;
  }

  /** Announces the shutdown to clients and ends their connections. */
  close(): void {
    this.#isClosed = true;
    this.#stopHeartbeat?.();
    for (const { webSocket } of this.#clients) {
      webSocket.close(1001, "The service is stopping");
      this.#options.clock.after(1000, () => webSocket.terminate());
    }
  }

  #welcome(webSocket: WebSocket, socket: Duplex, clientOptions: ClientOptions): void {
    const client = new EventClient({
      id: randomUUID(),
      webSocket,
      socket,
      ...clientOptions,
      latestRows: this.#options.latestRows,
      nowMs: () => this.#options.clock.now(),
      onFailure: (error) =>
        this.#options.log.warn({ err: error }, "The latest rows could not be read for a live client"),
    });
    this.#clients.add(client);
    this.#stopHeartbeat ??= this.#options.clock.every(HEARTBEAT_MS, () => this.#heartbeat());
    this.#countListeners();
    webSocket.on("message", (data, isBinary) => this.#receive(client, data, isBinary));
    webSocket.on("pong", () => (client.isAlive = true));
    // ws closes the connection itself, with the right code.
    webSocket.on("error", () => undefined);
    webSocket.on("close", () => this.#farewell(client));
    client.send({ type: "Connected", data: { client_id: client.id } });
    client.sendInitialRows(INITIAL_ROWS);
  }

  #farewell(client: EventClient): void {
    this.#clients.delete(client);
    this.#countListeners();
    if (this.#clients.size > 0) return;
    this.#stopHeartbeat?.();
    this.#stopHeartbeat = undefined;
  }

  #countListeners(): void {
    this.hasListeners = [...this.#clients].some((client) => client.isSubscribed);
    if (!this.hasListeners) this.#queue = [];
    this.#frames.countListeners();
  }

  #heartbeat(): void {
    for (const client of this.#clients) {
      if (!client.isAlive) {
        client.webSocket.terminate();
        continue;
      }
      client.isAlive = false;
      client.webSocket.ping();
    }
  }

  #receive(client: EventClient, data: RawData, isBinary: boolean): void {
    client.isAlive = true;
    const text = isBinary ? undefined : (data as Buffer).toString();
    if (text === "ping") return client.send({ type: "Pong" });
    const message = text === undefined ? "A message must be text" : parseMessage(text);
    if (typeof message === "string") return client.send({ type: "Error", data: { message } });
    switch (message.type) {
      case "Ping":
        return client.send({ type: "Pong" });
      case "Subscribe":
        client.subscribe(message.data?.filter, message.data?.channels ?? []);
        return this.#countListeners();
      case "Unsubscribe":
        client.unsubscribe();
        return this.#countListeners();
      case "GetInitialTraffic":
        return client.sendInitialRows(message.data?.limit ?? INITIAL_ROWS);
    }
  }

  #flush(): void {
    this.#isArmed = false;
    const queued = this.#queue;
    this.#queue = [];
    const events = coalesce(queued);
    if (events.length === 0) return;
    const flush = createFlush(events);
    for (const client of this.#clients) client.deliver(flush);
  }

  #announce(channel: "changes" | "tasks", message: ServerMessage): void {
    for (const client of this.#clients) if (client.channels.has(channel)) client.send(message);
  }
}

function progressOf({ id, kind, contentLength, totalEntries }: TaskStart): TaskProgress {
  const isKnown = typeof contentLength === "string" && /^\d{1,15}$/u.test(contentLength);
  return {
    id: id ?? randomUUID(),
    kind,
    bytes: 0,
    total_bytes: isKnown ? Number(contentLength) : null,
    entries: 0,
    ...(totalEntries === undefined ? {} : { total_entries: totalEntries }),
    done: false,
    error: null,
  };
}

/** Options from the address of the WebSocket. */
type ClientOptions = Pick<ClientParts, "isBatched" | "filter">;

/**
 * A filter in the address applies from the first event on, which one sent with Subscribe cannot.
 * @throws ApiError 400 for unknown or repeated parameters, like operations
 */
function clientOptionsOf(url: string, nowMs: number): ClientOptions {
  const query = parseSearch(url.split("?").slice(1).join("?"));
  const issues = validateParameters(query);
  if (issues.length > 0) throw validationError(issues);
  const { batch, ...filter } = query;
  const compiled = compileEventFilter(filter, nowMs);
  if (compiled.kind === "refused") throw new ApiError("VALIDATION_ERROR", compiled.message);
  return { isBatched: batch === "1", filter: compiled };
}

/** Encodings shared by clients are computed on first use and kept. */
function createFlush(events: readonly TrafficEvent[]): Flush {
  const texts: string[] = [];
  const text = (index: number): string =>
    (texts[index] ??= `{"type":"Traffic","data":${JSON.stringify(events[index])}}`);
  const all = (): string[] => events.map((_, index) => text(index));
  let frames: Buffer | undefined;
  let batch: Buffer | undefined;
  return {
    events,
    text,
    frames: () => (frames ??= textFrames(all())),
    batch: () => (batch ??= textFrames([`[${all().join(",")}]`])),
  };
}

/** A message of the contract, or a sentence with the error. */
function parseMessage(text: string): ClientMessage | string {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return "The message is not valid JSON";
  }
  const [issue] = validateMessage(value);
  if (issue === undefined) return value as ClientMessage;
  return `The message is not understood: ${issue.path}: ${issue.message}`;
}

/**
 * Coalesces the events of one flush: one event per entry (the first kind with the latest row), none for entries deleted
 * or cleared in the same flush, and only the last count, in the order of each entry's first event.
 */
export function coalesce(events: readonly TrafficEvent[]): readonly TrafficEvent[] {
  const result: (TrafficEvent | undefined)[] = [];
  const indexes = new Map<string, number>();
  let countIndex = -1;
  for (const event of events) {
    switch (event.type) {
      case "Added":
      case "Updated": {
        const index = indexes.get(event.data.id);
        const first = index === undefined ? undefined : result[index];
        if (index === undefined || first === undefined) {
          indexes.set(event.data.id, result.length);
          result.push(event);
        } else {
          result[index] = { type: first.type, data: event.data } as { type: "Added"; data: TrafficSnapshot };
        }
        break;
      }
      case "Deleted":
        for (const id of event.data) drop(id, indexes, result);
        result.push(event);
        break;
      case "Cleared":
        // The client drops its rows too; entries of other sessions are not shown.
        result.fill(undefined);
        indexes.clear();
        countIndex = -1;
        result.push(event);
        break;
      case "CountUpdate":
        if (countIndex >= 0) result[countIndex] = undefined;
        countIndex = result.length;
        result.push(event);
        break;
    }
  }
  return result.filter((event) => event !== undefined);
}

function drop(id: string, indexes: Map<string, number>, result: (TrafficEvent | undefined)[]): void {
  const index = indexes.get(id);
  if (index === undefined) return;
  result[index] = undefined;
  indexes.delete(id);
}

/** Maximum number of frames per flush; a screen shows a few dozen, and the store has the rest. */
const MAX_FRAMES = 4000;
/** Maximum number of payload bytes held in memory for one flush. */
const MAX_BYTES = 16_777_216;
const SHOWN_CHARACTERS = 1000;
/** A character takes at most four bytes. */
const SHOWN_BYTES = SHOWN_CHARACTERS * 4;

/** Delivers frames of streams to the clients that subscribed to them, as fast as each one reads. */
class FrameFeed {
  readonly #clock: Clock;
  readonly #clients: ReadonlySet<EventClient>;
  #queue: Parameters<FrameListener>[] = [];
  #queuedBytes = 0;
  #missed = 0;
  #isArmed = false;
  #isWatched = false;

  constructor(clock: Clock, clients: ReadonlySet<EventClient>) {
    this.#clock = clock;
    this.#clients = clients;
  }

  /** Called when clients connect, disconnect or change their subscriptions. */
  countListeners(): void {
    this.#isWatched = [...this.#clients].some((client) => client.channels.has("frames"));
    if (!this.#isWatched) this.#take();
  }

  /** Runs for every frame on the proxy thread: it must do no more than append. */
  readonly add: FrameListener = (stream, ordinal, frame) => {
    if (!this.#isWatched) return;
    if (!this.#isArmed) {
      this.#isArmed = true;
      this.#clock.after(FLUSH_MS, () => this.#flush());
    }
    if (this.#queue.length >= MAX_FRAMES || this.#queuedBytes >= MAX_BYTES) {
      this.#missed += 1;
      return;
    }
    this.#queue.push([stream, ordinal, frame]);
    this.#queuedBytes += frame.payload.length;
  };

  #take(): { readonly frames: Parameters<FrameListener>[]; readonly missed: number } {
    const taken = { frames: this.#queue, missed: this.#missed };
    this.#queue = [];
    this.#queuedBytes = 0;
    this.#missed = 0;
    return taken;
  }

  #flush(): void {
    this.#isArmed = false;
    const { frames, missed } = this.#take();
    if (frames.length === 0) return;
    const texts = frames.map(([stream, ordinal, frame]) => JSON.stringify(messageOf(stream, ordinal, frame)));
    let separate: Buffer | undefined;
    let batch: Buffer | undefined;
    for (const client of this.#clients) {
      if (!client.channels.has("frames")) continue;
      client.deliverFrames(
        client.isBatched ? (batch ??= textFrames([`[${texts.join(",")}]`])) : (separate ??= textFrames(texts)),
        frames.length,
        missed,
      );
    }
  }
}

function messageOf(
  stream: { id: string; kind: FrameEvent["kind"] },
  ordinal: number,
  frame: FrameRecord,
): ServerMessage {
  return {
    type: "Frame",
    data: {
      stream_id: stream.id,
      ordinal,
      kind: stream.kind,
      direction: frame.direction,
      type: frame.type,
      size: frame.sizeBytes,
      text: shownText(frame),
      timestamp: new Date(frame.atMs).toISOString(),
      ...(frame.effect === undefined ? {} : { effect: frame.effect }),
      ...(frame.attributes === undefined ? {} : { attributes: frame.attributes }),
    },
  };
}

/** The beginning of a text payload; null for binary ones. */
function shownText(frame: FrameRecord): string | null {
  if (frame.type === "close") return closeText(frame.payload);
  if (frame.type === "binary" || frame.type === "message") return null;
  return frame.payload.toString("utf8", 0, SHOWN_BYTES).slice(0, SHOWN_CHARACTERS);
}
