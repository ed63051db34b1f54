import assert from "node:assert/strict";
import { chmodSync, mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { temporaryDirectory } from "@headworks/testkit";
import type { TemporaryDirectory } from "@headworks/testkit";
import { openStateDatabase } from "./store-thread.ts";

const NOW_MS = 1_772_323_200_042;

function folderOf(directory: TemporaryDirectory, files: Readonly<Record<string, string>>): URL {
  const folder = directory.file(`migrations-${Object.keys(files).join("-")}`);
  mkdirSync(folder, { recursive: true });
  for (const [name, sql] of Object.entries(files)) writeFileSync(`${folder}/${name}`, sql);
  return pathToFileURL(`${folder}/`);
}

const ONE = { "0001-things.sql": "CREATE TABLE thing (name TEXT) STRICT; INSERT INTO thing VALUES ('kept');" };
const TWO = { ...ONE, "0002-more.sql": "ALTER TABLE thing ADD COLUMN size INTEGER;" };

test("a file with data is copied before a migration, under the agreed name, for its owner alone; an empty one is not", async () => {
  await using directory = await temporaryDirectory();
  const path = directory.file("state.db");
  const open = (files: Readonly<Record<string, string>>, nowMs = NOW_MS): void =>
    openStateDatabase({ path, nowMs, migrations: folderOf(directory, files) }).close();
  const backups = (): string[] => readdirSync(directory.path).filter((name) => name.includes(".bak-"));
  open(ONE);
  assert.deepEqual(backups(), []);
  open(TWO);
  open(TWO, NOW_MS + 1);
  assert.deepEqual(backups(), ["state.db.bak-1-1772323200-042"]);
  const backup = directory.file("state.db.bak-1-1772323200-042");
  assert.equal(statSync(backup).mode & 0o777, 0o600);
  const copy = new DatabaseSync(backup, { readOnly: true });
  assert.deepEqual(
    copy
      .prepare("SELECT * FROM thing")
      .all()
      .map((row) => ({ ...row })),
    [{ name: "kept" }],
  );
  assert.equal(copy.prepare("PRAGMA user_version").get()?.["user_version"], 1);
  copy.close();
  // The copy is a store itself: an operator goes back by putting it in place.
  openStateDatabase({ path: backup, nowMs: NOW_MS, migrations: folderOf(directory, ONE) }).close();
});

test("a migration that fails leaves the file as the one before left it, and its copy beside it", async () => {
  await using directory = await temporaryDirectory();
  const path = directory.file("state.db");
  openStateDatabase({ path, nowMs: NOW_MS, migrations: folderOf(directory, ONE) }).close();
  const broken = { ...ONE, "0002-broken.sql": "CREATE TABLE half (x); CREATE TABLE thing (again);" };
  assert.throws(
    () => openStateDatabase({ path, nowMs: NOW_MS, migrations: folderOf(directory, broken) }),
    /already exists/u,
  );
  const database = openStateDatabase({ path, nowMs: NOW_MS, migrations: folderOf(directory, ONE) });
  assert.equal(database.prepare("SELECT COUNT(*) AS n FROM sqlite_schema WHERE name = 'half'").get()?.["n"], 0);
  database.close();
});

test("a file of a newer program is refused and not touched; a gap in the numbers is a defect", async () => {
  await using directory = await temporaryDirectory();
  const path = directory.file("state.db");
  openStateDatabase({ path, nowMs: NOW_MS, migrations: folderOf(directory, TWO) }).close();
  const before = statSync(path);
  assert.throws(() => openStateDatabase({ path, nowMs: NOW_MS, migrations: folderOf(directory, ONE) }), {
    name: "StateStoreError",
    errorKind: "too-new",
    message: /has schema version 2, this program knows up to 1/u,
  });
  assert.deepEqual([statSync(path).mtimeMs, statSync(path).size], [before.mtimeMs, before.size]);
  assert.throws(
    () => openStateDatabase({ path, nowMs: NOW_MS, migrations: folderOf(directory, { ...TWO, "0004-d.sql": "" }) }),
    /0004-d\.sql should have the number 3/u,
  );
});

test("the database of another program, and what is no database, are refused and not touched", async () => {
  await using directory = await temporaryDirectory();
  const other = new DatabaseSync(directory.file("other.db"));
  other.exec("CREATE TABLE theirs (x); PRAGMA user_version = 1");
  other.close();
  assert.throws(() => openStateDatabase({ path: directory.file("other.db"), nowMs: NOW_MS }), {
    errorKind: "foreign",
    message: /database of another program/u,
  });
  writeFileSync(directory.file("text.db"), "no database at all ".repeat(1000));
  assert.throws(() => openStateDatabase({ path: directory.file("text.db"), nowMs: NOW_MS }), {
    errorKind: "corrupt",
    message: /damaged, or no database/u,
  });
  mkdirSync(directory.file("folder.db"));
  assert.throws(() => openStateDatabase({ path: directory.file("folder.db"), nowMs: NOW_MS }), {
    errorKind: "foreign",
    message: /is a directory: name a file in it/u,
  });
});

test("what is refused keeps its rights; what is ours is for its owner alone", async () => {
  await using directory = await temporaryDirectory();
  const rightsOf = (name: string): number => statSync(directory.file(name)).mode & 0o777;
  mkdirSync(directory.file("folder.db"), { mode: 0o755 });
  writeFileSync(directory.file("text.db"), "no database at all ".repeat(1000), { mode: 0o644 });
  new DatabaseSync(directory.file("ours.db")).close();
  chmodSync(directory.file("ours.db"), 0o644);
  for (const name of ["folder.db", "text.db"]) {
    const before = rightsOf(name);
    assert.throws(() => openStateDatabase({ path: directory.file(name), nowMs: NOW_MS }));
    assert.equal(rightsOf(name), before, name);
  }
  openStateDatabase({ path: directory.file("ours.db"), nowMs: NOW_MS }).close();
  assert.equal(rightsOf("ours.db"), 0o600);
});
