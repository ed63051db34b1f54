import { once, type EventEmitter } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { defaultTimeoutMs, withTimeout } from "./timeout.ts";

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
