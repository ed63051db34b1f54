import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { missingStages, timingBars } from "./timing-bars.ts";

const none = { blocked: null, dns: null, connect: null, tls: null, send: null, wait: null, receive: null };

test("stages are consecutive and fill the width", () => {
  const { bars, totalMs } = timingBars({ ...none, dns: 10, connect: 30, wait: 60 });
  assert.equal(totalMs, 100);
  assert.deepEqual(
    bars.map(({ stage, left, width }) => [stage, left, width]),
    [
      ["dns", 0, 10],
      ["connect", 10, 30],
      ["wait", 40, 60],
    ],
  );
});

test("a total of zero does not divide by zero", () => {
  assert.deepEqual(timingBars(none), { bars: [], totalMs: 0 });
  assert.equal(timingBars({ ...none, wait: 0 }).bars[0]?.width, 0);
});

test("bars never exceed their track", () => {
  const duration = fc.option(fc.double({ min: -1, max: 1e9, noNaN: true }));
  fc.assert(
    fc.property(
      fc.record({
        blocked: duration,
        dns: duration,
        connect: duration,
        tls: duration,
        send: duration,
        wait: duration,
        receive: duration,
      }),
      (timings) => {
        for (const { left, width } of timingBars(timings).bars) {
          assert.ok(left >= 0 && width >= 0 && left + width < 100.001);
        }
      },
    ),
  );
});

test("a reused connection is given as the reason for missing stages", () => {
  assert.match(missingStages({ ...none, wait: 5 }) ?? "", /reused/u);
  assert.equal(missingStages({ ...none, dns: 1, connect: 1, wait: 5 }), null);
  assert.equal(missingStages(none), null);
});
