import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { findSliceProblems } from "./check-slices.ts";
import { fixtureTree } from "./fixture-tree.ts";

const SLICES = "apps/capture-proxy/src/slices";

/** One complete slice, its contract and its view. */
const base: Readonly<Record<string, string>> = {
  [`${SLICES}.ts`]: 'import { mocks } from "./slices/mocks/mocks.slice.ts";',
  [`${SLICES}/mocks/mocks.slice.ts`]: "export const mocks = () => 1;",
  [`${SLICES}/mocks/mocks.slice.test.ts`]: "",
  [`${SLICES}/mocks/mocks.store.ts`]: "export const store = () => 1;",
  [`${SLICES}/mocks/mocks.store.test.ts`]: "",
  [`${SLICES}/mocks/mocks.store.recovery.test.ts`]: "",
  [`${SLICES}/mocks/mock-rule.ts`]: "export type MockRule = { readonly match: (path: string) => boolean };",
  "packages/capture-contract/src/mocks.ts": 'export const mocksOperations = { listMocks: { path: "/mocks/{id}" } };',
  "packages/capture-contract/src/errors.ts": 'export const ERRORS = { path: "/elsewhere" };',
  "apps/capture-ui/src/views/mocks/list.tsx": "",
};

function problemsWith(files: Readonly<Record<string, string>>): string[] {
  using tree = fixtureTree({ ...base, ...files });
  return findSliceProblems(tree.root).map(({ where, message }) => `${where}: ${message}`);
}

test("a valid tree has no problems", () => assert.deepEqual(problemsWith({}), []));

describe("in a slice", () => {
  const cases: readonly [name: string, files: Record<string, string>, expected: RegExp][] = [
    [
      "an unknown role",
      { [`${SLICES}/mocks/mocks.service.ts`]: "" },
      /mocks\.service\.ts: A file of this slice is mocks\.<role>\.ts/u,
    ],
    ["a role under another name", { [`${SLICES}/mocks/mock.store.ts`]: "" }, /mock\.store\.ts: A file of this slice/u],
    ["a file without role named like the slice", { [`${SLICES}/mocks/mocks.ts`]: "" }, /Give it a role/u],
    ["a folder", { [`${SLICES}/mocks/rules/rule.ts`]: "" }, /one flat folder/u],
    ["a file beside the slices", { [`${SLICES}/registry.ts`]: "" }, /Only folders belong here/u],
    [
      "no builder",
      { [`${SLICES}/focus/focus.store.ts`]: "", "packages/capture-contract/src/focus.ts": "" },
      /focus: Has no focus\.slice\.ts/u,
    ],
    [
      "no contract",
      { [`${SLICES}/focus/focus.slice.ts`]: "" },
      /focus: Has no contract packages\/capture-contract\/src\/focus\.ts/u,
    ],
    ["no place in the list", { [`${SLICES}.ts`]: "" }, /mocks: Is missing in apps\/capture-proxy\/src\/slices\.ts/u],
  ];
  for (const [name, files, expected] of cases) {
    test(`${name} is reported`, () => assert.match(problemsWith(files).join("\n"), expected));
  }
});

describe("in the contract and the UI", () => {
  const contract = (name: string): string => `packages/capture-contract/src/${name}.ts`;
  const cases: readonly [name: string, files: Record<string, string>, expected: RegExp][] = [
    [
      "operations without a slice",
      { [contract("replay")]: "export const replayOperations = {};" },
      /replay\.ts: Has operations but no slice/u,
    ],
    [
      "a table of another name",
      { [contract("mocks")]: "export const mockOperations = {};" },
      /must be named mocksOperations/u,
    ],
    [
      "a path below another name",
      { [contract("mocks")]: 'export const mocksOperations = { a: { path: "/rules" } };' },
      /Has a path below \/rules/u,
    ],
    [
      "an alias under the wrong slice",
      { [contract("mocks")]: 'export const mocksOperations = { a: { path: "/health" } };' },
      /Has a path below \/health/u,
    ],
    [
      "a view without a slice",
      { "apps/capture-ui/src/views/dashboard.tsx": "" },
      /views\/dashboard: No slice is called dashboard/u,
    ],
  ];
  for (const [name, files, expected] of cases) {
    test(`${name} is reported`, () => assert.match(problemsWith(files).join("\n"), expected));
  }

  test("an alias of its slice is allowed", () => {
    const problems = problemsWith({
      [`${SLICES}.ts`]: `${base[`${SLICES}.ts`] ?? ""} import "./slices/metrics/metrics.slice.ts";`,
      [`${SLICES}/metrics/metrics.slice.ts`]: "",
      [contract("metrics")]:
        'export const metricsOperations = { a: { path: "/health/detailed" }, b: { path: "/metrics" } };',
    });
    assert.deepEqual(problems, []);
  });
});

describe("a meaningless name is reported in every folder", () => {
  const paths = [
    "packages/http1/src/utils.ts",
    "packages/http1/src/shared/a.ts",
    "packages/common/package.json",
    "e2e/test-helpers.ts",
    "apps/capture-proxy/src/connection/connection-manager.ts",
    "bench/misc/a.ts",
    "apps/capture-ui/src/ui/Utils.tsx",
  ];
  for (const path of paths) {
    test(path, () => assert.match(problemsWith({ [path]: "" }).join("\n"), /does not describe the content/u));
  }
  for (const path of [
    "packages/http1/src/shared-dictionary.ts",
    "packages/http1/src/core-dump.ts",
    "packages/har/src/utility.ts",
  ]) {
    test(`${path} is a valid name`, () => assert.deepEqual(problemsWith({ [path]: "" }), []));
  }
});

test("disabling a rule requires a reason", () => {
  const bare = "// oxlint-disable-next-line no-console\n";
  assert.match(problemsWith({ "e2e/a.ts": `\n${bare}` }).join("\n"), /e2e\/a\.ts:2: Says no reason/u);
  assert.deepEqual(problemsWith({ "e2e/a.ts": bare.replace("\n", " -- the report goes to stdout\n") }), []);
});
