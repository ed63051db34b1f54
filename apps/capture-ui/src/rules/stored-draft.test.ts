import assert from "node:assert/strict";
import { test } from "node:test";
import { isKept, isSameDraft, keepDraft, keptDraft, keptNames } from "./stored-draft.ts";

test("drafts are compared without the keys of their lines", () => {
  const lines = (key: number, value: string) => ({ name: "a", headers: [{ key, name: "X", value }] });
  for (const [left, right, isSame] of [
    [lines(1, "v"), lines(2, "v"), true],
    [lines(1, "v"), lines(1, "w"), false],
    [{ condition: null }, { condition: { type: "all" } }, false],
    // Only numeric keys identify lines; a string key is content.
    [{ key: "a" }, { key: "b" }, false],
  ] as const) {
    assert.equal(isSameDraft(left, right), isSame, JSON.stringify([left, right]));
  }
});

test("a draft is kept under its name until it is removed", () => {
  keepDraft("rewrite 1", { base: "old", draft: "new" });
  assert.deepEqual(keptDraft("rewrite 1"), { base: "old", draft: "new" });
  assert.equal(isKept("rewrite 2"), false);
  keepDraft("rewrite 1", null);
  assert.equal(isKept("rewrite 1"), false);
  for (const name of ["paused 1", "paused 2", "mock 1"]) keepDraft(name, { base: "old", draft: "new" });
  assert.deepEqual(keptNames("paused "), ["paused 1", "paused 2"]);
});
