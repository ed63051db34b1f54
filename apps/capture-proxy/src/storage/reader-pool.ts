// Tested by open-capture-store.test.ts
import { Worker } from "node:worker_threads";
import type { TrafficFilter } from "@headworks/capture-contract";
import type { FromReader, ReaderRequest, ReaderSetup, ToReader } from "./reader-messages.ts";
import type { StoreChange } from "./writer-messages.ts";

/** More questions than this at a time per thread are refused: they would only make each other late. */
const MOST_QUESTIONS = 64;

const RESTART_MS = 1000;

/** Too many questions, or the threads are gone. */
class ReaderBusyError extends Error {
  override readonly name = "ReaderBusyError";
}

/** A question that a reader thread could not answer; `name` is that of the thread's error. */
class ReaderError extends Error {
  constructor(name: string, message: string) {
    super(message);
    this.name = name;
  }
}

interface Question {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
}

/** Which thread answers: quick look-ups must not wait behind scans, and scans find their sets where they left them. */
export type Lane = "quick" | "scan";

/** A filter that looks at more than the session may have to scan. */
export function laneOf(filter: TrafficFilter): Lane {
  return Object.keys(filter).some((name) => name !== "session_id") ? "scan" : "quick";
}

/** What a pool needs of its owner. */
export interface ReaderPoolOwner {
  /** Resolves when everything recorded so far is committed; undefined when it is already. */
  caughtUp(): Promise<void> | undefined;
  onBroken(reason: string): void;
}

/** The threads that read. Each starts with its first question, unless it was started before. */
export class ReaderPool {
  readonly #lanes: Readonly<Record<Lane, ReaderLane>>;
  readonly #owner: ReaderPoolOwner;

  constructor(setup: ReaderSetup, owner: ReaderPoolOwner) {
    const onBroken = (reason: string): void => owner.onBroken(reason);
    this.#owner = owner;
    this.#lanes = {
      quick: new ReaderLane({ ...setup, index: undefined }, "weir-reader-quick", onBroken),
      scan: new ReaderLane(setup, "weir-reader-scan", onBroken),
    };
  }

  /** Loading their code takes a tenth of a second, which the first question then need not wait for. */
  start(): void {
    for (const lane of Object.values(this.#lanes)) lane.start();
  }

  /**
   * Asks; rejects with the signal's reason when it aborts, with {@link ReaderError} when the thread cannot answer. The
   * answer knows everything that was recorded before: who heard of an entry and asks then must find it. `question` is
   * called when that holds, so that what it says of sessions holds too.
   */
  async ask<T>(lane: Lane, question: () => ReaderRequest, signal?: AbortSignal): Promise<T> {
    await this.#owner.caughtUp();
    return (await this.#lanes[lane].ask(question(), signal)) as T;
  }

  /** Asks for the next part of an answer. */
  async goOn<T>(lane: Lane, request: ReaderRequest, signal?: AbortSignal): Promise<T> {
    return (await this.#lanes[lane].ask(request, signal)) as T;
  }

  /** Caches follow the store. */
  note(change: StoreChange): void {
    const { changedSeqs, streamedSeqs, removedSeqs, reset } = change;
    if (changedSeqs.length + streamedSeqs.length + removedSeqs.length === 0 && !reset) return;
    const message = { kind: "change", changedSeqs, streamedSeqs, removedSeqs, reset } as const;
    for (const lane of Object.values(this.#lanes)) lane.tell(message);
  }

  /** The database file is another one now. */
  reopen(): void {
    for (const lane of Object.values(this.#lanes)) lane.tell({ kind: "reopen" });
  }

  async close(): Promise<void> {
    await Promise.all(Object.values(this.#lanes).map(async (lane) => await lane.close()));
  }
}

class ReaderLane {
  readonly #setup: ReaderSetup;
  readonly #name: string;
  readonly #onBroken: (reason: string) => void;
  readonly #questions = new Map<number, Question>();
  #worker: Worker | undefined;
  #startedMs = Number.NEGATIVE_INFINITY;
  #nextId = 1;
  #closing = false;

  constructor(setup: ReaderSetup, name: string, onBroken: (reason: string) => void) {
    this.#setup = setup;
    this.#name = name;
    this.#onBroken = onBroken;
  }

  start(): void {
    if (this.#worker === undefined && !this.#closing) this.#start();
  }

  async ask(request: ReaderRequest, signal?: AbortSignal): Promise<unknown> {
    signal?.throwIfAborted();
    if (this.#closing || this.#questions.size >= MOST_QUESTIONS) {
      throw new ReaderBusyError("Too many questions to the store at a time");
    }
    if (this.#worker === undefined) this.#startAgain();
    const id = this.#nextId++;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    this.#questions.set(id, { resolve, reject });
    const onAbort = (): void => {
      this.tell({ kind: "cancel", id });
      reject(signal?.reason as Error);
    };
    signal?.addEventListener("abort", onAbort, { once: true });
    this.tell({ kind: "request", id, request });
    try {
      return await promise;
    } finally {
      signal?.removeEventListener("abort", onAbort);
    }
  }

  tell(message: ToReader): void {
    this.#worker?.postMessage(message);
  }

  async close(): Promise<void> {
    this.#closing = true;
    const worker = this.#worker;
    if (worker === undefined) return;
    const ended = new Promise<void>((resolve) => worker.once("exit", () => resolve()));
    this.tell({ kind: "close" });
    const timer = setTimeout(() => void worker.terminate(), 5000);
    await ended;
    clearTimeout(timer);
  }

  /** A thread that broke is started again by the next question; one that breaks at once, once a second. */
  #startAgain(): void {
    if (performance.now() - this.#startedMs < RESTART_MS) throw new ReaderBusyError("A reader thread ended");
    this.#start();
  }

  #start(): void {
    this.#startedMs = performance.now();
    const worker = new Worker(new URL("./reader.worker.ts", import.meta.url), {
      workerData: this.#setup,
      name: this.#name,
      // Each batch is garbage at once; without a bound the heap would grow before V8 looked.
      resourceLimits: { maxYoungGenerationSizeMb: 16 },
    });
    worker.on("message", (message: FromReader) => {
      const question = this.#questions.get(message.id);
      this.#questions.delete(message.id);
      if (message.kind === "answer") question?.resolve(message.value);
      else question?.reject(new ReaderError(message.name, message.message));
    });
    worker.on("error", (error: Error) => this.#onBroken(`A reader thread broke: ${error.message}`));
    worker.on("exit", () => {
      for (const { reject } of this.#questions.values()) reject(new ReaderBusyError("A reader thread ended"));
      this.#questions.clear();
      this.#worker = undefined;
    });
    // Questions keep the process alive through whoever waits for them; an idle reader does not.
    worker.unref();
    this.#worker = worker;
  }
}
