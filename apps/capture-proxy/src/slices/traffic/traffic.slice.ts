import type { Condition, MatchPreviewRequest, TrafficFilter, trafficOperations } from "@headworks/capture-contract";
import { type HandlerInput, type HandlerResult, type Handlers, JsonBytes } from "@headworks/contract-kit";
import { parseRuleCondition } from "@headworks/match-condition";
import { fromParameters, parseQuery } from "@headworks/query-language";
import { ApiError, notFound, validationError } from "#api/api-error.ts";
import type { ExchangeFacts, ExchangeView } from "#exchange/exchange.ts";
import type { Observer, StoreDecision, StoreFilter } from "#exchange/phases.ts";
import type { Slice, SliceHost } from "#slice.ts";
import type { CaptureStore } from "#storage/capture-store.ts";

const PIECE_BYTES = 1_048_576;

/** Captured traffic: recording, live updates and queries. */
export function createTrafficSlice(
  host: SliceHost,
  storeFilter: () => StoreFilter | undefined = () => undefined,
): Slice<typeof trafficOperations> {
  const observer = new TrafficObserver(host, storeFilter, (error) =>
    host.log.error({ err: error }, "an entry that a script does not store could not be removed"),
  );
  host.store.streams.onOpened((exchange) => observer.show(exchange));
  return { name: "traffic", operations: createTrafficOperations(host, observer), observer, task: observer };
}

/** Lists come from the store as bytes, so that large ones cost this thread nothing. */
function createTrafficOperations(
  host: Pick<SliceHost, "store" | "events" | "clock">,
  observer: TrafficObserver,
): Handlers<typeof trafficOperations> {
  return { ...createQuestions(host.store), ...createChanges(host, observer) };
}

type Table = Handlers<typeof trafficOperations>;
type Change = "noteTraffic" | "deleteTraffic" | "clearTraffic" | "importHar";

function createChanges(host: Pick<SliceHost, "store" | "events">, observer: TrafficObserver): Pick<Table, Change> {
  const { store, events } = host;
  const removeEntries = async (ids: readonly string[]): Promise<string[]> => {
    observer.forget(ids);
    const removed = await store.deleteEntries(ids);
    if (removed.length > 0) events.traffic({ type: "Deleted", data: removed });
    return removed;
  };
  return {
    noteTraffic: async ({ params, body }) => {
      const notes = body.notes === "" ? null : body.notes;
      if (!(await store.setNote(params.id, notes))) return notFound("entry", params.id);
      const row = events.hasListeners ? await store.getRow(params.id) : undefined;
      if (row !== undefined) events.traffic({ type: "Updated", data: row });
      return { status: 200, body: { id: params.id, notes } };
    },
    deleteTraffic: async ({ params }) => {
      const removed = await removeEntries([params.id]);
      return removed.length === 0 ? notFound("entry", params.id) : { status: 204 };
    },
    clearTraffic: async ({ query, body }) => {
      const listed = query.ids
        ?.split(",")
        .map((id) => id.trim())
        .filter((id) => id !== "");
      if (listed !== undefined || body?.ids !== undefined) {
        if (query.session_id !== undefined) {
          const path = listed === undefined ? "body/ids" : "query/ids";
          throw validationError([
            { path, message: "cannot be combined with session_id: ids already identify the session" },
          ]);
        }
        await removeEntries([...new Set([...(listed ?? []), ...(body?.ids ?? [])])]);
        return { status: 204 };
      }
      await clearSession(host, observer, query.session_id);
      return { status: 204 };
    },
    importHar: async ({ query, body, headers, signal }) => {
      const { session_name: sessionName, switch_session: switchSession, task_id: id } = query;
      const result = await events.task(
        { id, kind: "import-har", contentLength: headers["content-length"] },
        async (onProgress) =>
          await store.importHar(body, { sessionName, switchSession: switchSession === "true", signal, onProgress }),
      );
      events.changed("sessions");
      return { status: 200, body: result };
    },
  };
}

function createQuestions(store: SliceHost["store"]): Omit<Table, Change> {
  return {
    listTraffic: async ({ query, signal }) => {
      const { limit = 100, offset = 0, cursor, include_bodies, ...filter } = query;
      checkFilter(filter);
      if (cursor !== undefined && offset > 0) {
        throw validationError([{ path: "query/offset", message: "cannot be combined with cursor" }]);
      }
      const includeBodies = include_bodies === "true";
      const page = await store.listEntries({ filter, limit, offset, cursor, includeBodies, signal });
      const headers = {
        "x-total-count": String(page.total),
        "x-total-complete": String(page.isComplete),
        ...(page.bodiesOmitted > 0 && { "x-bodies-omitted": String(page.bodiesOmitted) }),
      };
      return { status: 200, headers, body: new JsonBytes(page.json) };
    },
    listTrafficRows: async ({ query, signal }) => {
      const { sort = "seq", order = "desc", limit = 100, offset = 0, ...filter } = query;
      checkFilter(filter);
      const { json } = await store.listRows({ filter, sort, order, limit, offset }, signal);
      return { status: 200, body: new JsonBytes(json) };
    },
    countTraffic: async ({ query, signal }) => {
      checkFilter(query);
      return { status: 200, body: { count: await store.count(query, signal) } };
    },
    summarizeTraffic: async ({ query, signal }) => {
      checkFilter(query);
      return { status: 200, body: await store.summarize(query, signal) };
    },
    previewMatches: async ({ body, signal }) => {
      const { direction = "both", limit = 1000, sample = 20, explain, session_id: sessionId } = body;
      const phases = direction === "both" ? (["request", "response"] as const) : ([direction] as const);
      const question = { condition: previewedCondition(body), phases, sessionId, limit, sample, explain };
      const preview = await store.previewMatches(question, signal);
      if (explain !== undefined && preview.explanation === undefined) return notFound("entry", explain);
      return { status: 200, body: preview };
    },
    treeTraffic: async ({ query, signal }) => {
      const { of_host: ofHost, ...filter } = query;
      checkFilter(filter);
      return { status: 200, body: await store.tree(filter, ofHost, signal) };
    },
    listTrafficValues: async ({ query }) => {
      const { field, prefix = "", session_id: sessionId, limit = 20 } = query;
      return { status: 200, body: await store.values(field, prefix, sessionId, limit) };
    },
    getTraffic: async ({ params, query }) => {
      const options = { includeBodies: query.include_bodies !== "false", decompressed: query.decompressed === "true" };
      const entry = await store.getEntry(params.id, options);
      return { status: 200, body: entry ?? notFound("entry", params.id) };
    },
    getTrafficBody: async (input) => await respondWithBody(store, input),
  };
}

async function clearSession(
  { store, events }: Pick<SliceHost, "store" | "events">,
  observer: TrafficObserver,
  sessionId: TrafficFilter["session_id"],
): Promise<void> {
  const id = sessionId ?? store.activeSessionId;
  if (id !== store.activeSessionId && (await store.getSession(id)) === undefined) return notFound("session", id);
  observer.forgetAll(id);
  await store.clearSession(id);
  if (id === store.activeSessionId) events.traffic({ type: "Cleared" });
  events.changed("sessions");
}

type BodyOperation = (typeof trafficOperations)["getTrafficBody"];

/** Streams a body, or the range of it that was requested, never with its captured content type. */
async function respondWithBody(
  store: Pick<CaptureStore, "readBody">,
  input: HandlerInput<BodyOperation>,
): Promise<HandlerResult<BodyOperation>> {
  const { params, query, headers, signal } = input;
  const options = { decoded: query.decoded === "true", utf8: query.charset === "utf-8" };
  const read = async (start: number, end: number) => {
    const part = await store.readBody(params.id, params.side, { ...options, start, end });
    return part ?? notFound("entry", params.id);
  };
  const head = await read(0, PIECE_BYTES);
  const { totalBytes } = head;
  // Bodies have no validator, so If-Range never matches.
  const range = headers["if-range"] === undefined ? parseRange(single(headers["range"]), totalBytes) : undefined;
  if (range === "outside") {
    const answered = { headers: { "content-range": `bytes */${totalBytes}` } };
    throw new ApiError("RANGE_NOT_SATISFIABLE", `The body has ${totalBytes} bytes`, answered);
  }
  const { start, end } = range ?? { start: 0, end: totalBytes };
  async function* pieces(): AsyncGenerator<Uint8Array> {
    for (let at = start; at < end && !signal.aborted;) {
      const part = at === 0 ? head : await read(at, Math.min(end, at + PIECE_BYTES));
      const bytes = part.bytes.length > end - at ? part.bytes.subarray(0, end - at) : part.bytes;
      // The entry was removed while it was sent: the response ends short of its content length.
      if (bytes.length === 0) return;
      yield bytes;
      at += bytes.length;
    }
  }
  const responseHeaders = {
    "content-type": options.utf8 ? "text/plain; charset=utf-8" : "application/octet-stream",
    "content-length": String(end - start),
    "accept-ranges": "bytes",
    "x-content-type-options": "nosniff",
    "x-body-partial": String(head.partial),
    "x-body-undecodable": String(head.undecodable),
    ...(query.download === "true" && {
      "content-disposition": `attachment; filename="${params.side}-${params.id.replaceAll(/[^\w-]/gu, "_")}.bin"`,
    }),
  };
  if (range === undefined) return { status: 200, headers: responseHeaders, body: pieces() };
  const contentRange = `bytes ${start}-${end - 1}/${totalBytes}`;
  return { status: 206, headers: { ...responseHeaders, "content-range": contentRange }, body: pieces() };
}

function single(value: string | string[] | undefined): string | undefined {
  return typeof value === "string" ? value : value?.[0];
}

interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/**
 * Parses a Range field (RFC 9110 section 14.2) for a body of `totalBytes`. Undefined means the whole body is sent: no
 * field, another unit, several ranges, bad syntax or an empty body. "outside" means the range is not satisfiable.
 */
export function parseRange(field: string | undefined, totalBytes: number): ByteRange | "outside" | undefined {
  const match = /^bytes=[ \t]*(\d{0,15})-(\d{0,15})[ \t]*$/iu.exec(field ?? "");
  const [, first = "", last = ""] = match ?? [];
  if (match === null || totalBytes === 0 || (first === "" && last === "")) return undefined;
  if (first === "") {
    const suffixBytes = Number(last);
    return suffixBytes === 0 ? "outside" : { start: Math.max(0, totalBytes - suffixBytes), end: totalBytes };
  }
  const start = Number(first);
  if (last !== "" && Number(last) < start) return undefined;
  return start >= totalBytes
    ? "outside"
    : { start, end: last === "" ? totalBytes : Math.min(totalBytes, Number(last) + 1) };
}

/** Throws 400 for a filter that does not parse, naming the parameter and, for `q`, the position. */
function checkFilter(filter: TrafficFilter): void {
  const { q, session_id: _session, min_size, max_size, min_time, max_time, ...texts } = filter;
  if (q !== undefined) {
    const parsed = parseQuery(q);
    if (!parsed.ok) {
      const { message, start } = parsed.error;
      throw validationError([{ path: "query/q", message: `${message} (at character ${start + 1})` }]);
    }
  }
  const numbers = { min_size, max_size, min_time, max_time };
  const written = Object.fromEntries(
    Object.entries(numbers).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]])),
  );
  const parameters = fromParameters({ ...texts, ...written });
  if (!parameters.ok) {
    const { parameter, message } = parameters.error;
    throw validationError([{ path: `query/${parameter}`, message }]);
  }
}

/** The condition of a preview. Throws 400 with all issues. */
function previewedCondition(body: MatchPreviewRequest): Condition {
  const read = parseRuleCondition(body, "body");
  if (!read.ok) throw validationError(read.issues);
  return read.condition;
}

/** An exchange that ends sooner is recorded and shown once, at its end. */
const SHOW_AFTER_MS = 100;
const SWEEP_MS = 50;
const COUNT_EVERY_MS = 1000;

interface Running {
  seq: number;
  readonly startedMs: number;
  /** Undefined once ended or recorded. */
  exchange: ExchangeView | undefined;
}

/**
 * Records exchanges and notifies listeners. Short exchanges are reported once, at their end; longer ones while they
 * run, when their response begins, and at their end. A single sweep replaces a timer per exchange.
 */
export class TrafficObserver implements Observer {
  readonly name = "traffic";
  readonly #host: Pick<SliceHost, "clock" | "events" | "store">;
  /**
   * Exchanges not recorded yet, by id, in order of their start. A map that grows or is rehashed leaves its old table
   * behind with a link to the new one, so the young-generation collector keeps every table and its contents: with
   * exchanges as keys that was half of all exchanges and a fifth of the proxy's time.
   */
  readonly #fresh = new Map<string, Running>();
  readonly #shown = new Map<ExchangeView, number>();
  /** Recorded as soon as they start. */
  readonly #awaited = new Set<ExchangeView>();
  /** Removed while they ran: their end is not recorded. */
  readonly #dropped = new WeakSet<ExchangeView>();
  readonly #storeFilter: () => StoreFilter | undefined;
  readonly #onFailure: (error: unknown) => void;
  /** Decisions about what is stored. */
  readonly #deciding = new Set<Promise<void>>();
  #reportedCount = -1;
  #countReportedMs = 0;

  constructor(
    host: Pick<SliceHost, "clock" | "events" | "store">,
    storeFilter: () => StoreFilter | undefined = () => undefined,
    onFailure: (error: unknown) => void = () => undefined,
  ) {
    this.#host = host;
    this.#onFailure = onFailure;
    this.#storeFilter = storeFilter;
  }

  onStarted(exchange: ExchangeView): void {
    if (!exchange.isRecorded) return;
    const seq = this.#host.store.nextSeq();
    if (this.#awaited.size > 0 && this.#awaited.delete(exchange)) return this.#show(exchange, seq);
    this.#fresh.set(exchange.id, { seq, startedMs: this.#host.clock.monotonic(), exchange });
  }

  /** Records an exchange now because dependent rows, such as frames, need its entry. */
  show(exchange: ExchangeView): void {
    const fresh = this.#takeFresh(exchange);
    if (fresh !== undefined) this.#show(exchange, fresh.seq);
    else if (!this.#shown.has(exchange)) this.#awaited.add(exchange);
  }

  /** The response may stay open for hours, so a shown exchange is updated when it begins. */
  onResponding(exchange: ExchangeView): void {
    const seq = this.#shown.size === 0 ? undefined : this.#shown.get(exchange);
    if (seq === undefined) return;
    const { store, events } = this.#host;
    store.record(seq, exchange);
    if (events.hasListeners) events.traffic({ type: "Updated", data: store.snapshotOf(seq, exchange) });
  }

  onFinished(exchange: ExchangeView): void {
    if (!exchange.isRecorded) return;
    if (this.#dropped.delete(exchange)) {
      exchange.requestBody.discard();
      exchange.responseBody.discard();
      return;
    }
    const fresh = this.#takeFresh(exchange);
    const shown = fresh === undefined ? this.#shown.get(exchange) : undefined;
    if (fresh === undefined) {
      this.#awaited.delete(exchange);
      this.#shown.delete(exchange);
    }
    // Exchanges that failed before their head was known were never announced.
    const seq = fresh?.seq ?? shown ?? this.#host.store.nextSeq();
    const isShown = shown !== undefined;
    const decision = this.#storeFilter()?.decide(exchange);
    if (decision === undefined) return this.#store(seq, exchange, isShown);
    const stored = decision.then((decided) => this.#storeDecided(seq, exchange, isShown, decided));
    this.#deciding.add(stored);
    void stored.catch(this.#onFailure).finally(() => this.#deciding.delete(stored));
  }

  /** Waits for decisions about what is stored. */
  async stopped(): Promise<void> {
    await Promise.allSettled(this.#deciding);
  }

  #store(seq: number, exchange: ExchangeFacts, isShown: boolean): void {
    const { store, events } = this.#host;
    store.record(seq, exchange);
    if (!events.hasListeners) return;
    events.traffic({ type: isShown ? "Updated" : "Added", data: store.snapshotOf(seq, exchange) });
  }

  async #storeDecided(seq: number, exchange: ExchangeView, isShown: boolean, decision: StoreDecision): Promise<void> {
    const { store, events } = this.#host;
    if (this.#dropped.delete(exchange) || decision.kind === "skip") {
      exchange.requestBody.discard();
      exchange.responseBody.discard();
      if (!isShown) return;
      const removed = await store.deleteEntries([exchange.id]);
      if (removed.length > 0) events.traffic({ type: "Deleted", data: removed });
      return;
    }
    this.#store(seq, decision.exchange, isShown);
  }

  start(signal: AbortSignal): void {
    const stop = this.#host.clock.every(SWEEP_MS, () => this.#sweep());
    signal.addEventListener("abort", stop, { once: true });
  }

  forget(ids: readonly string[]): void {
    if (this.#shown.size === 0) return;
    const removed = new Set(ids);
    for (const exchange of this.#shown.keys()) if (removed.has(exchange.id)) this.#drop(exchange);
  }

  /** Drops the shown running exchanges of a cleared session; others get new sequence numbers. */
  forgetAll(sessionId: string): void {
    const { store } = this.#host;
    for (const exchange of this.#shown.keys()) if (store.sessionIdOf(exchange) === sessionId) this.#drop(exchange);
    for (const running of this.#fresh.values()) running.seq = store.nextSeq();
  }

  #drop(exchange: ExchangeView): void {
    this.#shown.delete(exchange);
    this.#dropped.add(exchange);
  }

  #sweep(): void {
    const { clock } = this.#host;
    const nowMs = clock.monotonic();
    for (const { exchange, seq, startedMs } of this.#fresh.values()) {
      // Ordered by start: all further ones are younger.
      if (nowMs - startedMs < SHOW_AFTER_MS) break;
      if (exchange === undefined || this.#storeFilter()?.concerns(exchange) === true) continue;
      this.#takeFresh(exchange);
      this.#show(exchange, seq);
    }
    this.#reportCount(nowMs);
  }

  #takeFresh({ id }: ExchangeView): Running | undefined {
    const running = this.#fresh.get(id);
    if (running === undefined) return undefined;
    running.exchange = undefined;
    this.#fresh.delete(id);
    return running;
  }

  #show(exchange: ExchangeView, seq: number): void {
    const { store, events } = this.#host;
    this.#shown.set(exchange, seq);
    store.record(seq, exchange);
    if (events.hasListeners) events.traffic({ type: "Added", data: store.snapshotOf(seq, exchange) });
  }

  #reportCount(nowMs: number): void {
    if (nowMs - this.#countReportedMs < COUNT_EVERY_MS || !this.#host.events.hasListeners) return;
    this.#countReportedMs = nowMs;
    const { entryCount } = this.#host.store.status();
    if (entryCount === this.#reportedCount) return;
    this.#reportedCount = entryCount;
    this.#host.events.traffic({ type: "CountUpdate", data: entryCount });
  }
}
