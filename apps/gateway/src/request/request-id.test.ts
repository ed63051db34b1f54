import assert from "node:assert/strict";
import { test } from "node:test";
import { acceptableRequestId, newRequestId } from "./request-id.ts";

test("new ids have the documented shape and differ", () => {
  const ids = Array.from({ length: 10_000 }, newRequestId);
  assert.equal(new Set(ids).size, ids.length);
  for (const id of ids) assert.match(id, /^req-[0-9a-f]{16}-[0-9a-f]{6}$/);
});

for (const [name, sent, kept] of [
  ["printable text is kept", "abc-123", true],
  ["128 characters are kept", "x".repeat(128), true],
  ["129 characters are not", "x".repeat(129), false],
  ["a space is not", "a b", false],
  ["control bytes are not", "a\tb", false],
  ["bytes beyond ASCII are not", "é", false],
  ["an empty value is not", "", false],
] as const) {
  test(`a client's request id: ${name}`, () => assert.equal(acceptableRequestId(sent), kept ? sent : undefined));
}
