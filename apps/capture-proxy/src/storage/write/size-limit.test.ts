import assert from "node:assert/strict";
import { test } from "node:test";
import { temporaryDirectory, waitUntil } from "@headworks/testkit";
import { sampleExchange } from "../read/sample-exchange.ts";
import { openRig } from "../store-rig.ts";
import type { StoreRig } from "../store-rig.ts";

const MIB = 1_048_576;

/** A body of this size in socket-sized chunks. */
function bytes(total: number): Uint8Array[] {
  const pieces = Array.from({ length: Math.floor(total / 100_000) }, () => Buffer.alloc(100_000, "x"));
  return [...pieces, Buffer.alloc(total % 100_000, "x")];
}

async function stateOf(rig: StoreRig, id: string): Promise<unknown> {
  const entry = await rig.entry(id);
  return entry && [entry.request.body_state, entry.response?.body_state, entry.response?.body_stored_size];
}

test("a body above max_total_size_mb is not stored, its entry says so, and no other entry is removed", async () => {
  await using directory = await temporaryDirectory();
  await using rig = await openRig(directory.path, { maxTotalSizeMb: 1 });
  const { store } = rig;
  const small = Array.from({ length: 5 }, () => rig.add({ responseBody: ["small"] }).id);
  const { id } = rig.add({ responseBody: bytes(3 * MIB) });
  await store.flush();
  assert.deepEqual(await stateOf(rig, id), ["none", "not_stored", 0]);
  assert.equal((await rig.entry(id))?.response?.body_size, 3 * MIB);
  assert.deepEqual(
    (await rig.rows()).rows.map((row) => row.id),
    [id, ...small.reverse()],
  );
  assert.deepEqual([store.status().bodiesNotStored, store.status().totalSizeBytes], [1, 25]);
});

test("bodies that exceed the limit only together are not stored, including replaced ones", async () => {
  await using directory = await temporaryDirectory();
  await using rig = await openRig(directory.path, { maxTotalSizeMb: 1 });
  const both = rig.add({ requestBody: bytes(600_000), responseBody: bytes(600_000) });
  const { request } = sampleExchange();
  const original = { message: request, body: Buffer.alloc(900_000) };
  const replaced = rig.add({ requestBody: bytes(200_000), responseBody: ["x"], originalRequest: original });
  const fitting = rig.add({ requestBody: bytes(500_000), responseBody: bytes(500_000) });
  await rig.store.flush();
  assert.deepEqual(await stateOf(rig, both.id), ["not_stored", "not_stored", 0]);
  assert.deepEqual(await stateOf(rig, replaced.id), ["not_stored", "not_stored", 0]);
  assert.equal((await rig.entry(replaced.id))?.original_request?.body_state, "not_stored");
  assert.deepEqual(await stateOf(rig, fitting.id), ["complete", "complete", 500_000]);
  assert.equal(rig.store.status().totalSizeBytes, 1_000_000);
});

test("a stream message above max_total_size_mb is counted as not stored, and nothing is removed", async () => {
  await using directory = await temporaryDirectory();
  await using rig = await openRig(directory.path, { maxTotalSizeMb: 1 });
  const { store } = rig;
  const small = rig.add({ responseBody: ["small"] });
  const exchange = sampleExchange({ state: { step: "responding" } });
  store.record(store.nextSeq(), exchange);
  const stream = store.streams.open(exchange, "websocket");
  const facts = { direction: "receive", type: "binary", opcode: 2, isFinal: true, isCompressed: false } as const;
  for (const payload of [Buffer.from("first"), Buffer.alloc(2 * MIB), Buffer.from("third")]) {
    const { length } = payload;
    stream.frame({ ...facts, atMs: Date.now(), sizeBytes: length, wireBytes: length, payload });
  }
  await store.flush();
  const row = await store.streams.getStream(exchange.id);
  assert.deepEqual([row?.framesReceived, row?.framesNotStored], [3, 1]);
  assert.ok(await rig.entry(small.id));
  assert.equal(store.status().totalSizeBytes, 15);
});

test("a lowered limit removes entries that exceed it alone first, then the oldest", async () => {
  await using directory = await temporaryDirectory();
  await using rig = await openRig(directory.path, { maxTotalSizeMb: 10 });
  const { store } = rig;
  const [oldest, second, third] = Array.from({ length: 3 }, () => rig.add({ responseBody: bytes(400_000) }).id);
  const large = rig.add({ responseBody: bytes(3 * MIB) });
  store.setLimits({ maxRequests: 0, maxTotalSizeMb: 1, maxBodyBytes: 20_971_520 });
  await waitUntil(() => store.status().totalSizeBytes <= MIB);
  assert.deepEqual(
    (await rig.rows()).rows.map((row) => row.id),
    [third, second],
  );
  assert.deepEqual([await rig.entry(large.id), await rig.entry(oldest ?? "")], [undefined, undefined]);
});
