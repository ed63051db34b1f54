import type { ReplayResult } from "@headworks/capture-contract";
import type { Clock } from "#slice.ts";
import { pointOf, summarize } from "./batch-summary.ts";
import type { BatchPoint, BatchSummary } from "./batch-summary.ts";
import type { BatchState } from "./replay-history.ts";
import { withoutBodies } from "./replay-result.ts";

/** Results are written in groups, so that a fast batch does not wait for the disk each time. */
const WRITE_EVERY_MS = 500;
const MAX_REPLAYS_PER_WRITE = 200;

export interface BatchNumbers {
  readonly iterations: number;
  readonly concurrency: number;
  readonly delayMs: number;
}

export interface BatchParts {
  readonly numbers: BatchNumbers;
  /** One replay; rejects only for errors that every repetition would repeat. */
  readonly replay: (iteration: number, signal: AbortSignal) => Promise<ReplayResult>;
  readonly write: (results: readonly ReplayResult[]) => void;
  readonly clock: Clock;
}

/** A running batch: numbered replays, a limited number at a time, until all are done or the batch is cancelled. */
export class Batch {
  readonly #parts: BatchParts;
  readonly #ended = new AbortController();
  readonly #points: BatchPoint[] = [];
  #waiting: ReplayResult[] = [];
  #writtenMs: number;
  #next = 1;
  #endedAs: BatchState | undefined;
  #isClosed = false;

  constructor(parts: BatchParts) {
    this.#parts = parts;
    this.#writtenMs = parts.clock.monotonic();
  }

  get completed(): number {
    return this.#points.length;
  }

  summary(): BatchSummary {
    return summarize(this.#points);
  }

  /** Resolves with the final state after the last replay; rejects when replays cannot be made at all. */
  async run(onProgress: (completed: number) => void): Promise<BatchState> {
    const { concurrency, iterations } = this.#parts.numbers;
    try {
      await Promise.all(
        Array.from({ length: Math.min(concurrency, iterations) }, async () => await this.#work(onProgress)),
      );
    } catch (error) {
      this.#ended.abort();
      throw error;
    } finally {
      this.#write();
    }
    return this.#endedAs ?? "done";
  }

  /** Starts no more replays and aborts those in flight, which leave no result. */
  end(state: "cancelled" | "interrupted"): void {
    this.#endedAs ??= state;
    this.#ended.abort();
  }

  /** Called before the database closes: buffered results are written, later ones are discarded. */
  close(): void {
    this.end("interrupted");
    this.#write();
    this.#isClosed = true;
  }

  async #work(onProgress: (completed: number) => void): Promise<void> {
    const { replay, numbers } = this.#parts;
    const { signal } = this.#ended;
    for (let isFirst = true; this.#next <= numbers.iterations && !signal.aborted; isFirst = false) {
      const iteration = this.#next;
      this.#next += 1;
      if (!isFirst && numbers.delayMs > 0) await this.#pause(numbers.delayMs);
      if (signal.aborted) return;
      const result = await replay(iteration, signal);
      if (signal.aborted) return;
      this.#take(result);
      onProgress(this.#points.length);
    }
  }

  #pause(delayMs: number): Promise<void> {
    const { signal } = this.#ended;
    return new Promise((resolve) => {
      const done = (): void => {
        stop();
        signal.removeEventListener("abort", done);
        resolve();
      };
      const stop = this.#parts.clock.after(delayMs, done);
      signal.addEventListener("abort", done, { once: true });
    });
  }

  #take(result: ReplayResult): void {
    this.#points.push(pointOf(result));
    this.#waiting.push(withoutBodies(result));
    const nowMs = this.#parts.clock.monotonic();
    if (this.#waiting.length >= MAX_REPLAYS_PER_WRITE || nowMs - this.#writtenMs >= WRITE_EVERY_MS) this.#write();
  }

  #write(): void {
    if (this.#isClosed) return;
    this.#writtenMs = this.#parts.clock.monotonic();
    if (this.#waiting.length === 0) return;
    const results = this.#waiting;
    this.#waiting = [];
    this.#parts.write(results);
  }
}
