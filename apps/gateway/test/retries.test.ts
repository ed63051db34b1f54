import assert from "node:assert/strict";
import { test } from "node:test";
import {
  rawClient,
  readResponse,
  startOrigin,
  startRawServer,
  waitUntil,
  type RawConnection,
} from "@headworks/testkit";
import type { DocumentInput } from "@headworks/gateway-contract";
import { serving, startGateway } from "./gateway-rig.ts";

type Extra = Partial<NonNullable<DocumentInput["upstreams"]>[number]>;
type Retries = NonNullable<Extra["retries"]>;

/** The gateway has ended its side, whatever the server does with its own. */
const isFinished = (connection: RawConnection | undefined): boolean =>
  connection !== undefined && (connection.socket.destroyed || connection.socket.readableEnded);

const ROUTES: NonNullable<DocumentInput["routes"]> = [
  { name: "api", service: "api", match: { path: { type: "prefix", value: "/" } }, action: { type: "proxy" } },
];
const QUICK = { backoff_base_ms: 1, backoff_cap_ms: 1 };

/** An origin that responds with these statuses in turn, then with the last one, and keeps the bodies. */
async function answering(...statuses: readonly number[]) {
  const bodies: string[] = [];
  const origin = await startOrigin({
    handler: (request, response) => {
      let body = "";
      request.setEncoding("latin1").on("data", (piece: string) => (body += piece));
      request.on("end", () => {
        response.statusCode = statuses[Math.min(bodies.push(body), statuses.length) - 1] ?? 200;
        response.end(`answer ${bodies.length}`);
      });
    },
  });
  return { origin, bodies };
}

const over = async (ports: readonly number[], retries: Retries, more: Extra = {}) =>
  await startGateway({ ...serving("api", ports, { retries: { ...QUICK, ...retries }, ...more }), routes: ROUTES });

test("retries: an answer of the list is tried again, the client sees only the last one", async () => {
  const { origin, bodies } = await answering(503, 502, 200);
  await using _origin = origin;
  await using gateway = await over([origin.port], { attempts: 2 });
  const response = await gateway.send({ path: "/" });
  assert.deepEqual([response.status, response.body.toString(), bodies.length], [200, "answer 3", 3]);
  assert.equal(origin.connectionCount, 1, "short discarded responses are read, so that the connection stays");
});

test("retries: when all attempts are used, the last answer goes to the client", async () => {
  const { origin, bodies } = await answering(503);
  await using _origin = origin;
  await using gateway = await over([origin.port], { attempts: 2 });
  const response = await gateway.send({ path: "/" });
  assert.deepEqual([response.status, response.body.toString(), bodies.length], [503, "answer 3", 3]);
});

test("retries: another endpoint is asked first", async () => {
  const [bad, good] = [await answering(503), await answering(200)];
  await using _bad = bad.origin;
  await using _good = good.origin;
  await using gateway = await over([bad.origin.port, good.origin.port], { attempts: 1 });
  for (let at = 0; at < 4; at++) assert.equal((await gateway.send({ path: "/" })).status, 200);
});

const NOT_REPEATED: readonly (readonly [string, string, Retries, string])[] = [
  ["a POST", "POST", { attempts: 2 }, ""],
  ["a DELETE", "DELETE", { attempts: 2, retry_post: true }, ""],
  ["a PATCH", "PATCH", { attempts: 2, retry_post: true }, ""],
  ["a body larger than the buffer", "PUT", { attempts: 2, buffer_max_bytes: 4 }, "12345"],
  ["a body without a buffer", "PUT", { attempts: 2 }, "1"],
  ["a status that is not listed", "GET", { attempts: 2, retry_statuses: [504] }, ""],
  ["any status of an empty list", "GET", { attempts: 2, retry_statuses: [] }, ""],
];
for (const [what, method, retries, body] of NOT_REPEATED) {
  test(`retries: ${what} is not sent again`, async () => {
    const { origin, bodies } = await answering(503);
    await using _origin = origin;
    await using gateway = await over([origin.port], retries);
    assert.equal((await gateway.send({ path: "/", method, body })).status, 503);
    assert.deepEqual(bodies, [body]);
  });
}

test("retries: a POST by opt-in, and bodies of either framing, are sent again whole", async () => {
  const { origin, bodies } = await answering(503, 200, 503, 200);
  await using _origin = origin;
  await using gateway = await over([origin.port], { attempts: 1, retry_post: true, buffer_max_bytes: 100 });
  assert.equal((await gateway.send({ path: "/", method: "POST", body: "the body" })).status, 200);
  const chunked = {
    path: "/",
    method: "PUT",
    fields: ["Transfer-Encoding: chunked"],
    body: "3\r\nthe\r\n5\r\n body\r\n0\r\n\r\n",
  };
  assert.equal((await gateway.send(chunked)).status, 200);
  assert.deepEqual(bodies, ["the body", "the body", "the body", "the body"]);
});

test("retries: a body that comes slowly waits between attempts, and outgrowing the buffer then loses nothing", async () => {
  const whole = "0123456789".repeat(30);
  await using server = await startRawServer(async (connection, index) => {
    await connection.readUntil("\r\n\r\n");
    if (index === 0) {
      connection.socket.resetAndDestroy();
      return;
    }
    const body = await connection.read(whole.length);
    await connection.write(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body.toString()}`);
  });
  await using gateway = await over([server.port], {
    attempts: 1,
    buffer_max_bytes: 300,
    backoff_base_ms: 100,
    backoff_cap_ms: 100,
  });
  await using client = await rawClient(gateway.port());
  await client.write(`PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: ${whole.length}\r\n\r\n`);
  for (let at = 0; at < whole.length; at += 50) {
    await client.write(whole.slice(at, at + 50));
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  assert.equal((await readResponse(client)).body.toString(), whole);
});

test("retries: refused, reset and timed out attempts are made again; with retry_transport: false they are not", async () => {
  const refusing = await startRawServer("");
  await refusing.close();
  const good = await answering(200);
  await using _good = good.origin;
  await using resetting = await startRawServer(({ socket }) => void socket.resetAndDestroy());
  await using silent = await startRawServer(async (connection) => void (await connection.closed));
  for (const [port, status] of [
    [refusing.port, 502],
    [resetting.port, 502],
    [silent.port, 504],
  ] as const) {
    const timeouts = { read_ms: 1000 };
    await using trying = await over([port, good.origin.port], { attempts: 1 }, { timeouts });
    assert.equal((await trying.send({ path: "/" })).status, 200);
    await using once = await over([port, good.origin.port], { attempts: 1, retry_transport: false }, { timeouts });
    assert.equal((await once.send({ path: "/" })).status, status);
  }
});

test("retries: the budget bounds them to a share of the requests, with room for three", async () => {
  const { origin, bodies } = await answering(503);
  await using _origin = origin;
  await using gateway = await over([origin.port], { attempts: 3, budget_percent: 10 });
  for (let at = 0; at < 100; at++) assert.equal((await gateway.send({ path: "/" })).status, 503);
  assert.equal(bodies.length, 110);
});

test("retries: the breaker is asked before each one", async () => {
  const { origin, bodies } = await answering(503);
  await using _origin = origin;
  await using gateway = await over([origin.port], { attempts: 3 }, { breaker: { consecutive_failures: 2 } });
  const response = await gateway.send({ path: "/" });
  assert.equal(response.status, 503);
  assert.match(response.body.toString(), /upstream_circuit_open/);
  assert.equal(bodies.length, 2);
});

test("retries: request_ms bounds the whole chain", async () => {
  await using silent = await startRawServer(async (connection) => void (await connection.closed));
  await using gateway = await over(
    [silent.port],
    { attempts: 10, budget_percent: 100 },
    { timeouts: { read_ms: 150, request_ms: 500 } },
  );
  const startedMs = performance.now();
  assert.equal((await gateway.send({ path: "/" })).status, 504);
  assert.ok(performance.now() - startedMs < 1350);
  assert.ok(silent.connections.length >= 2 && silent.connections.length <= 4);
});

test("retries: a discarded response that never ends delays nothing, and is cut off", async () => {
  await using server = await startRawServer(async (connection, index) => {
    await connection.readUntil("\r\n\r\n");
    if (index > 0) {
      await connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
      return;
    }
    connection.socket.write("HTTP/1.1 503 Busy\r\nContent-Length: 1000000000\r\n\r\n");
    const piece = Buffer.alloc(65_536);
    while (!connection.socket.destroyed) {
      connection.socket.write(piece);
      await new Promise((resolve) => setImmediate(resolve));
    }
  });
  await using gateway = await over([server.port], { attempts: 1 });
  assert.equal((await gateway.send({ path: "/" })).body.toString(), "ok");
  await waitUntil(() => isFinished(server.connections[0]), { what: "the end of the answer" });
  assert.ok((server.connections[0]?.socket.bytesWritten ?? 0) < 16 * 1024 * 1024);
});

test("retries: a discarded response that stalls is cut off as well", async () => {
  await using server = await startRawServer(async (connection, index) => {
    await connection.readUntil("\r\n\r\n");
    await connection.write(
      index > 0 ? "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok" : "HTTP/1.1 503 Busy\r\nContent-Length: 9\r\n\r\n",
    );
    if (index === 0) await connection.closed;
  });
  await using gateway = await over([server.port], { attempts: 1 });
  assert.equal((await gateway.send({ path: "/" })).body.toString(), "ok");
  await waitUntil(() => isFinished(server.connections[0]), { what: "the end of the answer", timeoutMs: 5000 });
});

for (const [method, status] of [
  ["GET", 200],
  ["DELETE", 200],
  ["POST", 502],
  ["PATCH", 502],
] as const) {
  test(`a ${method} on a connection that was closed just then gets ${status}, without any retries, and counts no failure`, async () => {
    await using server = await startRawServer(async (connection, index) => {
      for (let responses = 0; !isFinished(connection); responses++) {
        await connection.readUntil("\r\n\r\n").catch(() => connection.end());
        if (index === 0 && responses === 1) return connection.destroy();
        connection.socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
      }
    });
    const document = serving("api", [server.port], { breaker: { consecutive_failures: 1 } });
    await using gateway = await startGateway({ ...document, routes: ROUTES });
    assert.equal((await gateway.send({ path: "/" })).status, 200);
    assert.equal((await gateway.send({ path: "/", method })).status, status);
    assert.equal((await gateway.send({ path: "/" })).status, status === 200 ? 200 : 503, "the breaker");
  });
}

test("breaker: a trial for which there is no endpoint leaves its place as well", async () => {
  const { origin, bodies } = await answering(500, 200);
  await using _origin = origin;
  const document = (drain: boolean) => ({
    ...serving("api", [], {
      endpoints: [{ address: "127.0.0.1", port: origin.port, drain }],
      breaker: { consecutive_failures: 1, open_ms: 20 },
    }),
    routes: ROUTES,
  });
  await using gateway = await startGateway(document(false));
  assert.equal((await gateway.send({ path: "/" })).status, 500);
  await gateway.reload(document(true));
  await new Promise((resolve) => setTimeout(resolve, 30));
  for (let at = 0; at < 3; at++) {
    const response = await gateway.send({ path: "/" });
    assert.equal(response.status, 502);
    assert.match(response.body.toString(), /upstream_unavailable/);
  }
  await gateway.reload(document(false));
  assert.equal((await gateway.send({ path: "/" })).status, 200);
  assert.equal(bodies.length, 2);
});
