import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "@headworks/testkit";
import { openDatabase, STATE_MIGRATIONS } from "#storage/database.ts";
import { newMock, plainDraft } from "./mock-rule.ts";
import { createMocksStore } from "./mocks.store.ts";
import { createHitStore, createMockHits, type HitStore, type StoredHit } from "./mocks.task.ts";

const hit = (mockId: string, atMs: number, timeMs = 1): StoredHit => ({
  mockId,
  atMs,
  url: "http://a.test/",
  method: "GET",
  status: 200,
  timeMs,
  index: null,
});

function rig() {
  const database = openDatabase(":memory:", { migrations: STATE_MIGRATIONS });
  const rules = createMocksStore(database);
  for (const id of ["a", "b"]) {
    rules.insert([newMock(id, plainDraft(id, { type: "all" }, { type: "probabilistic", responses: [] }), 0)]);
  }
  const hitStore = createHitStore(database);
  const clock = new FakeClock();
  const failures: unknown[] = [];
  const open = (store: HitStore = hitStore) =>
    createMockHits({ store, progress: rules.progress(), clock, onFailure: (error) => failures.push(error) });
  return { database, rules, hitStore, clock, failures, open };
}

test("counts, sequence indexes and history are written periodically and at the end, and survive a restart", async () => {
  const { database, clock, open } = rig();
  const hits = open();
  const stop = new AbortController();
  hits.task.start(stop.signal);
  Object.assign(hits.progress("a"), { hits: 3, nextIndex: 2 });
  hits.touched("a");
  hits.answered(hit("a", 10, 5));
  hits.answered(hit("a", 30, 1));
  assert.deepEqual(open().history(), []);
  await clock.advance(2000);
  const reopened = open();
  assert.deepEqual(reopened.history(), [hit("a", 10, 5), hit("a", 30, 1)]);
  assert.deepEqual(reopened.progress("a"), { hits: 3, nextIndex: 2 });
  assert.deepEqual(reopened.stats("a"), { total: 2, sumMs: 6, minMs: 1, maxMs: 5, firstMs: 10, lastMs: 30 });
  assert.equal(reopened.stats("b"), undefined);
  hits.answered(hit("b", 40));
  stop.abort();
  assert.equal(open().history().length, 3);
  assert.equal(clock.pendingTimers, 0);
  database.close();
});

test("the history keeps the last thousand hits, in memory and on disk; statistics cover all", () => {
  const { database, open } = rig();
  const hits = open();
  for (let index = 0; index < 4500; index += 1) hits.answered(hit("a", index));
  const last = (list: readonly StoredHit[]) => [list.length, list[0]?.atMs, list.at(-1)?.atMs];
  assert.deepEqual(last(hits.history()), [1000, 3500, 4499]);
  hits.persist();
  assert.deepEqual(last(open().history()), [1000, 3500, 4499]);
  assert.equal(open().stats("a")?.total, 4500);
  assert.equal(Number(database.prepare("SELECT COUNT(*) AS n FROM mock_hits").get()?.["n"]), 1000);
  database.close();
});

test("failed writes are retried", () => {
  const { database, hitStore, failures, open } = rig();
  let isBroken = true;
  const hits = open({
    ...hitStore,
    save: (batch) => {
      if (isBroken) throw new Error("disk full");
      hitStore.save(batch);
    },
  });
  hits.progress("a").hits = 1;
  hits.touched("a");
  hits.answered(hit("a", 1));
  hits.persist();
  assert.equal(failures.length, 1);
  isBroken = false;
  hits.persist();
  assert.deepEqual([open().history().length, open().progress("a").hits], [1, 1]);
  database.close();
});

test("deleting a rule removes its statistics but not its history, and a late hit does no harm", () => {
  const { database, rules, open } = rig();
  const hits = open();
  hits.answered(hit("a", 1));
  hits.persist();
  rules.remove(["a"]);
  hits.forget("a");
  hits.answered(hit("a", 2));
  hits.persist();
  assert.equal(open().stats("a"), undefined);
  assert.equal(open().history().length, 2);
  hits.clearHistory();
  assert.deepEqual([hits.history(), open().history()], [[], []]);
  database.close();
});
