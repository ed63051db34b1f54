import type { Worker } from "node:worker_threads";
import type { BodySpool } from "#exchange/body.ts";
import type { ExchangeFacts } from "#exchange/exchange.ts";
import { maxBytes, type StorageStatus, type StoreLimits } from "../capture-store.ts";
import type { FrameBatch } from "../streams/stream-store.ts";
import { DatabaseTooNewError, StorageError } from "../database.ts";
import { encodeRecord, replacedBodies } from "./exchange-record.ts";
import { BATCH_BYTES, BatchMemory, type RecordedBefore } from "./entry-record.ts";
import { FrameQueue } from "../streams/frame-queue.ts";
import { FileSpool } from "./body-spool.ts";
import { startWriterThread } from "./start-writer-thread.ts";
import type {
  FromWriter,
  RecordBatch,
  SessionRecord,
  StoreChange,
  ToWriter,
  WriterCall,
  WriterSetup,
} from "./writer-messages.ts";

/** The current storage problem, with the operations that it makes fail. */
class StoreProblem {
  readonly #changed: (began: string | undefined) => void;
  readonly #waiting = new Set<(reason: Error) => void>();
  #message: string | null = null;

  /** @param changed called on each change, with the message if there was no problem before */
  constructor(changed: (began: string | undefined) => void) {
    this.#changed = changed;
  }

  /** Null without a problem. */
  get message(): string | null {
    return this.#message;
  }

  set(message: string | null): void {
    if (message === this.#message) return;
    const began = this.#message === null ? (message ?? undefined) : undefined;
    this.#message = message;
    if (message !== null) for (const reject of this.#waiting) reject(new Error(message));
    this.#changed(began);
  }

  /** Final state after close; no notification. */
  conclude(message: string): void {
    this.#message = message;
  }

  /** Awaits `work`; rejects with the problem as soon as there is one. */
  async orProblem(work: () => Promise<void>): Promise<void> {
    const errorKind = Promise.withResolvers<never>();
    this.#waiting.add(errorKind.reject);
    try {
      if (this.#message !== null) throw new Error(this.#message);
      await Promise.race([work(), errorKind.promise]);
    } finally {
      this.#waiting.delete(errorKind.reject);
    }
  }
}

/** Maximum delay of a batch that is not full; entries committed together share page writes. */
const BATCH_MS = 20;
/** Spare buffers kept: as many as are in flight while the writer keeps up. */
const MAX_SPARE = 8;

/** Batches encoded entries into one message. */
class RecordQueue {
  readonly #send: (batch: RecordBatch) => void;
  #batch: BatchMemory | undefined;
  /** Returned buffers; fresh allocations cost page faults. */
  readonly #spare: ArrayBuffer[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(send: (batch: RecordBatch) => void) {
    this.#send = send;
  }

  /** Queued, not yet sent. */
  get entries(): number {
    return this.#batch?.entries ?? 0;
  }

  get bytes(): number {
    return this.#batch?.usedBytes ?? 0;
  }

  add(
    seq: number,
    before: RecordedBefore,
    sessionNumber: number,
    exchange: ExchangeFacts,
    storesBodies: boolean,
  ): void {
    const text = encodeRecord(seq, before, sessionNumber, exchange, storesBodies);
    const bodies = bodiesOf(exchange, storesBodies);
    let bodyBytes = 0;
    for (const body of bodies) bodyBytes += body.length;
    if (this.#batch?.hasRoomFor(text, bodyBytes) === false) this.flush();
    const batch = (this.#batch ??= this.#memoryFor(text, bodyBytes));
    batch.add(text, bodies);
    if (batch.isFull) this.flush();
    else this.#timer ??= setTimeout(() => this.flush(), BATCH_MS);
  }

  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const batch = this.#batch;
    if (batch === undefined) return;
    this.#batch = undefined;
    this.#send({ kind: "batch", entries: batch.entries, bytes: batch.usedBytes, memory: batch.memory });
  }

  /** Reuses the memory of a committed batch. */
  takeBack(memory: ArrayBuffer): void {
    if (memory.byteLength === BATCH_BYTES && this.#spare.length < MAX_SPARE) this.#spare.push(memory);
  }

  #memoryFor(text: string, bodyBytes: number): BatchMemory {
    const spare = this.#spare.pop();
    if (spare !== undefined) {
      const batch = new BatchMemory(spare);
      if (batch.hasRoomFor(text, bodyBytes)) return batch;
      this.#spare.push(spare);
    }
    return BatchMemory.for(text, bodyBytes);
  }
}

const NONE: readonly Buffer[] = [];

/** Work sent to the writer thread and not yet committed, with its waiters. */
class SentWork {
  /** Of entries and spooled body chunks. */
  bytes = 0;
  entries = 0;
  frameBytes = 0;
  #sentPortions = 0;
  #donePortions = 0;
  #waiters: Waiter[] = [];

  get isDone(): boolean {
    return this.#donePortions >= this.#sentPortions;
  }

  entriesSent({ bytes, entries }: Portion): void {
    this.#sentPortions += 1;
    this.bytes += bytes;
    this.entries += entries;
  }

  framesSent(bytes: number): void {
    this.#sentPortions += 1;
    this.frameBytes += bytes;
  }

  entriesCommitted({ bytes, entries }: Portion): void {
    this.bytes -= bytes;
    this.entries -= entries;
    this.#portionDone();
  }

  framesCommitted(bytes: number): void {
    this.frameBytes -= bytes;
    this.#portionDone();
  }

  /** Resolves when all work sent so far is committed or lost. */
  async done(): Promise<void> {
    if (this.isDone) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiters.push({ portion: this.#sentPortions, resolve });
    await promise;
  }

  /** Resets after the thread ended; returns the lost work. */
  lost(): LostWork {
    const lost = { entries: this.entries, hasFrames: this.frameBytes > 0 };
    this.entries = 0;
    this.bytes = 0;
    this.frameBytes = 0;
    this.#donePortions = this.#sentPortions;
    for (const { resolve } of this.#waiters) resolve();
    this.#waiters = [];
    return lost;
  }

  #portionDone(): void {
    this.#donePortions += 1;
    while (this.#waiters[0] !== undefined && this.#waiters[0].portion <= this.#donePortions) {
      this.#waiters.shift()?.resolve();
    }
  }
}

/** Pending calls to the writer thread. */
class WriterCalls {
  readonly #waiting = new Map<number, PromiseWithResolvers<unknown>>();
  #next = 1;

  /** Allocates a call number and its reply promise. */
  begin(): { readonly call: number; readonly response: Promise<unknown> } {
    const call = this.#next++;
    const waiting = Promise.withResolvers<unknown>();
    this.#waiting.set(call, waiting);
    return { call, response: waiting.promise };
  }

  resolved({ call, value }: FromWriter & { kind: "response" }): void {
    this.#waiting.get(call)?.resolve(value);
    this.#waiting.delete(call);
  }

  failed({ call, error, isStorageError }: FromWriter & { kind: "callFailed" }): void {
    this.#waiting.get(call)?.reject(isStorageError ? new StorageError(error) : new Error(error));
    this.#waiting.delete(call);
  }

  /** Rejects all pending calls after the thread ended. */
  abandon(): void {
    for (const { reject } of this.#waiting.values()) reject(new Error("The storage thread ended"));
    this.#waiting.clear();
  }
}

/** Entries stored while running, to be replaced at their end. */
class RunningEntries {
  readonly #recorded = new Set<number>();
  /** Entries whose stored state is unknown because the thread ended. */
  readonly #unsure = new Set<number>();

  recordedBefore(seq: number): RecordedBefore {
    return this.#recorded.has(seq) ? "yes" : this.#unsure.has(seq) ? "maybe" : "no";
  }

  recorded(seq: number): void {
    this.#recorded.add(seq);
  }

  ended(seq: number): void {
    this.#recorded.delete(seq);
    this.#unsure.delete(seq);
  }

  /** The thread ended: what it stored of its queue is unknown. */
  storeLost(): void {
    for (const seq of this.#recorded) this.#unsure.add(seq);
    this.#recorded.clear();
  }
}

/** Backlog above which bodies are shed. */
const BODY_BACKLOG_BYTES = 67_108_864;
/** Backlog above which whole entries are lost. */
const ENTRY_BACKLOG_BYTES = 2 * BODY_BACKLOG_BYTES;
const ENTRY_BACKLOG = 200_000;
/** Backlog above which frames are counted but not stored. */
const FRAME_BACKLOG_BYTES = 67_108_864;
/** Delay before a failed writer thread is restarted. */
const RESTART_MS = 1000;
/** Maximum wait for an unresponsive disk on close. */
const CLOSE_MS = 10_000;
/** Maximum wait of a read for pending commits. */
const CATCH_UP_MS = 1000;

export interface WriterEvents {
  changed(change: StoreChange): void;
  statusChanged(): void;
  /** The database was replaced by a new file. */
  databaseReplaced(): void;
  /** Logs an error line. */
  alarm(message: string): void;
}

/** Proxy thread's side of the writer thread. Sends work, tracks the backlog, never blocks. */
export class WriterClient {
  readonly sessions = new Map<number, SessionRecord>();
  activeSession = 0;
  readonly #setup: WriterSetup;
  readonly #events: WriterEvents;
  readonly #queue: RecordQueue;
  readonly frames: FrameQueue;
  #worker: Worker | undefined;
  #spool: FileSpool | undefined;
  #nextSeq = 1;
  #recordedSeq = 0;
  #firstSeq = 0;
  readonly #running = new RunningEntries();
  readonly #sent = new SentWork();
  readonly #calls = new WriterCalls();
  readonly #problem: StoreProblem;
  #nextStream = 1;
  #closing = false;
  /** Why the last data could not be stored. */
  #failureReason: string | null = null;
  /** Pending restart of the thread. */
  #restarting: Promise<void> | undefined;
  #storeSizeBytes = 0;
  #bodiesNotStored = 0;
  #entriesLost = 0;
  #writtenEntries = 0;
  #lastBatchMs = 0;
  #limits: StoreLimits;
  /** Larger items are not stored: everything else would be pruned for them. */
  #maxBytes: number;

  private constructor(setup: WriterSetup, events: WriterEvents) {
    this.#setup = setup;
    this.#limits = setup.limits;
    this.#maxBytes = maxBytes(setup.limits);
    this.#events = events;
    this.#problem = new StoreProblem((began) => {
      if (began !== undefined) events.alarm(began);
      events.statusChanged();
    });
    this.#queue = new RecordQueue((batch) => this.#sendBatch(batch));
    this.frames = new FrameQueue({
      send: (batch) => this.#sendFrames(batch),
      fits: (bytes) => bytes <= this.#maxBytes,
      hasRoomFor: (bytes) => this.#worker !== undefined && this.#sent.frameBytes + bytes <= FRAME_BACKLOG_BYTES,
      nextStream: () => this.#nextStream++,
      activeSession: () => this.activeSession,
    });
  }

  /** Starts or adopts a thread; rejects if the database cannot be opened. */
  static async start(setup: WriterSetup, events: WriterEvents, worker?: Worker): Promise<WriterClient> {
    const client = new WriterClient(setup, events);
    await client.#startThread(worker);
    return client;
  }

  get spool(): BodySpool {
    if (this.#spool === undefined) throw new Error("The store is not open");
    return this.#spool;
  }

  /** First entry number of this process. */
  get firstSeq(): number {
    return this.#firstSeq;
  }

  nextSeq(): number {
    return this.#nextSeq++;
  }

  /** Clears a session including entries that are queued or in flight. */
  async clearSession(id: string, nowMs: number): Promise<void> {
    await this.call({
      op: "clearSession",
      id,
      nowMs,
      upToSeq: this.#recordedSeq,
      upToStream: this.#nextStream - 1,
    });
  }

  record(seq: number, exchange: ExchangeFacts): void {
    this.#recordedSeq = Math.max(this.#recordedSeq, seq);
    const running = exchange.state.step !== "completed" && exchange.state.step !== "failed";
    const before = this.#running.recordedBefore(seq);
    if (!running) this.#running.ended(seq);
    const backlogBytes = this.#sent.bytes + this.#queue.bytes;
    if (this.#worker === undefined || backlogBytes > ENTRY_BACKLOG_BYTES || this.#sent.entries > ENTRY_BACKLOG) {
      this.#entriesLost += 1;
      discardSpooled(exchange);
      return;
    }
    const storesBodies = backlogBytes <= BODY_BACKLOG_BYTES && bodyBytes(exchange) <= this.#maxBytes;
    if (!storesBodies && !running) this.#shedBodies(exchange);
    if (running) this.#running.recorded(seq);
    this.#queue.add(seq, before, exchange.client.session ?? this.activeSession, exchange, storesBodies);
  }

  /** Allocates body file numbers; returns the first. */
  reserveFiles(count: number): number {
    if (this.#spool === undefined) throw new Error("The store is not open");
    return this.#spool.reserve(count);
  }

  discardFiles(files: readonly number[]): void {
    for (const file of files) this.#send({ kind: "fileDiscard", file }, []);
  }

  /** Allocates stream numbers; returns the first. */
  reserveStreams(count: number): number {
    const first = this.#nextStream;
    this.#nextStream += count;
    return first;
  }

  /** Sends imported frames, after the entries they belong to. */
  async recordImportedFrames(batch: FrameBatch): Promise<void> {
    if (this.#worker === undefined) throw new Error(this.#problem.message ?? "The store is closed");
    this.#sendFrames(batch);
    await this.#committedOrFailed();
  }

  /** Sends imported entries; the writer numbers them. */
  async recordImported(batch: RecordBatch): Promise<void> {
    if (this.#worker === undefined) throw new Error(this.#problem.message ?? "The store is closed");
    const firstSeq = this.#nextSeq;
    this.#nextSeq += batch.entries;
    this.#sendBatch({ ...batch, firstSeq });
    await this.#committedOrFailed();
  }

  /** Rejects on a storage error instead of waiting for the disk. */
  async #committedOrFailed(): Promise<void> {
    await this.#problem.orProblem(async () => await this.flush());
  }

  async flush(): Promise<void> {
    this.#flushQueues();
    await this.#sent.done();
  }

  /**
   * Resolves when all records so far are committed; undefined if they already are. Gives up after {@link CATCH_UP_MS}
   * and on storage errors: reads then see the committed state.
   */
  caughtUp(): Promise<void> | undefined {
    if (this.#problem.message !== null) return undefined;
    this.#flushQueues();
    if (this.#sent.isDone) return undefined;
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, CATCH_UP_MS);
    void this.#committedOrFailed().then(resolve, resolve);
    return promise.finally(() => clearTimeout(timer));
  }

  #flushQueues(): void {
    this.#queue.flush();
    this.frames.flush();
  }

  get limits(): StoreLimits {
    return this.#limits;
  }

  /** Runs a durable change; buffers in `transfer` are detached. */
  async call(request: WriterCall, transfer: ArrayBuffer[] = []): Promise<unknown> {
    if (this.#worker === undefined) throw new Error(this.#problem.message ?? "The store is closed");
    this.#flushQueues();
    const { call, response } = this.#calls.begin();
    this.#send({ kind: "call", call, request }, transfer);
    return await response;
  }

  setLimits(limits: StoreLimits): void {
    this.#limits = limits;
    this.#maxBytes = maxBytes(limits);
    // Commit what was recorded under the old limits first.
    this.#flushQueues();
    this.#send({ kind: "limits", limits }, []);
  }

  status(): StorageStatus {
    const active = this.sessions.get(this.activeSession);
    return {
      ok: this.#problem.message === null,
      problem: this.#problem.message,
      entryCount: active?.entryCount ?? 0,
      totalSizeBytes: active?.storedBytes ?? 0,
      storeSizeBytes: this.#storeSizeBytes,
      bodiesNotStored: this.#bodiesNotStored,
      entriesLost: this.#entriesLost,
      backlogBytes: this.#sent.bytes + this.#queue.bytes,
      backlogEntries: this.#sent.entries + this.#queue.entries,
      writtenEntries: this.#writtenEntries,
      lastBatchMs: this.#lastBatchMs,
    };
  }

  /** Commits the queue and ends the thread. Rejected entries count as lost. */
  async close(): Promise<void> {
    this.#flushQueues();
    this.#closing = true;
    // A thread that starts later would keep the file and the process open.
    await this.#restarting;
    const worker = this.#worker;
    if (worker === undefined) return;
    const ended = new Promise<void>((resolve) => worker.once("exit", () => resolve()));
    this.#send({ kind: "close" }, []);
    const timer = setTimeout(() => void worker.terminate(), CLOSE_MS);
    await ended;
    clearTimeout(timer);
  }

  async #startThread(worker: Worker = startWriterThread()): Promise<void> {
    worker.ref();
    worker.postMessage({ ...this.#setup, limits: this.#limits } satisfies WriterSetup);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    worker.on("message", (message: FromWriter) => {
      if (message.kind === "openFailed") {
        reject(openError(message));
        return;
      }
      if (message.kind === "ready") {
        this.#worker = worker;
        this.#begin(message);
        resolve();
        return;
      }
      this.#receive(message);
    });
    worker.on("error", (error: Error) => {
      this.#problem.set(`The storage thread failed: ${error.message}`);
      reject(error);
    });
    worker.on("exit", () => {
      reject(new Error("The storage thread ended"));
      if (this.#worker === worker) this.#threadEnded();
    });
    await promise;
  }

  #begin(message: FromWriter & { kind: "ready" }): void {
    this.#nextSeq = Math.max(this.#nextSeq, message.nextSeq);
    this.#nextStream = Math.max(this.#nextStream, message.nextStream);
    if (this.#firstSeq === 0) this.#firstSeq = this.#nextSeq;
    this.#spool ??= new FileSpool(
      {
        send: (toWriter, transfer) => this.#send(toWriter, transfer),
        fits: (bytes) => bytes <= this.#maxBytes,
        reserve: (bytes) => this.#reserve(bytes),
        release: (bytes) => (this.#sent.bytes -= bytes),
        shed: () => (this.#bodiesNotStored += 1),
      },
      message.nextFile,
    );
    this.#apply(message.change);
    if (message.movedAside !== null) this.#reportMovedFile(message.movedAside);
    this.#problem.set(null);
  }

  #reserve(bytes: number): boolean {
    if (this.#worker === undefined || this.#sent.bytes + this.#queue.bytes + bytes > BODY_BACKLOG_BYTES) return false;
    this.#sent.bytes += bytes;
    return true;
  }

  #receive(message: FromWriter): void {
    switch (message.kind) {
      case "change":
        return this.#apply(message.change);
      case "committed":
        return this.#committed(message);
      case "framesCommitted":
        return this.#sent.framesCommitted(message.bytes);
      case "pieceDone":
        this.#sent.bytes -= message.bytes;
        return;
      case "fileFailed":
        return this.#fileFailed(message);
      case "size":
        this.#storeSizeBytes = message.bytes;
        return;
      case "problem":
        return this.#problem.set(message.problem);
      case "reopened":
        this.#events.databaseReplaced();
        return this.#reportMovedFile(message.movedAside);
      case "response":
        return this.#calls.resolved(message);
      case "callFailed":
        return this.#calls.failed(message);
      case "closed":
        this.#failureReason = message.failureReason;
        return;
      case "ready":
      case "openFailed":
        return;
    }
  }

  /** The entry itself is stored, so the store has no problem. */
  #fileFailed({ file, failureReason }: FromWriter & { kind: "fileFailed" }): void {
    if (failureReason !== null) this.#events.alarm(`A large body was not stored (reported once): ${failureReason}`);
    this.#spool?.failed(file);
  }

  #committed(message: FromWriter & { kind: "committed" }): void {
    this.#writtenEntries += message.written;
    this.#entriesLost += message.lost;
    this.#bodiesNotStored += message.bodiesNotStored;
    this.#lastBatchMs = message.ms;
    this.#queue.takeBack(message.memory);
    this.#sent.entriesCommitted(message);
  }

  #apply(change: StoreChange): void {
    for (const number of change.removedSessions) this.sessions.delete(number);
    for (const session of change.sessions) this.sessions.set(session.number, session);
    this.activeSession = change.activeSession;
    this.#events.changed(change);
  }

  #sendBatch(batch: RecordBatch): void {
    this.#sent.entriesSent(batch);
    this.#send(batch, [batch.memory]);
  }

  #sendFrames(batch: FrameBatch): void {
    this.#sent.framesSent(batch.bytes);
    this.#send(batch, [batch.payloads]);
  }

  #send(message: ToWriter, transfer: ArrayBuffer[]): void {
    this.#worker?.postMessage(message, transfer);
  }

  #shedBodies(exchange: ExchangeFacts): void {
    for (const body of [exchange.requestBody, exchange.responseBody]) {
      if (body.storedBytes > 0) this.#bodiesNotStored += 1;
    }
    discardSpooled(exchange);
  }

  #reportMovedFile(path: string): void {
    this.#events.alarm(`The traffic database was damaged. It was kept as ${path}, and a new one was created`);
  }

  /** Counts everything in flight as lost. */
  #threadEnded(): void {
    this.#worker = undefined;
    this.#spool?.failAll();
    this.#running.storeLost();
    const lost = this.#sent.lost();
    this.#entriesLost += lost.entries;
    this.#calls.abandon();
    if (this.#closing) return this.#reportLoss(lost);
    this.#problem.set(this.#problem.message ?? "The storage thread ended: entries are not stored until it restarts");
    this.#restartLater();
  }

  #reportLoss({ entries, hasFrames }: LostWork): void {
    if (entries === 0 && !hasFrames) return;
    const counted = entries === 1 ? "1 entry" : `${entries} entries`;
    const what = entries === 0 ? "Stream messages" : hasFrames ? `${counted} and stream messages` : counted;
    const loss = `${what} could not be stored and are lost: ${this.#failureReason ?? "the disk did not respond in time"}`;
    this.#problem.conclude(loss);
    this.#events.alarm(loss);
  }

  #restartLater(): void {
    setTimeout(() => {
      if (this.#closing) return;
      this.#restarting = this.#startThread().catch(() => this.#restartLater());
    }, RESTART_MS).unref();
  }
}

function openError({ error, tooNew, isStorageError }: FromWriter & { kind: "openFailed" }): Error {
  if (tooNew) return new DatabaseTooNewError(error);
  return isStorageError ? new StorageError(error) : new Error(error);
}

/** Storable body bytes, including bodies from before rules replaced them. */
function bodyBytes({ requestBody, responseBody, originalRequest, originalResponse }: ExchangeFacts): number {
  const replaced = (originalRequest?.body?.length ?? 0) + (originalResponse?.body?.length ?? 0);
  return requestBody.storedBytes + responseBody.storedBytes + replaced;
}

function discardSpooled(exchange: ExchangeFacts): void {
  if (exchange.state.step !== "completed" && exchange.state.step !== "failed") return;
  exchange.requestBody.discard();
  exchange.responseBody.discard();
}

interface Portion {
  readonly bytes: number;
  readonly entries: number;
}

/** Work in flight when the thread ended. */
interface LostWork {
  readonly entries: number;
  readonly hasFrames: boolean;
}

interface Waiter {
  readonly portion: number;
  readonly resolve: () => void;
}

/** Bodies sent with the entry. */
function bodiesOf(exchange: ExchangeFacts, storesBodies: boolean): readonly Buffer[] {
  const { step } = exchange.state;
  if (!storesBodies || (step !== "completed" && step !== "failed")) return NONE;
  const sent = inlinePieces(exchange.requestBody);
  const received = inlinePieces(exchange.responseBody);
  if (sent.length === 0 && !exchange.modified) return received;
  return [...sent, ...received, ...(exchange.modified ? replacedBodies(exchange) : NONE)];
}

function inlinePieces(body: ExchangeFacts["requestBody"]): readonly Buffer[] {
  return body.sizeBytes === 0 || body.spooled !== undefined ? NONE : body.pieces;
}
