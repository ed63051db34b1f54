import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { EventIds } from "./event-bus.ts";

/** Any boot time from 2004, when the number gets its eleventh hexadecimal digit, to 2527, when it gets a twelfth. */
const bootTime = fc.integer({ min: 0x100_0000_0000, max: 0xfff_ffff_ffff });

test("delivery rule 1: ids have the specified shape", () => {
  const ids = new EventIds(Date.UTC(2026, 10, 21));
  assert.match(ids.next(), /^evt-[0-9a-f]{11}-0{16}$/);
  assert.match(ids.next(), /^evt-[0-9a-f]{11}-0{15}1$/);
});

test("delivery rule 1: ids sort as text in the order of emission, across restarts, and are unique", () => {
  fc.assert(
    fc.property(fc.uniqueArray(bootTime, { maxLength: 6 }), fc.integer({ min: 1, max: 70 }), (boots, count) => {
      const made: string[] = [];
      for (const bootMs of boots.toSorted((a, b) => a - b)) {
        const ids = new EventIds(bootMs);
        for (let index = 0; index < count; index += 1) made.push(ids.next());
      }
      assert.deepEqual(made.toSorted(), made);
      assert.equal(new Set(made).size, made.length);
    }),
  );
});

test("a process recognises its own ids", () => {
  const before = new EventIds(Date.UTC(2026, 10, 21));
  const now = new EventIds(Date.UTC(2026, 10, 21) + 1);
  assert.equal(now.isOwn(now.next()), true);
  assert.equal(now.isOwn(before.next()), false);
});
