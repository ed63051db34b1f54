import { ConnectionSet, type SetMember } from "./connection-set.ts";

/** Something that must make progress before a moment on the monotonic clock. */
export interface Timed extends SetMember {
  /** Monotonic milliseconds; Infinity for no deadline. Written freely, read by the sweep. */
  deadlineMs: number;
  onDeadline(): void;
}

/**
 * Watches any number of deadlines with one timer. Setting a deadline is a plain assignment, so that a busy
 * connection can move its own with every byte; the price is that it fires up to one interval late. Where this process was
 * held up, what waits unread is read before anybody is late.
 */
export class DeadlineSweep {
  readonly #watched = new ConnectionSet<Timed>();
  readonly #timer: NodeJS.Timeout;

  constructor(intervalMs = 500) {
    // Timers come before what there is to read, and immediates behind it.
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
