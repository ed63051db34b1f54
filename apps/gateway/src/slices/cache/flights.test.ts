import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "@headworks/testkit";
import type { Timer } from "#egress/timer.ts";
import { requestFor } from "../../../test/routing/requests.ts";
import { Flights } from "./flights.ts";

const clock = new FakeClock();
const timer: Timer = (delayMs, run) => clock.after(delayMs, run);

test("others wait until the request that was first has landed, however it came out", async () => {
  const flights = new Flights(timer);
  const [first, second] = [requestFor(), requestFor()];
  flights.begin("k", first);
  flights.begin("k", second);
  let waited = 0;
  const waits = [1, 2].map(async () => {
    await flights.wait("k", 60_000);
    waited += 1;
  });
  flights.end("k", second);
  await Promise.resolve();
  assert.deepEqual([waited, flights.has("k")], [0, true], "the second is not the one that they wait for");
  flights.end("k", first);
  await Promise.all(waits);
  assert.deepEqual([waited, flights.size, clock.pendingTimers], [2, 0, 0]);
});

test("a request that refreshes lands for the one it was made for", () => {
  const flights = new Flights(timer);
  const stale = requestFor();
  const refresh = requestFor();
  refresh.refreshes = stale;
  flights.begin("k", stale);
  flights.end("k", refresh);
  assert.equal(flights.size, 0);
});

test("a wait ends after its time, and at once when there is nothing to wait for", async () => {
  const flights = new Flights(timer);
  await flights.wait("k", 60_000);
  flights.begin("k", requestFor());
  const waiting = flights.wait("k", 5000);
  assert.equal(clock.pendingTimers, 1);
  await clock.advance(5000);
  await waiting;
  assert.deepEqual([flights.size, clock.pendingTimers], [1, 0]);
});
