import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { temporaryDirectory } from "@headworks/testkit";
import { repositoryRoot } from "./source-tree.ts";
import { batchTests, canShareProcess, spreadBrowsers, writeBatches } from "./test-batches.ts";

const PLAIN = 'import { test, type TestContext } from "node:test";\n';
const textOf = (): string => PLAIN;

const ALONE: readonly (readonly [string, string])[] = [
  ["hooks for all tests", 'import { after, before, test } from "node:test";'],
  ["another clock", 'import { mock, test } from "node:test";'],
  ["settings", 'process.env["TZ"] = "UTC";'],
  ["settings taken away", 'delete process.env["TZ"];'],
  ["counts of memory", "const before = process.memoryUsage().heapUsed;"],
  ["what grows", "const growth = await heapGrowthBytes(work);"],
  ["what grows old", "const growth = oldSpaceGrowthBytes(50, work);"],
  ["counts of time", "const spent = process.cpuUsage();"],
  ["what the process listens to", 'process.once("warning", noted);'],
  ["what it prints", "process.stderr.write = (text) => printed.push(text);"],
  ["a global function", "globalThis.fetch = fake;"],
];
for (const [what, line] of ALONE) {
  test(`a test file that uses process-wide state runs alone: ${what}`, () => {
    assert.equal(canShareProcess("packages/http1/src/a.test.ts", `${PLAIN}${line}\n`), false);
  });
}

test("a test file that only reads settings may share a process, except in e2e", () => {
  const text = `${PLAIN}if (process.env["CI"] === "true") test("after", () => undefined);\n`;
  assert.equal(canShareProcess("packages/http1/src/a.test.ts", text), true);
  assert.equal(canShareProcess("e2e/a.test.ts", text), false);
});

test("files of a folder share processes, up to a limit, and each file is in one", () => {
  const files = [
    ...Array.from({ length: 30 }, (_, at) => `apps/gateway/src/deep/${at}.test.ts`),
    "apps/gateway/test/a.test.ts",
    "e2e/curl.test.ts",
    "packages/har/src/a.test.ts",
    "packages/http1/src/a.test.ts",
  ];
  const batches = batchTests(files, textOf);
  assert.deepEqual(
    batches.map(({ name, files: together }) => [name, together.length]),
    [
      ["apps-gateway-src-1", 12],
      ["apps-gateway-src-2", 12],
      ["apps-gateway-src-3", 6],
      ["apps-gateway-test-1", 1],
      ["e2e/curl.test.ts", 1],
      ["packages-1", 2],
    ],
  );
  assert.deepEqual(
    batches.flatMap(({ files: together }) => together),
    files,
  );
});

const named = (name: string): { name: string; files: string[] } => ({ name, files: [name] });
const ORDERS: readonly (readonly [what: string, given: string[], order: string[]])[] = [
  ["evenly", ["a", "b", "c", "d", "e2e/ui-1", "e2e/ui-2"], ["a", "b", "e2e/ui-1", "c", "d", "e2e/ui-2"]],
  ["several at a place when there are more", ["a", "e2e/ui-1", "e2e/ui-2"], ["a", "e2e/ui-1", "e2e/ui-2"]],
  ["alone", ["e2e/ui-1", "e2e/ui-2"], ["e2e/ui-1", "e2e/ui-2"]],
  ["not at all when there are none", ["b", "a"], ["b", "a"]],
];
for (const [what, given, order] of ORDERS) {
  test(`browser tests are spread among the others, each once: ${what}`, () => {
    assert.deepEqual(spreadBrowsers(given.map(named)), order.map(named));
  });
}

test("a single file is started directly, several by a module that imports them", async () => {
  await using directory = await temporaryDirectory();
  const batches = [
    { name: "one", files: ["e2e/curl.test.ts"] },
    { name: "two", files: ["scripts/test-batches.test.ts", "scripts/test-selection.test.ts"] },
  ];
  const [first, second = ""] = writeBatches(repositoryRoot, directory.path, batches);
  assert.equal(first, "e2e/curl.test.ts");
  const imported = [...readFileSync(second, "utf8").matchAll(/^import "(.+)";$/gmu)].map(([, url = ""]) => url);
  assert.deepEqual(
    imported.map((url) => fileURLToPath(url)),
    batches[1]?.files.map((file) => join(repositoryRoot, file)),
  );
});
