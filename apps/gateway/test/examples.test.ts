import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { startOrigin, temporaryDirectory, waitUntil, type Origin, type RawResponse } from "@headworks/testkit";
import { startGateway, type TestGateway } from "./gateway-rig.ts";
import { errorOf } from "./route-documents.ts";
import { ok, startReceiver } from "./webhooks/receiver.ts";

const EXAMPLES = new URL("../../../examples/gateway/", import.meta.url);

/** The text of an example with ports that are free; each replacement must find what it replaces. */
function exampleOn(name: string, replaced: Readonly<Record<string, string>>): string {
  let text = readFileSync(new URL(`${name}.yaml`, EXAMPLES), "utf8");
  for (const [from, to] of Object.entries({ "port: 8080": "port: 0", ...replaced })) {
    assert.ok(text.includes(from), `${name} has ${from}`);
    text = text.replaceAll(from, to);
  }
  return text;
}

async function started(name: string, origin: Origin): Promise<TestGateway> {
  return await startGateway(exampleOn(name, { "port: 9001": `port: ${origin.port}` }));
}

const DEPRECATION_FIELDS = ["deprecation", "sunset", "link", "vary"] as const;
type SaidFields = Partial<Record<(typeof DEPRECATION_FIELDS)[number], string>>;

function saidBy(response: RawResponse): SaidFields {
  return Object.fromEntries(
    DEPRECATION_FIELDS.map((name) => [name, response.header(name)]).filter(([, value]) => value !== undefined),
  ) as SaidFields;
}

interface Asked {
  readonly path: string;
  readonly fields?: readonly string[];
  /** What the upstream is asked for; undefined: 404, and no upstream is asked. */
  readonly to: string | undefined;
  readonly says?: SaidFields;
}

const SINCE_MARCH_2026 = "@1772323200";
const END_OF_2035 = "Mon, 31 Dec 2035 23:59:59 GMT";
const V1 = "application/vnd.acme.orders.v1+json";
const V2 = "application/vnd.acme.orders.v2+json";

const PATTERNS: readonly (readonly [string, readonly Asked[]])[] = [
  [
    "versioning-path",
    [
      {
        path: "/v1/orders",
        to: "/orders",
        says: {
          deprecation: SINCE_MARCH_2026,
          sunset: END_OF_2035,
          link: '<https://docs.example.com/orders/from-v1-to-v2>; rel="deprecation"',
        },
      },
      { path: "/v2/orders", to: "/orders" },
      { path: "/orders", to: "/orders" },
      { path: "/v10/orders", to: "/v10/orders" },
    ],
  ],
  [
    "versioning-header",
    [
      { path: "/orders", fields: ["X-API-Version: 2026-03-01"], to: "/orders" },
      { path: "/orders", fields: ["X-API-Version: 2025-01-01"], to: undefined },
      { path: "/orders", fields: ["X-API-Version: 2026-03-01, 2025-01-01"], to: undefined },
      { path: "/orders", to: undefined },
      {
        path: "/legacy/orders",
        to: "/orders",
        says: {
          deprecation: SINCE_MARCH_2026,
          link: '<https://docs.example.com/orders/versions>; rel="deprecation"',
        },
      },
    ],
  ],
  [
    "versioning-query",
    [
      { path: "/orders?version=2&page=1", to: "/orders?version=2&page=1" },
      { path: "/orders?version=1", to: undefined },
      { path: "/orders?version=%32", to: undefined },
      { path: "/orders", to: undefined },
      { path: "/beta/orders?beta", to: "/orders?beta" },
      { path: "/beta/orders?beta=anything", to: "/orders?beta=anything" },
    ],
  ],
  [
    "versioning-media-type",
    [
      { path: "/v2/orders", fields: [`Accept: ${V2}`], to: "/orders", says: { vary: "Accept" } },
      { path: "/v2/orders", fields: [`Accept: text/html, ${V2};q=0.5`], to: "/orders", says: { vary: "Accept" } },
      { path: "/v2/orders", fields: ["Accept: */*"], to: undefined },
      { path: "/v2/orders", to: undefined },
      { path: "/v2/orders", fields: [`Accept: ${V1}`], to: undefined },
      {
        path: "/v1/orders",
        fields: [`Accept: ${V1}`],
        to: "/orders",
        says: { vary: "Accept", deprecation: SINCE_MARCH_2026, sunset: END_OF_2035 },
      },
    ],
  ],
];

test("every example of the gateway is run here", () => {
  const files = readdirSync(EXAMPLES).map((file) => file.replace(/\.yaml$/, ""));
  assert.deepEqual(files.toSorted(), [...PATTERNS.map(([name]) => name), "quickstart"].toSorted());
});

for (const [name, requests] of PATTERNS) {
  test(`${name}.yaml runs as it stands, and each request that it tells of gets the answer it tells`, async () => {
    await using origin = await startOrigin();
    await using gateway = await started(name, origin);
    for (const { path, fields = [], to, says = {} } of requests) {
      const before = origin.requests.length;
      const response = await gateway.send({ path, fields });
      const what = `${path} ${fields.join()}`;
      assert.equal(response.status, to === undefined ? 404 : 200, what);
      if (to === undefined) assert.equal(errorOf(response).code, "no_route", what);
      assert.deepEqual(
        origin.requests.slice(before).map(({ url }) => url),
        to === undefined ? [] : [to],
        what,
      );
      assert.deepEqual(saidBy(response), says, what);
    }
  });
}

interface Usage {
  readonly now_epoch_s: number;
  readonly consumers: readonly {
    readonly consumer: string;
    readonly synced: boolean;
    readonly budgets: readonly Budget[];
  }[];
}

interface Budget {
  readonly budget: string;
  readonly limit: number;
  readonly used: number;
  readonly remaining: number;
  readonly window_start_epoch_s: number;
  readonly reset_epoch_s: number;
}

test("quickstart.yaml runs as it stands: versions, keys, a budget that ends, its record, and events", async () => {
  await using origin = await startOrigin();
  await using hook = await startReceiver(ok);
  await using state = await temporaryDirectory();
  const text = exampleOn("quickstart", {
    "port: 9001": `port: ${origin.port}`,
    "127.0.0.1:2019": "127.0.0.1:0",
    "127.0.0.1:9002": `127.0.0.1:${hook.port}`,
  });
  await using gateway = await startGateway(text, {
    environment: { GATEWAY_ADMIN_DEV: "1", GATEWAY_STATE_DB: state.file("state.db") },
  });
  const acme = "X-API-Key: acme-quickstart-key";
  const trial = "X-API-Key: trial-quickstart-key";

  assert.match((await gateway.send({ path: "/" })).body.toString(), /^Sluice is running/);
  assert.equal((await gateway.send({ path: "/v2/hello" })).status, 401);
  const current = await gateway.send({ path: "/v2/hello?a=1", fields: [acme] });
  assert.deepEqual([current.status, saidBy(current)], [200, {}]);
  assert.equal(origin.requests.at(-1)?.url, "/hello?a=1");
  assert.equal(origin.requests.at(-1)?.rawHeaders.includes("acme-quickstart-key"), false);
  assert.deepEqual(saidBy(await gateway.send({ path: "/v1/hello", fields: [acme] })), {
    deprecation: `@${Date.UTC(2026, 0, 1) / 1000}`,
    sunset: "Fri, 31 Dec 2049 23:59:59 GMT",
    link: '<https://example.com/migrate-to-v2>; rel="deprecation"',
  });

  for (const _ of [1, 2, 3]) assert.equal((await gateway.send({ path: "/v2/", fields: [trial] })).status, 200);
  const refused = await gateway.send({ path: "/v1/", fields: [trial] });
  const nowS = Date.now() / 1000;
  const usage = (await (await fetch(`${gateway.gateway.adminUrl}/quotas/usage`)).json()) as Usage;
  const daily = usage.consumers.find(({ consumer }) => consumer === "trial")?.budgets[0];
  assert.ok(daily !== undefined);
  assert.deepEqual([refused.status, errorOf(refused).code, saidBy(refused)], [429, "quota_exceeded", {}]);
  assert.deepEqual(
    ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"].map((name) => refused.header(name)),
    ["3", "0", String(daily.reset_epoch_s)],
  );
  const retryAfterS = Number(refused.header("retry-after"));
  assert.ok(Math.abs(retryAfterS - (daily.reset_epoch_s - nowS)) <= 2, `${retryAfterS}`);
  assert.deepEqual(
    usage.consumers.map(({ consumer, synced, budgets }) => [
      consumer,
      synced,
      ...budgets.map(({ budget, limit, used, remaining }) => `${budget} ${used} + ${remaining} = ${limit}`),
    ]),
    [
      ["acme", true, "daily 2 + 9998 = 10000", "monthly 2 + 199998 = 200000"],
      ["trial", true, "daily 3 + 0 = 3"],
    ],
  );
  assert.equal(daily.reset_epoch_s - daily.window_start_epoch_s, 86_400);
  assert.ok(Math.abs(usage.now_epoch_s - nowS) <= 2);

  await waitUntil(() => hook.requests.length === 1, { what: "config_published" });
  const envelope = JSON.parse(hook.requests[0]?.body ?? "") as Record<string, unknown>;
  assert.deepEqual(Object.keys(envelope).toSorted(), ["gateway", "id", "kind", "payload", "timestamp"]);
  assert.match(String(envelope["id"]), /^evt-[0-9a-f]+-[0-9a-f]+$/);
  assert.match(String(envelope["gateway"]), new RegExp(`^quickstart-${process.pid}-[0-9a-f]+$`));
  assert.match(String(envelope["timestamp"]), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  assert.deepEqual(
    [envelope["kind"], (envelope["payload"] as Record<string, unknown>)["route_count"]],
    ["config_published", 3],
  );
  assert.equal(hook.requests[0]?.requestLine, "POST /events HTTP/1.1");
});

test("quickstart.yaml: three failures of the upstream open its breaker, and the webhook hears of it", async () => {
  await using origin = await startOrigin({ handler: (_request, response) => void response.writeHead(500).end() });
  await using hook = await startReceiver(ok);
  const text = exampleOn("quickstart", {
    "port: 9001": `port: ${origin.port}`,
    "127.0.0.1:2019": "127.0.0.1:0",
    "127.0.0.1:9002": `127.0.0.1:${hook.port}`,
  });
  await using gateway = await startGateway(text, { environment: { GATEWAY_ADMIN_DEV: "1" } });
  const ask = { path: "/v1/x", fields: ["X-API-Key: acme-quickstart-key"] };
  for (const _ of [1, 2, 3]) {
    const response = await gateway.send(ask);
    assert.deepEqual([response.status, saidBy(response).deprecation !== undefined], [500, true]);
  }
  const shed = await gateway.send(ask);
  assert.deepEqual([shed.status, errorOf(shed).code, saidBy(shed)], [503, "upstream_circuit_open", {}]);
  assert.ok(Number(shed.header("retry-after")) >= 1);
  assert.equal(origin.requests.length, 3);
  await waitUntil(() => hook.requests.length === 2);
  const opened = hook.requests.map(({ body }) => JSON.parse(body) as { kind: string; payload: object });
  assert.deepEqual(opened.find(({ kind }) => kind === "breaker_opened")?.payload, {
    upstream: "echo",
    detail: "consecutive_failures",
  });
});
