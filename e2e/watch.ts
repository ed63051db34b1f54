import assert from "node:assert/strict";
import { setTimeout as delay } from "node:timers/promises";
import { waitUntil } from "@headworks/testkit";
import type { Weir } from "./rig.ts";

/** The result of {@link watchHealth}. */
export interface HealthReport {
  readonly probes: number;
  readonly p99Ms: number;
  readonly maxMs: number;
}

/** Requests `/health` every 50 ms until stopped; a failed probe makes `stop` reject. */
export function watchHealth(weir: Weir): { stop(): Promise<HealthReport> } {
  const took: number[] = [];
  let isFinished = false;
  const watching = (async (): Promise<void> => {
    while (!isFinished) {
      const startedMs = performance.now();
      const response = await fetch(`${weir.apiUrl}/health`, { signal: AbortSignal.timeout(5000) });
      assert.equal(await response.text(), "OK");
      took.push(performance.now() - startedMs);
      await delay(50);
    }
  })();
  watching.catch(() => undefined);
  return {
    async stop() {
      isFinished = true;
      await watching;
      const sorted = took.toSorted((a, b) => a - b);
      return { probes: took.length, p99Ms: sorted[Math.floor(sorted.length * 0.99)] ?? 0, maxMs: sorted.at(-1) ?? 0 };
    },
  };
}

/** Runs `attack` with health probes: Weir must respond within a second throughout. */
export async function whileHealthy(weir: Weir, what: string, attack: () => Promise<void>): Promise<void> {
  const watch = watchHealth(weir);
  try {
    await attack();
  } finally {
    const { probes, p99Ms, maxMs } = await watch.stop();
    process.stdout.write(`# ${what}: ${probes} probes, p99 ${p99Ms.toFixed(0)} ms, max ${maxMs.toFixed(0)} ms\n`);
    assert.ok(maxMs < 1000, `/health took ${maxMs} ms during ${what}`);
  }
}

/** A tolerance for the sockets of our own API calls; a leak is much larger. */
const SLACK_FILES = 8;

/** A Weir with all its threads, two of which start later or on demand, so that its resting state can be measured. */
export async function atRest(weir: Weir): Promise<Weir> {
  for (const filter of ["", "&host=nobody.test"]) await weir.get(`/traffic?limit=1${filter}`);
  return weir;
}

/** Waits until Weir has no more descriptors than before, within the tolerance. */
export async function descriptorsReturn(weir: Weir, before: number, timeoutMs = 15_000): Promise<void> {
  await waitUntil(() => weir.openFiles() <= before + SLACK_FILES, {
    timeoutMs,
    what: `the decrease from ${weir.openFiles()} to ${before} open descriptors`,
  });
}

/** Runs `work` for all items, at most `limit` at a time. */
export async function inParallel<T>(
  items: Iterable<T>,
  limit: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const iterator = items[Symbol.iterator]();
  const worker = async (): Promise<void> => {
    for (let next = iterator.next(); next.done !== true; next = iterator.next()) await work(next.value);
  };
  await Promise.all(Array.from({ length: limit }, worker));
}

export const numbers = (count: number): number[] => Array.from({ length: count }, (_, index) => index);
