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

/** Twenty flushes a second: below what an eye notices, and each costs one write for each client. */
const FLUSH_MS = 50;
const HEARTBEAT_MS = 30_000;
const MAX_MESSAGE_BYTES = 65_536;
const MAX_CLIENTS = 64;

export interface EventHubOptions {
  readonly clock: Clock;
  readonly latestRows: LatestRows;
  readonly log: { warn(facts: object, message: string): void };
  readonly maxClients?: number;
}

/** Everybody who listens on `/ws`, as the place where slices report events. */
export interface EventHub extends EventSink {
  /** Completes a WebSocket handshake that passed the gate; gives the refusal when it cannot. */
  accept(request: IncomingMessage, socket: Duplex, head: Buffer): ErrorResponse | undefined;
  readonly clientCount: number;
  /** To be called with each frame of a stream. */
  readonly frame: FrameListener;
  /** Tells clients that the service goes away and ends their connections. */
  close(): void;
}

/** Creates the hub; nothing runs until somebody listens. */
export function createEventHub(options: EventHubOptions): EventHub {
  return new Hub(options);
}

const validateMessage = compileValueValidator(ClientMessage, "message");
const validateParameters = compileValueValidator(
  strictObject({ ...SubscribeFilter.properties, batch: Type.Optional(oneOf(["0", "1"])) }),
  "query",
);

class Hub implements EventHub {
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
    const tell = (change: Partial<TaskProgress>): void => {
      progress = { ...progress, ...change };
      this.#announce("tasks", { type: "Task", data: progress });
    };
    try {
      const result = await run(({ bytes, entries }) => tell({ bytes, entries }));
      tell({ done: true, entries: "completed" in result ? result.completed : result.imported_count });
      return result;
    } catch (error) {
      tell({ done: true, error: errorResponse(error).body.error });
      throw error;
    }
  }

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
        this.#options.log.warn({ err: error }, "the latest rows could not be read for a live client"),
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

/** What a client asked for in the address. */
type ClientOptions = Pick<ClientParts, "isBatched" | "filter">;

/**
 * A filter in the address holds from the first event on; one sent with Subscribe cannot. Throws 400 for parameters that
 * are unknown or repeated, as operations do.
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

/** Everything that several clients need is made on first use and kept. */
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

/** A message of the contract, or the sentence that tells the client what is wrong. */
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
 * What a window of events comes to: one event for each entry (the first kind with the latest row), nothing of entries
 * deleted or cleared in the same window, only the last count. Order is that of each entry's first event.
 */
export function coalesce(events: readonly TrafficEvent[]): readonly TrafficEvent[] {
  const result: (TrafficEvent | undefined)[] = [];
  const places = new Map<string, number>();
  let countPlace = -1;
  for (const event of events) {
    switch (event.type) {
      case "Added":
      case "Updated": {
        const place = places.get(event.data.id);
        const first = place === undefined ? undefined : result[place];
        if (place === undefined || first === undefined) {
          places.set(event.data.id, result.length);
          result.push(event);
        } else {
          result[place] = { type: first.type, data: event.data } as { type: "Added"; data: TrafficSnapshot };
        }
        break;
      }
      case "Deleted":
        for (const id of event.data) drop(id, places, result);
        result.push(event);
        break;
      case "Cleared":
        // What came before is gone on the client too; only other sessions' entries could differ, and they are not shown.
        result.fill(undefined);
        places.clear();
        countPlace = -1;
        result.push(event);
        break;
      case "CountUpdate":
        if (countPlace >= 0) result[countPlace] = undefined;
        countPlace = result.length;
        result.push(event);
        break;
    }
  }
  return result.filter((event) => event !== undefined);
}

function drop(id: string, places: Map<string, number>, result: (TrafficEvent | undefined)[]): void {
  const place = places.get(id);
  if (place === undefined) return;
  result[place] = undefined;
  places.delete(id);
}

/** Twenty flushes a second, as for traffic. */
const FRAME_FLUSH_MS = 50;
/** Frames of one flush; a screen shows a few dozen, and the rest can be read from the store. */
const MAX_FRAMES = 4000;
/** Bytes of payload that wait for one flush: they are held in memory until then. */
const MAX_BYTES = 16_777_216;
const SHOWN_CHARACTERS = 1000;
/** A character takes at most four bytes. */
const SHOWN_BYTES = SHOWN_CHARACTERS * 4;

/** Tells live clients of the frames of streams, to those who asked for them and as fast as they take them. */
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

  /** Clients came, went, or asked for something else. */
  countListeners(): void {
    this.#isWatched = [...this.#clients].some((client) => client.channels.has("frames"));
    if (!this.#isWatched) this.#take();
  }

  /** Runs for every frame on the proxy thread: it must do no more than append. */
  readonly add: FrameListener = (stream, ordinal, frame) => {
    if (!this.#isWatched) return;
    if (!this.#isArmed) {
      this.#isArmed = true;
      this.#clock.after(FRAME_FLUSH_MS, () => this.#flush());
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

/** null: the payload is not for reading. */
function shownText(frame: FrameRecord): string | null {
  if (frame.type === "close") return closeText(frame.payload);
  if (frame.type === "binary" || frame.type === "message") return null;
  return frame.payload.toString("utf8", 0, SHOWN_BYTES).slice(0, SHOWN_CHARACTERS);
}
