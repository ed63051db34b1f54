import assert from "node:assert/strict";
import { test } from "node:test";
import { rawClient, readResponse, startOrigin, waitUntil, type RawConnection } from "@headworks/testkit";
import { serving, startGateway, type TestGateway } from "./gateway-rig.ts";
import { errorOf, proxied, responding } from "./route-documents.ts";

const asking = async (gateway: TestGateway): Promise<RawConnection> => {
  const client = await rawClient(gateway.port());
  await client.write("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
  return client;
};

test("admission: the permit is held until the response body ends; reserved paths and 404s do not need one", async () => {
  const endings: (() => void)[] = [];
  await using origin = await startOrigin({
    handler: (_request, response) => {
      response.write("begun");
      endings.push(() => response.end());
    },
  });
  await using gateway = await startGateway({
    max_concurrent_requests: 1,
    ...serving("api", [origin.port]),
    routes: [proxied("api", "/slow"), responding("r", "/r")],
  });
  await using client = await asking(gateway);
  await client.readUntil("begun");
  const shed = await gateway.send({ path: "/r" });
  assert.deepEqual(
    [shed.status, errorOf(shed).code, shed.header("retry-after")],
    [503, "gateway_saturated", undefined],
  );
  assert.deepEqual(
    [(await gateway.send({ path: "/healthz" })).status, (await gateway.send({ path: "/none" })).status],
    [200, 404],
  );
  endings[0]?.();
  await client.readUntil("0\r\n\r\n");
  assert.equal((await gateway.send({ path: "/r" })).status, 200);
  const metrics = (await gateway.send({ path: "/metrics" })).body.toString();
  assert.match(metrics, /^shed_total\{priority="5"\} 1$/m);
});

test("admission_queue: requests wait for a permit, and those whose clients went away neither hold one nor a place", async () => {
  const endings: (() => void)[] = [];
  await using origin = await startOrigin({
    handler: (_request, response) => void endings.push(() => response.end("done")),
  });
  await using gateway = await startGateway({
    max_concurrent_requests: 1,
    admission_queue: { enabled: true, max_queue_size: 4, queue_timeout_ms: 10_000 },
    ...serving("api", [origin.port]),
    routes: [proxied("api", "/slow"), responding("r", "/r")],
  });
  await using first = await asking(gateway);
  await waitUntil(() => endings.length === 1);
  const active = async (): Promise<number> =>
    Number(/^active_requests (\d+)$/m.exec((await gateway.send({ path: "/metrics" })).body.toString())?.[1]);
  await using gone = await asking(gateway);
  await waitUntil(async () => (await active()) === 3);
  await using second = await asking(gateway);
  await waitUntil(async () => (await active()) === 4);
  gone.reset();
  await waitUntil(async () => (await active()) === 3);
  endings[0]?.();
  assert.equal((await readResponse(first)).body.toString(), "done");
  await waitUntil(() => endings.length === 2);
  endings[1]?.();
  assert.equal((await readResponse(second)).status, 200);
  assert.equal((await gateway.send({ path: "/r" })).status, 200, "no permit was lost");
});

test("admission_queue: a wait that is too long is 503 with Retry-After", async () => {
  await using origin = await startOrigin({ handler: () => undefined });
  await using gateway = await startGateway({
    max_concurrent_requests: 1,
    admission_queue: { enabled: true, queue_timeout_ms: 20 },
    ...serving("api", [origin.port]),
    routes: [proxied("api", "/slow")],
  });
  await using client = await asking(gateway);
  await waitUntil(() => origin.requests.length === 1);
  const response = await gateway.send({ path: "/slow" });
  assert.deepEqual(
    [response.status, response.header("retry-after"), errorOf(response).code],
    [503, "1", "gateway_saturated"],
  );
  client.destroy();
});
