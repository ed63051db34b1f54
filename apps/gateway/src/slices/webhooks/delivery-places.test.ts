import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { DeliveryPlaces, MAX_DELIVERIES } from "./delivery-places.ts";

test("delivery rule 6: there are 32 places, and no more", () => {
  const places = new DeliveryPlaces();
  assert.equal(MAX_DELIVERIES, 32);
  assert.equal(Array.from({ length: 40 }, () => places.take()).filter(Boolean).length, 32);
  places.release();
  assert.deepEqual([places.take(), places.take()], [true, false]);
});

test("who waits gets the next free place, in order, before anybody else", async () => {
  const places = new DeliveryPlaces(1);
  const order: string[] = [];
  await places.takePatiently();
  const waits = ["first", "second"].map(async (name) => {
    await places.takePatiently();
    order.push(name);
  });
  places.releasePatient();
  assert.equal(places.take(), false, "the place is given away already");
  await waits[0];
  assert.deepEqual(order, ["first"]);
  places.releasePatient();
  await waits[1];
  assert.equal(places.taken, 1);
  places.releasePatient();
  assert.equal(places.taken, 0);
});

test("those who wait leave places for those who do not", async () => {
  const places = new DeliveryPlaces(4, 2);
  await places.takePatiently();
  await places.takePatiently();
  let isIn = false;
  const third = places.takePatiently().then(() => {
    isIn = true;
  });
  assert.deepEqual([places.take(), places.take(), places.take()], [true, true, false]);
  places.release();
  await Promise.resolve();
  assert.equal(isIn, false, "a place of the others is none of theirs");
  places.releasePatient();
  await third;
  assert.equal(places.taken, 3);
});

test("whatever is taken and given back, no bound is exceeded and everybody who waits gets in", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.constantFrom("take", "wait", "release", "releasePatient"), { maxLength: 60 }),
      async (steps) => {
        const places = new DeliveryPlaces(4, 2);
        let impatient = 0;
        let patient = 0;
        let waiting = 0;
        for (const step of steps) {
          if (step === "take") impatient += Number(places.take());
          else if (step === "wait") {
            waiting += 1;
            void places.takePatiently().then(() => {
              waiting -= 1;
              patient += 1;
            });
          } else if (step === "release" && impatient > 0) {
            impatient -= 1;
            places.release();
          } else if (step === "releasePatient" && patient > 0) {
            patient -= 1;
            places.releasePatient();
          }
          await new Promise((resolve) => setImmediate(resolve));
          assert.equal(places.taken, impatient + patient);
          assert.ok(patient <= 2 && impatient + patient <= 4);
          assert.ok(waiting === 0 || patient === 2 || impatient + patient === 4, "nobody waits beside a free place");
        }
      },
    ),
    { numRuns: 200 },
  );
});
