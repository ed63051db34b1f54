import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { rawClient, startRawServer, waitUntil } from "@headworks/testkit";
import type { RawConnection } from "@headworks/testkit";
import type { Failure } from "#exchange/failure.ts";
import type { ExchangeView } from "#exchange/exchange.ts";
import { startEngine } from "./engine-harness.ts";
import type { Engine, EngineOptions } from "./engine-harness.ts";

/** Asks for a tunnel, then waits for the server to speak, as clients of mail and SSH do. */
async function silentClient(engine: Engine, target: string): Promise<RawConnection> {
  const client = await rawClient(engine.port);
  await client.write(`CONNECT ${target} HTTP/1.1\r\nHost: x\r\n\r\n`);
  assert.match((await client.readUntil("\r\n\r\n")).toString(), /^HTTP\/1\.1 200 /);
  return client;
}

/** How the tunnel of a silent client ends: what it was told inside, and what its entry says. */
async function endOf(
  target: (engine: Engine) => string,
  options: EngineOptions = {},
): Promise<{ told: string; exchange: ExchangeView; failure: Failure | undefined }> {
  const engine = await startEngine(options);
  const client = await silentClient(engine, target(engine));
  const told = await client.collect().then(String, (error: NodeJS.ErrnoException) => error.code ?? "");
  const [exchange] = await engine.waitFor(1);
  client.destroy();
  await engine.stop();
  assert.ok(exchange !== undefined && engine.finished.length === 1);
  return { told, exchange, failure: exchange.state.step === "failed" ? exchange.state.failure : undefined };
}

// Each waits until the client counts as silent.
describe("a silent client's tunnel", { concurrency: true }, () => {
  test("to a port without a listener, or to the proxy itself, ends with an entry that says so", async () => {
    const closed = await startRawServer("");
    await closed.close();
    const [dead, loop] = await Promise.all([
      endOf(() => `127.0.0.1:${closed.port}`),
      endOf(({ port }) => `localhost:${port}`),
    ]);
    assert.deepEqual([dead.told, dead.failure?.stage, dead.failure?.code], ["", "connect", "UPSTREAM_REFUSED"]);
    assert.deepEqual([dead.exchange.request.method, dead.exchange.response?.status], ["CONNECT", 502]);
    assert.deepEqual([loop.told, loop.failure?.code, loop.exchange.response?.status], ["", "LOOP", 508]);
  });

  test("to a server that breaks the connection, or ends it, ends as without interception", async () => {
    await using breaking = await startRawServer(async (connection) => {
      // Else the reset may come while the connection is still being made.
      await nextTurn();
      connection.reset();
    });
    await using ending = await startRawServer((connection) => connection.end());
    const [broken, ended] = await Promise.all([
      endOf(() => `127.0.0.1:${breaking.port}`),
      endOf(() => `127.0.0.1:${ending.port}`),
    ]);
    assert.deepEqual([broken.failure?.stage, broken.failure?.code], ["receive", "UPSTREAM_RESET"]);
    assert.deepEqual([ended.told, ended.exchange.state.step, ended.exchange.response?.status], ["", "completed", 200]);
  });

  test("to a port without a listener stays open for a slow client, which then gets its page", async (t) => {
    const closed = await startRawServer("");
    await closed.close();
    const engine = await startEngine();
    t.after(async () => await engine.stop());
    const client = await silentClient(engine, `127.0.0.1:${closed.port}`);
    t.after(() => client.destroy());
    const silentSinceMs = performance.now();
    await waitUntil(() => performance.now() - silentSinceMs > 1000);
    await client.write(`GET / HTTP/1.1\r\nHost: 127.0.0.1:${closed.port}\r\nConnection: close\r\n\r\n`);
    assert.match((await client.collect()).toString(), /^HTTP\/1\.1 502 [^]*UPSTREAM_REFUSED/u);
    const exchanges = await engine.waitFor(1);
    assert.deepEqual(
      exchanges.map(({ request }) => request.method),
      ["GET"],
    );
  });

  test("to a server that rules keep connections from is not dialled, and has its entry and one hit", async () => {
    let connections = 0;
    let hits = 0;
    await using origin = await startRawServer(() => void (connections += 1));
    const onTarget = () => {
      hits += 1;
      return Promise.resolve({ kind: "abort", reason: "nothing may be opened" } as const);
    };
    const { told, failure } = await endOf(() => `127.0.0.1:${origin.port}`, {
      interceptors: [{ name: "blocklist", onTarget }],
    });
    assert.deepEqual([told, failure?.code, failure?.message], ["", "BLOCKED", "nothing may be opened"]);
    assert.deepEqual([connections, hits], [0, 1]);
  });
});

test("a tunnel that neither side uses has an entry that says so", async () => {
  await using origin = await startRawServer(() => undefined);
  const { told, failure } = await endOf(() => `127.0.0.1:${origin.port}`, { policy: { idleTimeoutMs: 50 } });
  assert.deepEqual([told, failure?.code], ["", "CLIENT_TIMEOUT"]);
});
