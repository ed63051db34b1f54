import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { findSliceProblems, hasLogic } from "./check-slices.ts";
import { fixtureTree } from "./fixture-tree.ts";
import { untestedFiles } from "./slice-rules.ts";

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

function problemsWith(
  files: Readonly<Record<string, string>>,
  excuses: NonNullable<Parameters<typeof findSliceProblems>[1]> = {
    "apps/capture-ui/src/**/*.tsx": { because: "e2e" },
  },
): string[] {
  using tree = fixtureTree({ ...base, ...files });
  return findSliceProblems(tree.root, excuses).map(({ where, message }) => `${where}: ${message}`);
}

test("a tree as agreed has no problems", () => assert.deepEqual(problemsWith({}), []));

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

  test("an alias under its slice is no problem", () => {
    const problems = problemsWith({
      [`${SLICES}.ts`]: `${base[`${SLICES}.ts`] ?? ""} import "./slices/metrics/metrics.slice.ts";`,
      [`${SLICES}/metrics/metrics.slice.ts`]: "",
      [contract("metrics")]:
        'export const metricsOperations = { a: { path: "/health/detailed" }, b: { path: "/metrics" } };',
    });
    assert.deepEqual(problems, []);
  });
});

describe("a name that says nothing is reported wherever it is", () => {
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
    test(path, () => assert.match(problemsWith({ [path]: "" }).join("\n"), /does not say what is inside/u));
  }
  for (const path of [
    "packages/http1/src/shared-dictionary.ts",
    "packages/http1/src/core-dump.ts",
    "packages/har/src/utility.ts",
  ]) {
    test(`${path} is a name`, () => assert.deepEqual(problemsWith({ [path]: "" }), []));
  }
});

describe("logic needs a test", () => {
  const logic = "export function twice(x: number): number { return x + x; }";
  const file = "packages/http1/src/chunk.ts";

  test("a file with logic and no test is reported", () => {
    assert.match(problemsWith({ [file]: logic }).join("\n"), /chunk\.ts: There is logic here and no chunk\.test\.ts/u);
  });
  test("a test beside it is enough, also one about a part of it", () => {
    assert.deepEqual(problemsWith({ [file]: logic, "packages/http1/src/chunk.test.ts": "" }), []);
    assert.deepEqual(problemsWith({ [file]: logic, "packages/http1/src/chunk.hostile.test.ts": "" }), []);
  });
  test("a test of a file whose name begins alike is not", () => {
    assert.equal(problemsWith({ [file]: logic, "packages/http1/src/chunk-scanner.test.ts": "" }).length, 1);
  });
  test("a file may name the test that covers it, if that exists", () => {
    const named = `// Tested by ../test/codec.test.ts\n${logic}`;
    assert.match(
      problemsWith({ [file]: named }).join("\n"),
      /tested by \.\.\/test\/codec\.test\.ts, which does not exist/u,
    );
    assert.deepEqual(problemsWith({ [file]: named, "packages/http1/test/codec.test.ts": "" }), []);
  });
  test("an excuse counts as long as it is needed and its test exists", () => {
    const views = { "apps/capture-ui/src/**/*.tsx": { because: "e2e" } };
    assert.deepEqual(problemsWith({ [file]: logic }, { ...views, [file]: { because: "reason" } }), []);
    assert.match(problemsWith({}, { ...views, [file]: { because: "reason" } }).join("\n"), /Needs no excuse/u);
    const gone = { ...views, [file]: { testedBy: "e2e/gone.test.ts" } };
    assert.match(
      problemsWith({ [file]: logic }, gone).join("\n"),
      /tested by e2e\/gone\.test\.ts, which does not exist/u,
    );
  });
  test("no reason in the real list is empty", () => {
    for (const excuse of Object.values(untestedFiles)) {
      assert.ok("testedBy" in excuse || excuse.because.length > 20);
    }
  });
});

describe("logic is what runs and can be wrong", () => {
  const cases: readonly [source: string, expected: boolean][] = [
    ["export type F = (a: string) => void;", false],
    ["export interface A { f(): void }\ndeclare function g(): void;", false],
    ['export const LIMITS = { size: 1 } as const;\nexport { a } from "./a.ts";', false],
    ['export const text = "if (a) => function";', false],
    ["// for (;;) {}\n/* class A {} */", false],
    ["export const f = (a: number) => a + 1;", true],
    ["export function f(): void {}", true],
    ["export class A {}", true],
    ["for (const a of [1]) console.log(a);", true],
    ["const atLeast = 1 >= 2;", false],
    ["const half = ;", true],
  ];
  for (const [source, expected] of cases) {
    test(`${JSON.stringify(source)} is ${expected ? "" : "no "}logic`, () =>
      assert.equal(hasLogic("a.ts", source), expected));
  }
});

test("switching a rule off needs a reason", () => {
  const bare = "// oxlint-disable-next-line no-console\n";
  assert.match(problemsWith({ "e2e/a.ts": `\n${bare}` }).join("\n"), /e2e\/a\.ts:2: Says no reason/u);
  assert.deepEqual(problemsWith({ "e2e/a.ts": bare.replace("\n", " -- the report goes to stdout\n") }), []);
});
