import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { DeliverySemaphore, MAX_DELIVERIES } from "./webhooks.slice.ts";

test("delivery rule 6: there are 32 places, and no more", () => {
  const semaphore = new DeliverySemaphore();
  assert.equal(MAX_DELIVERIES, 32);
  assert.equal(Array.from({ length: 40 }, () => semaphore.take()).filter(Boolean).length, 32);
  semaphore.release();
  assert.deepEqual([semaphore.take(), semaphore.take()], [true, false]);
});

test("a queued delivery gets the next free permit in FIFO order, before others", async () => {
  const semaphore = new DeliverySemaphore(1);
  const order: string[] = [];
  await semaphore.acquireQueued();
  const waits = ["first", "second"].map(async (name) => {
    await semaphore.acquireQueued();
    order.push(name);
  });
  semaphore.releaseQueued();
  assert.equal(semaphore.take(), false, "the place is given away already");
  await waits[0];
  assert.deepEqual(order, ["first"]);
  semaphore.releaseQueued();
  await waits[1];
  assert.equal(semaphore.taken, 1);
  semaphore.releaseQueued();
  assert.equal(semaphore.taken, 0);
});

test("queued deliveries leave permits for others", async () => {
  const semaphore = new DeliverySemaphore(4, 2);
  await semaphore.acquireQueued();
  await semaphore.acquireQueued();
  let isIn = false;
  const third = semaphore.acquireQueued().then(() => {
    isIn = true;
  });
  assert.deepEqual([semaphore.take(), semaphore.take(), semaphore.take()], [true, true, false]);
  semaphore.release();
  await Promise.resolve();
  assert.equal(isIn, false, "a place of the others is none of theirs");
  semaphore.releaseQueued();
  await third;
  assert.equal(semaphore.taken, 3);
});

test("whatever is acquired and released, no limit is exceeded and every queued delivery runs", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.constantFrom("take", "wait", "release", "releasePatient"), { maxLength: 60 }),
      async (steps) => {
        const semaphore = new DeliverySemaphore(4, 2);
        let impatient = 0;
        let context = 0;
        let waiting = 0;
        for (const step of steps) {
          if (step === "take") impatient += Number(semaphore.take());
          else if (step === "wait") {
            waiting += 1;
            void semaphore.acquireQueued().then(() => {
              waiting -= 1;
              context += 1;
            });
          } else if (step === "release" && impatient > 0) {
            impatient -= 1;
            semaphore.release();
          } else if (step === "releasePatient" && context > 0) {
            context -= 1;
            semaphore.releaseQueued();
          }
          await new Promise((resolve) => setImmediate(resolve));
          assert.equal(semaphore.taken, impatient + context);
          assert.ok(context <= 2 && impatient + context <= 4);
          assert.ok(
            waiting === 0 || context === 2 || impatient + context === 4,
            "no delivery is queued while a slot is free",
          );
        }
      },
    ),
    { numRuns: 200 },
  );
});
