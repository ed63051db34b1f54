import assert from "node:assert/strict";
import { test } from "node:test";
import { strictObject, Type } from "@headworks/contract-kit";
import fc from "fast-check";
import type { ImportRequest, PortableRules } from "#slice.ts";
import { portableList } from "./portable-list.ts";

interface Rule {
  readonly id: string;
  readonly text: string;
}

const schema = strictObject({ id: Type.String({ minLength: 1 }), text: Type.String() });

interface Rig {
  rules: readonly Rule[];
  writes: number;
  readonly part: PortableRules;
}

function rigWith(rules: readonly Rule[], isUnique = false): Rig {
  const rig: Rig = {
    rules,
    writes: 0,
    part: portableList<Rule>({
      key: "rules",
      schemaVersion: 1,
      schemas: [schema, strictObject({ id: Type.String(), text: Type.String({ maxLength: 5 }) })],
      ...(isUnique ? { uniqueText: ({ text }: Rule) => text } : {}),
      list: () => rig.rules,
      check: ({ text }) => (text === "bad" ? [{ path: "/text", message: "is bad" }] : []),
      write: (written) => {
        rig.rules = written;
        rig.writes += 1;
      },
      reload: () => undefined,
    }),
  };
  return rig;
}

const rule = (id: string, text = id): Rule => ({ id, text });
const request = (mode: ImportRequest["mode"], dryRun = false): ImportRequest => ({ mode, dryRun, version: 1 });

test("a merge adds behind and overwrites in place, a replacement leaves what is given", () => {
  const before = [rule("a"), rule("b"), rule("c")];
  const given = [rule("d"), rule("b", "new"), rule("c")];
  const merged = rigWith(before);
  assert.deepEqual(merged.part.importRules(given, request("merge")), {
    counts: { added: 1, updated: 1, removed: 0, unchanged: 1 },
  });
  assert.deepEqual(merged.rules, [rule("a"), rule("b", "new"), rule("c"), rule("d")]);
  const replaced = rigWith(before);
  assert.deepEqual(replaced.part.importRules(given, request("replace")), {
    counts: { added: 1, updated: 1, removed: 1, unchanged: 1 },
  });
  assert.deepEqual(replaced.rules, given);
});

test("another order is a change, the same rules are none", () => {
  const rig = rigWith([rule("a"), rule("b")]);
  rig.part.importRules([rule("a"), rule("b")], request("replace"));
  assert.equal(rig.writes, 0);
  assert.deepEqual(rig.part.importRules([rule("b"), rule("a")], request("replace")), {
    counts: { added: 0, updated: 2, removed: 0, unchanged: 0 },
  });
  assert.deepEqual(rig.rules, [rule("b"), rule("a")]);
  rig.part.importRules([rule("a"), rule("b")], request("merge"));
  assert.deepEqual(rig.rules, [rule("b"), rule("a")]);
});

test("a rule that shares its text with another id takes that one's place", () => {
  const rig = rigWith([rule("a", "x"), rule("b", "y"), rule("c", "z")], true);
  assert.deepEqual(rig.part.importRules([rule("n", "x"), rule("b", "z")], request("merge")), {
    counts: { added: 0, updated: 2, removed: 1, unchanged: 0 },
  });
  assert.deepEqual(rig.rules, [rule("n", "x"), rule("b", "z")]);
});

test("every issue has its place and nothing is written", () => {
  const rig = rigWith([rule("a")]);
  const cases: readonly (readonly [data: unknown, issues: readonly string[]])[] = [
    [{}, [": must be a list of rules"]],
    [null, [": must be a list of rules"]],
    [[5], ["/0: must be object"]],
    [
      [rule("a"), { id: "b", text: 1, more: 2 }],
      ["/1/more: unknown property", "/1/text: must be string"],
    ],
    [[rule("a", "too long")], ["/0/text: must NOT have more than 5 characters"]],
    [
      [rule("a", "bad"), rule("", "ok")],
      ["/0/text: is bad", "/1/id: must NOT have fewer than 1 characters"],
    ],
    [[rule("a"), rule("b"), rule("a", "x")], ["/2: an earlier rule has the same id a"]],
  ];
  for (const [data, expected] of cases) {
    const outcome = rig.part.importRules(data, request("replace"));
    assert.ok("issues" in outcome, JSON.stringify(data));
    assert.deepEqual(
      outcome.issues.map(({ path, message }) => `${path}: ${message}`),
      expected,
    );
  }
  const many = rig.part.importRules(
    Array.from({ length: 500 }, () => 1),
    request("merge"),
  );
  assert.ok("issues" in many && many.issues.length === 50);
  assert.equal(rig.writes, 0);
});

test("a dry run says what would happen, and then it does", () => {
  const rules = fc.uniqueArray(
    fc.record(
      { id: fc.constantFrom("a", "b", "c", "d", "e"), text: fc.constantFrom("x", "y") },
      { noNullPrototype: true },
    ),
    { selector: ({ id }) => id },
  );
  fc.assert(
    fc.property(rules, rules, fc.constantFrom("merge", "replace"), (before, given, mode) => {
      const rig = rigWith(before);
      const dry = rig.part.importRules(given, request(mode, true));
      assert.deepEqual([rig.rules, rig.writes], [before, 0]);
      assert.deepEqual(rig.part.importRules(given, request(mode)), dry);
      if (mode === "replace") assert.deepEqual(rig.rules, given);
      else {
        assert.ok(given.every((each) => rig.rules.some((kept) => kept.id === each.id && kept.text === each.text)));
      }
      assert.equal(new Set(rig.rules.map(({ id }) => id)).size, rig.rules.length);
      // What was taken out is taken in without a difference.
      const other = rigWith([rule("z")]);
      other.part.importRules(structuredClone(rig.part.exportRules()), request("replace"));
      assert.deepEqual(other.rules, rig.rules);
    }),
  );
});
