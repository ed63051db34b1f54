import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { HTTP1_ERROR_CODES } from "../src/index.ts";

const readme = readFileSync(new URL("../README.md", import.meta.url), "utf8");
const source = readFileSync(new URL("../src/message.ts", import.meta.url), "utf8");

/** The names in the first column of the table under a heading. */
function tableNames(heading: string): string[] {
  const section = readme.split(`\n## ${heading}\n`)[1]?.split("\n## ")[0] ?? "";
  const rows = section.split("\n").filter((line) => line.startsWith("| `"));
  return rows.flatMap((row) => Array.from(row.split("|")[1]?.matchAll(/`([^`]+)`/g) ?? [], ([, name]) => name ?? ""));
}

test("the manual lists every refusal once", () => {
  assert.deepEqual(tableNames("What is refused").toSorted(), [...HTTP1_ERROR_CODES].toSorted());
});

test("the manual lists every oddity once", () => {
  const union = source.split("export type Oddity =")[1]?.split(";")[0] ?? "";
  const oddities = Array.from(union.matchAll(/"([^"]+)"/g), ([, name]) => name ?? "");
  assert(oddities.length > 10);
  assert.deepEqual(tableNames("What the lenient mode tolerates").toSorted(), oddities.toSorted());
});
