import assert from "node:assert/strict";
import { test } from "node:test";
import { DeadlineSweep } from "./deadlines.ts";
import { NOWHERE } from "./roster.ts";

function timed(deadlineMs: number): {
  rosterPlace: number;
  deadlineMs: number;
  fired: Promise<void>;
  onDeadline: () => void;
  count: number;
} {
  const fired = Promise.withResolvers<void>();
  const entry = {
    rosterPlace: NOWHERE,
    deadlineMs,
    fired: fired.promise,
    count: 0,
    onDeadline() {
      entry.count += 1;
      fired.resolve();
    },
  };
  return entry;
}

test("a deadline fires once, after its moment, and never when it was moved on or taken back", async () => {
  const sweep = new DeadlineSweep(5);
  const due = timed(performance.now() + 10);
  const moved = timed(performance.now() + 10);
  const removed = timed(performance.now() + 10);
  const last = timed(performance.now() + 60);
  for (const entry of [due, moved, removed, last]) sweep.add(entry);
  moved.deadlineMs = performance.now() + 100_000;
  sweep.delete(removed);
  await last.fired;
  sweep.stop();
  assert.deepEqual([due.count, moved.count, removed.count, last.count], [1, 0, 0, 1]);
});
