import assert from "node:assert/strict";
import { test } from "node:test";
import { storedFields } from "./stored-entry.ts";

test("fields are read from lines and from JSON alike", () => {
  const fields = ["Host", "a.test", "A", "", "B", "c: d"];
  assert.deepEqual(storedFields("Host: a.test\r\nA: \r\nB: c: d\r\n"), fields);
  assert.deepEqual(storedFields(JSON.stringify(fields)), fields);
  assert.deepEqual([storedFields("[]"), storedFields(null)], [[], null]);
});

for (const damaged of ["Host", "Host: a.test", "Host: a.test\r\nA", "Host\r\nA: b\r\n", "\r\n", ": ", "[", "\0"]) {
  test(`damaged fields are an error: ${JSON.stringify(damaged)}`, () => {
    assert.throws(() => storedFields(damaged), SyntaxError);
  });
}
