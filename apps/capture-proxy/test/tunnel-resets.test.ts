import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer } from "node:net";
import type { AddressInfo, Socket } from "node:net";
import { Duplex } from "node:stream";
import { test } from "node:test";
import { waitUntil } from "@headworks/testkit";
import { relay } from "#connection/relay.ts";
import type { BodyCapture } from "#exchange/body.ts";
import type { Failure } from "#exchange/failure.ts";
import { startEngine } from "./engine-harness.ts";

/** A tunnel with both its ends in hand, and a byte each way already through it. */
async function openTunnel(proxyPort: number, originPort: number, accepted: Promise<[Socket]>) {
  const client = connect({ port: proxyPort, host: "127.0.0.1", allowHalfOpen: true });
  await once(client, "connect");
  client.write(`CONNECT 127.0.0.1:${originPort} HTTP/1.1\r\nHost: 127.0.0.1:${originPort}\r\n\r\n`);
  await once(client, "data");
  client.write("?");
  const [origin] = await accepted;
  for (const end of [client, origin]) end.on("error", () => undefined);
  await once(origin, "data");
  origin.write("!");
  await once(client, "data");
  for (const end of [client, origin]) end.resume();
  return { client, origin };
}

for (const [name, resetting, ended, failure] of [
  ["the client ended what it sends and is reset later: closed, no failure", "client", "client", undefined],
  ["the client is reset while it may still send: a failure of the client", "client", undefined, "CLIENT_ABORTED"],
  ["the client is reset behind the end of the origin: closed, no failure", "client", "origin", undefined],
  ["the origin ended what it sends and is reset later: closed, no failure", "origin", "origin", undefined],
  ["the origin is reset while it may still send: a failure of the origin", "origin", undefined, "UPSTREAM_RESET"],
  ["the origin is reset behind the end of the client: a failure of the origin", "origin", "client", "UPSTREAM_RESET"],
] as const) {
  test(`a tunnel whose end resets: ${name}; its other end is closed`, async () => {
    const server = createServer({ allowHalfOpen: true }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const proxy = await startEngine({ policy: { interceptsTls: false } });
    const ends = await openTunnel(proxy.port, port, once(server, "connection") as Promise<[Socket]>);
    const other = ends[resetting === "client" ? "origin" : "client"];
    let otherIsClosed = false;
    other.on("close", () => (otherIsClosed = true));
    try {
      if (ended !== undefined) {
        ends[ended].end();
        await once(ends[ended === "client" ? "origin" : "client"], "end");
      }
      ends[resetting].resetAndDestroy();
      // Who has heard the end of a connection learns only by writing that it is no longer there.
      if (ended === resetting) {
        await waitUntil(() => !other.write("!".repeat(1000)) || otherIsClosed || other.destroyed);
      }
      const [exchange] = await proxy.waitFor(1);
      assert.equal(exchange?.state.step === "failed" ? exchange.state.failure.code : undefined, failure);
      other.end();
      await waitUntil(() => otherIsClosed);
    } finally {
      other.destroy();
      server.close();
      await proxy.stop();
    }
  });
}

/** A socket whose other end stays open whatever is done here. */
function stub() {
  const socket = new Duplex({ allowHalfOpen: true, read: () => undefined, write: (_piece, _encoding, done) => done() });
  const end = (): unknown => socket.destroy();
  return Object.assign(socket, { destroySoon: end, resetAndDestroy: end });
}

for (const [name, originEnded, behind, failure] of [
  ["behind the end of its origin, whose close is still to be told, is a close", true, [], undefined],
  ["that the end of its origin follows is a close", false, [null], undefined],
  ["that nothing follows is a failure of the client", false, [], "CLIENT_ABORTED"],
  ["that more of its origin follows is a failure of the client", false, [Buffer.from("!"), null], "CLIENT_ABORTED"],
  ["that a reset of its origin follows is a failure of the client", false, "reset", "CLIENT_ABORTED"],
] as const) {
  test(`a client's reset ${name}`, async () => {
    const proxy = await startEngine();
    const [client, upstream] = [stub(), stub()];
    const body = { add: () => undefined, end: () => undefined } as unknown as BodyCapture;
    const { promise, resolve } = Promise.withResolvers<Failure | undefined>();
    relay({
      client,
      upstream,
      fromClient: undefined,
      fromUpstream: undefined,
      counts: { requestBody: body, responseBody: body, pace: undefined },
      services: proxy.services,
      onEnd: resolve,
    });
    const reset = Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" });
    try {
      if (originEnded) {
        upstream.push(null);
        await once(upstream, "end");
      }
      const closed = Promise.withResolvers<void>();
      client.once("close", closed.resolve);
      client.destroy(reset);
      await closed.promise;
      if (behind === "reset") upstream.destroy(reset);
      else for (const piece of behind) upstream.push(piece);
      assert.equal((await promise)?.code, failure);
      assert.ok(upstream.destroyed);
    } finally {
      await proxy.stop();
    }
  });
}
