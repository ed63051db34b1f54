import assert from "node:assert/strict";
import { createServer } from "node:net";
import type { AddressInfo, Socket } from "node:net";
import { after, afterEach, test } from "node:test";
import type { ThrottleStats } from "@headworks/capture-contract";
import { proxyClient, rawClient, waitUntil } from "@headworks/testkit";
import { endedEntry } from "./breakpoints-rig.ts";
import { echoed, startProxyRig } from "./proxy-rig.ts";

const rig = await startProxyRig();
after(() => rig[Symbol.asyncDispose]());
await rig.api("PATCH", "/config", { passthrough_domains: ["127.0.0.1"] });
afterEach(async () => {
  await throttle({ preset: "None", enabled: false });
  rig.seen.length = 0;
  rig.respond = echoed;
});
const proxyPort = Number(new URL(rig.proxy.addresses.proxy).port);
const throttle = (body: object): Promise<unknown> => rig.api("POST", "/throttle", body);
const stats = (): Promise<ThrottleStats> => rig.api<ThrottleStats>("GET", "/throttle/stats");

/** Elapsed time. A busy machine only increases it, so only lower bounds are asserted. */
async function timed<T>(run: () => Promise<T>): Promise<{ readonly result: T; readonly tookMs: number }> {
  const startedMs = performance.now();
  const result = await run();
  return { result, tookMs: performance.now() - startedMs };
}

test("a response takes the time of its bandwidth, and arrives complete", async () => {
  const body = Buffer.from(Array.from({ length: 100_000 }, (_, index) => index % 251));
  for (const framing of ["length", "chunked"] as const) {
    rig.respond = (_seen, response) => {
      if (framing === "length") response.setHeader("content-length", body.length);
      response.write(body.subarray(0, 30_000));
      response.end(body.subarray(30_000));
    };
    await throttle({ download_bps: 200_000, enabled: true });
    const { result, tookMs } = await timed(() => rig.send({ path: `/down-${framing}` }));
    assert.deepEqual(result.body, body);
    assert.ok(tookMs > 450, `${tookMs} ms`);
    const entry = await endedEntry(rig, `/down-${framing}`);
    assert.deepEqual(
      entry.trace?.map(({ kind, changes }) => [kind, changes]),
      [["throttle", ["at most 200000 bytes/s down"]]],
    );
    assert.equal(entry.response?.body_size, body.length);
  }
});

test("a request takes the time of its bandwidth, and arrives complete", async () => {
  const body = Buffer.alloc(100_000, "u");
  for (const headers of [{ "content-length": String(body.length) }, { "transfer-encoding": "chunked" }]) {
    rig.respond = (seen, response) => response.end(String(seen.body.length));
    await throttle({ upload_bps: 200_000, enabled: true });
    const { result, tookMs } = await timed(() => rig.send({ method: "POST", headers, body }));
    assert.equal(result.body.toString(), "100000");
    assert.ok(tookMs > 450, `${tookMs} ms`);
  }
});

test("latency is applied before the request is sent", async () => {
  let arrivedMs = 0;
  rig.respond = (_seen, response) => {
    arrivedMs = performance.now();
    response.end();
  };
  await throttle({ delay_ms: 150, enabled: true });
  const startedMs = performance.now();
  await rig.send();
  assert.ok(arrivedMs - startedMs > 145, `${arrivedMs - startedMs} ms`);
  assert.equal((await stats()).delayed_count, 1);
});

test("a change applies to transfers in progress, to more and to less bandwidth", async () => {
  rig.respond = (_seen, response) => response.end(Buffer.alloc(1_000_000));
  await throttle({ download_bps: 1000, enabled: true });
  const slow = rig.send();
  await waitUntil(async () => (await stats()).waiting_downloads === 1, { what: "the transfer" });
  await rig.api("POST", "/throttle/enabled", { enabled: false });
  // Unchanged, it would take 15 minutes.
  assert.equal((await slow).body.length, 1_000_000);

  let isFinished = false;
  rig.respond = (_seen, response) => {
    const more = (): void => {
      while (!isFinished && response.write(Buffer.alloc(65_536)));
      if (!isFinished) response.once("drain", more);
    };
    more();
  };
  const client = await rawClient(proxyPort);
  let receivedBytes = 0;
  client.socket.on("data", (piece: Buffer) => (receivedBytes += piece.length));
  await client.write(`GET http://127.0.0.1:${rig.originPort}/endless HTTP/1.1\r\nHost: x\r\n\r\n`);
  await waitUntil(() => receivedBytes > 1_000_000);
  await throttle({ download_bps: 50_000, enabled: true });
  // Bytes in the buffers of both ends still arrive.
  let before = -1;
  await waitUntil(async () => {
    const passed = receivedBytes - before;
    before = receivedBytes;
    await new Promise((resolve) => setTimeout(resolve, 100));
    return passed < 50_000;
  });
  isFinished = true;
  client.destroy();
});

test("a fast origin is paused: the proxy does not buffer beyond the bandwidth", async () => {
  let sentBytes = 0;
  rig.respond = (_seen, response, request) => {
    const more = (): void => {
      let wantsMore = true;
      while (wantsMore && sentBytes < 200_000_000) {
        wantsMore = response.write(Buffer.alloc(65_536));
        sentBytes += 65_536;
      }
      if (!request.socket.destroyed) response.once("drain", more);
    };
    more();
  };
  await throttle({ download_bps: 100_000, enabled: true });
  const client = await rawClient(proxyPort);
  await client.write(`GET http://127.0.0.1:${rig.originPort}/large HTTP/1.1\r\nHost: x\r\n\r\n`);
  let before = -1;
  await waitUntil(async () => {
    const isSteady = sentBytes > 0 && sentBytes - before < 200_000;
    before = sentBytes;
    await new Promise((resolve) => setTimeout(resolve, 200));
    return isSteady;
  });
  // The buffers of the two sockets hold some megabytes.
  assert.ok(sentBytes < 20_000_000, String(sentBytes));
  client.destroy();
});

test("the offline profile resets every request before it reaches an origin", async () => {
  await throttle({ preset: "Offline", enabled: true });
  await assert.rejects(rig.send({ path: "/offline" }));
  assert.deepEqual(rig.seen, []);
  assert.deepEqual((await endedEntry(rig, "/offline")).trace?.[0]?.changes, ["lost (100% packet loss): reset"]);
});

test("a stalled request continues when the profile changes", async () => {
  await throttle({ packet_loss_percent: 100, loss_mode: "stall", enabled: true });
  const waiting = rig.send();
  await waitUntil(async () => (await stats()).stalled_count === 1);
  assert.deepEqual(rig.seen, []);
  await rig.api("POST", "/throttle/enabled", { enabled: false });
  assert.equal((await waiting).status, 200);
  assert.equal((await stats()).stalled_count, 0);
});

test("unlisted hosts are not throttled", async () => {
  rig.respond = (_seen, response) => response.end(Buffer.alloc(500_000));
  await throttle({ download_bps: 1000, latency_ms: 60_000, hosts: ["elsewhere.test"], enabled: true });
  const response = await rig.send();
  assert.equal(response.body.length, 500_000);
});

test("concurrent transfers share the bandwidth", async () => {
  rig.respond = (_seen, response) => response.end(Buffer.alloc(20_000));
  await throttle({ download_bps: 200_000, enabled: true });
  const { tookMs } = await timed(() => Promise.all(Array.from({ length: 5 }, () => rig.send())));
  assert.ok(tookMs > 450, `${tookMs} ms`);
});

test("a client disconnect frees its share of the bandwidth", async () => {
  rig.respond = (_seen, response) => response.end(Buffer.alloc(1_000_000));
  await throttle({ download_bps: 10_000, enabled: true });
  const client = await rawClient(proxyPort);
  await client.write(`GET http://127.0.0.1:${rig.originPort}/gone HTTP/1.1\r\nHost: x\r\n\r\n`);
  await waitUntil(async () => (await stats()).waiting_downloads === 1);
  client.destroy();
  await waitUntil(async () => (await stats()).waiting_downloads === 0);
});

/** A server that sends `bytes` after the first received byte and then ends. */
async function rawSender(bytes: Buffer): Promise<{ readonly port: number; readonly close: () => void }> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    socket.once("data", () => socket.end(bytes));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", () => resolve()));
  return {
    port: (server.address() as AddressInfo).port,
    close: () => {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

test("a tunnel takes the time of its bandwidth, and its last bytes arrive before its end", async () => {
  const body = Buffer.from(Array.from({ length: 100_000 }, (_, index) => index % 251));
  const server = await rawSender(body);
  await throttle({ download_bps: 200_000, latency_ms: 20, enabled: true });
  const { response, connection } = await proxyClient(proxyPort).tunnel(`127.0.0.1:${server.port}`);
  assert.equal(response.status, 200);
  const { result, tookMs } = await timed(async () => {
    await connection.write("?");
    return await connection.read(body.length);
  });
  assert.deepEqual(result, body);
  assert.ok(tookMs > 450, `${tookMs} ms`);
  connection.destroy();
  server.close();
});

test("an upgraded connection takes the time of its bandwidth", async () => {
  rig.respond = echoed;
  const upgrading = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.once("data", () => {
      socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
      socket.write(Buffer.alloc(100_000, "w"));
    });
  });
  await new Promise<void>((resolve) => upgrading.listen(0, "127.0.0.1", () => resolve()));
  const { port } = upgrading.address() as AddressInfo;
  await throttle({ download_bps: 200_000, enabled: true });
  const client = await rawClient(proxyPort);
  const { tookMs } = await timed(async () => {
    await client.write(
      `GET http://127.0.0.1:${port}/ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n\r\n`,
    );
    await client.readUntil("\r\n\r\n");
    await client.read(100_000);
  });
  assert.ok(tookMs > 450, `${tookMs} ms`);
  client.destroy();
  upgrading.close();
});
