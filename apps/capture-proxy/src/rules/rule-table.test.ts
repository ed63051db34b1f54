import assert from "node:assert/strict";
import { test } from "node:test";
import { temporaryDirectory } from "@headworks/testkit";
import fc from "fast-check";
import { openDatabase } from "#storage/database.ts";
import type { Database } from "#storage/database.ts";
import { RuleTable } from "./rule-table.ts";
import type { StoredRule } from "./rule-table.ts";

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
