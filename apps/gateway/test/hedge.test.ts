import assert from "node:assert/strict";
import { test } from "node:test";
import { startOrigin, startRawServer, waitUntil, type RawConnection } from "@headworks/testkit";
import type { DocumentInput } from "@headworks/gateway-contract";
import { serving, startGateway } from "./gateway-rig.ts";

type Retries = NonNullable<NonNullable<DocumentInput["upstreams"]>[number]["retries"]>;

/** The gateway has ended its side, whatever the server does with its own. */
const isFinished = (connection: RawConnection | undefined): boolean =>
  connection !== undefined && (connection.socket.destroyed || connection.socket.readableEnded);

const ROUTES: NonNullable<DocumentInput["routes"]> = [
  { name: "api", service: "api", match: { path: { type: "prefix", value: "/" } }, action: { type: "proxy" } },
];

const silent = async () => await startRawServer(async (connection) => void (await connection.closed));
const answering = async (status: number, afterMs = 0) =>
  await startOrigin({
    handler: (request, response) => {
      let body = "";
      request.setEncoding("latin1").on("data", (piece: string) => (body += piece));
      request.on("end", () => setTimeout(() => response.writeHead(status).end(`${status} ${body}`), afterMs));
    },
  });
const over = async (ports: readonly number[], retries: Retries) =>
  await startGateway({ ...serving("api", ports, { retries: { buffer_max_bytes: 1000, ...retries } }), routes: ROUTES });

test("hedge: after hedge_after_ms another endpoint is asked, its answer wins, and the slow attempt is given up", async () => {
  await using slow = await silent();
  await using fast = await answering(200);
  await using gateway = await over([slow.port, fast.port], { hedge: { hedge_after_ms: 40 } });
  const startedMs = performance.now();
  const response = await gateway.send({ path: "/", method: "PUT", body: "text" });
  assert.deepEqual([response.status, response.body.toString()], [200, "200 text"]);
  assert.ok(performance.now() - startedMs >= 39);
  await waitUntil(() => isFinished(slow.connections[0]), { what: "the end of the slow attempt" });
});

test("hedge: the first head wins, also when it is that of the first attempt", async () => {
  await using first = await answering(200, 80);
  await using second = await silent();
  await using gateway = await over([first.port, second.port], { hedge: { hedge_after_ms: 20 } });
  assert.equal((await gateway.send({ path: "/" })).status, 200);
  await waitUntil(() => isFinished(second.connections[0]), { what: "the end of the hedge" });
});

test("hedge: an attempt that fails leaves the other one to answer", async () => {
  await using failing = await answering(503, 60);
  await using good = await answering(200, 120);
  await using gateway = await over([failing.port, good.port], { hedge: { hedge_after_ms: 20 } });
  assert.equal((await gateway.send({ path: "/" })).status, 200);
  assert.equal(failing.requests.length + good.requests.length, 2);
});

test("hedge: when every attempt fails the client hears of it once", async () => {
  await using one = await startRawServer(async (connection) => {
    await new Promise((resolve) => setTimeout(resolve, 60));
    connection.socket.resetAndDestroy();
  });
  await using gateway = await over([one.port], { hedge: { hedge_after_ms: 20 } });
  assert.equal((await gateway.send({ path: "/" })).status, 502);
  assert.equal(one.connections.length, 2);
});

test("hedge: at most hedge_max attempts beside the first, and no more than the budget has", async () => {
  await using slow = await silent();
  const document = (hedges: number) => ({
    ...serving("api", [slow.port], {
      retries: { buffer_max_bytes: 1, hedge: { hedge_after_ms: 10, hedge_max: hedges } },
      timeouts: { read_ms: 200 },
    }),
    routes: ROUTES,
  });
  await using gateway = await startGateway(document(2));
  assert.equal((await gateway.send({ path: "/" })).status, 504);
  assert.equal(slow.connections.length, 3);
  await gateway.reload(document(4));
  assert.equal((await gateway.send({ path: "/" })).status, 504);
  assert.equal(slow.connections.length, 5, "one request and the third of three free places in the budget");
});

for (const [what, method, fields] of [
  ["a method that must not be repeated", "POST", []],
  ["a DELETE", "DELETE", []],
] as const) {
  test(`hedge: ${what} is asked once`, async () => {
    await using slow = await answering(200, 80);
    await using gateway = await over([slow.port], { hedge: { hedge_after_ms: 10 } });
    assert.equal((await gateway.send({ path: "/", method, fields })).status, 200);
    assert.equal(slow.requests.length, 1);
  });
}
