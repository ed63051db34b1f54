import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { rawClient, startRawServer } from "@headworks/testkit";
import { CONTINUE } from "#exchange/phases.ts";
import { startEngine } from "./engine-harness.ts";

/** Long enough for the end of a connection to be told while a rule decides. */
const DECIDES_MS = 50;

const late = async (): Promise<typeof CONTINUE> => {
  await delay(DECIDES_MS);
  return CONTINUE;
};

test("an origin that closes behind its answer while a rule decides has its answer delivered whole", async () => {
  for (const [response, expected] of [
    ["HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "\r\n\r\nhello"],
    ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", "hello\r\n0\r\n\r\n"],
    ["HTTP/1.1 200 OK\r\n\r\nhello", "hello"],
  ] as const) {
    await using origin = await startRawServer(async (connection) => {
      await connection.readUntil("\r\n\r\n");
      connection.socket.end(response);
    });
    const engine = await startEngine({ interceptors: [{ name: "blocklist", onResponseHead: late }] });
    const client = await rawClient(engine.port);
    await client.write(`GET http://127.0.0.1:${origin.port}/ HTTP/1.1\r\nHost: x\r\n\r\n`);
    await client.readUntil(expected);
    const [exchange] = await engine.waitFor(1);
    assert.equal(exchange?.state.step, "completed", response);
    client.destroy();
    await engine.stop();
  }
});

test("a client that ends its side behind its request while a rule decides has its request sent whole", async () => {
  let sent = "";
  await using origin = await startRawServer(async (connection) => {
    sent = (await connection.readUntil("hello")).toString();
    connection.socket.end("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  });
  const engine = await startEngine({ interceptors: [{ name: "blocklist", onRequestHead: late }] });
  const client = await rawClient(engine.port);
  client.socket.end(`POST http://127.0.0.1:${origin.port}/ HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello`);
  await client.readUntil("\r\n\r\nok");
  assert.match(sent, /^POST \/ /);
  client.destroy();
  await engine.stop();
});
