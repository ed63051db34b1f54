import assert from "node:assert/strict";
import type { LookupAddress } from "node:dns";
import { test } from "node:test";
import { NameCache } from "./attempt.ts";

interface Rig {
  readonly cache: NameCache;
  readonly lookups: string[];
  nowMs: number;
  response: (error: NodeJS.ErrnoException | null, addresses?: LookupAddress[]) => void;
}

function rig(): Rig {
  const lookups: string[] = [];
  const pending: ((error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void)[] = [];
  const state: Rig = {
    lookups,
    nowMs: 0,
    cache: new NameCache(
      (name, _options, response) => {
        lookups.push(name);
        pending.push(response);
      },
      () => state.nowMs,
    ),
    response: (error, addresses = []) => pending.shift()?.(error, addresses),
  };
  return state;
}

const ADDRESSES: LookupAddress[] = [
  { address: "192.0.2.1", family: 4 },
  { address: "2001:db8::1", family: 6 },
];

const all = (cache: NameCache, name: string): Promise<LookupAddress[]> =>
  new Promise((resolve, reject) => {
    cache.lookup(name, { all: true }, (error, found) => (error ? reject(error) : resolve(found as LookupAddress[])));
  });

test("concurrent lookups use the system's resolver once, and again only after two seconds", async () => {
  const state = rig();
  const both = Promise.all([all(state.cache, "a.test"), all(state.cache, "a.test")]);
  state.response(null, ADDRESSES);
  assert.deepEqual(await both, [ADDRESSES, ADDRESSES]);
  state.nowMs = 1999;
  assert.deepEqual(await all(state.cache, "a.test"), ADDRESSES);
  assert.deepEqual(state.lookups, ["a.test"]);
  state.nowMs = 2001;
  const later = all(state.cache, "a.test");
  state.response(null, [{ address: "192.0.2.9", family: 4 }]);
  assert.deepEqual(await later, [{ address: "192.0.2.9", family: 4 }]);
  assert.deepEqual(state.lookups, ["a.test", "a.test"]);
});

test("a caller that requests one address gets the first", async () => {
  const state = rig();
  const one = new Promise((resolve) => {
    state.cache.lookup("a.test", { family: 0 }, (_error, address, family) => resolve([address, family]));
  });
  state.response(null, ADDRESSES);
  assert.deepEqual(await one, ["192.0.2.1", 4]);
});

test("a failure reaches all waiting callers and is not cached", async () => {
  const state = rig();
  const failed = assert.rejects(all(state.cache, "a.test"), { code: "ENOTFOUND" });
  state.response(Object.assign(new Error("no"), { code: "ENOTFOUND" }));
  await failed;
  const later = all(state.cache, "a.test");
  state.response(null, ADDRESSES);
  assert.deepEqual(await later, ADDRESSES);
});

test("the cache has a maximum size and evicts the oldest name", async () => {
  const state = rig();
  for (let index = 0; index <= 1000; index += 1) {
    const found = all(state.cache, `n${index}.test`);
    state.response(null, ADDRESSES);
    await found;
  }
  await all(state.cache, "n1.test");
  assert.equal(state.lookups.length, 1001);
  void all(state.cache, "n0.test");
  assert.equal(state.lookups.length, 1002);
});
