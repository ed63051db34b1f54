import type { Worker } from "node:worker_threads";
import type { BodySpool } from "#exchange/body.ts";
import type { ExchangeView } from "#exchange/exchange.ts";
import type { StorageStatus, StoreLimits } from "../capture-store.ts";
import { DatabaseTooNewError } from "../migrations.ts";
import { replacedBodies } from "../read/rule-effects.ts";
import { StorageError } from "../storage-error.ts";
import { StoreProblem } from "../store-problem.ts";
import type { FrameBatch } from "../streams/stream-message.ts";
import { BATCH_BYTES, BatchMemory } from "./batch-memory.ts";
import { FileSpool } from "./body-spool.ts";
import type { RecordedBefore } from "./entry-record.ts";
import { FrameQueue } from "./frame-queue.ts";
import { encodeRecord } from "./record-message.ts";
import { maxBytes } from "./retention.ts";
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

/** A batch is sent when it is full, or has waited so long: a commit rewrites pages, and pages are shared by what comes together. */
const BATCH_MS = 20;

/** Memory that is kept for the next batches: as much as is under way while storing keeps up. */
const MAX_SPARE = 8;

/** Gathers encoded entries of a few milliseconds into one message. */
class RecordQueue {
  readonly #send: (batch: RecordBatch) => void;
  #batch: BatchMemory | undefined;
  /** Memory that came back. New memory for each batch would be memory that the processor has to be given page by page. */
  readonly #spare: ArrayBuffer[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(send: (batch: RecordBatch) => void) {
    this.#send = send;
  }

  /** Waiting, not yet sent. */
  get entries(): number {
    return this.#batch?.entries ?? 0;
  }

  get bytes(): number {
    return this.#batch?.usedBytes ?? 0;
  }

  add(seq: number, before: RecordedBefore, sessionNumber: number, exchange: ExchangeView, storesBodies: boolean): void {
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

  /** Sends what waits, now. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const batch = this.#batch;
    if (batch === undefined) return;
    this.#batch = undefined;
    this.#send({ kind: "batch", entries: batch.entries, bytes: batch.usedBytes, memory: batch.memory });
  }

  /** Takes back the memory of a batch that nobody looks at any more. */
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

/** What was handed to the storage thread and is not committed yet, and who waits for that. */
class SentWork {
  /** Of entries and of pieces of their bodies. */
  bytes = 0;
  entries = 0;
  /** Of frames of streams. */
  frameBytes = 0;
  #sentPortions = 0;
  #donePortions = 0;
  #waiters: Waiter[] = [];

  /** True while everything that was handed over is committed. */
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

  /** Resolves when everything that was handed over so far is committed, or lost. */
  async done(): Promise<void> {
    if (this.isDone) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiters.push({ portion: this.#sentPortions, resolve });
    await promise;
  }

  /** The thread ended: nothing is on its way any more. Gives what was. */
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

/** Changes that were asked of the writer thread and wait for its answer. */
class WriterCalls {
  readonly #waiting = new Map<number, PromiseWithResolvers<unknown>>();
  #next = 1;

  /** The number that a call's message carries, and the promise of its answer. */
  begin(): { readonly call: number; readonly response: Promise<unknown> } {
    const call = this.#next++;
    const waiting = Promise.withResolvers<unknown>();
    this.#waiting.set(call, waiting);
    return { call, response: waiting.promise };
  }

  answered({ call, value }: FromWriter & { kind: "response" }): void {
    this.#waiting.get(call)?.resolve(value);
    this.#waiting.delete(call);
  }

  failed({ call, error, isStorageError }: FromWriter & { kind: "callFailed" }): void {
    this.#waiting.get(call)?.reject(isStorageError ? new StorageError(error) : new Error(error));
    this.#waiting.delete(call);
  }

  /** The thread ended: nobody will answer what was asked of it. */
  abandon(): void {
    for (const { reject } of this.#waiting.values()) reject(new Error("The storage thread ended"));
    this.#waiting.clear();
  }
}

/** Which entries were recorded while they ran, and may have to be rewritten at their end. */
class RunningEntries {
  readonly #recorded = new Set<number>();
  /** Those whose thread ended before it was known what is stored of them. */
  readonly #unsure = new Set<number>();

  /** Whether the store has an earlier state of the entry. */
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

  /** What was on its way to the store is gone, and nobody knows how much of it. */
  storeLost(): void {
    for (const seq of this.#recorded) this.#unsure.add(seq);
    this.#recorded.clear();
  }
}

/** Above this much unwritten, bodies are shed; */
const BODY_BACKLOG_BYTES = 67_108_864;
/** above this much, whole entries are lost. */
const ENTRY_BACKLOG_BYTES = 2 * BODY_BACKLOG_BYTES;
const ENTRY_BACKLOG = 200_000;
/** Above this much unwritten, frames of streams are counted and not stored. */
const FRAME_BACKLOG_BYTES = 67_108_864;
/** A writer thread that broke is started again after this time. */
const RESTART_MS = 1000;
/** On the way out, a disk that does not answer is not waited for longer. */
const CLOSE_MS = 10_000;
/** A question waits no longer for a disk that takes its time. */
const CATCH_UP_MS = 1000;

/** What the proxy's side of the writer tells its owner. */
export interface WriterEvents {
  changed(change: StoreChange): void;
  statusChanged(): void;
  /** The database file is another one from now on. */
  databaseReplaced(): void;
  /** A loud line for the log. */
  alarm(sentence: string): void;
}

/** The proxy thread's side of the writer thread: hands over, counts what is on its way, never waits. */
export class WriterClient {
  readonly sessions = new Map<number, SessionRecord>();
  activeSession = 0;
  readonly #setup: WriterSetup;
  readonly #events: WriterEvents;
  readonly #queue: RecordQueue;
  /** Frames of streams on their way to the writer. */
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
  /** Why the disk did not take the last of it. */
  #refusal: string | null = null;
  /** A start of the thread that is under way. */
  #restarting: Promise<void> | undefined;
  #storeSizeBytes = 0;
  #bodiesNotStored = 0;
  #entriesLost = 0;
  #writtenEntries = 0;
  #lastBatchMs = 0;
  #limits: StoreLimits;
  /** What is larger is not stored: everything else would have to go for it. */
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

  /** Starts the thread, or takes one that waits; rejects when the database cannot be opened. */
  static async start(setup: WriterSetup, events: WriterEvents, worker?: Worker): Promise<WriterClient> {
    const client = new WriterClient(setup, events);
    await client.#startThread(worker);
    return client;
  }

  get spool(): BodySpool {
    if (this.#spool === undefined) throw new Error("The store is not open");
    return this.#spool;
  }

  /** The number that the first entry of this run of the program got or will get. */
  get firstSeq(): number {
    return this.#firstSeq;
  }

  nextSeq(): number {
    return this.#nextSeq++;
  }

  /** Removes what a session has, and what was recorded for it and waits to be stored. */
  async clearSession(id: string, nowMs: number): Promise<void> {
    await this.call({
      op: "clearSession",
      id,
      nowMs,
      upToSeq: this.#recordedSeq,
      upToStream: this.#nextStream - 1,
    });
  }

  record(seq: number, exchange: ExchangeView): void {
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

  /** Sets numbers of body files aside; gives the first. */
  reserveFiles(count: number): number {
    if (this.#spool === undefined) throw new Error("The store is not open");
    return this.#spool.reserve(count);
  }

  discardFiles(files: readonly number[]): void {
    for (const file of files) this.#send({ kind: "fileDiscard", file }, []);
  }

  /** Sets numbers of streams aside; gives the first. */
  reserveStreams(count: number): number {
    const first = this.#nextStream;
    this.#nextStream += count;
    return first;
  }

  /** Hands over frames that were made elsewhere, behind the entries they belong to. */
  async recordImportedFrames(batch: FrameBatch): Promise<void> {
    if (this.#worker === undefined) throw new Error(this.#problem.sentence ?? "The store is closed");
    this.#sendFrames(batch);
    await this.#committedOrFailed();
  }

  /** Hands over entries that were made elsewhere; they get numbers of their own. */
  async recordImported(batch: RecordBatch): Promise<void> {
    if (this.#worker === undefined) throw new Error(this.#problem.sentence ?? "The store is closed");
    const firstSeq = this.#nextSeq;
    this.#nextSeq += batch.entries;
    this.#sendBatch({ ...batch, firstSeq });
    await this.#committedOrFailed();
  }

  /** Rather than wait for the disk, who waits is told. */
  async #committedOrFailed(): Promise<void> {
    await this.#problem.orProblem(async () => await this.flush());
  }

  async flush(): Promise<void> {
    this.#flushQueues();
    await this.#sent.done();
  }

  /**
   * Resolves when everything recorded so far is committed, undefined when it is already. Where storing is in trouble, or
   * takes long, what is committed has to do.
   */
  caughtUp(): Promise<void> | undefined {
    if (this.#problem.sentence !== null) return undefined;
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

  /** Asks for a change and waits until it is on disk; what is in `transfer` is given away. */
  async call(request: WriterCall, transfer: ArrayBuffer[] = []): Promise<unknown> {
    if (this.#worker === undefined) throw new Error(this.#problem.sentence ?? "The store is closed");
    this.#flushQueues();
    const { call, response } = this.#calls.begin();
    this.#send({ kind: "call", call, request }, transfer);
    return await response;
  }

  setLimits(limits: StoreLimits): void {
    this.#limits = limits;
    this.#maxBytes = maxBytes(limits);
    // What was recorded under the limits so far is to be there when they change.
    this.#flushQueues();
    this.#send({ kind: "limits", limits }, []);
  }

  status(): StorageStatus {
    const active = this.sessions.get(this.activeSession);
    return {
      ok: this.#problem.sentence === null,
      problem: this.#problem.sentence,
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

  /**
   * Commits what is queued and ends the thread. What the disk refuses is lost: its entries are counted, and the alarm and
   * the problem of the status say so.
   */
  async close(): Promise<void> {
    this.#flushQueues();
    this.#closing = true;
    // A thread on its way would hold the file, and the process, afterwards.
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
      if (message.kind === "refused") {
        reject(refusalOf(message));
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
      this.#problem.set(`The storage thread broke: ${error.message}`);
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
    if (message.movedAside !== null) this.#tellMovedAside(message.movedAside);
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
        return this.#tellMovedAside(message.movedAside);
      case "response":
        return this.#calls.answered(message);
      case "callFailed":
        return this.#calls.failed(message);
      case "closed":
        this.#refusal = message.refusal;
        return;
      case "ready":
      case "refused":
        return;
    }
  }

  /** Entries are stored all the same, so that it is no problem of the store. */
  #fileFailed({ file, refusal }: FromWriter & { kind: "fileFailed" }): void {
    if (refusal !== null) this.#events.alarm(`A large body is not stored, which is said once: ${refusal}`);
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

  #shedBodies(exchange: ExchangeView): void {
    for (const body of [exchange.requestBody, exchange.responseBody]) {
      if (body.storedBytes > 0) this.#bodiesNotStored += 1;
    }
    discardSpooled(exchange);
  }

  #tellMovedAside(path: string): void {
    this.#events.alarm(`The traffic database was damaged. It was kept as ${path}; capture goes on in a new one`);
  }

  /** Everything on its way to the thread is gone with it. */
  #threadEnded(): void {
    this.#worker = undefined;
    this.#spool?.failAll();
    this.#running.storeLost();
    const lost = this.#sent.lost();
    this.#entriesLost += lost.entries;
    this.#calls.abandon();
    if (this.#closing) return this.#tellLoss(lost);
    this.#problem.set(this.#problem.sentence ?? "The storage thread ended: entries are not stored until it is back");
    this.#restartLater();
  }

  #tellLoss({ entries, hasFrames }: LostWork): void {
    if (entries === 0 && !hasFrames) return;
    const counted = entries === 1 ? "1 entry" : `${entries} entries`;
    const what = entries === 0 ? "Messages of streams" : hasFrames ? `${counted} and messages of streams` : counted;
    const loss = `${what} could not be stored and are lost: ${this.#refusal ?? "the disk did not take them in time"}`;
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

function refusalOf({ error, tooNew, isStorageError }: FromWriter & { kind: "refused" }): Error {
  if (tooNew) return new DatabaseTooNewError(error);
  return isStorageError ? new StorageError(error) : new Error(error);
}

/** Bytes of all its bodies that would be stored, of those that rules replaced, too. */
function bodyBytes({ requestBody, responseBody, originalRequest, originalResponse }: ExchangeView): number {
  const replaced = (originalRequest?.body?.length ?? 0) + (originalResponse?.body?.length ?? 0);
  return requestBody.storedBytes + responseBody.storedBytes + replaced;
}

function discardSpooled(exchange: ExchangeView): void {
  if (exchange.state.step !== "completed" && exchange.state.step !== "failed") return;
  exchange.requestBody.discard();
  exchange.responseBody.discard();
}

/** Sizes of what is handed over together. */
interface Portion {
  readonly bytes: number;
  readonly entries: number;
}

/** What was on its way when the thread ended. */
interface LostWork {
  readonly entries: number;
  /** Frames of streams, too. */
  readonly hasFrames: boolean;
}

interface Waiter {
  readonly portion: number;
  readonly resolve: () => void;
}

/** Bytes that travel with an entry. */
function bodiesOf(exchange: ExchangeView, storesBodies: boolean): readonly Buffer[] {
  const { step } = exchange.state;
  if (!storesBodies || (step !== "completed" && step !== "failed")) return NONE;
  const sent = inlinePieces(exchange.requestBody);
  const received = inlinePieces(exchange.responseBody);
  if (sent.length === 0 && !exchange.modified) return received;
  return [...sent, ...received, ...(exchange.modified ? replacedBodies(exchange) : NONE)];
}

function inlinePieces(body: ExchangeView["requestBody"]): readonly Buffer[] {
  return body.sizeBytes === 0 || body.spooled !== undefined ? NONE : body.pieces;
}
