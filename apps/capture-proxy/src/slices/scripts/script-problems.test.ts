import assert from "node:assert/strict";
import { test } from "node:test";
import type { ScriptValidation } from "@headworks/capture-contract";
import { createScriptProblems } from "./script-problems.ts";
import { newScript, type StoredScript } from "./script-rule.ts";

const script = (id: string, source: string): StoredScript => newScript(id, { name: id, source }, [], 0);

function rig() {
  const validated: string[] = [];
  const results = new Map<string, ScriptValidation>();
  const failing = new Map<string, string>();
  const problems = createScriptProblems({
    validate: (source) => {
      validated.push(source);
      return Promise.resolve(results.get(source) ?? { valid: true });
    },
    problemOf: (id) => failing.get(id),
  });
  return { problems, validated, results, failing };
}

test("each source is checked once, and again when it changes", async () => {
  const { problems, validated, results } = rig();
  results.set("bad", { valid: false, error: "no", line: 2, column: 3 });
  await problems.check([script("a", "good"), script("b", "bad")]);
  await problems.check([script("a", "good"), script("b", "bad")]);
  assert.deepEqual(validated, ["good", "bad"]);
  assert.equal(problems.problemOf(script("a", "good")), null);
  assert.equal(problems.problemOf(script("b", "bad")), "line 2, column 3: no");
  assert.equal(problems.problemOf(script("b", "other")), null);
  await problems.check([script("a", "bad")]);
  assert.equal(problems.problemOf(script("a", "bad")), "line 2, column 3: no");
});

test("a check that could not be made is no problem of the source, and is made again", async () => {
  const { problems, results } = rig();
  results.set("slow", { valid: false, error: "The thread did not start in time" });
  await problems.check([script("a", "slow")]);
  assert.equal(problems.problemOf(script("a", "slow")), null);
  results.set("slow", { valid: false, error: "no", line: 1 });
  await problems.check([script("a", "slow")]);
  assert.equal(problems.problemOf(script("a", "slow")), "line 1: no");
});

test("a source that fails when it is loaded has that problem", async () => {
  const { problems, failing } = rig();
  failing.set("a", "line 4: x is not defined");
  await problems.check([script("a", "x")]);
  assert.equal(problems.problemOf(script("a", "x")), "line 4: x is not defined");
});
