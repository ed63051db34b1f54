import assert from "node:assert/strict";
import { test } from "node:test";
import { processorMs } from "@headworks/testkit";
import { readRefusedHead } from "./index.ts";

const CASES: readonly (readonly [is: string, text: string, head: ReturnType<typeof readRefusedHead>])[] = [
  [
    "bytes above 127 in the target",
    "GET /caf\xc3\xa9 HTTP/1.1\r\nHost: a\r\nX: voil\xc3\xa0 \r\n\r\n",
    { method: "GET", target: "/caf\xc3\xa9", version: "1.1", fields: ["Host", "a", "X", "voil\xc3\xa0"] },
  ],
  [
    "blanks in the target",
    "GET /a b  c HTTP/1.0\r\n\r\n",
    { method: "GET", target: "/a b  c", version: "1.0", fields: [] },
  ],
  [
    "lines that are no fields",
    "GET / HTTP/1.1\nHost: a \n folded: 1\nno colon\n: 2\nX :3\nY:\n\n",
    { method: "GET", target: "/", version: "1.1", fields: ["Host", "a", "Y", ""] },
  ],
  ["a version nobody knows", "GET / HTTP/3.0\r\n\r\n", undefined],
  ["the start of a line", "GET /a\t", undefined],
  ["no target", "GET  HTTP/1.1\r\n\r\n", undefined],
  ["nothing", "", undefined],
];

for (const [is, text, head] of CASES) {
  test(`of a refused head with ${is} what can be told is told`, () => {
    assert.deepEqual(readRefusedHead(text), head);
  });
}

test("a refused head that is as long as allowed is read in linear time", () => {
  const texts = [" HTTP/1.1x", "  ", "a: \t ", "\r\n", "a:\r\n"].map(
    (piece) => `GET ${piece.repeat(65_536 / piece.length)}`,
  );
  const spentMs = processorMs(() => texts.forEach((text) => readRefusedHead(text)));
  assert.ok(spentMs < 500, `${spentMs} ms`);
});
