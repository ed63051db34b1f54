import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { selectTests } from "./test-selection.ts";

const sources = [
  "apps/capture-proxy/src/api/bind.test.ts",
  "apps/capture-proxy/src/api/bind.ts",
  "apps/capture-ui/src/query.test.tsx",
  "bench/capture.test.ts",
  "e2e/curl.test.ts",
  "packages/http1/src/head.test.ts",
  "scripts/check-slices.test.ts",
];
const all = [0, 4, 5, 6].map((index) => sources[index]);

describe("npm test", () => {
  const cases: readonly [name: string, args: string[], files: (string | undefined)[], needsUi: boolean][] = [
    ["runs every test that Node can run", [], all, true],
    ["runs what has the argument in its path", ["http1"], ["packages/http1/src/head.test.ts"], false],
    [
      "takes a path as the shell completes it",
      ["./packages/http1/src/head.test.ts"],
      ["packages/http1/src/head.test.ts"],
      false,
    ],
    [
      "takes several arguments as any of them",
      ["http1", "curl"],
      ["e2e/curl.test.ts", "packages/http1/src/head.test.ts"],
      true,
    ],
    ["runs nothing for an unknown path", ["nowhere"], [], false],
  ];
  for (const [name, args, files, needsUi] of cases) {
    test(name, () => assert.deepEqual(selectTests(sources, args), { files, options: [], needsUi }));
  }

  test("forwards options to the runner", () => {
    const { files, options } = selectTests(sources, ["--test-name-pattern=chunk", "http1"]);
    assert.deepEqual(options, ["--test-name-pattern=chunk"]);
    assert.deepEqual(files, ["packages/http1/src/head.test.ts"]);
  });
});
