const FIRST_MS = 500;
/** For a window that nobody looks at. */
const MAX_MS = 15_000;
/** For one that somebody looks at: who starts the service again should not wait for its window. */
const MAX_WATCHED_MS = 2000;

/**
 * How long to wait before attempt number `attempt` (1 is the first after a loss), in milliseconds: doubling from half a
 * second to 15 s, or to 2 s while somebody looks, spread by up to a quarter so that windows do not come back all at once.
 * `random` is in [0, 1).
 */
export function backoffMs(attempt: number, random: number, isWatched = false): number {
  const base = Math.min(isWatched ? MAX_WATCHED_MS : MAX_MS, FIRST_MS * 2 ** Math.max(0, Math.min(16, attempt - 1)));
  return Math.round(base * (0.75 + 0.25 * random));
}
