import assert from "node:assert/strict";
import {
  appendFileSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  rmSync,
  statSync,
  truncateSync,
} from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { test, type TestContext } from "node:test";
import { pathToFileURL } from "node:url";
import { pino } from "pino";
import { FakeClock, runProcess, temporaryDirectory } from "@headworks/testkit";
import { atQuietTurn, openStateStore } from "./open-state-store.ts";
import type {
  BudgetCharge,
  ChargeResult,
  GenerationRecord,
  OutboxEvent,
  StateStore,
  UsageRow,
  UsageTotal,
} from "./state-store.ts";
import { openStateDatabase } from "./store-thread.ts";

const log = pino({ level: "silent" });
const DAY_S = Date.UTC(2026, 2, 1) / 1000;
const daily = (limit: bigint, windowStartS = DAY_S): BudgetCharge => ({ budget: "daily", windowStartS, limit });
const monthly = (limit: bigint, windowStartS = DAY_S): BudgetCharge => ({ budget: "monthly", windowStartS, limit });

async function open(path: string, clock = new FakeClock(DAY_S * 1000)): Promise<StateStore & AsyncDisposable> {
  const store = await openStateStore({ path, log, clock });
  return { ...store, [Symbol.asyncDispose]: async () => await store.close() };
}

test("a charge is counted in both budgets or in none, and what was counted is there after a restart", async () => {
  await using directory = await temporaryDirectory();
  const path = directory.file("state.db");
  {
    await using store = await open(path);
    await store.quotas.syncConsumers(["acme", "other"]);
    for (let index = 0; index < 3; index += 1) {
      assert.equal((await store.quotas.charge("acme", [daily(3n), monthly(9n)], true)).outcome, "charged");
    }
    assert.deepEqual(store.quotas.charge("acme", [daily(3n), monthly(9n)], true), {
      outcome: "exhausted",
      budgets: ["daily"],
    });
  }
  await using store = await open(path);
  const windows = [daily(0n), monthly(0n)];
  assert.deepEqual(await store.quotas.usage(["acme", "other", "nobody"], windows), [[3n, 3n], [0n, 0n], undefined]);
});

test("charges that come together never get more than the budget, and the refused ones are refused for good", async () => {
  await using directory = await temporaryDirectory();
  await using store = await open(directory.file("state.db"));
  await store.quotas.syncConsumers(["acme"]);
  const results = await Promise.all(
    Array.from({ length: 500 }, async () => await store.quotas.charge("acme", [daily(120n), monthly(400n)], true)),
  );
  assert.equal(results.filter((result) => result.outcome === "charged").length, 120);
  assert.equal(results.filter((result) => result.outcome === "exhausted").length, 380);
  assert.deepEqual(await store.quotas.usage(["acme"], [daily(0n), monthly(0n)]), [[120n, 120n]]);
});

test("the file is its owner's alone, and a second store on it is refused", async () => {
  await using directory = await temporaryDirectory();
  const path = directory.file("made", "below", "state.db");
  await using store = await open(path);
  await store.quotas.syncConsumers(["acme"]);
  assert.equal(statSync(path).mode & 0o777, 0o600);
  assert.equal(statSync(`${path}-wal`).mode & 0o777, 0o600);
  assert.equal(statSync(directory.file("made")).mode & 0o777, 0o700);
  await assert.rejects(open(path), {
    name: "StateStoreError",
    errorKind: "busy",
    message: /in use by another process/u,
  });
  assert.ok(existsSync(path));
  assert.equal((await store.quotas.charge("acme", [daily(1n)], true)).outcome, "charged");
  assert.ok(readdirSync(directory.path).length > 0);
  assert.throws(() => new DatabaseSync(path, { timeout: 0 }).exec("SELECT * FROM consumer"), /locked/u);
});

test("a store that was closed is one file, whose copy has all that was counted", async () => {
  await using directory = await temporaryDirectory();
  const path = directory.file("state", "state.db");
  {
    await using store = await open(path);
    await store.quotas.syncConsumers(["acme"]);
    assert.equal((await store.quotas.charge("acme", [daily(1n)], true)).outcome, "charged");
    assert.deepEqual(readdirSync(directory.file("state")), ["state.db", "state.db-wal"]);
  }
  assert.deepEqual(readdirSync(directory.file("state")), ["state.db"]);
  copyFileSync(path, directory.file("copy.db"));
  await using copy = await open(directory.file("copy.db"));
  assert.deepEqual(await copy.quotas.usage(["acme"], [daily(0n)]), [[1n]]);
});

const ADDRESSES: readonly (readonly [string, RegExp])[] = [
  ["postgres://db.internal/state", /PostgreSQL .* reserved/u],
  ["PostgreSQL://db.internal/state", /PostgreSQL .* reserved/u],
  ["redis://cache", /must be the path of a file/u],
  ["file:state.db", /must be the path of a file/u],
  ["", /must be the path of a file/u],
  ["state\0.db", /must be the path of a file/u],
];

for (const [address, message] of ADDRESSES) {
  test(`the address ${JSON.stringify(address)} is refused with a sentence`, async () => {
    await assert.rejects(open(address), { name: "StateStoreError", message });
  });
}

test("unsigned 64 bits are exact in the file: 2^64 - 1 is reached, refused, and there after a restart", async () => {
  await using directory = await temporaryDirectory();
  const path = directory.file("state.db");
  const max = 2n ** 64n - 1n;
  const values = [2n ** 53n, 2n ** 63n - 2n, 2n ** 63n - 1n, max - 2n];
  {
    await using store = await open(path);
    await store.quotas.syncConsumers(["acme"]);
  }
  const database = new DatabaseSync(path);
  for (const [index, value] of values.entries()) {
    database
      .prepare("INSERT INTO quota_counter SELECT 0, ?, id, ? FROM consumer")
      .run(index * 86_400, BigInt.asIntN(64, value));
  }
  database.close();
  {
    await using store = await open(path);
    await store.quotas.syncConsumers(["acme"]);
    for (const index of values.keys()) {
      for (const limit of [max, max]) await store.quotas.charge("acme", [daily(limit, index * 86_400)], true);
    }
    assert.equal((await store.quotas.charge("acme", [daily(max, 3 * 86_400)], true)).outcome, "exhausted");
  }
  await using store = await open(path);
  const windows = [...values.keys()].map((index) => daily(0n, index * 86_400));
  assert.deepEqual(await store.quotas.usage(["acme"], windows), [values.map((value) => value + 2n)]);
});

test("old windows are deleted after 40 days and 14 months, never the newest ones, even when the clock was wrong for a moment", async () => {
  await using directory = await temporaryDirectory();
  const clock = new FakeClock(DAY_S * 1000);
  await using store = await open(directory.file("state.db"), clock);
  await store.quotas.syncConsumers(["acme"]);
  const day = (index: number): BudgetCharge => daily(99n, DAY_S + index * 86_400);
  for (let index = -60; index <= 0; index += 1) await store.quotas.charge("acme", [day(index), monthly(99n)], true);
  await store.prune();
  const usage = async (window: BudgetCharge): Promise<bigint | undefined> =>
    (await store.quotas.usage(["acme"], [window]))[0]?.[0];
  assert.deepEqual(await Promise.all([-60, -41, -40, 0].map(async (index) => await usage(day(index)))), [
    0n,
    0n,
    1n,
    1n,
  ]);
  clock.jumpWallClock(3650 * 86_400_000);
  await store.quotas.charge("acme", [day(3650)], true);
  await store.prune();
  assert.deepEqual([await usage(day(0)), await usage(day(3650)), await usage(monthly(0n))], [1n, 1n, 61n]);
});

test("the outbox gives events back in order until each target had its outcome, over restarts", async () => {
  await using directory = await temporaryDirectory();
  const path = directory.file("state.db");
  const event = (id: string, ...targets: string[]): OutboxEvent => ({
    id,
    kind: "breaker_opened",
    createdMs: 5,
    envelope: `{"id":"${id}"}`,
    targets,
  });
  {
    await using store = await open(path);
    await store.outbox.append(event("evt-2", "https://a/", "https://b/"));
    await store.outbox.append(event("evt-1", "https://a/"));
    await store.outbox.append(event("evt-0"));
    await store.outbox.append(event("evt-1", "https://c/"));
    await store.outbox.acknowledge("evt-2", "https://b/");
    await store.outbox.acknowledge("evt-2", "https://unknown/");
    await store.outbox.acknowledge("evt-none", "https://a/");
  }
  await using store = await open(path);
  assert.deepEqual(await store.outbox.pending(), [event("evt-2", "https://a/"), event("evt-1", "https://a/")]);
  await store.outbox.acknowledge("evt-2", "https://a/");
  assert.deepEqual(await store.outbox.pending(), [event("evt-1", "https://a/")]);
});

test("the outbox keeps 10,000 events: acknowledged ones go first, then the oldest, and acknowledged ones after a day", async () => {
  await using directory = await temporaryDirectory();
  const path = directory.file("state.db");
  const clock = new FakeClock(DAY_S * 1000);
  await (await open(path, clock)).close();
  // Written in one go, since each append is a commit.
  const seeded = new DatabaseSync(path);
  seeded.exec(`BEGIN;
    WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 9999)
      INSERT INTO event (seq, id, kind, created_ms, envelope, acked_ms)
      SELECT i + 1, iif(i = 0, 'old-pending', iif(i < 3, 'done-', 'p') || iif(i < 3, i, i - 3)), 'config_published', 0,
        '{}', iif(i IN (1, 2), ${DAY_S * 1000}, NULL) FROM n;
    INSERT INTO event_target SELECT seq, 't' FROM event WHERE acked_ms IS NULL;
    COMMIT`);
  seeded.close();
  await using store = await open(path, clock);
  const append = async (id: string, ...targets: string[]): Promise<void> =>
    await store.outbox.append({ id, kind: "config_published", createdMs: 0, envelope: "{}", targets });
  await append("one-more", "t");
  const ids = async (): Promise<string[]> => (await store.outbox.pending()).map(({ id }) => id);
  assert.equal((await ids()).length, 9999);
  assert.equal((await ids())[0], "old-pending");
  await append("two-more", "t");
  assert.equal((await ids())[0], "old-pending");
  await append("three-more", "t");
  const left = await ids();
  assert.equal(left.length, 10_000);
  assert.equal(left[0], "p0");
  await store.outbox.acknowledge("p0", "t");
  clock.jumpWallClock(86_400_000 + 1);
  await store.prune();
  await store.close();
  const database = new DatabaseSync(path);
  assert.equal(database.prepare("SELECT COUNT(*) AS n FROM event").get()?.["n"], 9999);
  assert.equal(database.prepare("SELECT COUNT(*) AS n FROM event_target").get()?.["n"], 9999);
  database.close();
});

const generation = (number: number, text = "routes: []\n"): GenerationRecord => ({
  generation: number,
  contentHash: Number.MAX_SAFE_INTEGER - number,
  routeCount: number * 2,
  publishedMs: number,
  source: number % 2 === 0 ? "admin" : "reload",
  actor: "ops",
  text,
});

test("generations come back newest first, with all 53 bits of their hash; the newest hundred are kept", async () => {
  await using directory = await temporaryDirectory();
  await using store = await open(directory.file("state.db"));
  for (let number = 1; number <= 103; number += 1) await store.recordGeneration(generation(number));
  const [newest, second] = [generation(103), generation(102)].map(({ text: _, ...facts }) => facts);
  assert.deepEqual(await store.generations(2), [newest, second]);
  const all = await store.generations(1000);
  assert.deepEqual([all.length, all.at(-1)?.generation], [100, 4]);
  assert.deepEqual(await store.generation(4), generation(4));
  assert.equal(await store.generation(3), undefined);
});

test("generations of a file from before numbers went on over restarts get numbers of their own, and count their routes", async () => {
  await using directory = await temporaryDirectory();
  const path = directory.file("state.db");
  const before = directory.file("migrations");
  mkdirSync(before);
  const own = new URL("./migrations/", import.meta.url);
  for (const name of readdirSync(own).slice(0, 2)) copyFileSync(new URL(name, own), `${before}/${name}`);
  const database = openStateDatabase({ path, nowMs: 0, migrations: pathToFileURL(`${before}/`) });
  const add = database.prepare(
    "INSERT INTO generation (number, content_hash, published_ms, source, actor, text) VALUES (?, 7, 8, 'admin', 'ops', ?)",
  );
  for (const [number, text] of [
    [1, '{"routes":[{},{}]}'],
    [2, "{}"],
    [1, "routes: [a YAML text]"],
  ] as const) {
    add.run(number, text);
  }
  database.close();
  await using store = await open(path);
  const all = await store.generations(9);
  assert.deepEqual(
    all.map((one) => [one.generation, one.routeCount]),
    [
      [3, 0],
      [2, 0],
      [1, 2],
    ],
  );
  const facts = { contentHash: 7, publishedMs: 8, source: "admin", actor: "ops" } as const;
  assert.deepEqual(await store.generation(1), { ...facts, generation: 1, routeCount: 2, text: '{"routes":[{},{}]}' });
  await store.recordGeneration(generation(4));
  await assert.rejects(store.recordGeneration(generation(4)));
});

test("generations are kept as long as their texts have 64 MiB together, and five of them however long", async () => {
  await using directory = await temporaryDirectory();
  await using store = await open(directory.file("state.db"));
  const kept = async (): Promise<number[]> => (await store.generations(1000)).map((one) => one.generation);
  const long = "x".repeat(8 * 1024 * 1024);
  for (let number = 1; number <= 8; number += 1) await store.recordGeneration(generation(number, long));
  assert.deepEqual(await kept(), [8, 7, 6, 5, 4, 3, 2, 1]);
  await store.recordGeneration(generation(9, "x"));
  assert.deepEqual(await kept(), [9, 8, 7, 6, 5, 4, 3, 2]);
  for (let number = 10; number <= 14; number += 1) {
    await store.recordGeneration(generation(number, long.repeat(2)));
  }
  assert.deepEqual(await kept(), [14, 13, 12, 11, 10]);
});

test("usage is added per consumer, hour and day, and summed over stretches", async () => {
  await using directory = await temporaryDirectory();
  await using store = await open(directory.file("state.db"));
  const row = (consumer: string, hour: number): UsageRow => ({
    consumer,
    hourStartS: DAY_S + hour * 3600,
    requests: 2,
    errors: 1,
    rateLimited: 1,
    shed: 0,
    totalMs: 1.5,
  });
  await store.usage.add([row("a", 0), row("a", 0), row("b", 1)]);
  await store.usage.add([row("a", 30), row("a", 0)]);
  const total = (consumer: string, times: number): UsageTotal => {
    return { consumer, requests: 2 * times, errors: times, rateLimited: times, shed: 0, totalMs: 1.5 * times };
  };
  const totals = async (span: "hour" | "day", from: number, to: number): Promise<unknown> =>
    await store.usage.totals(span, DAY_S + from * 3600, DAY_S + to * 3600);
  assert.deepEqual(await totals("hour", 0, 24), { totals: [total("a", 3), total("b", 1)], rollups: 2 });
  assert.deepEqual(await totals("hour", 0, 31), { totals: [total("a", 4), total("b", 1)], rollups: 3 });
  assert.deepEqual(await totals("hour", 2, 30), { totals: [], rollups: 0 });
  assert.deepEqual(await totals("day", 0, 48), { totals: [total("a", 4), total("b", 1)], rollups: 2 });
  assert.equal(await store.usage.oldestHour(), DAY_S);
});

test("calls of a closed store fail, and closing waits for earlier calls", async () => {
  await using directory = await temporaryDirectory();
  const path = directory.file("state.db");
  const store = await open(path);
  const sync = store.quotas.syncConsumers(["acme"]);
  const charge = store.quotas.charge("acme", [daily(5n)], true);
  const closing = store.close();
  await Promise.all([sync, closing, store.close()]);
  assert.equal((await charge).outcome, "charged");
  assert.equal((await store.quotas.charge("acme", [daily(5n)], true)).outcome, "failed");
  await assert.rejects(store.outbox.pending(), /closed/u);
  await assert.rejects(store.quotas.syncConsumers(["late"]), /closed/u);
  await using again = await open(path);
  assert.deepEqual(await again.quotas.usage(["acme"], [daily(0n)]), [[1n]]);
});

/** A small file system of its own; undefined (with a line that says so) where that is not allowed. */
async function smallDisk(context: TestContext, path: string): Promise<AsyncDisposable | undefined> {
  mkdirSync(path);
  const isRoot = process.platform === "linux" && process.getuid?.() === 0;
  const mounted = isRoot ? await runProcess("mount", ["-t", "tmpfs", "-o", "size=2m", "tmpfs", path]) : undefined;
  if (mounted?.code !== 0) {
    context.skip("needs the right to mount a tmpfs");
    return undefined;
  }
  return { [Symbol.asyncDispose]: async () => void (await runProcess("umount", ["-l", path])) };
}

test("on a full disk charges fail with a message, logged once; with space again they are counted without a restart", async (context) => {
  await using directory = await temporaryDirectory();
  await using disk = await smallDisk(context, directory.file("disk"));
  if (disk === undefined) return;
  const lines: string[] = [];
  const store = await openStateStore({
    path: directory.file("disk", "state.db"),
    clock: new FakeClock(DAY_S * 1000),
    log: pino({}, { write: (line: string) => void lines.push((JSON.parse(line) as { code: string }).code) }),
  });
  await store.quotas.syncConsumers(["acme"]);
  let charged = 0;
  const charge = async (): Promise<ChargeResult> => {
    const result = await store.quotas.charge("acme", [daily(1_000_000n), monthly(1_000_000n)], true);
    if (result.outcome === "charged") charged += 1;
    return result;
  };
  await charge();
  const ballast = directory.file("disk", "ballast");
  for (let size = 65_536; size >= 1024; size /= 2) {
    // Until nothing fits any more, not even the next page of the log.
    try {
      for (;;) appendFileSync(ballast, Buffer.alloc(size));
    } catch (error) {
      assert.equal((error as NodeJS.ErrnoException).code, "ENOSPC");
    }
  }
  let failure: ChargeResult = { outcome: "unsynced" };
  for (let tries = 0; tries < 1000 && failure.outcome !== "failed"; tries += 1) failure = await charge();
  assert.match(failure.outcome === "failed" ? failure.error : "", /^The disk of the state store is full/u);
  assert.equal((await charge()).outcome, "failed");
  await assert.rejects(
    store.outbox.append({ id: "e", kind: "k", createdMs: 0, envelope: "", targets: ["t"] }),
    /is full/u,
  );
  assert.deepEqual(await store.quotas.usage(["acme"], [daily(0n)]), [[BigInt(charged)]], "it can be read meanwhile");
  rmSync(ballast);
  assert.equal((await charge()).outcome, "charged");
  assert.deepEqual(await store.quotas.usage(["acme"], [daily(0n), monthly(0n)]), [[BigInt(charged), BigInt(charged)]]);
  await store.close();
  assert.deepEqual(lines, ["state_store_failed", "state_store_recovered"]);
});

test("a file system that becomes read-only fails charges, and one that is read-only from the start is refused", async (context) => {
  await using directory = await temporaryDirectory();
  const path = directory.file("disk");
  await using disk = await smallDisk(context, path);
  if (disk === undefined) return;
  const file = directory.file("disk", "state.db");
  {
    await using store = await open(file);
    await store.quotas.syncConsumers(["acme"]);
  }
  await runProcess("mount", ["-o", "remount,ro", path]);
  await assert.rejects(open(file), { name: "StateStoreError", errorKind: "read-only" });
  await runProcess("mount", ["-o", "remount,rw", path]);
  await using store = await open(file);
  await store.quotas.syncConsumers(["acme"]);
  assert.equal((await store.quotas.charge("acme", [daily(9n)], true)).outcome, "charged");
});

test("a torn end of the log costs at most what it held, and the store opens", async () => {
  await using directory = await temporaryDirectory();
  const path = directory.file("state.db");
  for (const cut of [1, 24, 25, 100, 4096, 4121]) {
    const store = await open(path);
    await store.quotas.syncConsumers(["acme"]);
    const [before] = await store.quotas.usage(["acme"], [daily(0n)]);
    for (let count = 0; count < 3; count += 1) await store.quotas.charge("acme", [daily(1000n)], true);
    // As a crash leaves them: the files, copied while the store is open. Other handles would drop its lock.
    assert.equal((await runProcess("cp", [path, directory.file("copy.db")])).code, 0);
    assert.equal((await runProcess("cp", [`${path}-wal`, directory.file("copy.db-wal")])).code, 0);
    await store.close();
    const wal = directory.file("copy.db-wal");
    truncateSync(wal, Math.max(0, statSync(wal).size - cut));
    await using torn = await open(directory.file("copy.db"));
    const [after] = await torn.quotas.usage(["acme"], [daily(0n)]);
    const added = (after?.[0] ?? 0n) - (before?.[0] ?? 0n);
    assert.ok(added >= 1n && added <= 3n, `${cut} bytes cost ${3n - added} charges`);
  }
});

const CASES: readonly (readonly [string, readonly number[], number])[] = [
  ["nothing more leaves with its own turn", [0, 5, 5], 1],
  ["more in the first turns leaves with the first that brings nothing", [3, 1, 0, 7], 3],
  ["more in every turn leaves with the eighth", [1, 1, 1, 1, 1, 1, 1, 1, 1, 1], 8],
];
for (const [what, arrivals, leavesWith] of CASES) {
  test(`a group that gets ${what}`, () => {
    let count = 1;
    let ranIn = 0;
    let next: (() => void) | undefined;
    atQuietTurn(
      () => count,
      () => (ranIn = at + 1),
      (turn) => (next = turn),
    );
    let at = 0;
    for (; next !== undefined; at += 1) {
      count += arrivals[at] ?? 0;
      const turn = next;
      next = undefined;
      turn();
    }
    assert.equal(ranIn, leavesWith);
  });
}
