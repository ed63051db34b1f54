import assert from "node:assert/strict";
import { test } from "node:test";
import { startOrigin, temporaryDirectory } from "@headworks/testkit";
import { serving, startGateway } from "./gateway-rig.ts";
import { errorOf, proxied, responding } from "./route-documents.ts";

const hourly = (name: string, hour: number) => ({
  name,
  rate_limits: [{ selector: ["route" as const], requests_per: { hour } }],
});

test("rate limit: 429 rate_limit_exceeded with Retry-After and X-RateLimit-*; the upstream's own are replaced", async () => {
  await using origin = await startOrigin({
    handler: (_request, response) => response.writeHead(200, { "X-RateLimit-Limit": "1000" }).end("ok"),
  });
  await using gateway = await startGateway({
    ...serving("api", [origin.port]),
    policies: [hourly("p", 2)],
    routes: [proxied("api", "/", { policies: ["p"] })],
  });
  for (const remaining of ["1", "0"]) {
    const response = await gateway.send({ path: "/" });
    const limits = response.headers.filter(([name]) => /^x-ratelimit-limit$/i.test(name)).map(([, value]) => value);
    assert.deepEqual([response.status, limits, response.header("x-ratelimit-remaining")], [200, ["2"], remaining]);
  }
  const response = await gateway.send({ path: "/" });
  assert.deepEqual([response.status, errorOf(response).code], [429, "rate_limit_exceeded"]);
  assert.deepEqual([response.header("x-ratelimit-limit"), response.header("x-ratelimit-remaining")], ["2", "0"]);
  assert.ok(Math.abs(Number(response.header("retry-after")) - 1800) <= 2, response.header("retry-after"));
  assert.ok(Math.abs(Number(response.header("x-ratelimit-reset")) - Date.now() / 1000 - 3600) < 5);
  assert.equal(origin.requests.length, 2);
  const access = gateway.log.filter(({ msg }) => msg === "access").map((line) => line["rate_limited"]);
  assert.deepEqual(access, [false, false, true]);
  const metrics = (await gateway.send({ path: "/metrics" })).body.toString();
  assert.match(metrics, /^rate_limited_total\{route="api"\} 1$/m, "reserved paths are not limited");
});

test("rate limit: unrouted requests meet listener and global policies, and their 404 carries the headers", async () => {
  await using gateway = await startGateway({
    policies: [hourly("p", 1)],
    global_policies: ["p"],
    routes: [responding("r", "/r")],
  });
  const first = await gateway.send({ path: "/none" });
  assert.deepEqual([first.status, first.header("x-ratelimit-remaining")], [404, "0"]);
  assert.equal((await gateway.send({ path: "/none" })).status, 429);
  assert.equal((await gateway.send({ path: "/r" })).status, 200);
});

test("rate limit: counters go on over a reload", async () => {
  const routes = [responding("r", "/", { policies: ["p"] })];
  await using gateway = await startGateway({ policies: [hourly("p", 1)], routes });
  await gateway.send({ path: "/" });
  await gateway.reload({ policies: [hourly("p", 1)], routes: [...routes, responding("more", "/more")] });
  assert.equal(gateway.gateway.generations.current?.number, 2);
  assert.equal((await gateway.send({ path: "/" })).status, 429);
});

test("rate limit: what a later refusal says of limits is said once", async () => {
  await using directory = await temporaryDirectory();
  await using gateway = await startGateway(
    {
      policies: [hourly("p", 5)],
      consumers: [{ name: "x", credentials: [{ type: "api_key", key: "key-of-x" }], quotas: { daily_requests: 1n } }],
      routes: [responding("r", "/", { policies: ["p"] })],
    },
    { environment: { GATEWAY_STATE_DB: directory.file("state.db") } },
  );
  const fields = ["X-API-Key: key-of-x"];
  await gateway.send({ path: "/", fields });
  const response = await gateway.send({ path: "/", fields });
  assert.deepEqual([response.status, errorOf(response).code], [429, "quota_exceeded"]);
  const limits = response.headers.filter(([name]) => /^x-ratelimit-limit$/i.test(name)).map(([, value]) => value);
  assert.deepEqual(limits, ["1"]);
});
