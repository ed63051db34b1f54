import { getHeapSpaceStatistics, setFlagsFromString } from "node:v8";
import { setImmediate } from "node:timers/promises";
import { runInNewContext } from "node:vm";

const MAX_ROUNDS = 10;
const NEXT_TO_NOTHING_BYTES = 10_000;

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

/**
 * Bytes by which all objects of this thread grew through `work`, without what is not needed any more. What ended just
 * before may be held until its turns are over, and would count against what grows.
 */
export async function heapGrowthBytes(work: () => void | Promise<void>): Promise<number> {
  const collect = collector();
  await settled(collect);
  const before = process.memoryUsage().heapUsed;
  await work();
  await settled(collect);
  return process.memoryUsage().heapUsed - before;
}

/** Collects until that frees next to nothing; with turns between, in which closed sockets and finished timers are let go. */
async function settled(collect: () => void): Promise<void> {
  for (let round = 0, used = Infinity; round < MAX_ROUNDS; round += 1) {
    collect();
    const left = process.memoryUsage().heapUsed;
    if (used - left < NEXT_TO_NOTHING_BYTES) return;
    used = left;
    await setImmediate();
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
