import { scheduleFlush, type Waiting } from "./scheduled-flush.ts";

const UNKNOWN = -1;
let presentMs = UNKNOWN;

const forgetting: Waiting = {
  isWaiting: false,
  flush: () => {
    presentMs = UNKNOWN;
  },
};

/**
 * Monotonic milliseconds like `performance.now()`, read once per turn of the event loop: for deadlines and ages, of
 * which a request has a dozen. It cannot measure time within a turn. A turn ends with the loop's immediates; a timer
 * due before them still sees the time of the turn it interrupts.
 */
export function turnMs(): number {
  if (presentMs !== UNKNOWN) return presentMs;
  const nowMs = performance.now();
  // `scheduleFlush` may flush synchronously, and then nothing would clear the cached value later.
  scheduleFlush(forgetting);
  if (forgetting.isWaiting) presentMs = nowMs;
  return nowMs;
}
