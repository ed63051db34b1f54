import assert from "node:assert/strict";
import { test } from "node:test";
import { DeliveryPlaces, MOST_DELIVERIES } from "./delivery-places.ts";

test("delivery rule 6: there are 32 places, and no more", () => {
  const places = new DeliveryPlaces();
  assert.equal(MOST_DELIVERIES, 32);
  assert.equal(Array.from({ length: 40 }, () => places.take()).filter(Boolean).length, 32);
  places.release();
  assert.deepEqual([places.take(), places.take()], [true, false]);
});

test("who waits gets the next free place, in order, before anybody else", async () => {
  const places = new DeliveryPlaces(1);
  const order: string[] = [];
  await places.takeLater();
  const waits = ["first", "second"].map(async (name) => {
    await places.takeLater();
    order.push(name);
  });
  places.release();
  assert.equal(places.take(), false, "the place is given away already");
  await waits[0];
  assert.deepEqual(order, ["first"]);
  places.release();
  await waits[1];
  assert.equal(places.taken, 1);
  places.release();
  assert.equal(places.taken, 0);
});
