import { randomUUID } from "node:crypto";
import type { BatchOrder, ReplayBatch, ReplayModifications, ReplayResult } from "@headworks/capture-contract";
import { ApiError, notFound, validationError } from "#api/api-error.ts";
import type { Clock, SliceHost, SliceTask } from "#slice.ts";
import { type BatchPoint, type BatchSummary, pointOf, summarize } from "./batch-summary.ts";
import type { BatchState, HistoryStore, StoredBatch } from "./replay-history.ts";
import { type Replayed, type Replays, withoutBodies } from "./replays.ts";

const MAX_RUNNING = 4;
const PROGRESS_EVERY_MS = 100;

interface BatchesParts {
  readonly host: Pick<SliceHost, "events" | "clock" | "log" | "store">;
  readonly history: HistoryStore;
  readonly replays: Replays;
}

interface BegunBatch {
  readonly id: string;
  /** Resolves at the end in any state; rejects when the request cannot be sent at all. */
  readonly over: Promise<void>;
}

export interface Batches {
  /** Throws 409 beyond the maximum, or when the id is taken. */
  begin(replayed: Replayed, order: BatchOrder, id?: string): BegunBatch;
  /** Throws 404; 409 when it has ended already. */
  cancel(id: string): ReplayBatch;
  show(stored: StoredBatch): ReplayBatch;
  find(id: string): ReplayBatch;
  readonly task: SliceTask;
}

export function createBatches(parts: BatchesParts): Batches {
  const { host, history, replays } = parts;
  const running = new Map<string, Batch>();
  closeUnfinished(history, host.clock.now());
  const stored = (id: string): StoredBatch => history.batch(id) ?? notFound("batch", id);
  const show = (batch: StoredBatch): ReplayBatch => shown(batch, running.get(batch.id));
  const over = (id: string, state: StoredBatch["state"], batch: Batch): void => {
    // At shutdown the database may be closed already; the next start marks such batches as interrupted.
    if (running.delete(id)) history.end(id, state, batch.summary(), host.clock.now());
    host.events.changed("replay");
  };
  return {
    begin: (replayed, order, id = randomUUID()) => {
      if (running.size >= MAX_RUNNING) {
        throw new ApiError("CONFLICT", `${MAX_RUNNING} batches are running already: wait for one to end or cancel it`);
      }
      const modifications: ReplayModifications = order.modifications ?? {};
      const variables = order.variables ?? {};
      replays.check(replayed, { modifications, variables });
      const numbers = numbersOf(order);
      const { savedRequestId, sourceEntryId } = replayed;
      const { iterations, concurrency, delayMs } = numbers;
      const facts = { id, savedRequestId, sourceEntryId, iterations, concurrency, delayMs };
      const startedAtMs = host.clock.now();
      const isNew = history.begin({ ...facts, state: "running", summary: undefined, startedAtMs, finishedAtMs: null });
      if (!isNew) throw new ApiError("CONFLICT", "A batch with this id exists already");
      const batch = new Batch({
        numbers,
        clock: host.clock,
        write: (results) => history.add(results),
        replay: async (iteration, signal) =>
          await replays.execute(replayed, {
            modifications,
            variables,
            signal,
            keepsBody: false,
            batch: { id, iteration },
          }),
      });
      running.set(id, batch);
      host.events.changed("replay");
      return { id, over: runToEnd(host, id, numbers, batch, over) };
    },
    cancel: (id) => {
      const batch = running.get(id);
      if (batch === undefined) throw new ApiError("CONFLICT", `The batch has ended already: ${stored(id).state}`);
      batch.end("cancelled");
      return show(stored(id));
    },
    show,
    find: (id) => show(stored(id)),
    task: {
      start: (signal) =>
        signal.addEventListener(
          "abort",
          () => {
            for (const [id, batch] of running) {
              batch.close();
              over(id, "interrupted", batch);
            }
          },
          { once: true },
        ),
    },
  };
}

async function runToEnd(
  { events, clock, store, log }: BatchesParts["host"],
  id: string,
  { iterations }: BatchNumbers,
  batch: Batch,
  over: (id: string, state: StoredBatch["state"], batch: Batch) => void,
): Promise<void> {
  let reportedMs = clock.monotonic();
  try {
    await events.task(
      { id, kind: "replay-batch", contentLength: undefined, totalEntries: iterations },
      async (report) => {
        const state = await batch.run((completed) => {
          const nowMs = clock.monotonic();
          if (nowMs - reportedMs < PROGRESS_EVERY_MS) return;
          reportedMs = nowMs;
          report({ bytes: 0, entries: completed });
        });
        // All entries are stored before the end is announced.
        await store.flush();
        over(id, state, batch);
        return { completed: batch.completed };
      },
    );
  } catch (error) {
    log.warn({ err: error, batch: id }, "A batch of replays ended early");
    over(id, "interrupted", batch);
    throw error;
  }
}

/** Closes batches that an earlier process left running; their results give the summary. */
function closeUnfinished(history: HistoryStore, nowMs: number): void {
  for (const { id, iterations } of history.unfinished()) {
    const { results } = history.list({ batchId: id, savedRequestId: undefined }, iterations, 0);
    history.end(id, "interrupted", summarize(results.map(pointOf)), nowMs);
  }
}

/** The numbers of an order, flat or in `config`. Throws 400 when the two contradict each other. */
function numbersOf(order: BatchOrder): BatchNumbers {
  const { config } = order;
  for (const name of ["iterations", "concurrency", "delay_ms"] as const) {
    const flat = order[name];
    const nested = config?.[name];
    if (flat !== undefined && nested !== undefined && flat !== nested) {
      throw validationError([{ path: `body/${name}`, message: `differs from config.${name}; give only one of them` }]);
    }
  }
  return {
    iterations: order.iterations ?? config?.iterations ?? 1,
    concurrency: order.concurrency ?? config?.concurrency ?? 1,
    delayMs: order.delay_ms ?? config?.delay_ms ?? 0,
  };
}

function shown(stored: StoredBatch, running: Batch | undefined): ReplayBatch {
  const summary: BatchSummary = running?.summary() ?? stored.summary ?? summarize([]);
  return {
    id: stored.id,
    saved_request_id: stored.savedRequestId,
    source_entry_id: stored.sourceEntryId,
    state: stored.state,
    iterations: stored.iterations,
    concurrency: stored.concurrency,
    delay_ms: stored.delayMs,
    ...summary,
    started_at: new Date(stored.startedAtMs).toISOString(),
    finished_at: stored.finishedAtMs === null ? null : new Date(stored.finishedAtMs).toISOString(),
  };
}

/** Results are written in groups, so that a fast batch does not wait for the disk each time. */
const WRITE_EVERY_MS = 500;
const MAX_REPLAYS_PER_WRITE = 200;

interface BatchNumbers {
  readonly iterations: number;
  readonly concurrency: number;
  readonly delayMs: number;
}

interface BatchParts {
  readonly numbers: BatchNumbers;
  /** One replay; rejects only for errors that every repetition would repeat. */
  readonly replay: (iteration: number, signal: AbortSignal) => Promise<ReplayResult>;
  readonly write: (results: readonly ReplayResult[]) => void;
  readonly clock: Clock;
}

/** A running batch: numbered replays, a limited number at a time, until all are done or the batch is cancelled. */
class Batch {
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
