import assert from "node:assert/strict";
import { test } from "node:test";
import { oldSpaceGrowthBytes } from "@headworks/testkit";
import fc from "fast-check";
import { Queue, type QueuePlace } from "./queue.ts";

test("a queue serves in the order of arrival, without those who left, as a list would", () => {
  const changes = fc.array(fc.tuple(fc.constantFrom("push", "shift", "leave"), fc.nat(20)), { maxLength: 60 });
  fc.assert(
    fc.property(changes, (list) => {
      const queue = new Queue<number>();
      const model: number[] = [];
      const places: QueuePlace[] = [];
      for (const [change, at] of list) {
        if (change === "push") model.push(places.push(queue.push(places.length)) - 1);
        else if (change === "shift") assert.equal(queue.shift(), model.shift());
        else {
          const place = places[at];
          if (place === undefined) continue;
          queue.leave(place);
          if (model.includes(at)) model.splice(model.indexOf(at), 1);
        }
        assert.equal(queue.size, model.length);
        assert.equal(queue.first, model[0]);
        for (const [member, { isWaiting }] of places.entries()) assert.equal(isWaiting, model.includes(member));
      }
      assert.deepEqual(queue.shiftAll(), model);
      assert.deepEqual([queue.size, queue.first, queue.shift()], [0, undefined, undefined]);
    }),
  );
});

test("who waited for a moment does not grow old, though places are held", () => {
  const queue = new Queue<{ readonly weight: readonly number[] }>();
  const held: QueuePlace[] = [];
  const members = 200;
  const growth = oldSpaceGrowthBytes(50, () => {
    for (let count = 0; count < members; count += 1) {
      const place = queue.push({ weight: Array.from({ length: 100 }, () => count) });
      if (count === 0) held.push(place);
      if (queue.size > 64) queue.shift();
    }
  });
  assert.ok(held.length > 50);
  // With a Set, or with links that are kept, it is nine tenths of all members ever added, about 900 bytes each.
  assert.ok(growth / (50 * members) < 100, `${growth / (50 * members)} bytes of each member are kept`);
});
