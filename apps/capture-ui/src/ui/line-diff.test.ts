import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { diffLines, nearChanges } from "./line-diff.ts";

const line = fc.constantFrom("a", "b", "c", "d");
const lines = fc.array(line, { maxLength: 30 });

test("a diff contains both sides completely", () => {
  fc.assert(
    fc.property(lines, lines, (left, right) => {
      const diff = diffLines(left, right);
      assert.deepEqual(
        diff.filter((each) => each.kind !== "added").map((each) => each.text),
        left,
      );
      assert.deepEqual(
        diff.filter((each) => each.kind !== "removed").map((each) => each.text),
        right,
      );
      const numbers = diff.flatMap((each) => (each.right === null ? [] : [each.right]));
      assert.deepEqual(
        numbers,
        right.map((_, index) => index + 1),
      );
    }),
  );
});

test("a diff marks the minimum of lines", () => {
  const longest = (left: readonly string[], right: readonly string[]): number => {
    const row = Array.from({ length: right.length + 1 }, () => 0);
    for (const one of left) {
      let corner = 0;
      right.forEach((other, index) => {
        const above = row[index + 1] ?? 0;
        row[index + 1] = one === other ? corner + 1 : Math.max(above, row[index] ?? 0);
        corner = above;
      });
    }
    return row[right.length] ?? 0;
  };
  fc.assert(
    fc.property(lines, lines, (left, right) => {
      const same = diffLines(left, right).filter((each) => each.kind === "same").length;
      assert.equal(same, longest(left, right));
    }),
  );
});

test("the diff of texts without common lines ends quickly", () => {
  const left = Array.from({ length: 4000 }, (_, index) => `l${index}`);
  const right = Array.from({ length: 4000 }, (_, index) => `r${index}`);
  assert.equal(diffLines(left, right).length, 8000);
});

test("unchanged lines are omitted and counted", () => {
  const left = Array.from({ length: 20 }, (_, index) => String(index));
  const diff = nearChanges(diffLines(left, left.with(10, "x")), 2);
  assert.deepEqual(diff[0], { skipped: 8 });
  assert.deepEqual(diff.at(-1), { skipped: 7 });
  assert.equal(diff.length, 8);
  assert.deepEqual(nearChanges(diffLines(["a"], ["a"]), 2), [{ skipped: 1 }]);
});
