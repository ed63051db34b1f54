import { setImmediate as nextTurn } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import type { MirrorStatus } from "@headworks/capture-contract";
import type { CaptureStore } from "#storage/capture-store.ts";
import type { FromMirror, MirrorJob, Side, ToMirror } from "./mirror-messages.ts";

/** Memory limit of queued bodies; beyond it exchanges are dropped and counted. */
const MAX_BYTES = 67_108_864;
const MAX_JOBS = 10_000;
const MAX_STORED_JOBS = 1000;
const RANGE_BYTES = 1_048_576;
/** A thread that fails repeatedly is restarted at most once a second. */
const RESTART_MS = 1000;

/** The bytes themselves, or `stored` for bodies that are read back from the store. */
export type GivenBody = Uint8Array | "stored";

export interface OfferedJob {
  readonly entryId: string;
  readonly job: Omit<MirrorJob, "number">;
  readonly bodies: Partial<Record<Side, GivenBody>>;
}

export interface MirrorQueueParts {
  readonly store: Pick<CaptureStore, "flush" | "readBody">;
  readonly log: { info(facts: object, text: string): void; warn(facts: object, text: string): void };
  readonly nowMs: () => number;
  readonly monotonicMs: () => number;
  readonly after: (delayMs: number, callback: () => void) => () => void;
  /** Writing started or stopped failing. */
  readonly onTurn: () => void;
  readonly limits?: { readonly bytes?: number; readonly jobs?: number; readonly storedJobs?: number };
}

type Counts = Omit<MirrorStatus, "enabled" | "output_dir" | "host_filter" | "save_request_bodies">;

/**
 * The queue of exchanges to be written, and the thread that writes them. Offering never blocks: it copies small bodies,
 * and large ones are read back from the store piece by piece.
 */
export class MirrorQueue {
  readonly #parts: MirrorQueueParts;
  readonly #maxBytes: number;
  readonly #maxJobs: number;
  readonly #maxStoredJobs: number;
  /** Bytes of memory per job number. */
  readonly #waiting = new Map<number, number>();
  readonly #stored: { readonly number: number; readonly offered: OfferedJob }[] = [];
  readonly #idle: (() => void)[] = [];
  #bytes = 0;
  #nextNumber = 1;
  #isReading = false;
  #isClosed = false;
  #restsWhenIdle = false;
  #worker: Worker | undefined;
  #startedMs = -Infinity;
  #taken: PromiseWithResolvers<void> | undefined;
  #files = 0;
  #fileBytes = 0;
  #dropped = 0;
  #lastError: { readonly text: string; readonly atMs: number } | undefined;
  #isFailing = false;

  constructor(parts: MirrorQueueParts) {
    this.#parts = parts;
    this.#maxBytes = parts.limits?.bytes ?? MAX_BYTES;
    this.#maxJobs = parts.limits?.jobs ?? MAX_JOBS;
    this.#maxStoredJobs = parts.limits?.storedJobs ?? MAX_STORED_JOBS;
  }

  status(): Counts {
    return {
      files_written: this.#files,
      bytes_written: this.#fileBytes,
      files_dropped: this.#dropped,
      queued_files: this.#waiting.size,
      queued_bytes: this.#bytes,
      last_error: this.#lastError?.text ?? null,
      last_error_at: this.#lastError === undefined ? null : new Date(this.#lastError.atMs).toISOString(),
      writing: !this.#isFailing,
    };
  }

  /** Queues an exchange, or drops and counts it. Never blocks and never throws. */
  offer(offered: OfferedJob): void {
    if (this.#isClosed) return;
    const bodies = Object.values(offered.bodies);
    const bytes = bodies.reduce((sum, body) => sum + (body === "stored" ? 0 : body.length), 0);
    const isStored = bodies.includes("stored");
    const isFull =
      this.#waiting.size >= this.#maxJobs ||
      this.#bytes + bytes > this.#maxBytes ||
      (isStored && this.#stored.length >= this.#maxStoredJobs);
    if (isFull) {
      return this.drop("The queue is full: files are written more slowly than responses arrive", bodies.length);
    }
    this.#restsWhenIdle = false;
    const number = this.#nextNumber++;
    this.#waiting.set(number, bytes);
    this.#bytes += bytes;
    if (!isStored) {
      const { response, request } = offered.bodies as Partial<Record<Side, Uint8Array>>;
      this.#post(
        { kind: "whole", job: { ...offered.job, number }, response, request },
        [response, request].flatMap(ownBuffer),
      );
      return;
    }
    this.#stored.push({ number, offered });
    void this.#readStored();
  }

  /** Counts an exchange that cannot be mirrored. */
  drop(why: string, files = 1): void {
    this.#dropped += files;
    this.#lastError = { text: why, atMs: this.#parts.nowMs() };
    if (this.#isFailing) return;
    this.#isFailing = true;
    this.#parts.log.warn({ why }, "The mirror is dropping files; traffic and recording are not affected");
    this.#parts.onTurn();
  }

  /** Ends the thread and releases its directory once the queue is empty; the next offer restarts it. */
  rest(): void {
    this.#restsWhenIdle = true;
    if (this.#waiting.size > 0) return;
    const worker = this.#worker;
    this.#worker = undefined;
    this.#startedMs = -Infinity;
    worker?.postMessage({ kind: "close" } satisfies ToMirror);
  }

  /** Resolves when everything offered was written or dropped. */
  async idle(): Promise<void> {
    if (this.#waiting.size === 0) return;
    await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  /** Stops accepting jobs and ends the thread when the queue is empty, or after `graceMs`. */
  async close(graceMs: number): Promise<void> {
    this.#isClosed = true;
    const { promise: late, resolve } = Promise.withResolvers<void>();
    const stopTimer = this.#parts.after(graceMs, resolve);
    await Promise.race([this.idle(), late]);
    const worker = this.#worker;
    if (worker !== undefined) {
      const ended = new Promise<void>((done) => worker.once("exit", () => done()));
      worker.postMessage({ kind: "close" } satisfies ToMirror);
      await Promise.race([ended, late]);
      await worker.terminate();
    }
    stopTimer();
  }

  async #readStored(): Promise<void> {
    if (this.#isReading) return;
    this.#isReading = true;
    for (let next = this.#stored.shift(); next !== undefined; next = this.#stored.shift()) {
      const { number, offered } = next;
      // The thread broke meanwhile, and the job was dropped with it.
      if (!this.#waiting.has(number)) continue;
      try {
        await this.#stream(number, offered);
      } catch (error) {
        this.#post({ kind: "abandon" });
        this.#settle(number, {
          files: 0,
          bytes: 0,
          error: `A body cannot be read back: ${(error as Error).message}`,
        });
      }
    }
    this.#isReading = false;
  }

  /** Streams bodies from the store to the thread, one piece at a time. */
  async #stream(number: number, { entryId, job, bodies }: OfferedJob): Promise<void> {
    // The store learns of the end of the exchange in the same turn, perhaps after the mirror.
    await nextTurn();
    await this.#parts.store.flush();
    this.#post({ kind: "begin", job: { ...job, number } });
    for (const side of ["response", "request"] as const) {
      const body = bodies[side];
      if (body instanceof Uint8Array) await this.#give(side, body);
      else if (body === "stored") await this.#giveStored(entryId, side, job[side]?.storedBytes ?? 0);
    }
    this.#post({ kind: "finish" });
  }

  async #giveStored(id: string, side: Side, totalBytes: number): Promise<void> {
    for (let start = 0; start < totalBytes;) {
      const end = Math.min(start + RANGE_BYTES, totalBytes);
      const part = await this.#parts.store.readBody(id, side, { decoded: false, utf8: false, start, end });
      if (part === undefined || part.bytes.length === 0) throw new Error("the entry was removed, or not stored");
      start += part.bytes.length;
      await this.#give(side, part.bytes);
    }
  }

  /** Resolves when the thread has taken the piece, so that only one is in flight. */
  async #give(side: Side, bytes: Uint8Array): Promise<void> {
    const taken = Promise.withResolvers<void>();
    this.#taken = taken;
    this.#post({ kind: "piece", side, bytes }, ownBuffer(bytes));
    await taken.promise;
  }

  #post(message: ToMirror, transfer: ArrayBuffer[] = []): void {
    const worker = this.#worker ?? this.#start();
    if (worker === undefined) return this.#failAll("The mirror thread ended");
    worker.postMessage(message, transfer);
  }

  #start(): Worker | undefined {
    const nowMs = this.#parts.monotonicMs();
    if (nowMs - this.#startedMs < RESTART_MS) return undefined;
    this.#startedMs = nowMs;
    const worker = this.#begin();
    if (worker === undefined) return undefined;
    worker.unref();
    worker.on("message", (message: FromMirror) => {
      if (message.kind === "taken") return this.#taken?.resolve();
      for (const { number, ...result } of message.results) this.#settle(number, result);
    });
    worker.on("error", (error: Error) => this.#parts.log.warn({ err: error }, "The mirror thread failed"));
    worker.on("exit", () => {
      // A thread that was released exits later.
      if (this.#worker !== worker) return;
      this.#worker = undefined;
      this.#failAll("The mirror thread ended");
    });
    this.#worker = worker;
    return worker;
  }

  /** Undefined if the system cannot create a thread, which the constructor throws. */
  #begin(): Worker | undefined {
    try {
      return new Worker(new URL("./mirror-thread.ts", import.meta.url), {
        name: "weir-mirror",
        resourceLimits: { maxYoungGenerationSizeMb: 16 },
      });
    } catch (error) {
      this.#parts.log.warn({ err: error }, "The mirror thread could not start");
      return undefined;
    }
  }

  #failAll(why: string): void {
    this.#taken?.reject(new Error(why));
    for (const number of this.#waiting.keys()) this.#settle(number, { files: 0, bytes: 0, error: why });
  }

  #settle(number: number, result: { files: number; bytes: number; error: string | undefined }): void {
    const bytes = this.#waiting.get(number);
    if (bytes === undefined) return;
    this.#waiting.delete(number);
    this.#bytes -= bytes;
    this.#files += result.files;
    this.#fileBytes += result.bytes;
    if (result.error !== undefined) this.drop(result.error);
    else if (this.#isFailing && result.files > 0) {
      this.#isFailing = false;
      this.#parts.log.info({}, "The mirror is writing files again");
      this.#parts.onTurn();
    }
    if (this.#waiting.size > 0) return;
    for (const resolve of this.#idle.splice(0)) resolve();
    if (this.#restsWhenIdle) this.rest();
  }
}

/** Buffers owned by these bytes alone are transferred without a copy. */
function ownBuffer(bytes: Uint8Array | undefined): ArrayBuffer[] {
  if (bytes === undefined || !(bytes.buffer instanceof ArrayBuffer)) return [];
  return bytes.byteLength === bytes.buffer.byteLength ? [bytes.buffer] : [];
}
