/** Calls `run` after `delayMs`; answers the function that prevents it. */
export type Timer = (delayMs: number, run: () => void) => () => void;

/** The real one. */
export const systemTimer: Timer = (delayMs, run) => {
  const timer = setTimeout(run, delayMs);
  return () => clearTimeout(timer);
};
