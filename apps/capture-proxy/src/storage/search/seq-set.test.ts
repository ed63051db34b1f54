import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { SeqSet } from "./filtered-set.ts";

const step = fc.oneof(
  fc.constant({ kind: "older" as const }),
  fc.constant({ kind: "newer" as const }),
  fc.nat(200).map((seq) => ({ kind: "insert" as const, seq })),
  fc.array(fc.nat(200), { maxLength: 5 }).map((seqs) => ({ kind: "remove" as const, seqs })),
);

test("whatever is added or removed, it lists like a sorted array", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const set = new SeqSet();
      let model: number[] = [];
      let lowest = 100;
      let highest = 100;
      for (const action of steps) {
        if (action.kind === "older") {
          lowest -= 1;
          set.addOldest(lowest);
          model.push(lowest);
        } else if (action.kind === "newer") {
          highest += 1;
          set.addNewest(highest);
          model.push(highest);
        } else if (action.kind === "insert") {
          if (model.includes(action.seq) || action.seq <= lowest || action.seq >= highest) continue;
          set.insert(action.seq);
          model.push(action.seq);
        } else {
          set.removeAll(new Set(action.seqs));
          model = model.filter((seq) => !action.seqs.includes(seq));
        }
        model.sort((left, right) => right - left);
        assert.deepEqual(set.slice(0, 1000), model);
        assert.equal(set.length, model.length);
        for (const seq of [lowest, 100, highest + 1]) {
          const place = model.findIndex((value) => value < seq);
          assert.equal(set.placeBelow(seq), place === -1 ? model.length : place);
        }
      }
    }),
  );
});
