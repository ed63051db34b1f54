import assert from "node:assert/strict";
import { test } from "node:test";
import { waitUntil } from "@headworks/testkit";
import type { Engine } from "./engine-harness.ts";
import { clientOf, http2Engine, startVersioned } from "./http2-rig.ts";
import type { Received, Sent, VersionedOrigin } from "./http2-rig.ts";

/** Which connection over HTTP/2 the next client goes on with: decision 027. */
const keepAliveMs = 60_000;

/** A client of either version asks once and is gone. */
async function ask(
  proxy: Engine,
  origin: VersionedOrigin,
  sent: Sent = {},
  version: "1.1" | "2" = "1.1",
): Promise<Received> {
  const before = proxy.finished.length;
  const client = await clientOf(version, proxy, origin.port);
  const received = await client.fetch(sent);
  await client[Symbol.asyncDispose]();
  await proxy.waitFor(before + 1);
  await waitUntil(() => proxy.services.gauges.activeConnections === 0);
  return received;
}

for (const [first, second] of [
  ["1.1", "1.1"],
  ["2", "2"],
  ["1.1", "2"],
  ["2", "1.1"],
] as const) {
  test(`a client of HTTP/${second} goes on with the session that one of HTTP/${first} left`, async () => {
    await using origin = await startVersioned("2", () => ({ body: "hello" }));
    await using proxy = await http2Engine({ keepAliveMs });
    assert.equal((await ask(proxy, origin, {}, first)).body, "hello");
    assert.equal(proxy.services.gauges.upstreamConnections, 1);
    assert.equal((await ask(proxy, origin, {}, second)).body, "hello");
    assert.equal(proxy.services.gauges.upstreamConnections, 1);
    assert.equal(origin.sessions.length, 1);
    const [one, other] = proxy.finished;
    assert.deepEqual(other?.upstreamTls, one?.upstreamTls);
    assert.equal(other?.moments.upstreamReady, 0, "it did not connect");
  });
}

const owned: Readonly<Record<string, readonly [Sent, Sent]>> = {
  "another program": [{ fields: [["user-agent", "a"]] }, { fields: [["user-agent", "b"]] }],
  "a request with a body": [{}, { method: "POST", body: "a=b" }],
  "who comes after a request with a body": [{ method: "POST", body: "a=b" }, {}],
  "credentials that may prove a connection": [{}, { fields: [["authorization", "Negotiate abc"]] }],
  "who comes after a failure": [{ path: "/fails" }, {}],
};

for (const [who, [first, second]] of Object.entries(owned)) {
  test(`${who} gets a session of its own`, async () => {
    await using origin = await startVersioned("2", ({ path }) => ({ status: path === "/fails" ? 500 : 200 }));
    await using proxy = await http2Engine({ keepAliveMs });
    await ask(proxy, origin, first, "2");
    await ask(proxy, origin, second, "2");
    assert.equal(origin.sessions.length, 2);
  });
}

test("a session that its origin closes while idle is not used again", async () => {
  await using origin = await startVersioned("2", () => ({ body: "hello" }));
  await using proxy = await http2Engine({ keepAliveMs });
  await ask(proxy, origin);
  origin.sessions[0]?.goaway();
  await waitUntil(() => proxy.services.gauges.upstreamConnections === 0);
  assert.equal((await ask(proxy, origin)).body, "hello");
  assert.equal(origin.sessions.length, 2);
});

test("a session whose exchange was broken off is nobody else's", async () => {
  await using origin = await startVersioned("2", ({ path }) => ({
    body: path === "/cut" ? "x".repeat(4_000_000) : "",
  }));
  await using proxy = await http2Engine({ keepAliveMs, policy: { offersHttp2: true } });
  const client = await clientOf("2", proxy, origin.port);
  void client.fetch({ path: "/cut" }).catch(() => undefined);
  await waitUntil(() => origin.seen.length === 1);
  await client[Symbol.asyncDispose]();
  await waitUntil(() => proxy.services.gauges.upstreamConnections === 0);
  await ask(proxy, origin);
  assert.equal(origin.sessions.length, 2);
});

test("a session without TLS, which a client has to know of, ends with its client", async () => {
  await using origin = await startVersioned("2", () => ({ body: "hello" }), { isPlain: true });
  await using proxy = await http2Engine({ keepAliveMs });
  const client = await clientOf("2", proxy, origin.port, { isPlain: true });
  assert.equal((await client.fetch({})).body, "hello");
  await client[Symbol.asyncDispose]();
  await waitUntil(() => proxy.services.gauges.upstreamConnections === 0);
});
