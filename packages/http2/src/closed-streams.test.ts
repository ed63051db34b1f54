import assert from "node:assert/strict";
import { test } from "node:test";
import { ClosedStreams } from "./closed-streams.ts";

test("the endings of the streams that ended last are known, and no others", () => {
  const closed = new ClosedStreams();
  assert.equal(closed.endingOf(1), "unknown");
  for (let id = 1; id < 401; id += 2) closed.note(id, id % 3 === 0 ? "ended" : id % 3 === 1 ? "reset" : "left");
  assert.deepEqual(
    [399, 397, 395, 145, 143, 1, 401].map((id) => closed.endingOf(id)),
    ["ended", "reset", "left", "reset", "unknown", "unknown", "unknown"],
  );
});

test("numbers that a client left out are known, as far as there are few of them", () => {
  const closed = new ClosedStreams();
  let last = 0;
  for (const id of [1, 3, 9, 11, 13, 1001]) {
    closed.began(id, last);
    last = id;
  }
  const leftOut = [1, 3, 5, 7, 9, 11, 13, 15, 999, 1001, 1003].filter((id) => closed.wasLeftOut(id));
  assert.deepEqual(leftOut, [5, 7, 15, 999]);
  const first = new ClosedStreams();
  first.began(5, 0);
  assert.deepEqual([first.wasLeftOut(1), first.wasLeftOut(3), first.wasLeftOut(5)], [true, true, false]);
  for (let id = 1005; id < 100_000; id += 4) closed.began(id, id - 4);
  assert.equal(closed.wasLeftOut(99_999), false, "a forgotten stream counts as used");
});
