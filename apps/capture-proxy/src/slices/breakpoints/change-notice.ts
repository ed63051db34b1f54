import type { Clock } from "#slice.ts";

const QUIET_MS = 50;

/** Tells of a change at once, and of all that follow shortly after as one. */
export function coalescedNotice(clock: Pick<Clock, "monotonic" | "after">, tell: () => void): () => void {
  let toldMs = Number.NEGATIVE_INFINITY;
  let isArmed = false;
  const now = (): void => {
    isArmed = false;
    toldMs = clock.monotonic();
    tell();
  };
  return () => {
    if (isArmed) return;
    const waitMs = toldMs + QUIET_MS - clock.monotonic();
    if (waitMs <= 0) return now();
    isArmed = true;
    clock.after(waitMs, now);
  };
}
