import assert from "node:assert/strict";
import { test } from "node:test";
import { startOrigin, waitUntil } from "@headworks/testkit";
import type { DocumentInput } from "@headworks/gateway-contract";
import { serving, startGateway } from "./gateway-rig.ts";

const ROUTES: NonNullable<DocumentInput["routes"]> = [
  { name: "api", service: "api", match: { path: { type: "prefix", value: "/" } }, action: { type: "proxy" } },
];
const QUICK = { interval_ms: 30, timeout_ms: 30, jitter_ms: 0 };

/** A webhook target that keeps what it is told of breakers and endpoints. */
async function eventTarget() {
  const told: { kind: string; upstream: string; detail?: string; endpoint?: string }[] = [];
  const server = await startOrigin({
    handler: (request, response) => {
      let text = "";
      request.setEncoding("utf8").on("data", (piece: string) => (text += piece));
      request.on("end", () => {
        const { kind, ...payload } = JSON.parse(text) as (typeof told)[number] & { payload?: object };
        told.push({ kind, ...payload, ...payload.payload });
        response.end();
      });
    },
  });
  const webhooks: NonNullable<DocumentInput["webhooks"]> = [
    {
      url: `http://127.0.0.1:${server.port}/events`,
      events: ["breaker_opened", "breaker_half_open", "breaker_closed", "endpoint_ejected", "endpoint_recovered"],
    },
  ];
  return { server, told, webhooks };
}

test("active health takes an endpoint out, tells the webhook, sends traffic to the others, and brings it back", async () => {
  const { server, told, webhooks } = await eventTarget();
  await using _target = server;
  let isSick = false;
  await using sick = await startOrigin({
    handler: (request, response) => void response.writeHead(isSick && request.url === "/healthz" ? 503 : 200).end("1"),
  });
  await using well = await startOrigin({ handler: (_request, response) => void response.end("2") });
  await using gateway = await startGateway({
    ...serving("api", [sick.port, well.port], { health: {}, active_health: QUICK }),
    routes: ROUTES,
    webhooks,
  });
  const bodies = async (): Promise<string> => {
    let seen = "";
    for (let at = 0; at < 4; at++) seen += (await gateway.send({ path: "/" })).body.toString();
    return seen;
  };
  assert.equal(await bodies(), "1212");
  isSick = true;
  await waitUntil(() => told.length === 1, { what: "the word of the ejection" });
  assert.equal(await bodies(), "2222");
  isSick = false;
  await waitUntil(() => told.length === 2, { what: "the word of the recovery" });
  assert.match(await bodies(), /1/);
  assert.deepEqual(
    told.map(({ kind, upstream, endpoint }) => [kind, upstream, endpoint]),
    [
      ["endpoint_ejected", "api", `127.0.0.1:${sick.port}`],
      ["endpoint_recovered", "api", `127.0.0.1:${sick.port}`],
    ],
  );
});

test("probes stop with the gateway, and with the endpoint's upstream", async () => {
  await using origin = await startOrigin({ handler: (_request, response) => void response.end() });
  const gateway = await startGateway({
    ...serving("api", [origin.port], { health: {}, active_health: QUICK }),
    routes: ROUTES,
  });
  await waitUntil(() => origin.requests.length > 2);
  await gateway[Symbol.asyncDispose]();
  const before = origin.requests.length;
  await new Promise((resolve) => setTimeout(resolve, 120));
  assert.ok(origin.requests.length <= before + 1);
});

test("a breaker that opens is told to the webhook, keeps traffic away, and closes with a good trial", async () => {
  const { server, told, webhooks } = await eventTarget();
  await using _target = server;
  let status = 500;
  await using origin = await startOrigin({ handler: (_request, response) => void response.writeHead(status).end() });
  await using gateway = await startGateway({
    ...serving("api", [origin.port], { breaker: { consecutive_failures: 2, open_ms: 1000 } }),
    routes: ROUTES,
    webhooks,
  });
  for (let at = 0; at < 2; at++) assert.equal((await gateway.send({ path: "/" })).status, 500);
  const refused = await gateway.send({ path: "/" });
  assert.equal(refused.status, 503);
  assert.match(refused.body.toString(), /upstream_circuit_open/);
  assert.equal(refused.header("retry-after"), "1");
  assert.equal(origin.requests.length, 2, "no traffic while it is open");
  const trial = async (): Promise<number | undefined> => (await gateway.send({ path: "/" })).status;
  await waitUntil(async () => (await trial()) === 500, { what: "a bad trial" });
  status = 200;
  await waitUntil(async () => (await trial()) === 200, { what: "a good trial" });
  await waitUntil(() => told.length === 5, { what: "five events" });
  assert.deepEqual(
    told.map(({ kind, detail }) => [kind, detail]),
    [
      ["breaker_opened", "consecutive_failures"],
      ["breaker_half_open", undefined],
      ["breaker_opened", "half_open_probe_failed"],
      ["breaker_half_open", undefined],
      ["breaker_closed", "half_open_probe_succeeded"],
    ],
  );
});
