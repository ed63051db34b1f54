import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { ResponseMemory, MAX_BYTES, sizeOf, type Entry } from "./response-memory.ts";

const entryOf = (bytes: number, route = "r"): Entry => ({
  route,
  epoch: 1,
  changes: 0,
  fields: ["A", "1"],
  body: Buffer.alloc(bytes),
  receivedMs: 0,
  initialAgeMs: 0,
  freshForMs: 1000,
  staleForMs: 0,
  forbidsStale: false,
});

test("cache bound: 64 MiB", () => {
  const memory = new ResponseMemory();
  for (let index = 0; index < 100; index += 1) memory.put(`key ${index}`, entryOf(1024 * 1024), 0);
  assert.ok(memory.bytes <= MAX_BYTES && memory.bytes > MAX_BYTES * 0.97, String(memory.bytes));
  assert.equal(memory.get("key 0", 0), undefined);
  assert.ok(memory.get("key 99", 0));
});

test("cache bound: whatever is stored and used, the bytes are counted right, never too many, and the unused go first", () => {
  const step = fc.record({ kind: fc.constantFrom("put", "put", "get", "delete"), key: fc.nat(8), bytes: fc.nat(3000) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 120 }), (steps) => {
      const max = 6000;
      const memory = new ResponseMemory(max);
      /** Oldest use first. */
      let model: { key: string; entry: Entry }[] = [];
      const total = (): number => model.reduce((sum, { key, entry }) => sum + sizeOf(key, entry), 0);
      for (const { kind, key: number, bytes } of steps) {
        const key = `k${number}`;
        const known = model.find((each) => each.key === key);
        if (kind === "get") {
          assert.deepEqual(memory.get(key, 0), known?.entry);
          if (known !== undefined) model = [...model.filter((each) => each !== known), known];
          continue;
        }
        model = model.filter((each) => each !== known);
        if (kind === "delete") memory.delete(key);
        else {
          const entry = entryOf(bytes);
          memory.put(key, entry, 0);
          if (sizeOf(key, entry) <= max) model.push({ key, entry });
          while (total() > max) model.shift();
        }
        assert.deepEqual([memory.size, memory.bytes], [model.length, total()]);
        assert.ok(memory.bytes <= max);
      }
      for (const { key, entry } of model) assert.deepEqual(memory.get(key, 0), entry);
    }),
  );
});

test("cache bound: idle 1 h", () => {
  const memory = new ResponseMemory();
  memory.put("used", entryOf(10), 0);
  memory.put("idle", entryOf(10), 0);
  assert.ok(memory.get("used", 3_000_000));
  assert.equal(memory.get("idle", 3_600_001), undefined);
  assert.ok(memory.get("used", 3_600_001));
  memory.put("other", entryOf(10), 0);
  memory.put("new", entryOf(10), 9_000_000);
  assert.equal(memory.size, 1, "idle ones go without being asked for");
});

test("an entry that is put anew counts once, one that is too large is not kept and takes the old one with it", () => {
  const memory = new ResponseMemory(2000);
  memory.put("k", entryOf(100), 0);
  memory.put("k", entryOf(200), 0);
  assert.deepEqual([memory.size, memory.bytes], [1, sizeOf("k", entryOf(200))]);
  memory.put("k", entryOf(5000), 0);
  assert.deepEqual([memory.size, memory.bytes], [0, 0]);
});

test("an entry that lists representations is no response", () => {
  const memory = new ResponseMemory();
  const list = { ...entryOf(0), codings: ["identity gzip", "gzip"] };
  memory.put("k", list, 0);
  memory.put("k", list, 0);
  memory.put("k gzip", entryOf(10), 0);
  assert.deepEqual([memory.size, memory.responses], [2, 1]);
  assert.equal(memory.get("k", 3_600_001), undefined);
  assert.deepEqual([memory.size, memory.responses, memory.bytes], [1, 1, sizeOf("k gzip", entryOf(10))]);
  memory.put("k gzip", list, 0);
  assert.deepEqual([memory.size, memory.responses], [1, 0]);
});

test("a route's entries go together", () => {
  const memory = new ResponseMemory();
  memory.put("a", entryOf(1, "one"), 0);
  memory.put("b", entryOf(1, "two"), 0);
  memory.deleteRoute("one");
  assert.deepEqual([memory.get("a", 0), memory.size], [undefined, 1]);
});

test("bodies under way are bounded too", () => {
  const memory = new ResponseMemory(1000);
  assert.deepEqual([memory.reserve(600), memory.reserve(600)], [true, false]);
  memory.free(600);
  assert.equal(memory.reserve(1000), true);
});
