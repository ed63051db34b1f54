/** Calls `run` after `delayMs`; returns a function that cancels it. */
export type Timer = (delayMs: number, run: () => void) => () => void;

export const systemTimer: Timer = (delayMs, run) => {
  const timer = setTimeout(run, delayMs);
  return () => clearTimeout(timer);
};
