// Tested by clock-and-waiting.test.ts
import { setTimeout as sleep } from "node:timers/promises";
import { getHeapSpaceStatistics, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/**
 * Bytes by which the old objects of this thread grew through `rounds` of work, with a collection of the young ones after
 * each. What is used for a moment only must not get there: it would stay until a full collection.
 */
export function oldSpaceGrowthBytes(rounds: number, work: () => void): number {
  const collect = collector();
  // What lasts gets old now.
  work();
  collect();
  const before = oldSpaceBytes();
  for (let round = 0; round < rounds; round += 1) {
    work();
    collect({ type: "minor" });
  }
  return oldSpaceBytes() - before;
}

/** So long what is closed in the background may take to go. */
const SETTLED_MS = 5000;

/**
 * Bytes by which all objects of this thread grew through `work`, without what is not needed any more. Looks again, for a
 * while, as long as they are not below `mostBytes`: streams and handles hold on to what they had until they are closed.
 */
export async function heapGrowthBytes(
  work: () => void | Promise<void>,
  mostBytes = Number.POSITIVE_INFINITY,
): Promise<number> {
  const collect = collector();
  collect();
  const before = process.memoryUsage().heapUsed;
  await work();
  const settledAtMs = performance.now() + SETTLED_MS;
  for (;;) {
    collect();
    const grownBytes = process.memoryUsage().heapUsed - before;
    if (grownBytes < mostBytes || performance.now() > settledAtMs) return grownBytes;
    await sleep(50);
  }
}

function collector(): (options?: { readonly type: "minor" }) => void {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as (options?: { readonly type: "minor" }) => void;
  setFlagsFromString("--no-expose-gc");
  return collect;
}

function oldSpaceBytes(): number {
  const space = getHeapSpaceStatistics().find(({ space_name: name }) => name === "old_space");
  if (space === undefined) throw new Error("This V8 has no old space");
  return space.space_used_size;
}
