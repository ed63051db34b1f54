import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { DeliverySemaphore, MAX_DELIVERIES } from "./webhooks.slice.ts";

test("delivery rule 6: there are 32 places, and no more", () => {
  const places = new DeliverySemaphore();
  assert.equal(MAX_DELIVERIES, 32);
  assert.equal(Array.from({ length: 40 }, () => places.take()).filter(Boolean).length, 32);
  places.release();
  assert.deepEqual([places.take(), places.take()], [true, false]);
});

test("who waits gets the next free place, in order, before anybody else", async () => {
  const places = new DeliverySemaphore(1);
  const order: string[] = [];
  await places.acquireQueued();
  const waits = ["first", "second"].map(async (name) => {
    await places.acquireQueued();
    order.push(name);
  });
  places.releaseQueued();
  assert.equal(places.take(), false, "the place is given away already");
  await waits[0];
  assert.deepEqual(order, ["first"]);
  places.releaseQueued();
  await waits[1];
  assert.equal(places.taken, 1);
  places.releaseQueued();
  assert.equal(places.taken, 0);
});

test("those who wait leave places for those who do not", async () => {
  const places = new DeliverySemaphore(4, 2);
  await places.acquireQueued();
  await places.acquireQueued();
  let isIn = false;
  const third = places.acquireQueued().then(() => {
    isIn = true;
  });
  assert.deepEqual([places.take(), places.take(), places.take()], [true, true, false]);
  places.release();
  await Promise.resolve();
  assert.equal(isIn, false, "a place of the others is none of theirs");
  places.releaseQueued();
  await third;
  assert.equal(places.taken, 3);
});

test("whatever is taken and given back, no bound is exceeded and everybody who waits gets in", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.constantFrom("take", "wait", "release", "releasePatient"), { maxLength: 60 }),
      async (steps) => {
        const places = new DeliverySemaphore(4, 2);
        let impatient = 0;
        let context = 0;
        let waiting = 0;
        for (const step of steps) {
          if (step === "take") impatient += Number(places.take());
          else if (step === "wait") {
            waiting += 1;
            void places.acquireQueued().then(() => {
              waiting -= 1;
              context += 1;
            });
          } else if (step === "release" && impatient > 0) {
            impatient -= 1;
            places.release();
          } else if (step === "releasePatient" && context > 0) {
            context -= 1;
            places.releaseQueued();
          }
          await new Promise((resolve) => setImmediate(resolve));
          assert.equal(places.taken, impatient + context);
          assert.ok(context <= 2 && impatient + context <= 4);
          assert.ok(waiting === 0 || context === 2 || impatient + context === 4, "nobody waits beside a free place");
        }
      },
    ),
    { numRuns: 200 },
  );
});
