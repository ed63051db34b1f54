import { type EventEmitter, once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";

/** How long the helpers of this package wait when they are not told: long enough for a loaded machine. */
export const defaultTimeoutMs = 10_000;

/** Settles like `work`, or rejects with `describe()` after `timeoutMs`. */
export async function withTimeout<T>(work: Promise<T>, timeoutMs: number, describe: () => string): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`${describe()} within ${timeoutMs} ms`)), timeoutMs);
  try {
    return await Promise.race([work, promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** `what` completes the sentence "… did not happen" of a failure. */
export interface WaitOptions {
  timeoutMs?: number;
  what?: string;
}

/**
 * Waits until `probe` answers something truthy, and answers that. It is asked at once, then every few milliseconds,
 * twenty at the most; only for state that announces no change of its own, see {@link waitForEvent} for the rest. What
 * `probe` throws is final.
 */
export async function waitUntil<T>(
  probe: () => T | Promise<T>,
  options: WaitOptions = {},
): Promise<Exclude<T, false | 0 | "" | null | undefined>> {
  const timeoutMs = options.timeoutMs ?? defaultTimeoutMs;
  const startedMs = performance.now();
  for (;;) {
    const response = await probe();
    if (isTruthy(response)) return response;
    const waitedMs = performance.now() - startedMs;
    if (waitedMs >= timeoutMs) {
      throw new Error(`${options.what ?? probe.toString()} did not happen within ${timeoutMs} ms`);
    }
    // Questions are often calls to a service: the longer the wait, the less a moment more of it matters.
    await delay(Math.min(3 + waitedMs / 20, 20));
  }
}

const isTruthy = <T>(value: T): value is Exclude<T, false | 0 | "" | null | undefined> => Boolean(value);

/** Waits for the next `event` of an emitter and answers its arguments; rejects when it emits `error` first. */
export async function waitForEvent(
  emitter: EventEmitter,
  event: string,
  options: WaitOptions = {},
): Promise<unknown[]> {
  const stop = new AbortController();
  try {
    return await withTimeout<unknown[]>(
      once(emitter, event, { signal: stop.signal }),
      options.timeoutMs ?? defaultTimeoutMs,
      () => `${options.what ?? `the event "${event}"`} did not happen`,
    );
  } finally {
    stop.abort();
  }
}

interface Timer {
  dueMs: number;
  /** Undefined for a timer that fires once. */
  everyMs: number | undefined;
  run: () => void;
}

/**
 * A clock that stands still until told otherwise. `now` is Unix time in milliseconds and may be moved on its own;
 * `monotonic` counts from 0 and drives the timers.
 */
export class FakeClock {
  #wallMs: number;
  #elapsedMs = 0;
  readonly #timers = new Set<Timer>();

  constructor(startMs: number = Date.UTC(2026, 0, 1)) {
    this.#wallMs = startMs;
  }

  now(): number {
    return this.#wallMs;
  }

  monotonic(): number {
    return this.#elapsedMs;
  }

  /** Calls `run` every `periodMs`; answers the function that stops it. */
  every(periodMs: number, run: () => void): () => void {
    if (!(periodMs > 0)) throw new RangeError("the period must be above 0 ms");
    return this.#add({ dueMs: this.#elapsedMs + periodMs, everyMs: periodMs, run });
  }

  /** Calls `run` once after `delayMs`; answers the function that prevents it. */
  after(delayMs: number, run: () => void): () => void {
    return this.#add({ dueMs: this.#elapsedMs + Math.max(0, delayMs), everyMs: undefined, run });
  }

  /** Calls `run` in the event loop's next turn; no time passes. */
  soon(run: () => void): void {
    setImmediate(run);
  }

  #add(timer: Timer): () => void {
    this.#timers.add(timer);
    return () => {
      this.#timers.delete(timer);
    };
  }

  /** Timers that are set and not yet done. */
  get pendingTimers(): number {
    return this.#timers.size;
  }

  /**
   * Lets `durationMs` pass. Timers fire in the order they are due (equal ones in the order they were set), each at
   * its own time; after each, work that was waiting in the event loop runs, so that promise chains get to set more.
   */
  async advance(durationMs: number): Promise<void> {
    const endMs = this.#elapsedMs + durationMs;
    for (let timer = this.#next(endMs); timer !== undefined; timer = this.#next(endMs)) {
      this.#moveTo(timer.dueMs);
      if (timer.everyMs === undefined) this.#timers.delete(timer);
      else timer.dueMs += timer.everyMs;
      timer.run();
      await eventLoopTurn();
    }
    this.#moveTo(endMs);
    await eventLoopTurn();
  }

  /** Moves the wall clock alone, as an administrator or time server would; negative goes back. */
  jumpWallClock(byMs: number): void {
    this.#wallMs += byMs;
  }

  #moveTo(elapsedMs: number): void {
    if (elapsedMs <= this.#elapsedMs) return;
    this.#wallMs += elapsedMs - this.#elapsedMs;
    this.#elapsedMs = elapsedMs;
  }

  #next(endMs: number): Timer | undefined {
    let first: Timer | undefined;
    for (const timer of this.#timers) {
      if (timer.dueMs <= endMs && (first === undefined || timer.dueMs < first.dueMs)) first = timer;
    }
    return first;
  }
}

const eventLoopTurn = async (): Promise<void> => {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  setImmediate(() => resolve(undefined));
  await promise;
};
