import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { scanAssignedClosures } from "./assigned-closures.ts";
import { repositoryRoot, sourceFiles } from "./source-tree.ts";

const FOUND = [
  "this.a = () => 1;",
  "this.#a = async (b: C): Promise<void> => undefined;",
  "a.b.c = (d, e = f(1)): g => 1;",
  "a.b = c => 1;",
  "a.b = async c => 1;",
  "a.b = function () {};",
  "a.b = async function c() {};",
  "a[b] = () => 1;",
  "a.b ??= () => 1;",
  "a.b ||= () => 1;",
  "f(a.b = () => 1)",
];

const NOT_FOUND = [
  "const b = () => 1; a.b = b;",
  "class A { b = () => 1; readonly #c = (): void => undefined; }",
  "const a: B.C = 1;",
  "a.b = c;",
  "a.b = (c + d) * e;",
  "a.b = f(() => 1);",
  "a.b = { c: () => 1 };",
  "a.b === c; a.b <= (d); a.b >= (e);",
  'const a = "a.b = () => 1";',
  "let a = () => 1; a = () => 2;",
];

test("functions that are assigned directly to a property are found", () => {
  for (const source of FOUND) assert.deepEqual(scanAssignedClosures(`\n${source}`), [2], source);
});

test("other assigned functions are not reported", () => {
  for (const source of NOT_FOUND) assert.deepEqual(scanAssignedClosures(source), [], source);
});

/** The code that runs for each request or each piece of a body. */
const HOT =
  /^(?:apps\/capture-proxy\/src\/(?:connection|exchange|upstream)|apps\/gateway\/src\/(?:listener|request|upstream)|packages\/(?:http1|http2|sockets|websocket)\/src)\/.*\.ts$/u;

test("the hot sources of both services assign no functions directly to properties", () => {
  const files = sourceFiles(repositoryRoot).filter((file) => HOT.test(file) && !file.endsWith(".test.ts"));
  assert.ok(files.length > 100, "The sources are where they were");
  const found = files.flatMap((file) =>
    scanAssignedClosures(readFileSync(join(repositoryRoot, file), "utf8")).map((line) => `${file}:${line}`),
  );
  assert.deepEqual(found, [], "Give the function a name first, or make it a field: see scripts/assigned-closures.ts");
});
