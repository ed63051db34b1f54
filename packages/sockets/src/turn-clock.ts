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
 * Monotonic milliseconds, as those of `performance.now()`, asked for once in a turn of the event loop: for deadlines and ages,
 * of which there are a dozen in each request. What a turn takes itself cannot be measured by it. A turn ends with the loop's
 * immediates: a timer that is due before them still reads the moment of the turn it interrupts.
 */
export function turnMs(): number {
  if (presentMs !== UNKNOWN) return presentMs;
  const nowMs = performance.now();
  // Many that wait are flushed in the call itself, and then nobody would forget what is remembered.
  scheduleFlush(forgetting);
  if (forgetting.isWaiting) presentMs = nowMs;
  return nowMs;
}
