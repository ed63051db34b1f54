/**
 * The cost of a durable quota. Run: node bench/gateway/quota.bench.ts [seconds per row] [folder]
 *
 * Callers repeatedly charge two budgets each. Between charges each waits for one turn of the event loop, like a request on
 * its way to an upstream, and works for the row's time, like proxying. `main us` is the CPU time of the calling thread per
 * charge, `all us` that of the whole process with the store's thread and its system calls, both without the time of the
 * same loop without charges. `off/on` is the ratio of the total times: 1 would be a free quota.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import { openStateStore } from "../../apps/gateway/src/storage/open-state-store.ts";
import type { BudgetCharge, StateStore } from "../../apps/gateway/src/storage/state-store.ts";

const seconds = Number(process.argv[2] ?? 3);
const folder = process.argv[3] ?? tmpdir();
const silent = (): void => undefined;
const log = { debug: silent, info: silent, warn: silent, error: silent } as unknown as Parameters<
  typeof openStateStore
>[0]["log"];
const clock = { now: () => Date.now(), monotonic: () => performance.now() };
const LIMIT = 2n ** 63n;
const budgets: readonly BudgetCharge[] = [
  { budget: "daily", windowStartS: 1_770_000_000, limit: LIMIT },
  { budget: "monthly", windowStartS: 1_769_900_000, limit: LIMIT },
];

interface Row {
  readonly callers: number;
  readonly consumers: number;
  readonly pageBytes?: number;
  /** CPU time of a request besides the quota; 22 us is the data path's time for a small one. */
  readonly workUs?: number;
}

interface Figures {
  readonly perSecond: number;
  readonly mainUs: number;
  readonly allUs: number;
}

function work(us: number): void {
  const untilMs = performance.now() + us / 1000;
  while (performance.now() < untilMs);
}

/** Runs the callers until the time is over. */
async function measure({ callers, workUs = 0 }: Row, once: (round: number) => unknown): Promise<Figures> {
  let done = 0;
  const run = async (untilMs: number): Promise<void> => {
    const loop = async (caller: number): Promise<void> => {
      for (let round = caller; performance.now() < untilMs; round += callers) {
        await once(round);
        done += 1;
        await turn();
        if (workUs > 0) work(workUs);
      }
    };
    await Promise.all(Array.from({ length: callers }, async (_, caller) => await loop(caller)));
  };
  await run(performance.now() + 500);
  done = 0;
  const startedMs = performance.now();
  const main = process.threadCpuUsage();
  const all = process.cpuUsage();
  await run(startedMs + seconds * 1000);
  const mainUsed = process.threadCpuUsage(main);
  const allUsed = process.cpuUsage(all);
  return {
    perSecond: (done / (performance.now() - startedMs)) * 1000,
    mainUs: (mainUsed.user + mainUsed.system) / done,
    allUs: (allUsed.user + allUsed.system) / done,
  };
}

async function withStore<T>(row: Row, work: (store: StateStore, names: readonly string[]) => Promise<T>): Promise<T> {
  const directory = mkdtempSync(join(folder, "sluice-bench-"));
  const path = join(directory, "state.db");
  const store = await openStateStore({
    path,
    log,
    clock,
    ...(row.pageBytes === undefined ? {} : { pageBytes: row.pageBytes }),
  });
  try {
    const names = Array.from({ length: row.consumers }, (_, index) => `consumer-${index}`);
    await store.quotas.syncConsumers(names);
    // The first charge of each budget reads its counters.
    await Promise.all(names.map(async (name) => await store.quotas.charge(name, budgets, true)));
    return await work(store, names);
  } finally {
    await store.close();
    rmSync(directory, { recursive: true });
  }
}

async function print(row: Row): Promise<void> {
  const idle = await measure(row, () => Promise.resolve());
  const charged = await withStore(row, async (store, names) => {
    return await measure(row, (round) =>
      store.quotas.charge(names[(round * 7919) % names.length] ?? "", budgets, true),
    );
  });
  const cells = [
    row.callers,
    row.consumers,
    row.pageBytes ?? "default",
    row.workUs ?? 0,
    Math.round(charged.perSecond),
    (charged.mainUs - idle.mainUs).toFixed(2),
    (charged.allUs - idle.allUs).toFixed(2),
    (idle.allUs / charged.allUs).toFixed(2),
  ];
  process.stdout.write(`${cells.map((cell) => String(cell).padStart(10)).join("")}\n`);
}

process.stdout.write(
  `${["callers", "consumers", "page", "work us", "charges/s", "main us", "all us", "off/on"].map((head) => head.padStart(10)).join("")}\n`,
);
for (const callers of [1, 8, 64, 256]) await print({ callers, consumers: 100 });
for (const callers of [16, 64, 256]) await print({ callers, consumers: 100, workUs: 22 });
for (const pageBytes of [1024, 2048, 4096, 8192, 16_384]) {
  await print({ callers: 64, consumers: 10_000, pageBytes, workUs: 22 });
}

// A refusal needs no commit.
await withStore({ callers: 1, consumers: 1 }, async (store) => {
  const one = [{ budget: "daily", windowStartS: 0, limit: 1n }] as const;
  await store.quotas.charge("consumer-0", one, true);
  const count = 1_000_000;
  const started = process.threadCpuUsage();
  for (let index = 0; index < count; index += 1) void store.quotas.charge("consumer-0", one, true);
  const used = process.threadCpuUsage(started);
  process.stdout.write(`a refusal takes ${((used.user + used.system) / count).toFixed(3)} us of the calling thread\n`);
});
