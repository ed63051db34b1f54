import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { test } from "node:test";
import { startRawServer } from "@headworks/testkit";
import { serving, startGateway } from "../gateway-rig.ts";
import { proxied } from "../route-documents.ts";

test("U16: a retry does not wait for the endless body of the answer that it replaces", async () => {
  await using hostile = await startRawServer(async (connection, index) => {
    await connection.readUntil("\r\n\r\n");
    if (index > 0) return await connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    await connection.write("HTTP/1.1 503 Busy\r\nTransfer-Encoding: chunked\r\n\r\n");
    while (!connection.ended) {
      await connection.write("1\r\nx\r\n").catch(() => undefined);
      await sleep(20);
    }
    return undefined;
  });
  await using gateway = await startGateway({
    ...serving("api", [hostile.port], { retries: { attempts: 1 }, timeouts: { read_ms: 2000 } }),
    routes: [proxied("api")],
  });
  const response = await gateway.send({ path: "/" });
  assert.equal(response.status, 200);
});

test("U16: 1xx answers without end are bounded", async () => {
  await using hostile = await startRawServer(async (connection) => {
    await connection.readUntil("\r\n\r\n");
    while (!connection.ended && !connection.socket.destroyed) {
      await connection.write("HTTP/1.1 103 Early Hints\r\nX: 1\r\n\r\n".repeat(100)).catch(() => undefined);
    }
  });
  await using gateway = await startGateway({
    ...serving("api", [hostile.port], { timeouts: { read_ms: 1000 } }),
    routes: [proxied("api")],
  });
  const response = await gateway.send({ path: "/" });
  assert.ok(response.status === 502 || response.status === 504, String(response.status));
});
