import assert from "node:assert/strict";
import { test } from "node:test";
import { startOrigin, temporaryDirectory, waitUntil, type RawResponse } from "@headworks/testkit";
import type { DocumentInput } from "@headworks/gateway-contract";
import { RejectedDocumentError } from "#gateway.ts";
import { serving, startGateway, type TestDocument, type TestGateway } from "../gateway-rig.ts";
import { errorOf, proxied, responding } from "../route-documents.ts";
import { response, ok, startReceiver, type Receiver, type Reply } from "../webhooks/receiver.ts";

type Quotas = NonNullable<NonNullable<DocumentInput["consumers"]>[number]["quotas"]>;

const consumer = (name: string, quotas?: Quotas): NonNullable<DocumentInput["consumers"]>[number] => ({
  name,
  credentials: [{ type: "api_key", key: `${name}-key` }],
  ...(quotas === undefined ? {} : { quotas }),
});

const keyed = (name: string, path = "/api") => ({ path, fields: [`X-API-Key: ${name}-key`] });
const metricsOf = async (gateway: TestGateway): Promise<string> =>
  (await gateway.send({ path: "/metrics" })).body.toString();

async function refusal(document: TestDocument): Promise<string[]> {
  const error = await startGateway(document).then(
    async (gateway) => await gateway[Symbol.asyncDispose](),
    (reason: unknown) => reason,
  );
  if (error === undefined) return [];
  assert.ok(error instanceof RejectedDocumentError);
  return error.issues.map(({ path }) => path);
}

// Quotas

for (const [what, quotas, path] of [
  ["no budget", {}, "/consumers/0/quotas"],
  ["nothing but dry_run", { dry_run: true }, "/consumers/0/quotas"],
  ["a zero budget", { daily_requests: 0n }, "/consumers/0/quotas/daily_requests"],
  ["a zero beside a good one", { daily_requests: 5n, monthly_requests: 0n }, "/consumers/0/quotas/monthly_requests"],
] as const) {
  test(`quota rule 1: at least one budget must be set, and every one greater than zero: ${what} rejects the configuration`, async () => {
    const document = { consumers: [consumer("c", quotas)], routes: [responding("r")] };
    assert.ok((await refusal(document)).some((each) => each.startsWith(path)));
    await using gateway = await startGateway({ routes: [responding("r")] });
    await gateway.reload(document);
    assert.equal(gateway.gateway.generations.current?.number, 1);
    assert.equal((await gateway.send({ path: "/" })).status, 200, "the previous one keeps serving");
  });
}

test("quota rule 1: 18446744073709551615 requests a day are a budget, and the record says so exactly", async () => {
  await using state = await temporaryDirectory();
  await using gateway = await startGateway(
    `
listeners: [{name: public, address: 127.0.0.1, port: 0, metrics: true}]
admin: {bind: "127.0.0.1:0"}
consumers: [{name: c, credentials: [{type: api_key, key: c-key}], quotas: {daily_requests: 18446744073709551615}}]
routes: [{name: r, match: {path: {type: prefix, value: /}}, action: {type: respond, status: 200}}]
`,
    { environment: { GATEWAY_ADMIN_DEV: "1", GATEWAY_STATE_DB: state.file("state.db") } },
  );
  assert.equal((await gateway.send(keyed("c", "/"))).status, 200);
  const text = await (await fetch(`${gateway.gateway.adminUrl}/quotas/usage?consumer=c`)).text();
  assert.match(text, /"limit": ?18446744073709551615[,}]/);
  assert.match(text, /"remaining": ?18446744073709551614[,}]/);
});

test("quota window: dry_run counts and logs with code policy_dry_run, consumer and budget, and the request proceeds; counters still increment", async () => {
  await using origin = await startOrigin();
  await using state = await temporaryDirectory();
  await using gateway = await startGateway(
    {
      listeners: [{ name: "public", address: "127.0.0.1", port: 0, metrics: true }],
      admin: { bind: "127.0.0.1:0" },
      ...serving("api", [origin.port]),
      consumers: [consumer("c", { daily_requests: 1n, dry_run: true })],
      routes: [proxied("api", "/api")],
    },
    { environment: { GATEWAY_ADMIN_DEV: "1", GATEWAY_STATE_DB: state.file("state.db") } },
  );
  for (const _ of [1, 2, 3]) assert.equal((await gateway.send(keyed("c"))).status, 200);
  const lines = gateway.log.filter(({ code }) => code === "policy_dry_run");
  assert.equal(lines.length, 2);
  assert.match(JSON.stringify(lines[0]), /"c".*daily|daily.*"c"/);
  assert.match(await metricsOf(gateway), /^gateway_policy_dry_run_total\{phase="quota",route="api"\} 2$/m);
  const usage = await (await fetch(`${gateway.gateway.adminUrl}/quotas/usage`)).text();
  assert.match(usage, /"used": ?3,/);
});

test("errors: GET /quotas/usage is 404 state_store_not_configured without the store", async () => {
  await using gateway = await startGateway(
    {
      listeners: [{ name: "public", address: "127.0.0.1", port: 0, metrics: true }],
      admin: { bind: "127.0.0.1:0" },
      consumers: [consumer("c", { daily_requests: 1n })],
      routes: [],
    },
    { environment: { GATEWAY_ADMIN_DEV: "1" } },
  );
  for (const query of ["", "?consumer=c", "?consumer=nobody"]) {
    const said = await fetch(`${gateway.gateway.adminUrl}/quotas/usage${query}`);
    const { error } = (await said.json()) as { error: { code: string } };
    assert.deepEqual([said.status, error.code], [404, "state_store_not_configured"], query);
  }
});

test("errors: upstream X-RateLimit-* values are stripped from every answer; with a rate limit and a quota both apply and the gateway's own are shown", async () => {
  await using origin = await startOrigin({
    handler: (_request, response) => {
      response.writeHead(200, {
        "x-ratelimit-limit": "1",
        "X-RateLimit-Remaining": "1",
        "X-RateLimit-Policy": "1;w=1",
      });
      response.end();
    },
  });
  await using state = await temporaryDirectory();
  await using gateway = await startGateway(
    {
      ...serving("api", [origin.port]),
      consumers: [consumer("c", { daily_requests: 2n })],
      policies: [{ name: "p", rate_limits: [{ selector: ["route"], requests_per: { hour: 3 } }] }],
      routes: [proxied("api", "/api", { policies: ["p"] }), proxied("free", "/free", { service: "api" })],
    },
    { environment: { GATEWAY_STATE_DB: state.file("state.db") } },
  );
  const limits = (said: RawResponse): string[] =>
    said.headers.filter(([name]) => /^x-ratelimit-/i.test(name)).map(([name, value]) => `${name}: ${value}`);
  assert.deepEqual(limits(await gateway.send({ path: "/free" })), []);
  for (const _ of [1, 2]) {
    const passed = await gateway.send(keyed("c"));
    assert.deepEqual([passed.status, passed.header("x-ratelimit-limit"), limits(passed).length], [200, "3", 3]);
  }
  const quota = await gateway.send(keyed("c"));
  assert.deepEqual(
    [quota.status, errorOf(quota).code, quota.header("x-ratelimit-limit")],
    [429, "quota_exceeded", "2"],
  );
  assert.equal(limits(quota).length, 3, "each is said once");
  const rate = await gateway.send(keyed("c"));
  assert.deepEqual(
    [rate.status, errorOf(rate).code, rate.header("x-ratelimit-limit")],
    [429, "rate_limit_exceeded", "3"],
  );
  assert.equal(limits(rate).length, 3);
});

// Configuration and events

for (const [what, webhook] of [
  ["a relative URL", { url: "/hook" }],
  ["ftp", { url: "ftp://a.test/" }],
  ["no events", { events: [] }],
  ["an unknown kind", { events: ["nothing"] }],
  ["quota_near_limit", { events: ["quota_near_limit"] }],
  ["an illegal header name", { headers: { "a b": "1" } }],
  ["an illegal header value", { headers: { a: "1\r\n2" } }],
  ["timeout_ms 0", { timeout_ms: 0 }],
  ["timeout_ms 60001", { timeout_ms: 60_001 }],
  ["max_attempts 0", { max_attempts: 0 }],
  ["max_attempts 11", { max_attempts: 11 }],
  ["a cap below the base", { backoff_base_ms: 100, backoff_cap_ms: 99 }],
] as const) {
  test(`errors: a configuration with an invalid webhook (${what}) is rejected, config_rejected says so, and the running generation keeps serving`, async () => {
    await using hook = await startReceiver(ok);
    const good = { url: hook.url, events: ["config_published", "config_rejected"] };
    await using gateway = await startGateway({ webhooks: [good], routes: [responding("r")] });
    await gateway.reload({
      webhooks: [good, { url: "http://b.test/", events: ["config_published"], ...webhook }],
      routes: [],
    } as DocumentInput);
    await waitUntil(() => envelopes(hook).length === 2);
    const rejected = envelopes(hook).find(({ kind }) => kind === "config_rejected");
    assert.deepEqual(Object.keys(rejected?.payload ?? {}).toSorted(), ["generation", "issue_count"]);
    assert.equal(rejected?.payload["generation"], 1);
    assert.ok(Number(rejected?.payload["issue_count"]) >= 1);
    assert.equal((await gateway.send({ path: "/" })).status, 200);
  });
}

interface Envelope {
  readonly id: string;
  readonly kind: string;
  readonly payload: Readonly<Record<string, unknown>>;
}

const envelopes = (receiver: Receiver): Envelope[] =>
  receiver.requests.map(({ body }) => JSON.parse(body) as Envelope).toSorted((a, b) => (a.id < b.id ? -1 : 1));

test("events: breaker_opened by error_ratio says so", async () => {
  await using hook = await startReceiver(ok);
  let asked = 0;
  await using origin = await startOrigin({
    handler: (_request, response) => void response.writeHead((asked += 1) % 2 === 0 ? 500 : 200).end(),
  });
  await using gateway = await startGateway({
    ...serving("api", [origin.port], { breaker: { consecutive_failures: 100, error_ratio: 0.5, error_volume: 10 } }),
    webhooks: [{ url: hook.url, events: ["breaker_opened"] }],
    routes: [proxied("api")],
  });
  for (let at = 0; at < 10; at += 1) await gateway.send({ path: "/" });
  await waitUntil(() => envelopes(hook).length === 1);
  assert.deepEqual(envelopes(hook)[0]?.payload, { upstream: "api", detail: "error_ratio" });
  await waitUntil(async () => (await metricsOf(gateway)).includes('kind="breaker_opened",outcome="delivered"} 1\n'));
  const metrics = await metricsOf(gateway);
  assert.match(metrics, /^# TYPE gateway_webhook_events_total counter$/m);
  assert.match(metrics, /^# TYPE gateway_events_dropped_total gauge$/m);
  assert.match(metrics, /^# TYPE gateway_events_emitted_total gauge$/m);
  assert.match(metrics, /^gateway_events_dropped_total 0$/m);
});

test("events: passive health ejects and returns an endpoint, told with upstream and endpoint", async () => {
  await using hook = await startReceiver(ok);
  let status = 500;
  await using sick = await startOrigin({ handler: (_request, response) => void response.writeHead(status).end() });
  await using gateway = await startGateway({
    ...serving("api", [sick.port], { health: { consecutive_failures: 2, eject_ms: 50 } }),
    webhooks: [{ url: hook.url, events: ["endpoint_ejected", "endpoint_recovered"] }],
    routes: [proxied("api")],
  });
  for (let at = 0; at < 3; at += 1) await gateway.send({ path: "/" });
  await waitUntil(() => envelopes(hook).length === 1);
  status = 200;
  await waitUntil(async () => {
    await gateway.send({ path: "/" });
    return envelopes(hook).some(({ kind }) => kind === "endpoint_recovered");
  });
  const payload = { upstream: "api", endpoint: `127.0.0.1:${sick.port}` };
  const told = envelopes(hook);
  assert.deepEqual([told[0]?.kind, told[0]?.payload, told.at(-1)?.payload], ["endpoint_ejected", payload, payload]);
});

/** What a target answers in turn, how often it is asked, and how it ends. */
const OUTCOMES: readonly (readonly [rule: string, replies: readonly Reply[], asked: number, outcome: string])[] = [
  [
    "rule 1: a target that accepts the POST but drops the connection is retried",
    [(connection) => connection.destroy(), ok],
    2,
    "delivered",
  ],
  [
    "rule 2: 429, 502, 503 and 504 are retried up to max_attempts",
    [response(429), response(502), response(503), response(504), ok],
    4,
    "failed",
  ],
  ["rule 2: a 2xx on some attempt delivers", [response(503), response(299)], 2, "delivered"],
  [
    "rule 3: Retry-After in seconds replaces the wait; one that does not fit ends it",
    [response(503, "Retry-After: 30"), ok],
    1,
    "failed",
  ],
  ["rule 4: 500 fails at once", [response(500), ok], 1, "failed"],
  ["rule 4: 404 fails at once", [response(404), ok], 1, "failed"],
  ["rule 4: redirects are not followed", [response(307, "Location: /hook"), ok], 1, "failed"],
  ["rule 5: timeout_ms bounds the whole delivery", [async (connection) => void (await connection.closed)], 1, "failed"],
];
for (const [rule, replies, asked, outcome] of OUTCOMES) {
  test(`delivery ${rule}, and gateway_webhook_events_total counts the outcome`, async () => {
    await using hook = await startReceiver(...replies);
    await using gateway = await startGateway({
      webhooks: [
        {
          url: hook.url,
          events: ["config_published"],
          timeout_ms: 1000,
          max_attempts: 4,
          backoff_base_ms: 1,
          backoff_cap_ms: 2,
        },
      ],
      routes: [responding("r")],
    });
    const counted = `gateway_webhook_events_total{kind="config_published",outcome="${outcome}"} 1`;
    await waitUntil(async () => (await metricsOf(gateway)).includes(counted), { what: counted });
    assert.equal(hook.requests.length, asked);
    assert.equal(new Set(envelopes(hook).map(({ id }) => id)).size, 1, "a retry is the same event");
  });
}

test("delivery rule 6: emission never blocks request handling: a target that takes nothing holds up no request", async () => {
  await using hook = await startReceiver(async (connection) => void (await connection.closed));
  await using origin = await startOrigin({ handler: (_request, response) => void response.writeHead(500).end() });
  await using gateway = await startGateway({
    ...serving("api", [origin.port], {
      health: { consecutive_failures: 1, eject_ms: 1 },
      breaker: { consecutive_failures: 1, open_ms: 1 },
    }),
    webhooks: [
      {
        url: hook.url,
        events: ["endpoint_ejected", "breaker_opened", "breaker_half_open"],
        timeout_ms: 60_000,
      },
    ],
    routes: [proxied("api"), responding("r", "/r")],
  });
  const tookMs: number[] = [];
  for (let at = 0; at < 500; at += 1) {
    const startedMs = performance.now();
    await gateway.send({ path: at % 2 === 0 ? "/" : "/r" });
    tookMs.push(performance.now() - startedMs);
  }
  assert.ok(hook.connections.length <= 32, `${hook.connections.length} deliveries at once`);
  const metrics = await metricsOf(gateway);
  const dropped = /^gateway_webhook_events_total\{kind="breaker_opened",outcome="dropped"\} (\d+)$/m.exec(metrics)?.[1];
  assert.ok(Number(dropped) > 0, "what is beyond 32 is dropped and counted");
  assert.doesNotMatch(
    metrics,
    /^gateway_webhook_events_total\{.*outcome="(?:delivered|failed)"\} [1-9]/m,
    "none has ended",
  );
  // A machine may stand still for a moment, and one request with it; what emission held up would be more than a few.
  const [defaultMs = Infinity, maxMs = Infinity] = [494, 499].map((at) => tookMs.toSorted((a, b) => a - b)[at]);
  assert.ok(defaultMs < 500, `${defaultMs} ms`);
  // One that waited for a delivery would wait for the minute that this has.
  assert.ok(maxMs < 10_000, `${maxMs} ms`);
});
