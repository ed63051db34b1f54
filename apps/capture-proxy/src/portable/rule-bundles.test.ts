import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiError } from "#api/api-error.ts";
import type { ImportOutcome, PortableRules, SliceHost } from "#slice.ts";
import { openDatabase } from "#storage/database.ts";
import { createRuleBundles } from "./rule-bundles.ts";
import type { RuleBundles } from "./rule-bundles.ts";

interface Rig extends Disposable {
  readonly bundles: RuleBundles;
  /** What every slice has stored. */
  stored(): Record<string, string>;
  /** What was done, in order. */
  readonly calls: string[];
  readonly errors: unknown[];
}

/** Three slices with one text each; `bad` is refused, `late` is refused when it is written. */
function openBundles(versions: readonly number[] = [1, 2, 1]): Rig {
  const database = openDatabase(":memory:");
  database.exec("CREATE TABLE rule (key TEXT PRIMARY KEY, text TEXT NOT NULL)");
  const insert = database.prepare("INSERT OR REPLACE INTO rule VALUES (?, ?)");
  const all = database.prepare("SELECT key, text FROM rule ORDER BY key");
  const calls: string[] = [];
  const errors: unknown[] = [];
  const stored = (): Record<string, string> =>
    Object.fromEntries(all.all().map(({ key, text }) => [String(key), String(text)]));
  const parts = ["a", "b", "c"].map((key, index): PortableRules => {
    insert.run(key, "old");
    return {
      key,
      schemaVersion: versions[index] ?? 1,
      exportRules: () => stored()[key],
      importRules: (data, { mode, dryRun, version }): ImportOutcome => {
        calls.push(`${key} ${dryRun ? "check" : "write"} ${mode} ${version}`);
        if (data === "bad" || (data === "late" && !dryRun)) return { issues: [{ path: "/0", message: "is bad" }] };
        if (!dryRun) insert.run(key, String(data));
        return { counts: { added: 0, updated: 1, removed: 0, unchanged: 0 } };
      },
      reload: () => {
        calls.push(`${key} reload`);
        if (stored()[key] === "unloadable") throw new Error("cannot be compiled");
      },
    };
  });
  const host = {
    database,
    clock: { now: () => 0 },
    log: { error: (facts: unknown) => void errors.push(facts) },
  } as unknown as SliceHost;
  const bundles = createRuleBundles(host, () => parts);
  return { bundles, stored, calls, errors, [Symbol.dispose]: () => database.close() };
}

const merge = { mode: "merge", dryRun: false, at: "body" } as const;

function refusal(run: () => unknown): string[] {
  try {
    run();
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    assert.equal(error.code, "VALIDATION_ERROR");
    return (error.details ?? []).map(({ path, message }) => `${path}: ${message}`);
  }
  throw new Error("it was not refused");
}

test("a bundle has every section with its version", () => {
  using rig = openBundles();
  assert.deepEqual(rig.bundles.export(), {
    version: 1,
    exported_at: "1970-01-01T00:00:00.000Z",
    versions: { a: 1, b: 2, c: 1 },
    a: "old",
    b: "old",
    c: "old",
  });
});

test("all slices check before one writes, all write before one is told", () => {
  using rig = openBundles();
  const counts = rig.bundles.import(
    { version: 1, versions: { b: 1 }, c: "new", b: "new" },
    { ...merge, mode: "replace" },
  );
  assert.deepEqual(Object.keys(counts), ["b", "c"]);
  assert.deepEqual(rig.calls, [
    "b check replace 1",
    "c check replace 1",
    "b write replace 1",
    "c write replace 1",
    "b reload",
    "c reload",
  ]);
  assert.deepEqual(rig.stored(), { a: "old", b: "new", c: "new" });
});

test("a dry run only checks", () => {
  using rig = openBundles();
  rig.bundles.import({ version: 1, a: "new" }, { ...merge, dryRun: true });
  assert.deepEqual([rig.calls, rig.stored()], [["a check merge 1"], { a: "old", b: "old", c: "old" }]);
});

test("issues of all sections are named and nothing is changed", () => {
  using rig = openBundles();
  assert.deepEqual(
    refusal(() => rig.bundles.import({ version: 1, a: "new", b: "bad", c: "bad" }, merge)),
    ["body/b/0: is bad", "body/c/0: is bad"],
  );
  assert.deepEqual(rig.stored(), { a: "old", b: "old", c: "old" });
});

test("what fails while it is written undoes what was written before", () => {
  using rig = openBundles();
  const untouched = { a: "old", b: "old", c: "old" };
  assert.deepEqual(
    refusal(() => rig.bundles.import({ version: 1, a: "new", b: "late" }, merge)),
    ["body/b/0: is bad"],
  );
  assert.deepEqual(rig.stored(), untouched);
  const beforeCommit = (): never => {
    throw new Error("the settings cannot be written");
  };
  assert.throws(() => rig.bundles.import({ version: 1, a: "new" }, { ...merge, beforeCommit }), /settings/);
  assert.deepEqual(rig.stored(), untouched);
  assert.equal(rig.calls.filter((call) => call.endsWith("reload")).length, 0);
});

test("rules that cannot be put in force keep no others from it", () => {
  using rig = openBundles();
  rig.bundles.import({ version: 1, a: "unloadable", c: "new" }, merge);
  assert.deepEqual(rig.calls.slice(-2), ["a reload", "c reload"]);
  assert.equal(rig.errors.length, 1);
});

test("a bundle or section of a newer version is refused with a sentence", () => {
  using rig = openBundles();
  assert.deepEqual(
    refusal(() => rig.bundles.import({ version: 2, unknown: 1 }, merge)),
    [
      "body/version: A newer Weir wrote the bundle: it has version 2, and this Weir reads versions up to 1. Import it with the newer Weir, or export it again with this one",
    ],
  );
  assert.match(
    refusal(() => rig.bundles.import({ version: 1, versions: { b: 3 }, a: "new", b: "new" }, merge))[0] ?? "",
    /^body\/versions\/b: A newer Weir wrote the section b: it has version 3, and this Weir reads versions up to 2\./,
  );
  assert.deepEqual(rig.calls, []);
});

test("what is no bundle is refused with the place", () => {
  using rig = openBundles();
  const cases: readonly (readonly [bundle: unknown, expected: readonly string[]])[] = [
    [null, ["body: must be an object"]],
    [[], ["body: must be an object"]],
    [{}, ["body/version: is required"]],
    [{ version: "1" }, ["body/version: must be a whole number from 1 on"]],
    [{ version: 0 }, ["body/version: must be a whole number from 1 on"]],
    [{ version: 1, versions: 1 }, ["body/versions: must be an object"]],
    [{ version: 1, versions: { a: "x" }, a: 1 }, ["body/versions/a: must be a whole number from 1 on"]],
    [
      { version: 1, versions: { z: 1 }, exported_at: "then", "y/": 1 },
      [
        "body/y~1: is no kind of rules that is known here",
        "body/versions/z: is no kind of rules that is known here",
        "body/exported_at: must be a time",
      ],
    ],
    [JSON.parse('{"version":1,"__proto__":1}'), ["body/__proto__: is no kind of rules that is known here"]],
  ];
  for (const [bundle, expected] of cases) {
    assert.deepEqual(
      refusal(() => rig.bundles.import(bundle, merge)),
      expected,
    );
  }
});
