import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { applyTextParts, diffSequences, diffText, type Run } from "./text-diff.ts";

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

function applied(left: readonly number[], right: readonly number[], runs: readonly Run[]): number[] {
  const made: number[] = [];
  let at = 0;
  for (const run of runs) {
    assert.equal(run.left, at);
    assert.equal(run.right, made.length);
    if (run.kind === "added") made.push(...right.slice(run.right, run.right + run.count));
    else {
      if (run.kind === "same") made.push(...left.slice(at, at + run.count));
      at += run.count;
    }
  }
  assert.equal(at, left.length);
  return made;
}

const edits = (runs: readonly Run[]): number =>
  runs.reduce((sum, { kind, count }) => sum + (kind === "same" ? 0 : count), 0);

/** Reference implementation: length of the longest common subsequence. */
function commonLength(left: readonly number[], right: readonly number[]): number {
  const table = Array.from({ length: left.length + 1 }, () => Array.from({ length: right.length + 1 }, () => 0));
  for (let x = 1; x <= left.length; x += 1) {
    for (let y = 1; y <= right.length; y += 1) {
      const row = table[x] as number[];
      const above = table[x - 1] as number[];
      row[y] =
        left[x - 1] === right[y - 1]
          ? (above[y - 1] as number) + 1
          : Math.max(above[y] as number, row[y - 1] as number);
    }
  }
  return (table[left.length] as number[])[right.length] as number;
}

const sequence = fc.array(fc.integer({ min: 0, max: 4 }), { maxLength: 25 });

test("the runs turn one sequence into the other, with as few edits as can be", () => {
  fc.assert(
    fc.property(sequence, sequence, (left, right) => {
      const runs = diffSequences(left, right);
      assert.deepEqual(applied(left, right, runs), right);
      assert.equal(edits(runs), left.length + right.length - 2 * commonLength(left, right));
      for (const [index, run] of runs.entries()) {
        assert.ok(run.count > 0);
        assert.notEqual(run.kind, runs[index - 1]?.kind);
      }
    }),
    { numRuns: 500 },
  );
});

test("sequences with nothing in common are replaced, in bounded time", () => {
  const left = Array.from({ length: 60_000 }, (_, index) => index);
  const right = left.map((value) => -1 - value);
  const runs = diffSequences([...left, 7], [...right, 7]);
  assert.deepEqual(
    runs.map(({ kind, count }) => [kind, count]),
    [
      ["removed", 60_000],
      ["added", 60_000],
      ["same", 1],
    ],
  );
});
