import assert from "node:assert/strict";
import { connect, type Socket } from "node:net";
import { writeFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import {
  rawClient,
  readResponse,
  runProcess,
  spawnProcess,
  startOrigin,
  startRawServer,
  temporaryDirectory,
  waitUntil,
} from "@headworks/testkit";
import { serving, startGateway } from "../gateway-rig.ts";
import { proxied, responding } from "../route-documents.ts";

const MAIN = fileURLToPath(new URL("../../bin/sluice.js", import.meta.url));

describe("clients that take their time", { concurrency: 12 }, () => {
  test("U17: heads that come byte by byte end at header_timeout_ms, and others are served meanwhile", async () => {
    await using gateway = await startGateway({
      listeners: [{ name: "public", address: "127.0.0.1", port: 0, header_timeout_ms: 300 }],
      routes: [responding("r")],
    });
    const slow = await Promise.all(Array.from({ length: 200 }, async () => await rawClient(gateway.port())));
    const startedMs = performance.now();
    const dripping = setInterval(() => {
      for (const client of slow) if (!client.ended) client.socket.write("G");
    }, 20);
    assert.equal((await gateway.send({ path: "/" })).status, 200);
    const responses = await Promise.all(slow.map(async (client) => (await client.collect()).toString("latin1")));
    clearInterval(dripping);
    assert.ok(performance.now() - startedMs < 3000);
    for (const response of responses) assert.match(response, /^$|^HTTP\/1\.1 408 /);
    for (const client of slow) client.destroy();
  });

  test("U17: bodies that come byte by byte end at the body's timeout when nothing comes", async () => {
    await using origin = await startOrigin();
    await using gateway = await startGateway(
      { ...serving("api", [origin.port]), routes: [proxied("api")] },
      { environment: { GATEWAY_REQUEST_BODY_TIMEOUT_MS: "300" } },
    );
    await using client = await rawClient(gateway.port());
    await client.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nx");
    assert.equal((await readResponse(client)).status, 408);
  });

  test("U17: a client that never reads its answer is let go, and its upstream connection too", async () => {
    const gone = Promise.withResolvers<void>();
    await using upstream = await startRawServer(async (connection) => {
      await connection.readUntil("\r\n\r\n");
      connection.socket.once("close", () => gone.resolve());
      await connection.write("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n");
      const piece = Buffer.alloc(1 << 20);
      while (!connection.socket.destroyed) {
        if (!connection.socket.write(piece)) await Promise.race([sleep(50), connection.closed]);
      }
    });
    await using gateway = await startGateway({
      listeners: [{ name: "public", address: "127.0.0.1", port: 0, idle_timeout_ms: 500 }],
      ...serving("api", [upstream.port]),
      routes: [proxied("api")],
    });
    const client = connect({ port: gateway.port(), host: "127.0.0.1" });
    client.on("error", () => undefined);
    client.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    client.pause();
    await gone.promise;
    client.destroy();
  });

  test("U17: without descriptors the gateway refuses, recovers, and logs it at most about once a second", async (context) => {
    const prlimit = await runProcess("prlimit", ["--version"]).catch(() => undefined);
    if (prlimit?.code !== 0) return context.skip("needs prlimit");
    await using directory = await temporaryDirectory();
    const file = directory.file("gateway.yaml");
    await writeFile(file, SMALL);
    await using child = await spawnProcess(
      "prlimit",
      ["--nofile=128:128", process.execPath, MAIN, "serve", "-c", file, "--json"],
      { env: { GATEWAY_LOG: "warn" } },
    );
    const port = await portOf(child);
    const many: Socket[] = [];
    const startedMs = performance.now();
    for (let at = 0; at < 400; at += 1) {
      const socket = connect({ port, host: "127.0.0.1" });
      socket.on("error", () => undefined);
      many.push(socket);
    }
    await sleep(2000);
    const first = many.find(({ destroyed }) => !destroyed);
    assert.ok(first !== undefined);
    for (const socket of many) socket.destroy();
    await waitUntil(async () => (await fetch(`http://127.0.0.1:${port}/`).catch(() => undefined))?.status === 200, {
      timeoutMs: 10_000,
    });
    const lines = child
      .stdout()
      .split("\n")
      .filter((line) => line.includes("listener"));
    const seconds = (performance.now() - startedMs) / 1000;
    assert.ok(lines.length <= seconds + 2, `${lines.length} lines in ${seconds.toFixed(1)} s: ${lines[0]}`);
  });
});

for (const [what, size] of [
  ["large", 100_000],
  ["small", 200],
] as const) {
  test(`U17: a client that sends requests without reading its ${what} answers fills no memory, and gets all of them when it reads`, async () => {
    const action = { type: "respond", status: 200, body: "x".repeat(size) } as const;
    await using gateway = await startGateway({ routes: [responding("r", "/", { action })] });
    await using client = await rawClient(gateway.port());
    client.socket.pause();
    const count = size > 1000 ? 1000 : 5000;
    const beforeMb = process.memoryUsage().rss / 1_048_576;
    client.socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n".repeat(count));
    await sleep(500);
    const answered = gateway.log.filter(({ msg }) => msg === "access").length;
    const grownMb = process.memoryUsage().rss / 1_048_576 - beforeMb;
    assert.ok(grownMb < 100, `${grownMb.toFixed(0)} MB for ${answered} answers`);
    if (size > 1000) assert.ok(answered < count / 2, `${answered} unread responses`);
    client.socket.resume();
    for (let at = 0; at < count; at += 1) {
      const response = await readResponse(client);
      assert.equal(response.body.length, size);
    }
  });
}

test("U17: thousands of paths, methods, hosts and ids of clients make no label of their own", async () => {
  await using gateway = await startGateway({ routes: [responding("r", "/r")] });
  await using client = await rawClient(gateway.port());
  const scrape = async (): Promise<number> =>
    (await gateway.send({ path: "/metrics" })).body.toString().split("\n").length;
  for (let at = 0; at < 4; at += 1) await gateway.send({ path: at % 2 === 0 ? "/r" : "/none" });
  const before = await scrape();
  for (let at = 0; at < 2000; at += 1) {
    const path = at % 2 === 0 ? `/r/${at}` : `/none-${at}`;
    await client.write(
      `M${at} ${path} HTTP/1.1\r\nHost: h${at}\r\nX-API-Key: k${at}\r\nX-Request-Id: id${at}\r\nX-${at}: 1\r\n\r\n`,
    );
    await readResponse(client);
  }
  assert.ok((await scrape()) - before < 20);
});

test("U17: 5,000 idle connections cost little each, and requests go on", async () => {
  await using directory = await temporaryDirectory();
  const file = directory.file("gateway.yaml");
  await writeFile(file, SMALL);
  await using child = await spawnProcess(process.execPath, [MAIN, "serve", "-c", file, "--json"], {
    env: { GATEWAY_LOG: "warn" },
  });
  const port = await portOf(child);
  assert.equal((await fetch(`http://127.0.0.1:${port}/`)).status, 200);
  const before = await residentKb(child.pid);
  const idle: Socket[] = [];
  try {
    for (let at = 0; at < 5000; at += 1) {
      const socket = connect({ port, host: "127.0.0.1" });
      socket.on("error", () => undefined);
      idle.push(socket);
      if (at % 100 === 99) await new Promise((resolve) => socket.once("connect", resolve));
    }
    await waitUntil(() => idle.every(({ connecting, destroyed }) => !connecting && !destroyed), { timeoutMs: 20_000 });
    const startedMs = performance.now();
    for (let at = 0; at < 20; at += 1) assert.equal((await fetch(`http://127.0.0.1:${port}/`)).status, 200);
    assert.ok((performance.now() - startedMs) / 20 < 100);
    const eachKb = ((await residentKb(child.pid)) - before) / 5000;
    assert.ok(eachKb < 20, `${eachKb.toFixed(1)} KB for each`);
  } finally {
    for (const socket of idle) socket.destroy();
  }
});

const SMALL = `
listeners: [{name: public, address: 127.0.0.1, port: 0}]
routes: [{name: r, match: {path: {type: prefix, value: /}}, action: {type: respond, status: 200, body: hello}}]
`;

async function portOf(child: Awaited<ReturnType<typeof spawnProcess>>): Promise<number> {
  const [line] = await child.waitForOutput(/^\{.*"listeners".*\}$/m, 30_000);
  return (JSON.parse(line) as { listeners: { port: number }[] }).listeners[0]?.port ?? 0;
}

async function residentKb(pid: number): Promise<number> {
  const { stdout } = await runProcess("cat", [`/proc/${pid}/status`]);
  return Number(/VmRSS:\s+(\d+)/.exec(stdout)?.[1]);
}
