import assert from "node:assert/strict";
import fc from "fast-check";
import { test } from "node:test";
import { temporaryDirectory } from "@headworks/testkit";
import { openDatabase, type Statement } from "../database.ts";
import { type EntrySource, FilteredSet, planFilter, SeqSet } from "./filtered-set.ts";

const step = fc.oneof(
  fc.constant({ kind: "older" as const }),
  fc.constant({ kind: "newer" as const }),
  fc.nat(200).map((seq) => ({ kind: "insert" as const, seq })),
  fc.array(fc.nat(200), { maxLength: 5 }).map((seqs) => ({ kind: "remove" as const, seqs })),
);

test("a set behaves like a sorted array under any additions and removals", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const set = new SeqSet();
      let model: number[] = [];
      let lowest = 100;
      let highest = 100;
      for (const action of steps) {
        if (action.kind === "older") {
          lowest -= 1;
          set.addOldest(lowest);
          model.push(lowest);
        } else if (action.kind === "newer") {
          highest += 1;
          set.addNewest(highest);
          model.push(highest);
        } else if (action.kind === "insert") {
          if (model.includes(action.seq) || action.seq <= lowest || action.seq >= highest) continue;
          set.insert(action.seq);
          model.push(action.seq);
        } else {
          set.removeAll(new Set(action.seqs));
          model = model.filter((seq) => !action.seqs.includes(seq));
        }
        model.sort((left, right) => right - left);
        assert.deepEqual(set.slice(0, 1000), model);
        assert.equal(set.length, model.length);
        for (const seq of [lowest, 100, highest + 1]) {
          const index = model.findIndex((value) => value < seq);
          assert.equal(set.indexBelow(seq), index === -1 ? model.length : index);
        }
      }
    }),
  );
});

test("an entry committed between two queries of one update is found by the next update", async () => {
  await using directory = await temporaryDirectory();
  const database = openDatabase(directory.file("entries.db"));
  database.exec("CREATE TABLE entry (seq INTEGER PRIMARY KEY, session INTEGER)");
  database.exec("CREATE INDEX entry_by_session ON entry (session, seq)");
  let committed = 0;
  let isBusy = true;
  const commit = (): void => {
    if (!isBusy) return;
    committed += 1;
    database.exec(`INSERT INTO entry VALUES (${committed}, 1)`);
  };
  const prepare = (sql: string): Statement => {
    const statement = database.prepare(sql);
    const get: Statement["get"] = (...values) => {
      const row = statement.get(...values);
      commit();
      return row;
    };
    return { ...statement, get };
  };
  const source = {
    database: { ...database, prepare },
    bodies: {},
    index: undefined,
  } as unknown as EntrySource;
  const set = new FilteredSet(source, { number: 1, id: "one", floorSeq: 0, entryCount: 0 }, planFilter({}, 0));
  for (let round = 0; round < 5; round += 1) await set.extend({ cancelled: false }, () => false);
  isBusy = false;
  await set.extend({ cancelled: false }, () => false);
  const all = Array.from({ length: committed }, (_, at) => committed - at);
  assert.ok(committed > 5);
  assert.deepEqual(set.seqs.all(), all);
  database.close();
});
