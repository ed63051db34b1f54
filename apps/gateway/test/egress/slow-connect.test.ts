import assert from "node:assert/strict";
import { test } from "node:test";
import { startRawServer, waitUntil } from "@headworks/testkit";
import { connectFirst } from "#egress/connect-first.ts";
import { target, webhookRig } from "../webhooks/webhook-rig.ts";
import { startFullListener } from "./full-listener.ts";

const skip =
  process.platform === "linux" ? false : "only Linux listens on all of 127.0.0.0/8 and lets a full queue wait";

/** Sockets of this process that are open or being opened. */
const sockets = (): number => process.getActiveResourcesInfo().filter((name) => name === "TCPSocketWrap").length;

test("delivery rule 5: timeout_ms bounds connecting, and nothing is left of it", { skip }, async () => {
  await using full = await startFullListener("127.0.0.1");
  await using rig = webhookRig();
  const before = sockets();
  rig.publish([target(`http://127.0.0.1:${full.port}/`, { timeout_ms: 200 })]);
  const beganMs = performance.now();
  assert.equal(await rig.deliver(), "failed");
  const tookMs = performance.now() - beganMs;
  assert.ok(tookMs >= 195 && tookMs < 2000, `took ${tookMs} ms`);
  assert.equal(rig.logged.coded("webhook_delivery_failed")[0]?.["reason"], "timeout");
  await waitUntil(() => sockets() === before, { what: "the attempt was given up" });
});

test(
  "an address that does not answer holds the next one up for a quarter of a second, and is given up when that one accepts",
  { skip },
  async () => {
    await using server = await startRawServer(async (connection) => void (await connection.closed));
    await using full = await startFullListener("127.0.0.2", server.port);
    assert.equal(full.port, server.port);
    const before = sockets();
    const beganMs = performance.now();
    const socket = await connectFirst(["127.0.0.2", "127.0.0.1"], server.port, AbortSignal.timeout(9000));
    const tookMs = performance.now() - beganMs;
    assert.equal(socket.remoteAddress, "127.0.0.1");
    assert.ok(tookMs >= 245 && tookMs < 2000, `took ${tookMs} ms`);
    // Both ends of the one that won.
    await waitUntil(() => sockets() === before + 2, { what: "the attempt that lost was given up" });
    socket.destroy();
  },
);
