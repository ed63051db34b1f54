import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { temporaryDirectory } from "@headworks/testkit";
import { storageErrorKind } from "./storage-error.ts";
import type { StorageErrorKind } from "./storage-error.ts";

function thrownBy(work: () => unknown): unknown {
  try {
    work();
  } catch (error) {
    return error;
  }
  return assert.fail("Nothing was thrown");
}

const FAILURES: readonly (readonly [what: string, problem: StorageErrorKind, fail: (path: string) => unknown])[] = [
  ["a write to a file that was opened to be read", "read-only", writeReadOnly],
  ["a lock that another connection holds", "busy", lockTwice],
  ["a file that is no database", "corrupt", openText],
  ["a database that may not grow", "full", fill],
  ["a file that cannot be opened", "io", (path) => new DatabaseSync(`${path}/nowhere/a.db`)],
  ["a statement that is none", "other", (path) => new DatabaseSync(path).exec("SELEC 1")],
  ["a file that is not there", "other", (path) => readFileSync(`${path}.gone`)],
];
for (const [what, problem, fail] of FAILURES) {
  test(`the error of ${what} is ${problem}`, async () => {
    await using directory = await temporaryDirectory();
    assert.equal(storageErrorKind(thrownBy(() => fail(directory.file("a.db")))), problem);
  });
}

function writeReadOnly(path: string): void {
  new DatabaseSync(path).exec("CREATE TABLE thing (name TEXT)");
  new DatabaseSync(path, { readOnly: true }).exec("INSERT INTO thing VALUES ('x')");
}

function lockTwice(path: string): void {
  new DatabaseSync(path).exec("BEGIN IMMEDIATE");
  new DatabaseSync(path, { timeout: 0 }).exec("BEGIN IMMEDIATE");
}

function openText(path: string): void {
  writeFileSync(path, "no database at all ".repeat(1000));
  new DatabaseSync(path).exec("PRAGMA journal_mode = WAL");
}

function fill(path: string): void {
  const database = new DatabaseSync(path);
  database.exec("CREATE TABLE thing (name TEXT); PRAGMA max_page_count = 2");
  database.exec("INSERT INTO thing VALUES (randomblob(100000))");
}

const SYSTEM_ERRORS: readonly (readonly [code: string, problem: StorageErrorKind])[] = [
  ["ENOSPC", "full"],
  ["EDQUOT", "full"],
  ["EROFS", "read-only"],
  ["EACCES", "read-only"],
  ["EPERM", "read-only"],
  ["EIO", "io"],
  ["ENOENT", "other"],
];
for (const [code, problem] of SYSTEM_ERRORS) {
  test(`the system's ${code} is ${problem}`, () => {
    assert.equal(storageErrorKind(Object.assign(new Error("write"), { code })), problem);
  });
}

test("errors without a code, and other values, are other", () => {
  for (const thrown of [undefined, "ENOSPC", { code: "ENOSPC" }, new Error("else"), { errcode: 13 }]) {
    assert.equal(storageErrorKind(thrown), "other");
  }
});
