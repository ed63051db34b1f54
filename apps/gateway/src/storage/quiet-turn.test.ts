import assert from "node:assert/strict";
import { test } from "node:test";
import { atQuietTurn } from "./store-client.ts";

const CASES: readonly (readonly [string, readonly number[], number])[] = [
  ["nothing more leaves with its own turn", [0, 5, 5], 1],
  ["more in the first turns leaves with the first that brings nothing", [3, 1, 0, 7], 3],
  ["more in every turn leaves with the eighth", [1, 1, 1, 1, 1, 1, 1, 1, 1, 1], 8],
];
for (const [what, arrivals, leavesWith] of CASES) {
  test(`a group that gets ${what}`, () => {
    let count = 1;
    let ranIn = 0;
    let next: (() => void) | undefined;
    atQuietTurn(
      () => count,
      () => (ranIn = at + 1),
      (turn) => (next = turn),
    );
    let at = 0;
    for (; next !== undefined; at += 1) {
      count += arrivals[at] ?? 0;
      const turn = next;
      next = undefined;
      turn();
    }
    assert.equal(ranIn, leavesWith);
  });
}
