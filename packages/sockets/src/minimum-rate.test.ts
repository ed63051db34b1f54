import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { test } from "node:test";
import { MinimumRate, takenBytes } from "./minimum-rate.ts";

const RULE = { bytesPerS: 100, graceMs: 10_000 };

test("a peer that brings less than its rate in a stretch of waiting is too slow at its end, not before", () => {
  const rate = new MinimumRate(RULE);
  assert.equal(rate.deadlineMs, Number.POSITIVE_INFINITY);
  rate.wait(0, 0);
  assert.equal(rate.deadlineMs, 10_000);
  assert.equal(rate.isTooSlow(9999, 0), false);
  assert.equal(rate.isTooSlow(10_000, 999), true);
});

test("each stretch is judged alone: what came before it does not make up for it", () => {
  const rate = new MinimumRate(RULE);
  rate.wait(0, 0);
  assert.equal(rate.isTooSlow(10_000, 1_000_000), false);
  assert.equal(rate.deadlineMs, 20_000);
  assert.equal(rate.isTooSlow(20_000, 1_000_999), true);
});

test("time in which the peer is not waited for does not count", () => {
  const rate = new MinimumRate(RULE);
  rate.wait(0, 0);
  rate.rest(4000);
  assert.equal(rate.deadlineMs, Number.POSITIVE_INFINITY);
  assert.equal(rate.isTooSlow(1_000_000, 0), false);
  rate.wait(1_000_000, 500);
  rate.wait(1_003_000, 700);
  assert.equal(rate.deadlineMs, 1_006_000);
  assert.equal(rate.isTooSlow(1_006_000, 1000), false, "counted from the beginning of the stretch");
});

test("what was measured is forgotten at its end", () => {
  const rate = new MinimumRate(RULE);
  rate.wait(0, 0);
  rate.rest(9000);
  rate.end();
  rate.wait(20_000, 5000);
  assert.equal(rate.deadlineMs, 30_000);
  assert.equal(rate.isTooSlow(30_000, 5999), true);
});

test("bytes that a slow reader takes of a large write are seen while the write is under way", async () => {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const accepted = once(server, "connection") as Promise<[Socket]>;
  const client = connect((server.address() as AddressInfo).port, "127.0.0.1");
  const [socket] = await accepted;
  const sizeBytes = 32_000_000;
  const drained = once(socket, "drain");
  socket.write(Buffer.alloc(sizeBytes));
  const before = takenBytes(socket);
  assert.ok(before < sizeBytes, `${before}`);
  let read = 0;
  client.on("data", (piece: Buffer) => {
    read += piece.length;
    if (takenBytes(socket) > before && read < sizeBytes / 2) client.pause();
  });
  await once(client, "pause");
  assert.ok(socket.writableLength > 0, "the write is under way");
  assert.ok(takenBytes(socket) > before);
  client.removeAllListeners("data");
  client.resume();
  await drained;
  assert.equal(takenBytes(socket), sizeBytes);
  client.destroy();
  socket.destroy();
  server.close();
});
