import assert from "node:assert/strict";
import { test } from "node:test";
import { fieldProblem } from "./field-problem.ts";

test("rules cannot set fields that frame the body", () => {
  assert.notEqual(fieldProblem("Content-Length"), undefined);
  assert.notEqual(fieldProblem("transfer-ENCODING"), undefined);
  assert.equal(fieldProblem("Connection"), undefined);
});
