import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { applyTextParts, diffText } from "./text-diff.ts";

const text = fc.array(fc.constantFrom("a", "b", "", "c\r"), { maxLength: 30 }).map((lines) => lines.join("\n"));

test("applying the parts to one text gives the other", () => {
  fc.assert(
    fc.property(text, text, (left, right) => {
      const { parts, isTruncated } = diffText(left, right);
      assert.equal(isTruncated, false);
      assert.equal(applyTextParts(left, parts), right);
      assert.equal(
        parts.every(({ kind }) => kind === "same"),
        left === right,
      );
    }),
    { numRuns: 500 },
  );
});

test("unchanged lines are shown next to changes and counted elsewhere", () => {
  const lines = Array.from({ length: 40 }, (_, index) => `line ${index + 1}`);
  const changed = lines.with(19, "other");
  const { parts } = diffText(lines.join("\n"), changed.join("\n"));
  assert.deepEqual(
    parts.map(({ kind, left_line, right_line, line_count, lines: shown }) => [
      kind,
      left_line,
      right_line,
      line_count,
      shown.length,
    ]),
    [
      ["same", 1, 1, 16, 0],
      ["same", 17, 17, 3, 3],
      ["removed", 20, 20, 1, 1],
      ["added", 21, 20, 1, 1],
      ["same", 21, 21, 3, 3],
      ["same", 24, 24, 17, 0],
    ],
  );
});

test("a line feed at the end and the kind of line ends are differences", () => {
  assert.notEqual(diffText("a", "a\n").parts.length, 1);
  assert.notEqual(diffText("a\nb", "a\r\nb").parts.length, 1);
});

test("more than is asked for is cut, and said to be", () => {
  const { parts, isTruncated } = diffText("x".repeat(100), "y\nz", 50);
  assert.deepEqual([parts, isTruncated], [[], true]);
});

test("parts of another text are refused", () => {
  const { parts } = diffText("a\nb", "a\nc");
  assert.throws(() => applyTextParts("a", parts), RangeError);
  assert.throws(() => applyTextParts("a\nb\nd", parts), RangeError);
});
