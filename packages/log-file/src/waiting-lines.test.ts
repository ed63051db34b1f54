import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { WaitingLines } from "./waiting-lines.ts";

test("lines come out as they went in, whatever is taken when", () => {
  fc.assert(
    fc.property(fc.array(fc.oneof(fc.nat({ max: 40 }), fc.constant("take" as const)), { maxLength: 400 }), (steps) => {
      const waiting = new WaitingLines(1_000_000, "drop_newest");
      let given = "";
      let taken = "";
      for (const step of steps) {
        if (step === "take") {
          const before = waiting.length;
          const { bytes, lines } = waiting.take(50);
          taken += bytes.toString();
          assert.equal(waiting.length, before - lines);
        } else {
          const line = `${given.length}${"x".repeat(step)}\n`;
          waiting.add(Buffer.from(line));
          given += line;
        }
      }
      while (waiting.length > 0) taken += waiting.take(50).bytes.toString();
      assert.equal(taken, given);
      assert.equal(waiting.bytes, 0);
    }),
  );
});

test("bytes are bounded as lines are, and a single line always has room", () => {
  for (const rule of ["drop_newest", "drop_oldest"] as const) {
    const waiting = new WaitingLines(1000, rule);
    const line = Buffer.alloc(5_000_000);
    for (let at = 0; at < 10; at += 1) waiting.add(line);
    assert.deepEqual([waiting.length, waiting.dropped, waiting.highWater], [3, 7, 3]);
    const huge = new WaitingLines(1000, rule);
    huge.add(Buffer.alloc(20_000_000));
    assert.equal(huge.length, 1);
  }
});
