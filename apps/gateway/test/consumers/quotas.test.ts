import assert from "node:assert/strict";
import { test } from "node:test";
import { startOrigin, temporaryDirectory, type RawResponse } from "@headworks/testkit";
import type { DocumentInput } from "@headworks/gateway-contract";
import type { Clock } from "#slice.ts";
import { serving, startGateway } from "../gateway-rig.ts";

/** A Friday evening; 3 hours, 29 minutes and 29.25 seconds before the day ends, 9 days before the month does. */
const EVENING_MS = Date.UTC(2026, 4, 22, 20, 30, 30, 750);
const DAY_END_S = Date.UTC(2026, 4, 23) / 1000;
const MONTH_END_S = Date.UTC(2026, 5, 1) / 1000;

/** A wall clock that stands where a test puts it. */
function standingClock(nowMs: number): Clock & { nowMs: number } {
  return {
    nowMs,
    now(): number {
      return this.nowMs;
    },
    monotonic: () => performance.now(),
  };
}

const documentOf = (port: number, quotas: { daily_requests?: bigint; monthly_requests?: bigint }): DocumentInput => ({
  ...serving("api", [port]),
  consumers: [
    { name: "acme", credentials: [{ type: "api_key", key: "acme-key" }], quotas },
    { name: "zoo", credentials: [{ type: "api_key", key: "zoo-key" }], quotas: { daily_requests: 100n } },
  ],
  routes: [{ name: "api", service: "api", match: { path: { type: "prefix", value: "/" } }, action: { type: "proxy" } }],
});

function limitsOf(response: RawResponse): (string | undefined)[] {
  return ["retry-after", "x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"].map((name) =>
    response.header(name),
  );
}

test("a consumer's key spends its budget: the request over it gets 429 with the four fields, until the day ends", async () => {
  await using origin = await startOrigin({
    handler: (_request, response) => void response.writeHead(200, { "X-RateLimit-Limit": "999" }).end("ok"),
  });
  await using state = await temporaryDirectory();
  const clock = standingClock(EVENING_MS);
  const environment = { GATEWAY_STATE_DB: state.file("state.db") };
  const document = documentOf(origin.port, { daily_requests: 2n });
  const acme = { path: "/", fields: ["X-API-Key: acme-key"] };
  {
    await using gateway = await startGateway(document, { environment, clock });
    // Requests without a known consumer are not counted.
    assert.equal((await gateway.send({ path: "/", fields: ["X-API-Key: acme-key-no"] })).status, 401);
    assert.equal((await gateway.send({ path: "/", fields: [...acme.fields, "x-api-key: acme-key"] })).status, 401);
    assert.equal((await gateway.send({ path: "/", fields: ["X-Consumer-Name: acme"] })).status, 200);
    for (const _ of [1, 2]) {
      const response = await gateway.send(acme);
      assert.deepEqual([response.status, ...limitsOf(response)], [200, undefined, undefined, undefined, undefined]);
    }
    const seen = origin.requests.length;
    const refused = await gateway.send(acme);
    assert.equal(refused.status, 429);
    assert.deepEqual(limitsOf(refused), [
      String(DAY_END_S - Math.floor(EVENING_MS / 1000)),
      "2",
      "0",
      String(DAY_END_S),
    ]);
    const { error } = JSON.parse(refused.body.toString()) as { error: { code: string } };
    assert.equal(error.code, "quota_exceeded");
    assert.equal(origin.requests.length, seen, "the upstream never sees it");
    assert.equal((await gateway.send({ path: "/", fields: ["X-API-Key: zoo-key"] })).status, 200, "others go on");
  }
  {
    await using gateway = await startGateway(document, { environment, clock });
    assert.equal((await gateway.send(acme)).status, 429, "what was spent stays spent when the gateway starts again");
    clock.nowMs = DAY_END_S * 1000 - 1;
    assert.equal((await gateway.send(acme)).header("retry-after"), "1", "rounded up");
    clock.nowMs = DAY_END_S * 1000;
    assert.equal((await gateway.send(acme)).status, 200, "a new day, a new budget");
  }
});

test("when both budgets are spent, all four fields are those of the one that resets later", async () => {
  await using origin = await startOrigin();
  await using state = await temporaryDirectory();
  const clock = standingClock(EVENING_MS);
  await using gateway = await startGateway(documentOf(origin.port, { daily_requests: 3n, monthly_requests: 3n }), {
    environment: { GATEWAY_STATE_DB: state.file("state.db") },
    clock,
  });
  const send = async (): Promise<RawResponse> => await gateway.send({ path: "/", fields: ["X-API-Key: acme-key"] });
  for (const _ of [1, 2, 3]) assert.equal((await send()).status, 200);
  const refused = await send();
  assert.equal(refused.status, 429);
  assert.deepEqual(limitsOf(refused), [
    String(MONTH_END_S - Math.floor(EVENING_MS / 1000)),
    "3",
    "0",
    String(MONTH_END_S),
  ]);
});

test("requests that come at once never spend more than the budget", async () => {
  await using origin = await startOrigin();
  await using state = await temporaryDirectory();
  await using gateway = await startGateway(documentOf(origin.port, { daily_requests: 10n }), {
    environment: { GATEWAY_STATE_DB: state.file("state.db") },
    clock: standingClock(EVENING_MS),
  });
  const responses = await Promise.all(
    Array.from({ length: 30 }, async () => (await gateway.send({ path: "/", fields: ["X-API-Key: acme-key"] })).status),
  );
  assert.equal(responses.filter((status) => status === 200).length, 10);
  assert.equal(responses.filter((status) => status === 429).length, 20);
  assert.equal(origin.requests.length, 10);
});

test("without a state store budgets are not enforced, and the log says so once", async () => {
  await using origin = await startOrigin();
  await using gateway = await startGateway(documentOf(origin.port, { daily_requests: 1n }));
  for (const _ of [1, 2, 3]) {
    assert.equal((await gateway.send({ path: "/", fields: ["X-API-Key: acme-key"] })).status, 200);
  }
  assert.equal(gateway.log.filter(({ code }) => code === "quota_store_missing").length, 1);
});
