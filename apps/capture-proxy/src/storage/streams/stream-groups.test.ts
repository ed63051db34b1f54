import assert from "node:assert/strict";
import { test } from "node:test";
import { temporaryDirectory } from "@headworks/testkit";
import { sampleExchange, sampleFrame } from "../read/sample-exchange.ts";
import { openRig, type StoreRig } from "../store-rig.ts";
import type { AttributeCondition } from "./stream-store.ts";

/** A call with one frame and its service as attribute; returns its id. */
function call(rig: StoreRig, attributes: Readonly<Record<string, string>>, isOpen = false): string {
  const exchange = sampleExchange({ id: crypto.randomUUID(), state: { step: "responding" } });
  rig.store.record(rig.store.nextSeq(), exchange);
  const stream = rig.store.streams.open(exchange, "grpc");
  stream.change({ state: "open", attributes });
  stream.frame(sampleFrame(attributes["service"] ?? "", { type: "message", opcode: 0 }));
  if (!isOpen) stream.end();
  return exchange.id;
}

const CONDITIONS: readonly (readonly [AttributeCondition, readonly string[]])[] = [
  [{ attribute: "service", match: "equals", text: "shop.v1.Orders" }, ["first", "third"]],
  [{ attribute: "service", match: "equals", text: "Orders" }, []],
  [{ attribute: "service", match: "name", text: "orders" }, ["first", "third"]],
  [{ attribute: "service", match: "name", text: "v1.Orders" }, ["first", "third"]],
  [{ attribute: "service", match: "name", text: "ders" }, []],
  [{ attribute: "service", match: "contains", text: "RDER" }, ["first", "second", "third"]],
  [{ attribute: "service", match: "contains", text: "%" }, []],
  [{ attribute: "status", match: "equals", text: "5" }, ["second"]],
  [{ attribute: "missing", match: "contains", text: "" }, []],
];

test("streams, frames and groups are filtered by attributes", async () => {
  await using directory = await temporaryDirectory();
  await using rig = await openRig(directory.path);
  const { streams } = rig.store;
  const ids = new Map([
    [call(rig, { service: "shop.v1.Orders", connection: "a" }), "first"],
    [call(rig, { service: "shop.v1.Preorders", connection: "b", status: "5" }), "second"],
    [call(rig, { service: "shop.v1.Orders", connection: "a" }, true), "third"],
    [call(rig, {}), "without"],
  ]);
  await rig.store.flush();
  for (const [condition, expected] of CONDITIONS) {
    const query = { kind: "grpc", attributes: [condition], limit: 10, offset: 0 } as const;
    const listed = await streams.listStreams(query);
    const names = listed.streams.map(({ id }) => ids.get(id)).toReversed();
    assert.deepEqual([names, listed.total], [expected, expected.length], JSON.stringify(condition));
    const { frames, total } = await streams.listFrames({ ...query, order: "asc" });
    assert.deepEqual([frames.map(({ streamId }) => ids.get(streamId)), total], [expected, expected.length]);
  }
  const [first = "", second = ""] = ids.keys();
  const some = await streams.listStreams({ ids: [second, "unknown", first], limit: 10, offset: 0 });
  assert.deepEqual([some.streams.map(({ id }) => ids.get(id)), some.total], [["second", "first"], 2]);
  assert.equal((await streams.listStreams({ ids: [], limit: 10, offset: 0 })).total, 0);
  const { groups, total } = await streams.listGroups({ kind: "grpc", attribute: "connection", limit: 1, offset: 0 });
  assert.equal(total, 2);
  assert.deepEqual(
    groups.map(({ value, streams: count, openStreams, frames, bytes, clientAddress }) => ({
      value,
      count,
      openStreams,
      frames,
      bytes,
      clientAddress,
    })),
    [{ value: "a", count: 2, openStreams: 1, frames: 2, bytes: 28, clientAddress: "127.0.0.1:50000" }],
  );
});
