import assert from "node:assert/strict";
import { test } from "node:test";
import { startRawServer, waitUntil, type RawServer } from "@headworks/testkit";
import { pino } from "pino";
import { EgressDialer } from "#egress/egress-dialer.ts";
import { EgressError } from "#egress/egress-failure.ts";
import { parseEgressUrl } from "#egress/egress-url.ts";
import { fetchPublished } from "./discovered-endpoint.ts";

async function fetched(server: RawServer, signal = AbortSignal.timeout(20_000)): Promise<string> {
  const url = parseEgressUrl(`http://127.0.0.1:${server.port}/keys?v=1`);
  if ("issue" in url) throw new Error(url.issue);
  const dialer = new EgressDialer({ log: pino({ level: "silent" }) });
  return (await fetchPublished(dialer, { url, roots: undefined, purpose: "key-set" }, signal)).toString();
}

test("published documents are fetched with one plain GET, whatever the body framing", async () => {
  for (const response of [
    "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nkeys",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nke\r\n2\r\nys\r\n0\r\n\r\n",
    "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nConnection: close\r\n\r\nkeys",
  ]) {
    let asked = "";
    await using server = await startRawServer(async (connection) => {
      asked = (await connection.readUntil("\r\n\r\n")).toString();
      await connection.write(response);
      connection.end();
    });
    assert.equal(await fetched(server), "keys", response);
    assert.equal(asked.split("\r\n")[0], "GET /keys?v=1 HTTP/1.1");
    assert.match(asked, /\r\nHost: 127\.0\.0\.1:[0-9]+\r\n/);
  }
});

test("an incomplete, invalid or oversized response is a failure", async () => {
  const cases: readonly [response: string, code: string][] = [
    ["HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nkeys", "bad_answer"],
    ["HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nkeys", "bad_answer"],
    ["HTTP/1.1 204 No Content\r\n\r\n", "bad_answer"],
    ["SSH-2.0-OpenSSH_9.6\r\n\r\n", "bad_answer"],
    ["", "connection_lost"],
    [`HTTP/1.1 200 OK\r\nX-Pad: ${"x".repeat(9000)}\r\n\r\nkeys`, "bad_answer"],
    [`HTTP/1.1 200 OK\r\nContent-Length: 2000000\r\n\r\n${"x".repeat(1_048_577)}`, "answer_too_large"],
  ];
  for (const [response, code] of cases) {
    await using server = await startRawServer(async (connection) => {
      await connection.readUntil("\r\n\r\n");
      await connection.write(response);
      connection.end();
    });
    await assert.rejects(fetched(server), (error) => {
      assert.ok(error instanceof EgressError);
      assert.equal(error.code, code, response.slice(0, 60));
      return true;
    });
  }
});

test("the signal aborts a request without a response and closes its connection", async () => {
  const asked = Promise.withResolvers<undefined>();
  let isClosed = false;
  await using server = await startRawServer(async (connection) => {
    await connection.readUntil("\r\n\r\n");
    asked.resolve(undefined);
    await connection.readUntil("never").catch(() => undefined);
    isClosed = true;
  });
  const over = new AbortController();
  const response = fetched(server, over.signal);
  await asked.promise;
  over.abort();
  await assert.rejects(response, (error) => error instanceof EgressError && error.code === "timeout");
  await waitUntil(() => isClosed);
});
