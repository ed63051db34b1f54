import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { storageErrorKind } from "@headworks/files";
import { temporaryDirectory } from "@headworks/testkit";
import type { TemporaryDirectory } from "@headworks/testkit";
import { openDatabase, STATE_MIGRATIONS, TRAFFIC_MIGRATIONS } from "./database.ts";

function migrations(directory: TemporaryDirectory, files: Readonly<Record<string, string>>): URL {
  const folder = directory.file(`migrations-${Object.keys(files).length}`);
  mkdirSync(folder, { recursive: true });
  for (const [name, sql] of Object.entries(files)) writeFileSync(`${folder}/${name}`, sql);
  return pathToFileURL(`${folder}/`);
}

const ONE = { "0001-things.sql": "CREATE TABLE thing (name TEXT) STRICT;" };
const TWO = {
  ...ONE,
  "0002-more.sql": "ALTER TABLE thing ADD COLUMN size INTEGER; INSERT INTO thing VALUES ('a', 1);",
};

test("migrations are applied once each, in order, starting after the stored version", async () => {
  await using directory = await temporaryDirectory();
  const path = directory.file("state.db");
  for (const files of [ONE, TWO, TWO]) openDatabase(path, { migrations: migrations(directory, files) }).close();
  const database = openDatabase(path, { migrations: migrations(directory, TWO) });
  assert.deepEqual(
    database
      .prepare("SELECT name, size FROM thing")
      .all()
      .map((row) => ({ ...row })),
    [{ name: "a", size: 1 }],
  );
  assert.equal(database.prepare("PRAGMA user_version").get()?.["user_version"], 2);
  database.close();
});

test("a failed migration leaves the file at the previous version", async () => {
  await using directory = await temporaryDirectory();
  const path = directory.file("state.db");
  const broken = { ...ONE, "0002-broken.sql": "CREATE TABLE half (x); CREATE TABLE thing (again);" };
  assert.throws(() => openDatabase(path, { migrations: migrations(directory, broken) }), /already exists/u);
  const database = openDatabase(path);
  assert.equal(database.prepare("PRAGMA user_version").get()?.["user_version"], 1);
  assert.equal(database.prepare("SELECT COUNT(*) AS n FROM sqlite_schema WHERE name = 'half'").get()?.["n"], 0);
  database.close();
});

test("a file of a newer version is rejected for reading and writing; a gap in the numbers is an error", async () => {
  await using directory = await temporaryDirectory();
  const path = directory.file("state.db");
  openDatabase(path, { migrations: migrations(directory, TWO) }).close();
  for (const readOnly of [false, true]) {
    assert.throws(() => openDatabase(path, { migrations: migrations(directory, ONE), readOnly }), {
      name: "DatabaseTooNewError",
      message: /schema version 2, this program supports up to 1/u,
    });
  }
  const gap = migrations(directory, { "0001-a.sql": "", "0002-b.sql": "", "0004-c.sql": "" });
  assert.throws(() => openDatabase(path, { migrations: gap }), /0004-c\.sql .* should have number 3/u);
});

test("the migrations of both stores apply to an empty file", async () => {
  await using directory = await temporaryDirectory();
  openDatabase(directory.file("a.db"), { migrations: STATE_MIGRATIONS }).close();
  openDatabase(directory.file("b.db"), { migrations: TRAFFIC_MIGRATIONS }).close();
});

test("a transaction is all or nothing, and a nested one joins the outer", async () => {
  await using directory = await temporaryDirectory();
  const database = openDatabase(directory.file("state.db"), { migrations: migrations(directory, ONE) });
  const insert = database.prepare("INSERT INTO thing VALUES (?)");
  const names = (): unknown[] =>
    database
      .prepare("SELECT name FROM thing ORDER BY name")
      .all()
      .map((row) => row["name"]);
  assert.equal(
    database.transaction(() => insert.run("a").changes),
    1,
  );
  assert.throws(
    () =>
      database.transaction(() => {
        insert.run("b");
        database.transaction(() => insert.run("c"));
        throw new Error("no");
      }),
    /no/u,
  );
  assert.deepEqual(names(), ["a"]);
  database.transaction(() => database.transaction(() => insert.run("d")));
  assert.deepEqual(names(), ["a", "d"]);
  database.close();
});

test("a database opened read-only rejects writes", async () => {
  await using directory = await temporaryDirectory();
  const path = directory.file("state.db");
  openDatabase(path, { migrations: migrations(directory, ONE) }).close();
  const database = openDatabase(path, { readOnly: true });
  assert.throws(
    () => database.exec("INSERT INTO thing VALUES ('x')"),
    (error) => storageErrorKind(error) === "read-only",
  );
  database.close();
});
