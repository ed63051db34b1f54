import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "@headworks/testkit";
import type { Timer } from "#egress/timer.ts";
import { requestFor } from "../../../test/routing/requests.ts";
import { RequestCoalescer } from "./request-coalescer.ts";

const clock = new FakeClock();
const timer: Timer = (delayMs, run) => clock.after(delayMs, run);

test("others wait until the request that was first has landed, however it came out", async () => {
  const coalescer = new RequestCoalescer(timer);
  const [first, second] = [requestFor(), requestFor()];
  coalescer.begin("k", first);
  coalescer.begin("k", second);
  let waited = 0;
  const waits = [1, 2].map(async () => {
    await coalescer.wait("k", 60_000);
    waited += 1;
  });
  coalescer.end("k", second);
  await Promise.resolve();
  assert.deepEqual([waited, coalescer.has("k")], [0, true], "the second is not the one that they wait for");
  coalescer.end("k", first);
  await Promise.all(waits);
  assert.deepEqual([waited, coalescer.size, clock.pendingTimers], [2, 0, 0]);
});

test("a request that refreshes lands for the one it was made for", () => {
  const coalescer = new RequestCoalescer(timer);
  const stale = requestFor();
  const refresh = requestFor();
  refresh.refreshes = stale;
  coalescer.begin("k", stale);
  coalescer.end("k", refresh);
  assert.equal(coalescer.size, 0);
});

test("a wait ends after its time, and at once when there is nothing to wait for", async () => {
  const coalescer = new RequestCoalescer(timer);
  await coalescer.wait("k", 60_000);
  coalescer.begin("k", requestFor());
  const waiting = coalescer.wait("k", 5000);
  assert.equal(clock.pendingTimers, 1);
  await clock.advance(5000);
  await waiting;
  assert.deepEqual([coalescer.size, clock.pendingTimers], [1, 0]);
});
