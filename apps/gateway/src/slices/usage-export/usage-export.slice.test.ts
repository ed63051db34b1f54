import assert from "node:assert/strict";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { Analytics, ConfigDocument, Consumer } from "@headworks/gateway-contract";
import { FakeClock, temporaryDirectory, waitUntil } from "@headworks/testkit";
import { pino } from "pino";
import type { FinishedRequest } from "#request/context.ts";
import type { CompileScope } from "#slice.ts";
import { openStateStore } from "#storage/open-state-store.ts";
import type { StateStore } from "#storage/state-store.ts";
import { type ExportRequest, usageExport, type UsageExportSlice } from "./usage-export.slice.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const NOON = Date.UTC(2026, 2, 10, 12);

interface Rig extends AsyncDisposable {
  readonly slice: UsageExportSlice;
  readonly clock: FakeClock;
  readonly store: StateStore;
  readonly lines: Record<string, unknown>[];
  readonly exports: string;
  readonly publish: (analytics: Analytics | undefined, consumers?: readonly Consumer[]) => void;
  readonly finish: (consumer: string | undefined, facts?: Partial<Facts>) => void;
  /** The runs so far, oldest first, once there are so many. */
  readonly runs: (count: number) => Promise<string[]>;
  readonly file: (name: string) => string;
}

interface Facts {
  status: number;
  durationMs: number;
  rateLimited: boolean;
  shed: boolean;
}

async function rigOf(changed?: (store: StateStore) => StateStore): Promise<Rig> {
  const directory = await temporaryDirectory();
  const clock = new FakeClock(NOON);
  const lines: Record<string, unknown>[] = [];
  const log = pino({}, { write: (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>) });
  const opened = await openStateStore({ path: directory.file("state.db"), log, clock });
  const store = changed?.(opened) ?? opened;
  const slice = usageExport({ store, log, clock, every: (ms, run) => clock.every(ms, run) });
  const exports = directory.file("exports", "usage");
  return {
    slice,
    clock,
    store,
    lines,
    exports,
    publish: (analytics, consumers = []) => {
      const document = { analytics, consumers } as unknown as ConfigDocument;
      slice.compile?.(document, {} as CompileScope).published?.();
    },
    finish: (consumer, facts = {}) => {
      const { status = 200, durationMs = 10, rateLimited = false, shed = false } = facts;
      const request = {
        consumer: consumer === undefined ? undefined : { name: consumer },
        wasRateLimited: rateLimited,
        wasShed: shed,
      };
      slice.observer?.onFinished({ request, status, durationMs } as unknown as FinishedRequest);
    },
    runs: async (count) => {
      const all = await waitUntil(async () => {
        const runs = await opened.usage.runs(1000);
        return runs.length >= count ? runs : undefined;
      });
      return all
        .toReversed()
        .map((run) => `${run.window} ${new Date(run.windowStartS * 1000).toISOString().slice(0, 13)} ${run.status}`);
    },
    file: (name) => readFileSync(join(exports, name), "utf8"),
    [Symbol.asyncDispose]: async () => {
      await slice.stop?.();
      await opened.close();
      await directory.remove();
    },
  };
}

const plan = (directory: string, window: "hourly" | "daily" | "monthly", formats = ["csv"]): Analytics =>
  ({ exports: { directory, window, formats } }) as Analytics;

test("requests are counted per consumer and hour, and a window is exported five minutes after it closed, not before", async () => {
  await using rig = await rigOf();
  rig.publish(plan(rig.exports, "hourly"), [{ name: "acme", quotas: { daily_requests: 9n } }]);
  await rig.store.quotas.syncConsumers(["acme"]);
  rig.finish("acme", { durationMs: 10 });
  rig.finish("acme", { status: 502, durationMs: 30 });
  rig.finish("acme", { status: 429, durationMs: 2, rateLimited: true });
  rig.finish("acme", { status: 503, durationMs: 0, shed: true });
  rig.finish("other", { status: 404 });
  rig.finish(undefined);
  await rig.clock.advance(HOUR_MS + 5 * 60_000 - 30_000);
  assert.deepEqual(await rig.store.usage.runs(10), []);
  await rig.clock.advance(60_000);
  assert.deepEqual(await rig.runs(1), ["hourly 2026-03-10T12 ok"]);
  assert.deepEqual(readdirSync(rig.exports), ["gateway-usage-hourly-2026-03-10T12Z.csv"]);
  assert.deepEqual(rig.file("gateway-usage-hourly-2026-03-10T12Z.csv").split("\r\n").slice(1), [
    "acme,4,2,0.5,1,1,10.5,0,9,,",
    "other,1,0,0,0,0,10,,,,",
    "",
  ]);
});

test("without analytics.exports nothing is counted", async () => {
  await using rig = await rigOf();
  rig.publish(undefined);
  rig.finish("acme");
  await rig.slice.stop?.();
  assert.equal(await rig.store.usage.oldestHour(), undefined);
  const response = await rig.slice.runExport();
  assert.equal("refused" in response && response.refused, "analytics_exports_not_configured");
});

test("missed windows are made up for, oldest first, at most 64 at a time, empty ones too", async () => {
  await using rig = await rigOf();
  const startS = NOON / 1000 - 100 * 3600;
  await rig.store.usage.add([
    { consumer: "acme", hourStartS: startS, requests: 1, errors: 0, rateLimited: 0, shed: 0, totalMs: 1 },
  ]);
  rig.publish(plan(rig.exports, "hourly"));
  await rig.clock.advance(30_000);
  const first = await rig.runs(64);
  assert.equal(first.length, 64);
  assert.equal(first[0], "hourly 2026-03-06T08 ok");
  await rig.clock.advance(30_000);
  const all = await rig.runs(99);
  // 12:00:30 + 30 s: the hour from 11 to 12 is not due before 12:05.
  assert.equal(all.length, 99);
  assert.equal(all.at(-1), "hourly 2026-03-10T10 ok");
  assert.equal(new Set(all).size, 99);
  assert.equal(readdirSync(rig.exports).length, 99);
});

test("a failed run is recorded and logged, tried again ten minutes later, and holds up what comes after it", async () => {
  await using rig = await rigOf();
  const startS = NOON / 1000 - 2 * 3600;
  await rig.store.usage.add([
    { consumer: "acme", hourStartS: startS, requests: 1, errors: 0, rateLimited: 0, shed: 0, totalMs: 1 },
  ]);
  // A file is in the way of the folder.
  mkdirSync(join(rig.exports, ".."), { recursive: true });
  writeFileSync(rig.exports, "");
  rig.publish(plan(rig.exports, "hourly"));
  await rig.clock.advance(30_000);
  assert.deepEqual(await rig.runs(1), ["hourly 2026-03-10T10 failed"]);
  await waitUntil(() => rig.lines.some((line) => line["code"] === "analytics_export_failed"));
  await rig.clock.advance(9 * 60_000);
  assert.equal((await rig.runs(1)).length, 1);
  rmSync(rig.exports);
  await rig.clock.advance(60_000);
  assert.deepEqual(await rig.runs(3), [
    "hourly 2026-03-10T10 failed",
    "hourly 2026-03-10T10 ok",
    "hourly 2026-03-10T11 ok",
  ]);
});

test("a daily statement has both budgets, a monthly one only the month's, from the counters of the exported window", async () => {
  await using rig = await rigOf();
  const consumers: Consumer[] = [
    { name: "acme", quotas: { daily_requests: 10n, monthly_requests: 2n ** 64n - 1n } },
    { name: "unsynced", quotas: { daily_requests: 1n } },
    { name: "free" },
  ];
  await rig.store.quotas.syncConsumers(["acme"]);
  const day = Date.UTC(2026, 1, 20) / 1000;
  const month = Date.UTC(2026, 1, 1) / 1000;
  for (let count = 0; count < 3; count += 1) {
    await rig.store.quotas.charge("acme", [{ budget: "daily", windowStartS: day, limit: 99n }], true);
    await rig.store.quotas.charge("acme", [{ budget: "monthly", windowStartS: month, limit: 99n }], true);
  }
  const row = { requests: 3, errors: 0, rateLimited: 0, shed: 0, totalMs: 9 };
  await rig.store.usage.add([
    { consumer: "acme", hourStartS: day + 3600, ...row },
    { consumer: "acme", hourStartS: day + 7200, ...row },
    { consumer: "free", hourStartS: day + 7200, ...row },
  ]);
  rig.publish(plan(rig.exports, "daily", ["csv", "json"]), consumers);
  const run = await rig.slice.runExport({ window_start_ms: day * 1000 });
  assert.deepEqual(run, {
    window: "daily",
    window_start_ms: day * 1000,
    trigger: "manual",
    status: "ok",
    partial: false,
    formats: ["csv", "json"],
    directory: rig.exports,
    consumers: 2,
    requests: 9,
    windows_nonempty: 2,
    error: null,
    generated_at_ms: NOON,
  });
  assert.deepEqual(rig.file("gateway-usage-daily-2026-02-20.csv").split("\r\n").slice(1), [
    "acme,6,0,0,0,0,3,3,10,3,18446744073709551615",
    "free,3,0,0,0,0,3,,,,",
    "",
  ]);
  const monthly = await rig.slice.runExport({ window: "monthly" });
  assert.ok(!("refused" in monthly) && monthly.windows_nonempty === 1);
  assert.deepEqual(rig.file("gateway-usage-monthly-2026-02.csv").split("\r\n").slice(1), [
    "acme,6,0,0,0,0,3,,,3,18446744073709551615",
    "free,3,0,0,0,0,3,,,,",
    "",
  ]);
  assert.ok(rig.file("gateway-usage-daily-2026-02-20.json").includes('"quota_monthly_limit":18446744073709551615'));
  const { runs } = (await rig.slice.exportRuns(1)) as { runs: unknown[] };
  assert.deepEqual(runs, [monthly]);
});

test("a window older than what is kept is marked partial, and its deleted counters are absent rather than zero", async () => {
  await using rig = await rigOf();
  rig.publish(plan(rig.exports, "daily"), [{ name: "acme", quotas: { daily_requests: 1n, monthly_requests: 5n } }]);
  await rig.store.quotas.syncConsumers(["acme"]);
  const old = Date.UTC(2025, 11, 24);
  const run = await rig.slice.runExport({ window_start_ms: old });
  assert.ok(!("refused" in run) && run.partial);
  assert.equal(rig.file("gateway-usage-daily-2025-12-24.csv").split("\r\n")[1], "acme,0,0,0,0,0,0,,,0,5");
});

const BAD: readonly (readonly [string, ExportRequest])[] = [
  ["not a window's start", { window_start_ms: NOON - DAY_MS }],
  ["a window that is not over", { window: "monthly", window_start_ms: Date.UTC(2026, 2, 1) }],
  ["a window to come", { window: "hourly", window_start_ms: NOON + 30 * DAY_MS }],
  ["a fraction", { window_start_ms: 0.5 }],
  ["no number", { window_start_ms: Number.NaN }],
  ["beyond all time", { window_start_ms: 9e15 }],
];

test("a manual run of a window that cannot be exported is refused", async () => {
  await using rig = await rigOf();
  rig.publish(plan(rig.exports, "daily"));
  for (const [name, request] of BAD) {
    const response = await rig.slice.runExport(request);
    assert.equal("refused" in response && response.refused, "analytics_export_run_invalid", name);
  }
  assert.deepEqual(await rig.slice.exportRuns(), { runs: [] });
});

test("a manual run counts what is still in memory, writes over an older file, and a failing one says why", async () => {
  await using rig = await rigOf();
  rig.publish(plan(rig.exports, "hourly"));
  rig.finish("acme");
  rig.clock.jumpWallClock(HOUR_MS);
  const name = "gateway-usage-hourly-2026-03-10T12Z.csv";
  await rig.slice.runExport();
  assert.ok(rig.file(name).includes("acme,1,"));
  rig.clock.jumpWallClock(-HOUR_MS);
  rig.finish("acme");
  rig.clock.jumpWallClock(HOUR_MS);
  await rig.slice.runExport();
  assert.ok(rig.file(name).includes("acme,2,"));
  assert.deepEqual(readdirSync(rig.exports), [name]);
  rig.publish(plan(join(rig.exports, name, "below"), "hourly"));
  const response = await rig.slice.runExport();
  assert.ok(
    "refused" in response && response.refused === "analytics_export_failed" && /ENOTDIR/u.test(response.message),
  );
});

test("counts that the store refused are kept and added later", async () => {
  let isBroken = true;
  await using rig = await rigOf((store) => ({
    ...store,
    usage: {
      ...store.usage,
      add: async (rows) => {
        if (isBroken) throw new Error("disk");
        await store.usage.add(rows);
      },
    },
  }));
  rig.publish(plan(rig.exports, "hourly"));
  rig.finish("acme");
  await rig.clock.advance(5000);
  rig.finish("acme");
  isBroken = false;
  await rig.slice.stop?.();
  const { totals } = await rig.store.usage.totals("hour", 0, NOON / 1000);
  assert.deepEqual(totals, []);
  const all = await rig.store.usage.totals("hour", NOON / 1000, NOON / 1000 + 1);
  assert.deepEqual(
    all.totals.map(({ consumer, requests, totalMs }) => [consumer, requests, totalMs]),
    [["acme", 2, 20]],
  );
});

test("without a store there is nothing to export", async () => {
  const log = pino({ level: "silent" });
  const slice = usageExport({ store: undefined, log, clock: new FakeClock(), every: () => () => undefined });
  assert.equal(slice.observer, undefined);
  for (const response of [await slice.runExport(), await slice.exportRuns()]) {
    assert.equal("refused" in response && response.refused, "analytics_not_configured");
  }
});
