import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "@headworks/testkit";
import fc from "fast-check";
import { BandwidthLimiter } from "./bandwidth-limiter.ts";
import type { ThrottledStream } from "./bandwidth-limiter.ts";

interface Sink {
  readonly stream: ThrottledStream;
  readonly pieces: Buffer[];
  receivedBytes: number;
  isFull: boolean;
}

function sink(limiter: BandwidthLimiter, onMoved?: (sink: Sink) => void): Sink {
  const pieces: Buffer[] = [];
  const stream = limiter.open({
    take: (piece) => {
      pieces.push(piece);
      self.receivedBytes += piece.length;
      return !self.isFull;
    },
    moved: () => onMoved?.(self),
  });
  const self: Sink = { stream, pieces, receivedBytes: 0, isFull: false };
  return self;
}

/** A source that always supplies more when the stream is low. */
function endless(limiter: BandwidthLimiter): Sink {
  const refill = ({ stream }: Sink): void => {
    if (stream.isLow) stream.add(Buffer.alloc(65_536));
  };
  const filled = sink(limiter, refill);
  refill(filled);
  return filled;
}

const RATES = [20_000, 50_000, 180_000, 1_000_000, 10_000_000, 100_000_000];
for (const rate of RATES) {
  test(`a stream gets ${rate} bytes per second, from the first second on`, async () => {
    const clock = new FakeClock();
    const limiter = new BandwidthLimiter(clock);
    limiter.setRate(rate);
    await clock.advance(5000);
    const only = endless(limiter);
    for (let second = 1; second <= 3; second += 1) {
      await clock.advance(1000);
      assert.ok(
        Math.abs(only.receivedBytes / second / rate - 1) < 0.03,
        `${only.receivedBytes} bytes after ${second} s`,
      );
    }
  });
}

test("late timers lose no bandwidth unless the process is blocked", async () => {
  const clock = new FakeClock();
  const late = {
    monotonic: () => clock.monotonic(),
    after: (ms: number, run: () => void) => clock.after(ms + 60, run),
  };
  const limiter = new BandwidthLimiter(late);
  limiter.setRate(1_000_000);
  const only = endless(limiter);
  await clock.advance(5000);
  assert.ok(Math.abs(only.receivedBytes / 5_000_000 - 1) < 0.03, String(only.receivedBytes));
});

test("a rate of few bytes per second is slow, but carries on", async () => {
  for (const rate of [1, 100, 500]) {
    const clock = new FakeClock();
    const limiter = new BandwidthLimiter(clock);
    limiter.setRate(rate);
    const only = sink(limiter);
    only.stream.add(Buffer.alloc(1000));
    await clock.advance((400 / rate) * 1000);
    assert.ok(only.receivedBytes >= 200 && only.receivedBytes <= 450, `${rate}: ${only.receivedBytes}`);
    await clock.advance((650 / rate) * 1000);
    assert.equal(only.receivedBytes, 1000, String(rate));
  }
});

test("idle time does not accumulate credit", async () => {
  const clock = new FakeClock();
  const late = {
    monotonic: () => clock.monotonic(),
    after: (ms: number, run: () => void) => clock.after(ms + 200, run),
  };
  const limiter = new BandwidthLimiter(late);
  limiter.setRate(1_000_000);
  const first = sink(limiter);
  first.stream.add(Buffer.alloc(20_000));
  await clock.advance(300);
  assert.equal(first.receivedBytes, 20_000);
  limiter.charge(0);
  const second = sink(limiter);
  second.stream.add(Buffer.alloc(1_000_000));
  await clock.advance(300);
  // 300 ms and the burst of an idle limiter.
  assert.ok(second.receivedBytes <= 312_000, String(second.receivedBytes));
});

test("many streams share a limiter evenly, and a new one gets its share at once", async () => {
  const clock = new FakeClock();
  const limiter = new BandwidthLimiter(clock);
  limiter.setRate(1_000_000);
  const early = Array.from({ length: 50 }, () => endless(limiter));
  await clock.advance(2000);
  const total = early.reduce((sum, { receivedBytes }) => sum + receivedBytes, 0);
  assert.ok(Math.abs(total / 2_000_000 - 1) < 0.03, String(total));
  for (const { receivedBytes } of early) assert.ok(Math.abs(receivedBytes / 40_000 - 1) < 0.1, String(receivedBytes));
  const before = early[0]?.receivedBytes ?? 0;
  const late = endless(limiter);
  await clock.advance(2000);
  const share = (early[0]?.receivedBytes ?? 0) - before;
  assert.ok(Math.abs(late.receivedBytes / share - 1) < 0.1, `${late.receivedBytes} and ${share}`);
});

test("a short transfer beside a long one takes little longer than its share", async () => {
  const clock = new FakeClock();
  const limiter = new BandwidthLimiter(clock);
  limiter.setRate(100_000);
  const long = endless(limiter);
  await clock.advance(1000);
  const short = sink(limiter);
  short.stream.add(Buffer.alloc(10_000));
  await clock.advance(230);
  assert.equal(short.receivedBytes, 10_000);
  assert.ok(long.receivedBytes > 100_000);
});

test("all bytes arrive in order", async () => {
  const clock = new FakeClock();
  const limiter = new BandwidthLimiter(clock);
  limiter.setRate(10_000);
  const whole = Buffer.from(Array.from({ length: 5000 }, (_, index) => index % 251));
  const only = sink(limiter);
  for (let at = 0; at < whole.length; at += 700) only.stream.add(whole.subarray(at, at + 700));
  assert.equal(only.stream.isEmpty, false);
  await clock.advance(600);
  assert.deepEqual(Buffer.concat(only.pieces), whole);
  assert.equal(only.stream.isEmpty, true);
  assert.equal(clock.pendingTimers, 0);
});

test("backpressure of one receiver does not block others, and it continues where it stopped", async () => {
  const clock = new FakeClock();
  const limiter = new BandwidthLimiter(clock);
  limiter.setRate(100_000);
  const stuck = endless(limiter);
  const free = endless(limiter);
  stuck.isFull = true;
  await clock.advance(1000);
  const stuckBytes = stuck.receivedBytes;
  assert.ok(stuckBytes < 2000, String(stuckBytes));
  assert.ok(free.receivedBytes > 95_000, String(free.receivedBytes));
  stuck.isFull = false;
  stuck.stream.resume();
  await clock.advance(1000);
  assert.ok(Math.abs((stuck.receivedBytes - stuckBytes) / 50_000 - 1) < 0.1, String(stuck.receivedBytes));
});

test("a changed rate applies at once, and no rate removes the limit", async () => {
  const clock = new FakeClock();
  const limiter = new BandwidthLimiter(clock);
  limiter.setRate(10_000);
  const only = endless(limiter);
  await clock.advance(1000);
  const slow = only.receivedBytes;
  limiter.setRate(1_000_000);
  await clock.advance(1000);
  const fast = only.receivedBytes - slow;
  assert.ok(Math.abs(slow / 10_000 - 1) < 0.05, String(slow));
  assert.ok(Math.abs(fast / 1_000_000 - 1) < 0.05, String(fast));
  const last = sink(limiter);
  last.stream.add(Buffer.alloc(5_000_000));
  only.stream.close();
  limiter.setRate(0);
  assert.equal(last.receivedBytes, 5_000_000);
  assert.equal(limiter.isLimited, false);
  last.stream.add(Buffer.alloc(10));
  assert.equal(last.receivedBytes, 5_000_010);
  assert.equal(clock.pendingTimers, 0);
});

test("bytes sent outside the streams consume bandwidth", async () => {
  const clock = new FakeClock();
  const limiter = new BandwidthLimiter(clock);
  limiter.setRate(10_000);
  limiter.charge(5000);
  const only = sink(limiter);
  only.stream.add(Buffer.alloc(1000));
  await clock.advance(400);
  assert.equal(only.receivedBytes, 0);
  await clock.advance(250);
  assert.equal(only.receivedBytes, 1000);
  assert.equal(limiter.carriedBytes, 6000);
});

test("a closed stream delivers nothing more and yields its turn", async () => {
  const clock = new FakeClock();
  const limiter = new BandwidthLimiter(clock);
  limiter.setRate(10_000);
  const closed = endless(limiter);
  const other = endless(limiter);
  closed.stream.close();
  await clock.advance(1000);
  assert.equal(closed.receivedBytes, 0);
  assert.ok(Math.abs(other.receivedBytes / 10_000 - 1) < 0.05, String(other.receivedBytes));
});

test("for all inputs and receivers, every byte arrives in order, and never faster than the rate", async () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant("add" as const), stream: fc.nat(2), bytes: fc.integer({ min: 1, max: 3000 }) }),
    fc.record({ kind: fc.constant("wait" as const), ms: fc.integer({ min: 1, max: 60 }) }),
    fc.record({ kind: fc.constant("full" as const), stream: fc.nat(2), isFull: fc.boolean() }),
  );
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { maxLength: 30 }),
      fc.integer({ min: 1000, max: 500_000 }),
      async (steps, rate) => {
        const clock = new FakeClock();
        const limiter = new BandwidthLimiter(clock);
        limiter.setRate(rate);
        const sinks = [sink(limiter), sink(limiter), sink(limiter)] as const;
        const given: number[][] = [[], [], []];
        let next = 0;
        const maxBytes = (): number => (rate / 1000) * (clock.monotonic() + 10) + 1;
        for (const what of steps) {
          if (what.kind === "wait") await clock.advance(what.ms);
          else if (what.kind === "full") {
            sinks[what.stream as 0 | 1 | 2].isFull = what.isFull;
            if (!what.isFull) sinks[what.stream as 0 | 1 | 2].stream.resume();
          } else {
            const piece = Buffer.from(Array.from({ length: what.bytes }, () => (next = (next + 1) % 251)));
            given[what.stream]?.push(...piece);
            sinks[what.stream as 0 | 1 | 2].stream.add(piece);
          }
          const total = sinks.reduce((sum, { receivedBytes }) => sum + receivedBytes, 0);
          assert.ok(total <= maxBytes(), `${total} of ${maxBytes()}`);
        }
        limiter.setRate(0);
        for (const each of sinks) {
          each.isFull = false;
          each.stream.resume();
        }
        for (const [index, { pieces, stream }] of sinks.entries()) {
          assert.deepEqual(Buffer.concat(pieces), Buffer.from(given[index] ?? []));
          assert.equal(stream.isEmpty, true);
        }
        assert.equal(clock.pendingTimers, 0);
      },
    ),
    { numRuns: 60 },
  );
});
