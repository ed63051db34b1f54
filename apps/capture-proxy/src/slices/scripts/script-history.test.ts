import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock, temporaryDirectory } from "@headworks/testkit";
import { openDatabase, STATE_MIGRATIONS } from "#storage/database.ts";
import type { Database } from "#storage/database.ts";
import { createScriptHistory, createScriptValues, MAX_VALUES_BYTES } from "./script-history.ts";
import type { HookCall } from "#scripting/script-pipeline.ts";
import type { ScriptHistory } from "./script-history.ts";

const FLUSH_MS = 2000;

function addScript(database: Database, id: string): void {
  database
    .prepare(
      `INSERT INTO scripts (id, name, source, hooks, on_error, priority, enabled, hit_count, created_at_ms,
         updated_at_ms, position)
       VALUES (?, ?, '', '[]', 'continue', 100, 1, 0, 0, 0, (SELECT COUNT(*) + 1 FROM scripts))`,
    )
    .run(id, id);
}

interface Rig {
  readonly database: Database;
  readonly clock: FakeClock;
  readonly history: ScriptHistory;
  readonly failures: unknown[];
  readonly stop: AbortController;
  limit: number;
}

function rig(path = ":memory:", limit = 10): Rig {
  const database = openDatabase(path, { migrations: STATE_MIGRATIONS });
  const clock = new FakeClock();
  const failures: unknown[] = [];
  const stop = new AbortController();
  const made: Rig = {
    database,
    clock,
    failures,
    stop,
    limit,
    history: createScriptHistory({
      database,
      clock,
      limit: () => made.limit,
      exists: (id) => database.prepare("SELECT 1 FROM scripts WHERE id = ?").get(id) !== undefined,
      onFailure: (error) => failures.push(error),
    }),
  };
  made.history.start(stop.signal);
  return made;
}

function execution(number: number, more: Partial<HookCall> = {}): HookCall {
  return {
    scriptId: "s",
    scriptName: "s",
    hook: "on_request",
    entryId: null,
    durationMs: number,
    error: null,
    console: [],
    changes: [],
    atMs: number,
    ...more,
  };
}

const numbers = (history: ScriptHistory, limit = 1000): number[] =>
  history.list(limit).map(({ duration_ms }) => duration_ms);

test("executions are written every two seconds and at the end, and are there after a restart", async () => {
  await using directory = await temporaryDirectory();
  const path = directory.file("weir.db");
  const first = rig(path);
  addScript(first.database, "s");
  first.history.record(execution(1));
  const stored = first.database.prepare("SELECT COUNT(*) AS count FROM script_executions");
  assert.equal(stored.get()?.["count"], 0);
  await first.clock.advance(FLUSH_MS);
  assert.equal(stored.get()?.["count"], 1);
  first.history.record(execution(2));
  first.stop.abort();
  first.database.close();
  const second = rig(path);
  assert.deepEqual(numbers(second.history), [2, 1]);
  assert.equal(second.history.count(), 2);
  second.database.close();
});

test("the newest executions are kept, also of those that wait, and a lower limit removes the oldest", async () => {
  const { database, history, clock, ...rest } = rig(":memory:", 3);
  addScript(database, "s");
  for (let number = 1; number <= 20; number += 1) history.record(execution(number));
  assert.deepEqual(numbers(history), [20, 19, 18]);
  history.record(execution(21));
  await clock.advance(FLUSH_MS);
  assert.deepEqual(numbers(history), [21, 20, 19]);
  assert.equal(history.count(), 3);
  assert.deepEqual(rest.failures, []);
  database.close();
});

test("a lower limit removes the oldest executions, and none are kept with a limit of 0", async () => {
  const made = rig();
  const { database, history, clock } = made;
  addScript(database, "s");
  for (let number = 1; number <= 5; number += 1) history.record(execution(number));
  await clock.advance(FLUSH_MS);
  made.limit = 2;
  await clock.advance(FLUSH_MS);
  assert.equal(database.prepare("SELECT COUNT(*) AS count FROM script_executions").get()?.["count"], 2);
  assert.deepEqual(numbers(history), [5, 4]);
  made.limit = 0;
  history.record(execution(6));
  await clock.advance(FLUSH_MS);
  assert.deepEqual(numbers(history), []);
  made.limit = 10;
  history.record(execution(7));
  assert.deepEqual(numbers(history), [7]);
  database.close();
});

test("many executions are written in parts, also at the end, and are read whole meanwhile", async () => {
  const { database, history, clock, stop } = rig(":memory:", 10_000);
  addScript(database, "s");
  const stored = database.prepare("SELECT COUNT(*) AS count FROM script_executions");
  const record = (count: number): void => {
    for (let number = 1; number <= count; number += 1) history.record(execution(number));
  };
  record(1200);
  await clock.advance(FLUSH_MS);
  assert.equal(stored.get()?.["count"], 500);
  assert.equal(history.count(), 1200);
  assert.deepEqual(numbers(history, 3), [1200, 1199, 1198]);
  await clock.advance(100);
  assert.equal(stored.get()?.["count"], 1200);
  record(1200);
  stop.abort();
  assert.equal(stored.get()?.["count"], 2400);
  record(1200);
  history.flush();
  assert.equal(stored.get()?.["count"], 3600);
  database.close();
});

test("clearing one script removes its written and unwritten executions, and the limit counts what is left", async () => {
  const { database, history, clock } = rig(":memory:", 4);
  for (const id of ["s", "t"]) addScript(database, id);
  history.record(execution(1));
  history.record(execution(2, { scriptId: "t" }));
  await clock.advance(FLUSH_MS);
  history.record(execution(3));
  history.clear("s");
  assert.deepEqual([history.count("s"), history.count("t"), history.count()], [0, 1, 1]);
  for (let number = 4; number <= 6; number += 1) history.record(execution(number));
  assert.deepEqual(numbers(history), [6, 5, 4, 2]);
  database.close();
});

test("executions that the disk refuses wait, are shown, and are written once it takes them", async () => {
  const { database, history, clock, failures } = rig();
  addScript(database, "s");
  database.exec("ALTER TABLE script_executions RENAME COLUMN at_ms TO at");
  history.record(execution(1, { entryId: "e" }));
  await clock.advance(FLUSH_MS);
  assert.equal(failures.length, 1);
  assert.deepEqual(history.ofEntry("e").length + failures.length, 3, "shown; the read tried to write, too");
  database.exec("ALTER TABLE script_executions RENAME COLUMN at TO at_ms");
  await clock.advance(FLUSH_MS);
  assert.equal(database.prepare("SELECT COUNT(*) AS count FROM script_executions").get()?.["count"], 1);
  assert.deepEqual(numbers(history), [1]);
  database.close();
});

test("executions of deleted scripts stay with their entries only", () => {
  const { database, history } = rig();
  for (const id of ["s", "t"]) addScript(database, id);
  history.record(execution(1, { entryId: "e" }));
  history.record(execution(2));
  history.record(execution(3, { scriptId: "t", entryId: "e" }));
  database.exec("DELETE FROM scripts WHERE id = 's'");
  history.forgetDeleted();
  assert.deepEqual(numbers(history), [3]);
  assert.equal(history.count(), 1);
  assert.deepEqual(
    history.ofEntry("e").map(({ duration_ms }) => duration_ms),
    [1, 3],
  );
  assert.equal(database.prepare("SELECT COUNT(*) AS count FROM script_executions").get()?.["count"], 2);
  database.close();
});

test("at most 200 executions are shown with an entry", () => {
  const { database, history } = rig(":memory:", 1000);
  addScript(database, "s");
  for (let number = 1; number <= 201; number += 1) history.record(execution(number, { entryId: "e" }));
  const shown = history.ofEntry("e");
  assert.deepEqual([shown.length, shown[0]?.duration_ms, shown.at(-1)?.duration_ms], [200, 1, 200]);
  database.close();
});

function valuesRig() {
  const database = openDatabase(":memory:", { migrations: STATE_MIGRATIONS });
  for (const id of ["s", "t"]) addScript(database, id);
  return { database, values: createScriptValues(database) };
}

const plain = (all: Map<string, Record<string, string>>): unknown =>
  Object.fromEntries([...all].map(([id, values]) => [id, { ...values }]));

test("values are set, replaced and removed per script, whatever their keys", () => {
  const { database, values } = valuesRig();
  const keys = JSON.parse('{"__proto__": "p", "constructor": "c", "": "empty", "ä": "ö"}') as Record<string, string>;
  values.write("s", keys);
  values.write("t", { a: "1", b: "2" });
  values.write("t", { a: "3", b: null, missing: null });
  assert.deepEqual(plain(values.all()), { s: keys, t: { a: "3" } });
  database.close();
});

test("the values of a script have at most 1 MiB of UTF-8, keys included; a larger write changes nothing", () => {
  const { database, values } = valuesRig();
  values.write("s", { key: "ä".repeat((MAX_VALUES_BYTES - 4) / 2) });
  values.write("s", { b: "" });
  assert.throws(
    () => values.write("s", { b: "x", c: null }),
    /^RangeError: The stored values of a script are limited to 1048576 bytes, keys included; these have 1048577$/,
  );
  assert.equal(values.all().get("s")?.["b"], "");
  values.write("s", { key: null, b: "x" });
  values.write("t", { key: "the limit is of each script" });
  assert.deepEqual(plain(values.all()), { s: { b: "x" }, t: { key: "the limit is of each script" } });
  database.close();
});

test("values of a deleted script are dropped, and cannot be written", () => {
  const { database, values } = valuesRig();
  values.write("s", { a: "1" });
  database.exec("DELETE FROM scripts WHERE id = 's'");
  values.forgetDeleted();
  values.write("s", { b: "2" });
  assert.deepEqual(plain(values.all()), {});
  database.close();
});
