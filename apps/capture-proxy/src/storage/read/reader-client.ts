import { Worker } from "node:worker_threads";
import type { CaptureSession, TrafficFilter } from "@headworks/capture-contract";
import type { TextIndexSetup } from "../search/text-index.ts";
import type { EntryQuery, MatchPreviewQuery, RowWindow } from "../capture-store.ts";
import type { FrameQuery, StreamGroupQuery, StreamKind, StreamQuery } from "../streams/stream-store.ts";
import type { StoreChange } from "../write/writer-messages.ts";

/** A session's state when the request was made. */
export interface SessionScope {
  readonly number: number;
  readonly id: string;
  readonly floorSeq: number;
  readonly entryCount: number;
}

export interface RowsRequest extends RowWindow {
  readonly op: "rows";
  readonly scope: SessionScope;
}

export interface EntriesRequest extends Omit<EntryQuery, "signal"> {
  readonly op: "entries";
  readonly scope: SessionScope;
}

/** Sessions by number, with their cleared range. */
export type SessionNames = ReadonlyMap<number, { readonly id: string; readonly floorSeq: number }>;

export interface BodyRequest {
  readonly op: "body";
  readonly id: string;
  readonly sessions: SessionNames;
  readonly side: "request" | "response";
  readonly decoded: boolean;
  readonly utf8: boolean;
  readonly start: number;
  readonly end: number | undefined;
}

/** A session's filtered entries, or entries by id. */
export interface ExportRequest {
  readonly op: "exportOpen";
  readonly scope: SessionScope;
  readonly filter: TrafficFilter;
  readonly ids: readonly string[] | undefined;
  readonly sessions: SessionNames;
  /** Set: a native document. Undefined: a HAR. */
  readonly session: CaptureSession | undefined;
  readonly exportedAt: string;
}

export interface PreviewRequest extends Omit<MatchPreviewQuery, "condition" | "sessionId"> {
  readonly op: "preview";
  readonly scope: SessionScope;
  /** JSON text, which preserves the digits of numbers; structured clone does not. */
  readonly condition: string;
}

type StreamRequest =
  | { readonly op: "streams"; readonly sessions: SessionNames; readonly query: StreamQuery }
  | { readonly op: "streamGroups"; readonly sessions: SessionNames; readonly query: StreamGroupQuery }
  | { readonly op: "stream"; readonly sessions: SessionNames; readonly id: string }
  | { readonly op: "frames"; readonly sessions: SessionNames; readonly query: FrameQuery }
  | { readonly op: "frameBytes"; readonly sessions: SessionNames; readonly id: string; readonly ordinal: number }
  | { readonly op: "streamStats"; readonly sessions: SessionNames; readonly kind: StreamKind };

export type ReaderRequest =
  | StreamRequest
  | ExportRequest
  | PreviewRequest
  | { readonly op: "exportNext" | "exportClose"; readonly handle: number }
  | RowsRequest
  | EntriesRequest
  | BodyRequest
  | {
      readonly op: "latest";
      readonly scope: SessionScope;
      readonly limit: number;
      readonly filter: TrafficFilter;
    }
  | { readonly op: "count"; readonly scope: SessionScope; readonly filter: TrafficFilter }
  | { readonly op: "summary"; readonly scope: SessionScope; readonly filter: TrafficFilter }
  | {
      readonly op: "tree";
      readonly scope: SessionScope;
      readonly filter: TrafficFilter;
      readonly ofHost: string | undefined;
    }
  | {
      readonly op: "values";
      readonly scope: SessionScope;
      readonly field: string;
      readonly prefix: string;
      readonly limit: number;
    }
  | { readonly op: "row"; readonly id: string; readonly sessions: SessionNames }
  | {
      readonly op: "entry";
      readonly id: string;
      readonly sessions: SessionNames;
      readonly includeBodies: boolean;
      readonly decompressed: boolean;
    };

export interface ReaderSetup {
  readonly path: string;
  readonly bodiesFolder: string;
  /** For large decoded bodies; removed with the thread. */
  readonly decodedFolder: string;
  /** Text index, on the searching thread only. */
  readonly index: TextIndexSetup | undefined;
}

export type ToReader =
  | { readonly kind: "request"; readonly id: number; readonly request: ReaderRequest }
  | { readonly kind: "cancel"; readonly id: number }
  | {
      readonly kind: "change";
      readonly changedSeqs: readonly number[];
      readonly streamedSeqs: readonly number[];
      readonly removedSeqs: readonly number[];
      readonly reset: boolean;
    }
  | { readonly kind: "reopen" }
  | { readonly kind: "close" };

export type FromReader =
  /** The store is open. */
  | { readonly kind: "ready" }
  | { readonly kind: "response"; readonly id: number; readonly value: unknown }
  | { readonly kind: "failed"; readonly id: number; readonly name: string; readonly message: string };

/** Requests beyond this per thread are rejected rather than delaying the others. */
const MAX_PENDING_REQUESTS = 64;
const RESTART_MS = 1000;
/** Threads a request waits for, one second apart, until one starts. */
const STARTS_PER_REQUEST = 4;

/** Too many requests, or no threads. */
class ReaderBusyError extends Error {
  override readonly name = "ReaderBusyError";
}

/** A request failed; `name` is that of the thread's error. */
class ReaderError extends Error {
  constructor(name: string, message: string) {
    super(message);
    this.name = name;
  }
}

interface PendingRequest {
  readonly request: ReaderRequest;
  readonly signal: AbortSignal | undefined;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
  startsLeft: number;
}

/**
 * One reader thread. Starts with its first request unless started earlier, and restarts after a failure at most once
 * per second. Requests to a thread that failed to start, for example for lack of descriptors, go to the next one;
 * requests that a running thread failed on are not repeated.
 */
export class ReaderClient {
  readonly #setup: ReaderSetup;
  readonly #name: string;
  readonly #onBroken: (reason: string) => void;
  readonly #pending = new Map<number, PendingRequest>();
  #worker: Worker | undefined;
  #isReady = false;
  #startedMs = Number.NEGATIVE_INFINITY;
  #restart: NodeJS.Timeout | undefined;
  #nextId = 1;
  #closing = false;

  constructor(setup: ReaderSetup, name: string, onBroken: (reason: string) => void) {
    this.#setup = setup;
    this.#name = name;
    this.#onBroken = onBroken;
  }

  /** No-op if the thread runs or is starting. */
  start(): void {
    if (this.#worker !== undefined || this.#restart !== undefined || this.#closing) return;
    const waitMs = this.#startedMs + RESTART_MS - performance.now();
    if (waitMs <= 0) this.#start();
    else this.#restart = setTimeout(() => this.#start(), waitMs);
  }

  async send(request: ReaderRequest, signal?: AbortSignal): Promise<unknown> {
    signal?.throwIfAborted();
    if (this.#closing || this.#pending.size >= MAX_PENDING_REQUESTS) {
      throw new ReaderBusyError("Too many concurrent requests to the store");
    }
    const id = this.#nextId++;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const pending = { request, signal, resolve, reject, startsLeft: STARTS_PER_REQUEST };
    this.#pending.set(id, pending);
    const onAbort = (): void => {
      if (this.#worker === undefined) this.#pending.delete(id);
      this.post({ kind: "cancel", id });
      reject(signal?.reason as Error);
    };
    signal?.addEventListener("abort", onAbort, { once: true });
    if (this.#worker === undefined) this.start();
    else this.post({ kind: "request", id, request });
    try {
      return await promise;
    } finally {
      signal?.removeEventListener("abort", onAbort);
    }
  }

  /** Drops the message if no thread runs: the next one reads the current state. */
  post(message: ToReader): void {
    this.#worker?.postMessage(message);
  }

  async close(): Promise<void> {
    this.#closing = true;
    clearTimeout(this.#restart);
    const worker = this.#worker;
    if (worker === undefined) return this.#reject(() => true);
    const ended = new Promise<void>((resolve) => worker.once("exit", () => resolve()));
    this.post({ kind: "close" });
    const timer = setTimeout(() => void worker.terminate(), 5000);
    await ended;
    clearTimeout(timer);
  }

  #start(): void {
    this.#restart = undefined;
    this.#startedMs = performance.now();
    this.#isReady = false;
    const worker = this.#createWorker();
    if (worker === undefined) return this.#onExit();
    worker.on("message", (message: FromReader) => this.#receive(message));
    worker.on("error", (error: Error) => this.#onBroken(`A reader thread failed: ${error.message}`));
    worker.on("exit", () => this.#onExit());
    // Callers keep the process alive; an idle reader does not.
    worker.unref();
    this.#worker = worker;
    for (const [id, { request }] of this.#pending) this.post({ kind: "request", id, request });
  }

  /** Undefined if the system has no thread left (the constructor throws). */
  #createWorker(): Worker | undefined {
    try {
      return new Worker(new URL("./reader-thread.ts", import.meta.url), {
        workerData: this.#setup,
        name: this.#name,
        // Batches are garbage at once; unbounded, the heap grows before V8 collects.
        resourceLimits: { maxYoungGenerationSizeMb: 16 },
      });
    } catch (error) {
      this.#onBroken(`A reader thread could not start: ${(error as Error).message}`);
      return undefined;
    }
  }

  #receive(message: FromReader): void {
    if (message.kind === "ready") {
      this.#isReady = true;
      return;
    }
    const pending = this.#pending.get(message.id);
    this.#pending.delete(message.id);
    if (message.kind === "response") pending?.resolve(message.value);
    else pending?.reject(new ReaderError(message.name, message.message));
  }

  #onExit(): void {
    this.#worker = undefined;
    const isFinished = this.#isReady || this.#closing;
    this.#reject((pending) => {
      pending.startsLeft -= 1;
      return isFinished || pending.startsLeft === 0 || pending.signal?.aborted === true;
    });
    if (this.#pending.size > 0) this.start();
  }

  #reject(isRejected: (pending: PendingRequest) => boolean): void {
    for (const [id, pending] of this.#pending) {
      if (!isRejected(pending)) continue;
      this.#pending.delete(id);
      pending.reject(new ReaderBusyError("A reader thread ended"));
    }
  }
}

/** Quick look-ups do not queue behind scans; scans reuse the sets cached in their thread. */
type ReaderKind = "quick" | "scan";

/** Filters beyond the session may need a scan. */
export function readerOf(filter: TrafficFilter): ReaderKind {
  return Object.keys(filter).some((name) => name !== "session_id") ? "scan" : "quick";
}

/** Failures of both threads within this time have one cause, such as missing descriptors or memory. */
const SAME_REASON_MS = 1000;

interface ReaderPoolOwner {
  /** Resolves when all records so far are committed; undefined if they are. */
  caughtUp(): Promise<void> | undefined;
  /** Called once when both threads fail within {@link SAME_REASON_MS}. */
  onBroken(reason: string): void;
}

/** Two reader threads, started early or with their first request. */
export class ReaderPool {
  readonly #readers: Readonly<Record<ReaderKind, ReaderClient>>;
  readonly #owner: ReaderPoolOwner;
  #lastReason = { text: "", atMs: Number.NEGATIVE_INFINITY };

  constructor(setup: ReaderSetup, owner: ReaderPoolOwner) {
    const onBroken = (reason: string): void => this.#onBroken(reason);
    this.#owner = owner;
    this.#readers = {
      quick: new ReaderClient({ ...setup, index: undefined }, "weir-reader-quick", onBroken),
      scan: new ReaderClient(setup, "weir-reader-scan", onBroken),
    };
  }

  /** Loads the code (about 100 ms) before the first request. */
  start(): void {
    for (const reader of Object.values(this.#readers)) reader.start();
  }

  /**
   * Rejects with the signal's reason on abort and with {@link ReaderError} on failure. A request sees everything
   * recorded before it. `makeRequest` is called after those commits, so that its session scope is current.
   */
  async read<T>(reader: ReaderKind, makeRequest: () => ReaderRequest, signal?: AbortSignal): Promise<T> {
    await this.#owner.caughtUp();
    return (await this.#readers[reader].send(makeRequest(), signal)) as T;
  }

  /** Requests the next part of a result. */
  async readMore<T>(reader: ReaderKind, request: ReaderRequest, signal?: AbortSignal): Promise<T> {
    return (await this.#readers[reader].send(request, signal)) as T;
  }

  /** Invalidates caches. */
  note(change: StoreChange): void {
    const { changedSeqs, streamedSeqs, removedSeqs, reset } = change;
    if (changedSeqs.length + streamedSeqs.length + removedSeqs.length === 0 && !reset) return;
    const message = { kind: "change", changedSeqs, streamedSeqs, removedSeqs, reset } as const;
    for (const reader of Object.values(this.#readers)) reader.post(message);
  }

  /** The database was replaced by a new file. */
  reopen(): void {
    for (const reader of Object.values(this.#readers)) reader.post({ kind: "reopen" });
  }

  #onBroken(text: string): void {
    const atMs = performance.now();
    if (text === this.#lastReason.text && atMs - this.#lastReason.atMs < SAME_REASON_MS) return;
    this.#lastReason = { text, atMs };
    this.#owner.onBroken(text);
  }

  async close(): Promise<void> {
    await Promise.all(Object.values(this.#readers).map(async (reader) => await reader.close()));
  }
}
