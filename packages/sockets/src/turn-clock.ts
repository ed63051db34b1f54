import { atTurnEnd, type Waiting } from "./turn-end.ts";

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
 * of which there are a dozen in each request. What a turn takes itself cannot be measured by it.
 */
export function turnMs(): number {
  if (presentMs === UNKNOWN) {
    presentMs = performance.now();
    atTurnEnd(forgetting);
  }
  return presentMs;
}
