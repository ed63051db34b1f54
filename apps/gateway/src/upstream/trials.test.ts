import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Trials } from "./circuit-breaker.ts";

test("trials: a slot is free when a trial ends or its time is over, and each ends once", () => {
  const trials = new Trials();
  assert.equal(trials.waitMs(2, 100, 0), 0);
  trials.begin(1, 100, 0);
  trials.begin(2, 100, 30);
  assert.equal(trials.waitMs(2, 100, 50), 50, "the oldest one's time ends first");
  assert.equal(trials.waitMs(3, 100, 50), 0);
  assert.equal(trials.end(2), "in-time");
  assert.equal(trials.waitMs(2, 100, 50), 0);
  trials.begin(3, 100, 100);
  assert.deepEqual(
    [trials.end(1), trials.end(1), trials.end(2), trials.end(9)],
    ["overdue", "unknown", "unknown", "unknown"],
  );
  trials.clear();
  assert.equal(trials.end(3), "unknown");
});

test("trials, random sequences: the number of slots is bounded, and none is held beyond its time", () => {
  const step = fc.oneof(
    fc.record({ do: fc.constant("begin" as const) }),
    fc.record({ do: fc.constant("end" as const), at: fc.nat(20) }),
    fc.record({ do: fc.constant("wait" as const), ms: fc.nat(50) }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), fc.integer({ min: 1, max: 3 }), (steps, most) => {
      const trials = new Trials();
      const out: { epoch: number; startMs: number }[] = [];
      let nowMs = 0;
      let epoch = 0;
      for (const each of steps) {
        if (each.do === "wait") nowMs += each.ms;
        else if (each.do === "end") {
          const [ended] = out.splice(each.at % Math.max(1, out.length), 1);
          if (ended !== undefined) assert.notEqual(trials.end(ended.epoch), "unknown");
        } else if (trials.waitMs(most, 30, nowMs) === 0) {
          epoch += 1;
          trials.begin(epoch, 30, nowMs);
          out.push({ epoch, startMs: nowMs });
        }
        const young = out.filter(({ startMs }) => nowMs - startMs < 30);
        assert.ok(young.length <= most);
        assert.equal(trials.waitMs(most, 30, nowMs) > 0, young.length === most);
      }
    }),
  );
});
