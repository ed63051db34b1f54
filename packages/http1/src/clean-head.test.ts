import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { bytes } from "../test/recording.ts";
import { cleanHeadEnd } from "./head-collector.ts";

/** A direct implementation of the description. */
function naiveEnd(text: string, start: number, maxBytes: number): number {
  const match = /^(?:[\t\x20-\x7e\x80-\xff]+\r\n)*\r\n/.exec(text.slice(start));
  return match === null || match[0].length > maxBytes ? -1 : start + match[0].length;
}

const near = fc
  .array(
    fc.constantFrom(
      "a",
      "bcd",
      "\r\n",
      "\r\n",
      "\r\n\r\n",
      "\r",
      "\n",
      "\t",
      " ",
      "\x80",
      "\xff",
      "\x7f",
      "\x1f",
      "\0",
      "\x81\xa0",
    ),
    {
      maxLength: 40,
    },
  )
  .map((parts) => parts.join(""));

test("the end of a clean head is found exactly where a plain search finds it", () => {
  let found = 0;
  fc.assert(
    fc.property(near, fc.nat({ max: 9 }), fc.integer({ min: 1, max: 80 }), (text, skip, maxBytes) => {
      const start = Math.min(skip, text.length);
      const expected = naiveEnd(text, start, maxBytes);
      assert.equal(cleanHeadEnd(bytes(text), start, maxBytes), expected);
      if (expected > start + 2) found++;
    }),
    { numRuns: 20_000 },
  );
  assert(found > 300, `only ${found} clean heads`);
});

test("every byte value is judged alike at every place of a word", () => {
  for (let code = 0; code < 256; code++) {
    for (let at = 0; at < 8; at++) {
      const text = `${"x".repeat(at)}${String.fromCharCode(code)}y\r\n\r\n`;
      assert.equal(cleanHeadEnd(bytes(text), 0, 1_000), naiveEnd(text, 0, 1_000), `${code} at ${at}`);
    }
  }
});

test("heads longer than a block are found, up to 64 KiB", () => {
  for (const size of [2_043, 2_044, 2_045, 2_046, 2_047, 2_048, 2_049, 4_096, 65_532, 65_533]) {
    const text = `${"x".repeat(size)}\r\n\r\ntail`;
    assert.equal(cleanHeadEnd(bytes(text), 0, 100_000), size + 4 <= 65_536 ? size + 4 : -1, `${size}`);
  }
});

test("what an earlier head left in memory is never read as part of a later one", () => {
  assert.equal(cleanHeadEnd(bytes(`${"x".repeat(20)}\r\n\r\n`), 0, 100), 24);
  for (let size = 0; size < 24; size++) assert.equal(cleanHeadEnd(bytes("x".repeat(size)), 0, 100), -1);
});
