import assert from "node:assert/strict";
import { mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { temporaryDirectory } from "@headworks/testkit";
import { pruneSnapshots, removeLeftovers, snapshotName, writeSnapshot } from "./snapshot-files.ts";

const AT_MS = Date.UTC(2026, 10, 21, 23, 59, 59, 900);
const NEVER = new AbortController().signal;

async function* pieces(...texts: readonly string[]): AsyncGenerator<Uint8Array> {
  for (const text of texts) yield Buffer.from(text);
}

test("the name is the UTC time, whatever zone the machine is in", () => {
  assert.equal(snapshotName(AT_MS, "har"), "session-20261121-235959.har");
  assert.equal(snapshotName(AT_MS, "session"), "session-20261121-235959.json");
  assert.equal(snapshotName(Date.UTC(2028, 1, 29), "har"), "session-20280229-000000.har");
});

test("a snapshot is whole and private, and never replaces one of the same second", async () => {
  await using directory = await temporaryDirectory();
  const folder = directory.file("deep/backups");
  const target = { atMs: AT_MS, format: "har" } as const;
  const first = await writeSnapshot(folder, target, pieces("one ", "piece"), NEVER);
  const second = await writeSnapshot(folder, target, pieces("two"), NEVER);
  assert.deepEqual([first.name, second.name], ["session-20261121-235959.har", "session-20261122-000000.har"]);
  assert.deepEqual([first.sizeBytes, readFileSync(first.path, "utf8")], [9, "one piece"]);
  assert.equal(statSync(first.path).mode & 0o777, 0o600);
  assert.equal(statSync(folder).mode & 0o777, 0o700);
  assert.deepEqual(readdirSync(folder).sort(), [first.name, second.name]);
});

test("a snapshot that is given up or breaks leaves nothing", async () => {
  await using directory = await temporaryDirectory();
  const target = { atMs: AT_MS, format: "session" } as const;
  const stop = new AbortController();
  const stopped = async function* (): AsyncGenerator<Uint8Array> {
    yield Buffer.from("half");
    stop.abort(new Error("stopped"));
    yield Buffer.from("rest");
  };
  await assert.rejects(writeSnapshot(directory.path, target, stopped(), stop.signal), /stopped/);
  const broken = async function* (): AsyncGenerator<Uint8Array> {
    yield Buffer.from("half");
    throw new Error("the reader broke");
  };
  await assert.rejects(writeSnapshot(directory.path, target, broken(), NEVER), /the reader broke/);
  assert.deepEqual(readdirSync(directory.path), []);
});

test("with 12 snapshots and room for 10, the 2 oldest by their time go", async () => {
  await using directory = await temporaryDirectory();
  // Names and times disagree on purpose: the time decides.
  for (let index = 0; index < 12; index += 1) {
    const path = directory.file(`session-${String(20_990_101 - index)}-000000.har`);
    writeFileSync(path, "x");
    utimesSync(path, 1000 + index, 1000 + index);
  }
  const newest = "session-20990090-000000.har";
  const pruned = await pruneSnapshots(directory.path, 10, newest);
  assert.deepEqual(pruned, ["session-20990101-000000.har", "session-20990100-000000.har"]);
  assert.equal(readdirSync(directory.path).length, 10);
});

test("links, directories and files of other names are neither counted nor deleted", async () => {
  await using directory = await temporaryDirectory();
  const folder = directory.file("backups");
  mkdirSync(folder);
  writeFileSync(directory.file("precious.har"), "precious");
  const foreign = ["notes.txt", "session.har", "mysession-20200101-000000.har", "session-notes.txt", ".session-a.har"];
  for (const name of foreign) writeFileSync(`${folder}/${name}`, "x");
  mkdirSync(`${folder}/session-20200101-000000.har`);
  symlinkSync(directory.file("precious.har"), `${folder}/session-20200102-000000.har`);
  for (const name of ["session-20200103-000000.har", "session-20200104-000000.json"]) {
    writeFileSync(`${folder}/${name}`, "x");
  }
  utimesSync(`${folder}/session-20200103-000000.har`, 1, 1);
  const before = readdirSync(folder);
  assert.deepEqual(await pruneSnapshots(folder, 2, "session-20200104-000000.json"), []);
  assert.deepEqual(readdirSync(folder), before);
  assert.deepEqual(await pruneSnapshots(folder, 1, "session-20200104-000000.json"), ["session-20200103-000000.har"]);
  assert.deepEqual(
    readdirSync(folder),
    before.filter((name) => name !== "session-20200103-000000.har"),
  );
  assert.equal(readFileSync(directory.file("precious.har"), "utf8"), "precious");
});

test("the snapshot that was just written stays, even where the clock went back", async () => {
  await using directory = await temporaryDirectory();
  for (const [index, name] of ["session-b.har", "session-a.har", "session-new.har"].entries()) {
    writeFileSync(directory.file(name), "x");
    utimesSync(directory.file(name), 5000 - index, 5000 - index);
  }
  assert.deepEqual(await pruneSnapshots(directory.path, 1, "session-new.har"), ["session-a.har", "session-b.har"]);
  assert.deepEqual(readdirSync(directory.path), ["session-new.har"]);
});

test("what a killed process left half written is removed once it is old, and nothing else", async () => {
  await using directory = await temporaryDirectory();
  const old = ".weir-snapshot-00000000-0000-4000-8000-000000000000.tmp";
  const young = ".weir-snapshot-00000000-0000-4000-8000-000000000001.tmp";
  for (const name of [old, young, "other.tmp"]) writeFileSync(directory.file(name), "x");
  for (const name of [old, "other.tmp"]) utimesSync(directory.file(name), 1, 1);
  await removeLeftovers(directory.path, Date.now());
  assert.deepEqual(readdirSync(directory.path).sort(), [young, "other.tmp"]);
  await removeLeftovers(directory.file("absent"), Date.now());
});
