import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { NonceMemory } from "./nonce-memory.ts";

test("a nonce is new once for its time, for each key on its own", () => {
  const memory = new NonceMemory();
  assert.equal(memory.add("a", "n1", 0, 100), "new");
  assert.equal(memory.add("a", "n1", 99, 100), "seen");
  assert.equal(memory.add("b", "n1", 99, 100), "new");
  assert.equal(memory.add("a", "n2", 99, 100), "new");
  assert.equal(memory.add("a", "n1", 100, 100), "new", "its time is over");
  assert.equal(memory.size, 3);
});

test("a key that fills its share is refused, and others are not", () => {
  const memory = new NonceMemory({ perKey: 2, total: 10 });
  for (const [nonce, verdict] of [
    ["1", "new"],
    ["2", "new"],
    ["3", "full"],
    ["1", "seen"],
  ] as const) {
    assert.equal(memory.add("busy", nonce, 0, 100), verdict);
  }
  assert.equal(memory.add("calm", "1", 0, 100), "new");
  assert.equal(memory.add("busy", "3", 100, 100), "new", "there is room again when the time is over");
});

test("when the total limit is reached, expired nonces of any key are removed", () => {
  const memory = new NonceMemory({ perKey: 10, total: 3 });
  for (const key of ["a", "b", "c"]) assert.equal(memory.add(key, "1", 0, 100), "new");
  assert.equal(memory.add("d", "1", 50, 100), "full");
  assert.equal(memory.add("d", "1", 100, 100), "new");
  assert.equal(memory.size, 1);
});

test("it agrees with a memory that keeps everything", () => {
  const shown = fc.record({
    keyId: fc.constantFrom("a", "b"),
    nonce: fc.constantFrom("1", "2", "3", "4"),
    stepMs: fc.nat(60),
    // A new generation may remember for longer or shorter than the one before.
    forMs: fc.constantFrom(50, 100),
  });
  fc.assert(
    fc.property(fc.array(shown, { maxLength: 40 }), (sequence) => {
      const memory = new NonceMemory({ perKey: 1000, total: 1000 });
      const all = new Map<string, number>();
      let nowMs = 0;
      for (const { keyId, nonce, stepMs, forMs } of sequence) {
        nowMs += stepMs;
        const key = `${keyId} ${nonce}`;
        const expected = (all.get(key) ?? 0) > nowMs ? "seen" : "new";
        if (expected === "new") all.set(key, nowMs + forMs);
        assert.equal(memory.add(keyId, nonce, nowMs, forMs), expected);
      }
    }),
  );
});
