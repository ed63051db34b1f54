import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "@headworks/testkit";
import { openDatabase, STATE_MIGRATIONS } from "#storage/database.ts";
import { newBlockEntry } from "./block-entry.ts";
import { createBlocklistStore } from "./blocklist.store.ts";
import { createHitCounter } from "./blocklist.worker.ts";

function setUp() {
  const database = openDatabase(":memory:", { migrations: STATE_MIGRATIONS });
  const store = createBlocklistStore(database);
  store.insert(newBlockEntry("a", { pattern: "a.test" }, 0));
  store.insert(newBlockEntry("b", { pattern: "b.test" }, 0));
  const clock = new FakeClock();
  const failures: unknown[] = [];
  let batches = 0;
  let isBroken = false;
  const counted = {
    ...store,
    addHits: (hits: ReadonlyMap<string, number>) => {
      if (isBroken) throw new Error("disk full");
      batches += 1;
      store.addHits(hits);
    },
  };
  const hits = createHitCounter({ store: counted, clock, onFailure: (error) => failures.push(error) });
  const stored = () => Object.fromEntries(store.list().map(({ id, hitCount }) => [id, hitCount]));
  return {
    database,
    clock,
    hits,
    stored,
    failures,
    batches: () => batches,
    setBroken: (value: boolean) => (isBroken = value),
  };
}

test("hits are persisted in batches, not one by one", async () => {
  const { database, clock, hits, stored, batches } = setUp();
  hits.worker.start(new AbortController().signal);
  for (let count = 0; count < 1000; count += 1) hits.hit(count % 4 === 0 ? "b" : "a");
  assert.deepEqual(stored(), { a: 0, b: 0 });
  assert.equal(hits.pending("a"), 750);
  await clock.advance(2000);
  assert.deepEqual(stored(), { a: 750, b: 250 });
  assert.equal(hits.pending("a"), 0);
  await clock.advance(20_000);
  assert.equal(batches(), 1);
  database.close();
});

test("what was counted is persisted at the end", () => {
  const { database, hits, stored } = setUp();
  const controller = new AbortController();
  hits.worker.start(controller.signal);
  hits.hit("a");
  controller.abort();
  assert.deepEqual(stored(), { a: 1, b: 0 });
  database.close();
});

test("counts survive a store that fails for a while", async () => {
  const { database, clock, hits, stored, failures, setBroken } = setUp();
  hits.worker.start(new AbortController().signal);
  setBroken(true);
  hits.hit("a");
  await clock.advance(2000);
  hits.hit("a");
  assert.equal(failures.length, 1);
  assert.equal(hits.pending("a"), 2);
  setBroken(false);
  await clock.advance(2000);
  assert.deepEqual(stored(), { a: 2, b: 0 });
  database.close();
});

test("hits of a deleted entry are forgotten", () => {
  const { database, hits, stored } = setUp();
  hits.hit("a");
  hits.forget("a");
  hits.hit("gone");
  hits.persist();
  assert.deepEqual(stored(), { a: 0, b: 0 });
  database.close();
});
