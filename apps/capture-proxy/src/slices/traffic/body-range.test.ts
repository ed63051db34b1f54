import assert from "node:assert/strict";
import { test } from "node:test";
import { parseRange } from "./traffic.slice.ts";

test("ranges are parsed as RFC 9110 defines them; unreadable ones mean the whole body", () => {
  const cases: readonly [field: string | undefined, totalBytes: number, expected: ReturnType<typeof parseRange>][] = [
    [undefined, 10, undefined],
    ["bytes=0-", 10, { start: 0, end: 10 }],
    ["BYTES=2-4", 10, { start: 2, end: 5 }],
    ["bytes=2-400", 10, { start: 2, end: 10 }],
    ["bytes=-3", 10, { start: 7, end: 10 }],
    ["bytes=-30", 10, { start: 0, end: 10 }],
    ["bytes=-0", 10, "outside"],
    ["bytes=10-", 10, "outside"],
    ["bytes=0-", 0, undefined],
    ["bytes=-3", 0, undefined],
    ["bytes=4-2", 10, undefined],
    ["bytes=0-1,3-4", 10, undefined],
    ["bytes=-", 10, undefined],
    ["lines=0-1", 10, undefined],
    ["bytes=1e3-", 10, undefined],
    ["bytes=99999999999999999-", 10, undefined],
  ];
  for (const [field, totalBytes, expected] of cases) {
    assert.deepEqual(parseRange(field, totalBytes), expected, String(field));
  }
});
