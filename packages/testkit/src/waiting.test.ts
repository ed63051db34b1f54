import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { test } from "node:test";
import { FakeClock, processorMs, waitForEvent, waitUntil, oldSpaceGrowthBytes } from "./index.ts";

test("timers fire in the order they are due, each at its own time", async () => {
  const clock = new FakeClock(1000);
  const seen: string[] = [];
  const note = (name: string) => (): void => void seen.push(`${name}@${clock.monotonic()}/${clock.now()}`);
  clock.after(30, note("late"));
  const stop = clock.every(10, note("tick"));
  clock.after(10, note("soon"));
  clock.after(15, note("never"))();
  await clock.advance(25);
  stop();
  await clock.advance(25);
  assert.deepEqual(seen, ["tick@10/1010", "soon@10/1010", "tick@20/1020", "late@30/1030"]);
  assert.equal(clock.pendingTimers, 0);
  assert.equal(clock.monotonic(), 50);
});

test("a timer may set another that is due in the same span, also after awaiting", async () => {
  const clock = new FakeClock();
  const seen: number[] = [];
  clock.after(5, () => {
    void Promise.resolve().then(() => clock.after(5, () => seen.push(clock.monotonic())));
  });
  await clock.advance(20);
  assert.deepEqual(seen, [10]);
});

test("the wall clock jumps without moving the timers", async () => {
  const clock = new FakeClock(5000);
  let fired = false;
  clock.after(10, () => {
    fired = true;
  });
  clock.jumpWallClock(-4000);
  assert.equal(clock.now(), 1000);
  await clock.advance(9);
  assert.equal(fired, false);
  await clock.advance(1);
  assert.equal(fired, true);
});

test("a period that is not positive is refused, since it would never end", () => {
  assert.throws(() => new FakeClock().every(0, () => undefined), RangeError);
});

test("waiting answers the first truthy value", async () => {
  let asked = 0;
  assert.equal(await waitUntil(() => (++asked >= 3 ? `asked ${asked}` : undefined)), "asked 3");
  assert.equal(await waitUntil(async () => await Promise.resolve(7)), 7);
});

test("waiting gives up with the words it was given", async () => {
  await assert.rejects(
    waitUntil(() => false, { timeoutMs: 10, what: "peace" }),
    /peace did not happen within 10 ms/,
  );
  await assert.rejects(
    waitUntil(() => Promise.reject(new Error("broken"))),
    /broken/,
  );
});

test("an event is awaited with its arguments, and an error event rejects", async () => {
  const emitter = new EventEmitter();
  setImmediate(() => emitter.emit("ready", 1, 2));
  assert.deepEqual(await waitForEvent(emitter, "ready"), [1, 2]);
  await assert.rejects(waitForEvent(emitter, "ready", { timeoutMs: 10 }), /"ready" did not happen within 10 ms/);
  setImmediate(() => emitter.emit("error", new Error("broken")));
  await assert.rejects(waitForEvent(emitter, "ready"), /broken/);
  assert.equal(emitter.listenerCount("ready"), 0);
});

test("processor time is what one run costs, and does not count waiting", () => {
  const spin = (rounds: number) => (): void => {
    for (let left = rounds; left > 0; left -= 1) Math.sqrt(left);
    // What waits for others is not work.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
  };
  const [short, long] = [processorMs(spin(3_000_000)), processorMs(spin(30_000_000))];
  assert.ok(long > 3 * short && long < 40 * short, `${long} ms against ${short} ms`);
});

test("old space grows by what lasts, and not by what is gone at once", () => {
  const kept: number[][] = [];
  const work = (keep: boolean) => () => {
    for (let count = 0; count < 100; count += 1) {
      const piece = Array.from({ length: 100 }, () => count);
      if (keep) kept.push(piece);
    }
  };
  assert.ok(oldSpaceGrowthBytes(20, work(true)) > 20 * 100 * 400);
  assert.ok(oldSpaceGrowthBytes(20, work(false)) < 20 * 100 * 50);
});
