// FilteredSet is also tested by capture-store-search.test.ts.
import assert from "node:assert/strict";
import { test } from "node:test";
import { temporaryDirectory } from "@headworks/testkit";
import { openDatabase } from "../database.ts";
import type { Statement } from "../database.ts";
import { type EntrySource, FilteredSet, planFilter } from "./filtered-set.ts";

test("an entry that is committed between two questions of one look is found by the next", async () => {
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
  for (let look = 0; look < 5; look += 1) await set.extend({ cancelled: false }, () => false);
  isBusy = false;
  await set.extend({ cancelled: false }, () => false);
  const all = Array.from({ length: committed }, (_, at) => committed - at);
  assert.ok(committed > 5);
  assert.deepEqual(set.all(), all);
  database.close();
});
