import { ConnectionSet, type SetMember } from "./connection-set.ts";

/** An object with a deadline on the monotonic clock. */
export interface Timed extends SetMember {
  /** Monotonic milliseconds, Infinity for none. Written freely, read by the sweep. */
  deadlineMs: number;
  onDeadline(): void;
}

/**
 * Watches any number of deadlines with one timer. Setting a deadline is a plain assignment, cheap enough for every
 * byte; the price is that it fires up to one interval late. After the process was blocked, pending input is read
 * before deadlines fire.
 */
export class DeadlineSweep {
  readonly #watched = new ConnectionSet<Timed>();
  readonly #timer: NodeJS.Timeout;

  constructor(intervalMs = 500) {
    // Timers run before I/O, immediates after it.
    this.#timer = setInterval(() => setImmediate(this.#sweep), intervalMs);
    this.#timer.unref();
  }

  add(timed: Timed): void {
    this.#watched.add(timed);
  }

  delete(timed: Timed): void {
    this.#watched.delete(timed);
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#watched.clear();
  }

  readonly #sweep = (): void => {
    const nowMs = performance.now();
    this.#watched.forEach((timed) => {
      if (timed.deadlineMs > nowMs) return;
      timed.deadlineMs = Number.POSITIVE_INFINITY;
      timed.onDeadline();
    });
  };
}
