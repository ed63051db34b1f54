import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { FakeClock, temporaryDirectory } from "@headworks/testkit";
import { type Database, openDatabase } from "#storage/database.ts";
import { createHitCounter, RuleTable, type StoredRule } from "./rule-table.ts";

interface Named extends StoredRule {
  readonly name: string;
  readonly parts: readonly string[];
}

const SCHEMA = `CREATE TABLE named (id TEXT PRIMARY KEY, name TEXT NOT NULL, parts TEXT NOT NULL, enabled INTEGER NOT NULL,
  hit_count INTEGER NOT NULL, created_at_ms INTEGER NOT NULL, updated_at_ms INTEGER NOT NULL, position INTEGER NOT NULL UNIQUE)
  STRICT, WITHOUT ROWID`;

function tableOf(database: Database): RuleTable<Named> {
  return new RuleTable(database, {
    table: "named",
    columns: { name: ({ name }) => name, parts: ({ parts }) => JSON.stringify(parts) },
    read: (row) => ({ name: String(row["name"]), parts: JSON.parse(String(row["parts"])) as string[] }),
  });
}

const named = (id: string, changes: Partial<Named> = {}): Named => ({
  id,
  name: `rule ${id}`,
  parts: ["a"],
  enabled: true,
  hitCount: 0,
  createdAtMs: 1,
  updatedAtMs: 1,
  ...changes,
});

const ids = fc.constantFrom("a", "b", "c", "d");
type Step = (table: RuleTable<Named>) => unknown;
const steps: fc.Arbitrary<Step> = fc.oneof(
  ids.map(
    (id): Step =>
      (table) =>
        table.find(id) ?? table.insert(named(id)),
  ),
  fc.tuple(ids, fc.string(), fc.boolean()).map(
    ([id, name, enabled]): Step =>
      (table) =>
        table.update(named(id, { name, enabled, updatedAtMs: 2, parts: [name, id] })),
  ),
  ids.map(
    (id): Step =>
      (table) =>
        table.remove(id),
  ),
  fc.tuple(ids, fc.nat(5)).map(
    ([id, count]): Step =>
      (table) =>
        table.addHits(new Map([[id, count]])),
  ),
  fc.constant<Step>((table) => table.updateAll(table.list().map((rule) => ({ ...rule, enabled: false })))),
  fc.uniqueArray(ids).map((list): Step => (table) => {
    table.replaceAll(list.map((id) => named(id, { hitCount: 3 })));
    table.reload();
  }),
);

test("rules in memory equal the stored ones, in the same order, after any operation", async () => {
  await using directory = await temporaryDirectory();
  const database = openDatabase(directory.file("rules.db"), { synchronous: "NORMAL" });
  database.exec(SCHEMA);
  fc.assert(
    fc.property(fc.array(steps, { maxLength: 20 }), (list) => {
      const table = tableOf(database);
      table.replaceAll([]);
      table.reload();
      for (const step of list) step(table);
      assert.deepEqual(table.list(), tableOf(database).list());
    }),
    { numRuns: 100 },
  );
  database.close();
});

test("a failed write changes nothing in memory, and an unchanged rule stays the same object", async () => {
  await using directory = await temporaryDirectory();
  const database = openDatabase(directory.file("rules.db"));
  database.exec(SCHEMA);
  const table = tableOf(database);
  table.insert(named("a"));
  table.insert(named("b"));
  const before = table.list();
  const impossible = named("a", { name: null as unknown as string });
  assert.throws(() => table.update(impossible), /NOT NULL/u);
  assert.throws(() => table.updateAll([named("b", { name: "other" }), impossible]), /NOT NULL/u);
  assert.throws(() => table.insert(named("a")), /UNIQUE/u);
  assert.throws(() => table.replaceAll([named("c"), impossible]), /NOT NULL/u);
  assert.deepEqual(table.list(), before);
  table.update(named("b", { name: "other" }));
  table.addHits(new Map([["a", 2]]));
  const [first, second] = table.list();
  assert.equal(first?.parts, before[0]?.parts);
  assert.equal(first?.hitCount, 2);
  assert.equal(second?.name, "other");
  assert.equal(table.update(named("z")), false);
  assert.equal(table.remove("z"), false);
  database.close();
});

function setUp() {
  const stored = new Map<string, number>();
  const clock = new FakeClock();
  const failures: unknown[] = [];
  const state = { batches: 0, isBroken: false };
  const hits = createHitCounter({
    addHits: (batch) => {
      if (state.isBroken) throw new Error("disk full");
      state.batches += 1;
      for (const [id, count] of batch) stored.set(id, (stored.get(id) ?? 0) + count);
    },
    every: (intervalMs, callback) => clock.every(intervalMs, callback),
    onFailure: (error) => failures.push(error),
  });
  return { stored, clock, failures, state, hits };
}

test("hits are written in batches, and the rest at the end", async () => {
  const { stored, clock, state, hits } = setUp();
  const controller = new AbortController();
  hits.start(controller.signal);
  for (let count = 0; count < 1000; count += 1) hits.hit(count % 4 === 0 ? "b" : "a");
  assert.deepEqual([stored.size, hits.pending("a")], [0, 750]);
  await clock.advance(20_000);
  assert.deepEqual(
    [...stored],
    [
      ["b", 250],
      ["a", 750],
    ],
  );
  assert.deepEqual([state.batches, hits.pending("a")], [1, 0]);
  hits.hit("a");
  controller.abort();
  assert.equal(stored.get("a"), 751);
});

test("counts survive failed writes, and counts of deleted rules are dropped", async () => {
  const { stored, clock, state, failures, hits } = setUp();
  hits.start(new AbortController().signal);
  state.isBroken = true;
  hits.hit("a");
  hits.hit("b");
  await clock.advance(2000);
  hits.hit("a");
  hits.forget("b");
  assert.equal(failures.length, 1);
  assert.equal(hits.pending("a"), 2);
  state.isBroken = false;
  await clock.advance(2000);
  assert.deepEqual([...stored], [["a", 2]]);
  hits.hit("a");
  hits.forgetAll();
  assert.equal(hits.pending("a"), 0);
});
