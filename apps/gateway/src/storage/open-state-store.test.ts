import assert from "node:assert/strict";
import { existsSync, readdirSync, statSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { FakeClock, temporaryDirectory } from "@headworks/testkit";
import { pino } from "pino";
import { openStateStore } from "./open-state-store.ts";
import type { BudgetCharge, StateStore } from "./state-store.ts";

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
  await assert.rejects(open(path), { name: "StateStoreError", trouble: "busy", message: /in use by another process/u });
  assert.ok(existsSync(path));
  assert.equal((await store.quotas.charge("acme", [daily(1n)], true)).outcome, "charged");
  assert.ok(readdirSync(directory.path).length > 0);
  assert.throws(() => new DatabaseSync(path, { timeout: 0 }).exec("SELECT * FROM consumer"), /locked/u);
});
