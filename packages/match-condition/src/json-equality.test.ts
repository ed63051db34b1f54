import assert from "node:assert/strict";
import { test } from "node:test";
import { isShallowJson } from "./json-equality.ts";

test("values that nest without end do not end the stack", () => {
  let value: unknown = 1;
  for (let depth = 0; depth < 100_000; depth += 1) value = [value];
  assert.equal(isShallowJson(value), false);
  assert.equal(isShallowJson([[{ a: [1] }]]), true);
});
