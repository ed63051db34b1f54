import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock, http2Client, rawClient, startRawServer, waitUntil } from "@headworks/testkit";
import type { DocumentInput } from "@headworks/gateway-contract";
import { serving, startGateway, type TestGateway } from "./gateway-rig.ts";

type UpstreamInput = NonNullable<DocumentInput["upstreams"]>[number];

const ROUTES: NonNullable<DocumentInput["routes"]> = [
  { name: "api", service: "api", match: { path: { type: "prefix", value: "/" } }, action: { type: "proxy" } },
];
const response = (status: number): string => `HTTP/1.1 ${status} x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`;

/** An endpoint that answers as it is told, or not at all. */
async function endpoint() {
  const state = { status: 500 as number | "hang" };
  const held: ((status: number) => Promise<void>)[] = [];
  const server = await startRawServer(async (connection) => {
    await connection.readUntil("\r\n\r\n");
    if (state.status !== "hang") return await connection.write(response(state.status));
    held.push(async (status) => await connection.write(response(status)));
    await connection.closed;
  });
  return { server, state, held };
}

async function rig(more: Partial<UpstreamInput>) {
  const one = await endpoint();
  const clock = new FakeClock();
  const gateway = await startGateway({ ...serving("api", [one.server.port], more), routes: ROUTES }, { clock });
  return {
    ...one,
    clock,
    gateway,
    [Symbol.asyncDispose]: async () => {
      await gateway[Symbol.asyncDispose]();
      await one.server.close();
    },
  };
}

const statusOf = async (gateway: TestGateway): Promise<number> => (await gateway.send({ path: "/" })).status;

test("breaker: a trial that hangs keeps others out for open_ms, and what it says later counts once", async () => {
  await using run = await rig({ breaker: { consecutive_failures: 1, open_ms: 10_000 } });
  const { gateway, clock, state, held } = run;
  assert.equal(await statusOf(gateway), 500);
  await clock.advance(10_000);
  state.status = "hang";
  const first = gateway.send({ path: "/" });
  await waitUntil(() => held.length === 1, { what: "the trial" });
  assert.equal(await statusOf(gateway), 503);
  await clock.advance(9999);
  assert.equal(await statusOf(gateway), 503);
  await clock.advance(1);
  const second = gateway.send({ path: "/" });
  await waitUntil(() => held.length === 2, { what: "another trial" });
  const refused = await gateway.send({ path: "/" });
  assert.deepEqual([refused.status, refused.header("retry-after")], [503, "1"], "one at a time");
  await held[0]?.(500);
  assert.equal((await first).status, 500);
  assert.equal(await statusOf(gateway), 503, "a failure from long ago opens nothing, and gives no second place");
  await held[1]?.(200);
  assert.equal((await second).status, 200);
  state.status = 200;
  assert.equal(await statusOf(gateway), 200);
});

test("health: an ejected endpoint whose trial hangs is tried again after eject_ms", async () => {
  await using other = await startRawServer(response(201));
  await using run = await rig({});
  const { gateway, clock, state, held, server } = run;
  await gateway.reload({
    ...serving("api", [server.port, other.port], {
      load_balancer: "round_robin",
      health: { consecutive_failures: 1, eject_ms: 10_000 },
      retries: { attempts: 0 },
    }),
    routes: ROUTES,
  });
  const seen = async (): Promise<number[]> =>
    [await statusOf(gateway), await statusOf(gateway)].toSorted((a, b) => a - b);
  assert.deepEqual(await seen(), [201, 500]);
  await clock.advance(10_000);
  state.status = "hang";
  const requests = [gateway.send({ path: "/" }), gateway.send({ path: "/" })];
  await waitUntil(() => held.length === 1, { what: "the trial" });
  assert.deepEqual(await seen(), [201, 201], "it is out as long as the trial has time");
  await clock.advance(10_000);
  state.status = 200;
  assert.deepEqual(await seen(), [200, 201]);
  await held[0]?.(500);
  assert.deepEqual(
    (await Promise.all(requests)).map(({ status }) => status).toSorted((a, b) => a - b),
    [201, 500],
  );
  assert.deepEqual(await seen(), [200, 201], "a failure of before the return says nothing");
});

test("breaker: a trial gives its place back at once when its client leaves, over HTTP/1.1 and HTTP/2", async () => {
  await using run = await rig({ breaker: { consecutive_failures: 1, open_ms: 10_000 } });
  const { gateway, clock, state, held } = run;
  assert.equal(await statusOf(gateway), 500);
  await clock.advance(10_000);
  state.status = "hang";
  await using client = await rawClient(gateway.port());
  await client.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  await waitUntil(() => held.length === 1, { what: "the trial" });
  client.reset();
  await using other = await http2Client(gateway.port());
  // Of one connection requests are looked at in their order.
  await waitUntil(async () => {
    const stream = other.session.request({ ":path": "/" }).on("error", () => undefined);
    const isRefused = new Promise((resolve) => stream.once("response", () => resolve(true)));
    const isTrial = waitUntil(() => held.length === 2).then(() => false);
    if (await Promise.race([isRefused, isTrial])) return false;
    assert.equal((await other.fetch({ ":path": "/" })).status, 503);
    stream.close(8);
    return true;
  });
  state.status = 200;
  await waitUntil(async () => (await statusOf(gateway)) === 200, { what: "the next trial" });
});

test("breaker: a trial that waits for a connection gives its place back when its client leaves", async () => {
  await using run = await rig({ breaker: { consecutive_failures: 1, open_ms: 10_000 }, connection_cap: 1 });
  const { gateway, clock, state, held } = run;
  assert.equal(await statusOf(gateway), 500);
  await clock.advance(10_000);
  state.status = "hang";
  const first = gateway.send({ path: "/" });
  await waitUntil(() => held.length === 1, { what: "the trial, on the only connection" });
  await clock.advance(10_000);
  // Of one connection requests are looked at in their order.
  await using client = await http2Client(gateway.port());
  const waiting = client.session.request({ ":path": "/" }).on("error", () => undefined);
  assert.equal((await client.fetch({ ":path": "/" })).status, 503);
  await new Promise<void>((resolve) => waiting.close(8, resolve));
  state.status = 200;
  const another = client.fetch({ ":path": "/" });
  assert.equal((await client.fetch({ ":path": "/" })).status, 503);
  await held[0]?.(500);
  assert.deepEqual([(await first).status, (await another).status], [500, 200]);
});
