import assert from "node:assert/strict";
import { appendFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { temporaryDirectory } from "@headworks/testkit";
import { lastLines, linesSince } from "./log-tail.ts";

const numbered = (from: number, to: number): string[] =>
  Array.from({ length: to - from }, (_, at) => `line ${from + at}`);
const textOf = (lines: readonly string[]): string => lines.map((line) => `${line}\n`).join("");

test("the last lines come, and then what was written since, across files that were put away", async () => {
  await using directory = await temporaryDirectory();
  const path = directory.file("weir.log");
  assert.deepEqual(await lastLines(path, 10), { lines: [], cursor: "0-0", isMissing: false });
  writeFileSync(path, `${textOf(numbered(0, 50))}half a li`);
  const tail = await lastLines(path, 3);
  assert.deepEqual([tail.lines, tail.isMissing], [numbered(47, 50), true]);
  assert.deepEqual((await linesSince(path, tail.cursor, 10))?.lines, []);
  appendFileSync(path, `ne\n${textOf(numbered(51, 53))}`);
  renameSync(path, `${path}.2026-01-01_00-00-00`);
  writeFileSync(path, textOf(numbered(53, 54)));
  renameSync(path, `${path}.2026-01-01_00-00-01`);
  writeFileSync(path, textOf(numbered(54, 60)));
  const seen: string[] = [];
  let { cursor } = tail;
  for (let at = 0; at < 12; at += 1) {
    const next = await linesSince(path, cursor, 2);
    assert.ok(next && !next.isMissing && next.lines.length <= 2);
    seen.push(...next.lines);
    ({ cursor } = next);
  }
  assert.deepEqual(seen, ["half a line", ...numbered(51, 60)]);
});

test("what is gone is said to be missing, and a file that was emptied is read from its beginning", async () => {
  await using directory = await temporaryDirectory();
  const path = directory.file("weir.log");
  writeFileSync(path, textOf(numbered(0, 5)));
  const { cursor } = await lastLines(path, 5);
  writeFileSync(path, textOf(numbered(7, 8)));
  assert.deepEqual((await linesSince(path, cursor, 5))?.lines, numbered(7, 8));
  // Created before the old one is removed, so that inode numbers differ.
  writeFileSync(directory.file("new"), textOf(numbered(8, 9)));
  rmSync(path);
  renameSync(directory.file("new"), path);
  const next = await linesSince(path, cursor, 5);
  assert.deepEqual([next?.lines, next?.isMissing], [numbered(8, 9), true]);
});

test("a line that is longer than what is read at once comes in parts, and lines before a window are left out", async () => {
  await using directory = await temporaryDirectory();
  const path = directory.file("weir.log");
  writeFileSync(path, `${"x".repeat(2_500_000)}\nend\n`);
  const tail = await lastLines(path, 10);
  assert.deepEqual([tail.lines, tail.isMissing], [["end"], true]);
  let cursor = "0-0";
  let bytes = 0;
  for (let at = 0; at < 4; at += 1) {
    const next = await linesSince(path, cursor, 10);
    for (const line of next?.lines ?? []) bytes += line.length;
    cursor = next?.cursor ?? "";
  }
  assert.equal(bytes, 2_500_003);
});

test("no other file is read through a link, and a text that is no cursor is none", async () => {
  await using directory = await temporaryDirectory();
  writeFileSync(directory.file("secret"), "secret\n");
  symlinkSync(directory.file("secret"), directory.file("weir.log"));
  await assert.rejects(lastLines(directory.file("weir.log"), 10), { code: "ELOOP" });
  for (const text of ["", "1", "1-", "-1", "1-2-3", "a-b", "1-1e3", `1-${"9".repeat(30)}`]) {
    assert.equal(await linesSince(directory.file("weir.log"), text, 10), undefined, text);
  }
});
