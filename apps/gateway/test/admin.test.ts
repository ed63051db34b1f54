import assert from "node:assert/strict";
import { mkdir, readFile, rm } from "node:fs/promises";
import { test } from "node:test";
import { startOrigin, temporaryDirectory, waitUntil } from "@headworks/testkit";
import type { PublishedConfig, RouteTraffic } from "@headworks/gateway-contract";
import { RejectedDocumentError } from "#gateway.ts";
import { ADMIN, call, DEV, listeners } from "./admin-rig.ts";
import { startGateway, serving, type TestGateway } from "./gateway-rig.ts";

const route = (body: string) => ({
  name: "fixed",
  match: { path: { type: "exact" as const, value: "/" } },
  action: { type: "respond" as const, status: 200, body },
});

const body = async (gateway: TestGateway): Promise<string> => (await gateway.send({ path: "/" })).body.toString();

test("GET /config echoes the document with inline secrets redacted, generation and hash in headers", async () => {
  await using gateway = await startGateway(
    {
      listeners,
      admin: ADMIN,
      routes: [route("one")],
      consumers: [
        {
          name: "c",
          credentials: [
            { type: "api_key", key: "a-plain-secret" },
            { type: "api_key", key: "${KEY}" },
          ],
        },
      ],
    },
    { environment: { GATEWAY_ADMIN_DEV: "1", KEY: "another-secret" } },
  );
  for (const accept of ["application/yaml", "application/json"]) {
    const response = await call(gateway, "/config", { headers: { accept } });
    assert.equal(response.status, 200);
    assert.ok(response.headers.get("content-type")?.startsWith(accept));
    assert.equal(response.headers.get("x-gateway-config-generation"), "1");
    assert.match(response.headers.get("etag") ?? "", /^"0x[0-9a-f]+"$/);
    assert.doesNotMatch(response.text, /a-plain-secret|another-secret/);
    assert.match(response.text, /\$\{redacted:sha256:[0-9a-f]{8}\}/);
    assert.match(response.text, /\$\{KEY\}/);
  }
});

test("GET /config and GET /routes redact the values of headers that routes set and add, and show references", async () => {
  const changes = { headers: { set: { "X-Key": "inline-1" }, add: { "X-Also": "inline-2", "X-Known": "${KEY}" } } };
  await using gateway = await startGateway(
    { listeners, admin: ADMIN, routes: [{ ...route("one"), transforms: { request: changes, response: changes } }] },
    { environment: { GATEWAY_ADMIN_DEV: "1", KEY: "from-outside" } },
  );
  for (const path of ["/config", "/routes"]) {
    const { text } = await call(gateway, path);
    assert.doesNotMatch(text, /inline-|from-outside/);
    assert.equal(text.match(/\$\{redacted:sha256:[0-9a-f]{8}\}/g)?.length, 4);
    assert.equal(text.match(/\$\{KEY\}/g)?.length, 2);
  }
});

test("routes, services, consumers and policies are listed as they run, secrets redacted and numbers exact", async () => {
  await using gateway = await startGateway(
    `listeners: [{ name: public, address: 127.0.0.1, port: 0 }]
admin: { bind: "127.0.0.1:0" }
upstreams: [{ name: u, endpoints: [{ address: 127.0.0.1, port: 1 }] }]
services: [{ name: s, upstream: u }]
policies: [{ name: p }]
consumers:
  - { name: c, credentials: [{ type: api_key, key: a-plain-secret }], quotas: { daily_requests: 18446744073709551615 } }
routes:
  - { name: r, service: s, policies: [p], match: { path: { type: prefix, value: / } }, action: { type: proxy } }
`,
    DEV,
  );
  for (const [path, shown] of [
    ["routes", /^\{"routes":\[\{.*"name":"r"/],
    ["services", /^\{"services":\[\{.*"upstream":"u"/],
    ["consumers", /"daily_requests":18446744073709551615/],
    ["policies", /^\{"policies":\[\{"name":"p"/],
  ] as const) {
    const response = await call(gateway, `/${path}`);
    assert.deepEqual([response.status, response.headers.get("content-type")], [200, "application/json; charset=utf-8"]);
    assert.match(response.text, shown);
    assert.doesNotMatch(response.text, /a-plain-secret/);
    assert.equal(response.headers.get("x-gateway-config-generation"), "1");
  }
});

test("PATCH /config publishes a whole document and writes the file; a bad one changes nothing", async () => {
  await using gateway = await startGateway({ listeners, admin: ADMIN, routes: [route("one")] }, DEV);
  const next = { listeners, admin: ADMIN, routes: [route("two")] };
  const response = await call(gateway, "/config", { method: "PATCH", body: JSON.stringify(next) });
  assert.deepEqual([response.status, response.json()["generation"], response.json()["route_count"]], [200, 2, 1]);
  assert.equal(await body(gateway), "two");
  assert.match(await readFile(gateway.configFile, "utf8"), /two/);
  const bad = await call(gateway, "/config", { method: "PATCH", body: "routes: [{name: x}]\nnope: 1" });
  const { error } = bad.json() as unknown as { error: { code: string; issues: { path: string; line: number }[] } };
  assert.deepEqual([bad.status, error.code], [400, "config_invalid"]);
  assert.ok(error.issues.length >= 2 && error.issues.every(({ line }) => line > 0));
  assert.equal(await body(gateway), "two");
  assert.match(await readFile(gateway.configFile, "utf8"), /two/);
});

test("a merge patch and a JSON patch change the running document; If-Match refuses a stale hash", async () => {
  await using gateway = await startGateway({ listeners, admin: ADMIN, routes: [route("one")] }, DEV);
  const patch = async (type: string, change: unknown, more: Record<string, string> = {}) =>
    await call(gateway, "/config", {
      method: "PATCH",
      body: JSON.stringify(change),
      headers: { "content-type": type, ...more },
    });
  const json = "application/json-patch+json";
  const etag = (await call(gateway, "/config")).headers.get("etag") ?? "";
  const replaced = await patch(json, [{ op: "replace", path: "/routes/0/action/body", value: "two" }], {
    "if-match": etag,
  });
  assert.equal(replaced.status, 200, replaced.text);
  assert.equal(await body(gateway), "two");
  const stale = await patch(json, [{ op: "replace", path: "/routes/0/action/body", value: "three" }], {
    "if-match": etag,
  });
  assert.equal(stale.status, 412);
  const merged = await patch("application/merge-patch+json", {
    consumers: [{ name: "c", credentials: [{ type: "api_key", key: "k1" }], quotas: { monthly_requests: 5 } }],
  });
  assert.equal(merged.status, 200, merged.text);
  assert.equal((await patch(json, [{ op: "remove", path: "/none" }])).status, 400);
  const big =
    '{"consumers":[{"name":"c","credentials":[{"type":"api_key","key":"k1"}],"quotas":{"monthly_requests":18446744073709551615}}]}';
  await call(gateway, "/config", {
    method: "PATCH",
    body: big,
    headers: { "content-type": "application/merge-patch+json" },
  });
  assert.match((await call(gateway, "/config")).text, /18446744073709551615/);
});

test("dry run and plan publish nothing and tell what would change", async () => {
  await using gateway = await startGateway({ listeners, admin: ADMIN, routes: [route("one")] }, DEV);
  const next = JSON.stringify({
    listeners,
    admin: ADMIN,
    routes: [route("two"), { ...route("x"), name: "more", match: { path: { type: "exact", value: "/x" } } }],
  });
  for (const [method, path] of [
    ["PATCH", "/config?dry_run=true"],
    ["POST", "/config/plan"],
  ] as const) {
    const response = await call(gateway, path, { method, body: next });
    const { changes } = response.json() as unknown as { changes: { name: string; change: string }[] };
    assert.deepEqual(
      changes.map(({ name, change }) => [name, change]),
      [
        ["fixed", "changed"],
        ["more", "added"],
      ],
    );
  }
  assert.equal(await body(gateway), "one");
  const checked = await call(gateway, "/config/validate", { method: "POST", body: "nope: 1" });
  assert.equal(checked.json()["valid"], false);
});

test("a plan and a dry run say how many of the latest requests the routes had that would change", async () => {
  const other = { ...route("x"), name: "other", match: { path: { type: "exact" as const, value: "/other" } } };
  await using gateway = await startGateway({ listeners, admin: ADMIN, routes: [route("one"), other] }, DEV);
  for (const path of ["/", "/", "/", "/other", "/none", "/healthz"]) await gateway.send({ path });
  const traffic = (await call(gateway, "/traffic")).json() as unknown as RouteTraffic;
  assert.deepEqual(
    [traffic.requests, traffic.routes],
    [
      4,
      [
        { name: "fixed", requests: 3, share: 0.75 },
        { name: "other", requests: 1, share: 0.25 },
      ],
    ],
  );
  assert.ok(traffic.span_seconds < 60);
  const added = { ...other, name: "more", match: { path: { type: "exact" as const, value: "/more" } } };
  const next = JSON.stringify({ listeners, admin: ADMIN, routes: [route("two"), other, added] });
  for (const [method, path] of [
    ["PATCH", "/config?dry_run=true"],
    ["PUT", "/config?dry_run=true"],
    ["POST", "/config/plan"],
  ] as const) {
    const { affected } = (await call(gateway, path, { method, body: next })).json() as unknown as PublishedConfig;
    assert.deepEqual(affected, {
      ...affected,
      requests: 4,
      routes: [
        { name: "fixed", requests: 3, share: 0.75 },
        { name: "more", requests: 0, share: 0 },
      ],
      consumers: [],
      upstreams: [],
      rebound_listeners: [],
    });
  }
  const published = (await call(gateway, "/config", { method: "PUT", body: next })).json();
  assert.equal(published["affected"], undefined, "what is published needs no plan");
});

test("generations are listed, shown and rolled back to", async () => {
  await using gateway = await startGateway({ listeners, admin: ADMIN, routes: [route("one")] }, DEV);
  await gateway.reload({ listeners, admin: ADMIN, routes: [route("two")] });
  const list = (await call(gateway, "/config/generations")).json()["generations"] as unknown as {
    generation: number;
    source: string;
    is_running: boolean;
  }[];
  assert.deepEqual(
    list.map(({ generation, source, is_running }) => [generation, source, is_running]),
    [
      [2, "reload", true],
      [1, "startup", false],
    ],
  );
  assert.match((await call(gateway, "/config/generations/1")).text, /one/);
  const back = await call(gateway, "/config/rollback", { method: "POST", body: '{"generation":1}' });
  assert.equal(back.status, 200, back.text);
  assert.equal(await body(gateway), "one");
  assert.equal((await call(gateway, "/config/generations/9")).status, 404);
});

test("the running document and earlier ones are YAML, and JSON where Accept asks for it; the OpenAPI document says both", async () => {
  await using gateway = await startGateway({ listeners, admin: ADMIN, routes: [route("one")] }, DEV);
  await gateway.reload({ listeners, admin: ADMIN, routes: [route("two")] });
  const api = (await call(gateway, "/openapi.json")).json()["paths"] as unknown as Record<
    string,
    Record<string, { parameters?: { name: string; in: string }[]; responses: Record<string, { content: object }> }>
  >;
  for (const [path, said] of [
    ["/config", "two"],
    ["/config/generations/1", "one"],
  ] as const) {
    const yaml = await call(gateway, path);
    const json = await call(gateway, path, { headers: { accept: "application/json" } });
    assert.match(String(yaml.headers.get("content-type")), /^application\/yaml/);
    assert.match(yaml.text, new RegExp(`body: ${said}`));
    assert.match(String(json.headers.get("content-type")), /^application\/json/);
    assert.deepEqual((json.json()["routes"] as unknown as object[])[0], route(said));
    assert.equal(json.headers.get("etag"), yaml.headers.get("etag"));
    const { content = {} } = api[path.replace("/1", "/{generation}")]?.["get"]?.responses["200"] ?? {};
    assert.deepEqual(Object.keys(content), ["application/yaml", "application/json"]);
  }
  for (const method of ["put", "patch"]) {
    const fields = api["/config"]?.[method]?.parameters?.filter((parameter) => parameter.in === "header");
    assert.deepEqual(
      fields?.map(({ name }) => name),
      ["If-Match"],
    );
  }
});

test("GET /config/schema is the schema for editors, limits of 64 bits exact", async () => {
  await using gateway = await startGateway({ listeners, admin: ADMIN, routes: [] }, DEV);
  const response = await call(gateway, "/config/schema");
  assert.deepEqual([response.status, response.headers.get("content-type")], [200, "application/json; charset=utf-8"]);
  assert.match(response.text, /"maximum":18446744073709551615[,}]/);
  assert.ok("routes" in (response.json()["properties"] ?? {}));
});

test("explain tells which route a request takes and why", async () => {
  await using gateway = await startGateway({ listeners, admin: ADMIN, routes: [route("one")] }, DEV);
  const response = await call(gateway, "/explain", { method: "POST", body: '{"path":"/"}' });
  assert.deepEqual([response.json()["decision"], response.json()["route"]], ["routed", "fixed"]);
  assert.equal("consumer" in response.json(), false);
});

test("explain says what a consumer has left of its budgets, in all digits", async () => {
  await using directory = await temporaryDirectory();
  await using gateway = await startGateway(
    {
      listeners,
      admin: ADMIN,
      routes: [route("one")],
      consumers: [{ name: "a", credentials: [{ type: "api_key", key: "ka" }], quotas: { daily_requests: 2n ** 53n } }],
    },
    { environment: { GATEWAY_ADMIN_DEV: "1", GATEWAY_STATE_DB: directory.file("state.db") } },
  );
  await gateway.send({ path: "/", fields: ["X-API-Key: ka"] });
  const explain = async (consumer: string) =>
    await call(gateway, "/explain", { method: "POST", body: JSON.stringify({ path: "/", consumer }) });
  const { text, status } = await explain("a");
  assert.equal(status, 200, text);
  assert.match(text, /"route":"fixed".*"consumer":\{"consumer":"a","synced":true,"budgets":\[\{"budget":"daily"/);
  assert.match(text, /"limit":9007199254740992,"used":1,"remaining":9007199254740991,/);
  assert.match((await explain("nobody")).text, /"quota_bad_consumer"/);
});

test("upstreams are shown and worked: a breaker is opened and closed, an endpoint ejected", async () => {
  await using origin = await startOrigin();
  await using gateway = await startGateway(
    {
      ...serving("api", [origin.port], { breaker: {}, health: {} }),
      listeners,
      admin: ADMIN,
      routes: [
        { name: "r", service: "api", match: { path: { type: "prefix", value: "/" } }, action: { type: "proxy" } },
      ],
    },
    DEV,
  );
  const force = async (state: string) =>
    await call(gateway, "/upstreams/api/breaker", { method: "POST", body: JSON.stringify({ state }) });
  assert.equal((await force("open")).status, 200);
  const broken = await gateway.send({ path: "/" });
  assert.deepEqual([broken.status, Number(broken.header("retry-after")) >= 1], [503, true]);
  await force("closed");
  assert.equal((await gateway.send({ path: "/" })).status, 200);
  const key = `127.0.0.1:${origin.port}`;
  const ejected = await call(gateway, `/upstreams/api/endpoints/${key}`, {
    method: "POST",
    body: '{"action":"eject"}',
  });
  assert.match(ejected.text, /"health":"ejected"/);
  const events = (await call(gateway, "/events")).json()["events"] as unknown as { kind: string }[];
  assert.deepEqual(
    events.map(({ kind }) => kind),
    ["endpoint_ejected", "breaker_closed", "breaker_opened", "config_published"],
  );
  assert.equal((await call(gateway, "/upstreams/none")).status, 404);
});

test("POST /cache/purge forgets what is kept of a route, or of all", async () => {
  let asked = 0;
  await using origin = await startOrigin({
    handler: (_request, response) => {
      asked += 1;
      response.setHeader("cache-control", "max-age=60");
      response.end(String(asked));
    },
  });
  const cached = (name: string) => ({
    name,
    service: "api",
    match: { path: { type: "prefix" as const, value: `/${name}` } },
    action: { type: "proxy" as const },
    cache: { ttl_secs: 60 },
  });
  await using gateway = await startGateway(
    { ...serving("api", [origin.port]), listeners, admin: ADMIN, routes: [cached("one"), cached("two"), route("x")] },
    DEV,
  );
  const get = async (path: string): Promise<string> => (await gateway.send({ path })).body.toString();
  const purge = async (init: string) => await call(gateway, "/cache/purge", { method: "POST", body: init });
  const before = [await get("/one"), await get("/two")];
  assert.deepEqual([await get("/one"), await get("/two")], before);
  assert.deepEqual((await purge('{"route":"one"}')).json(), { routes: 1 });
  assert.deepEqual([await get("/one"), await get("/two")], ["3", before[1]]);
  assert.deepEqual((await purge("{}")).json(), { routes: 2 });
  assert.deepEqual([await get("/one"), await get("/two")], ["4", "5"]);
  for (const name of ["fixed", "none"]) assert.equal((await purge(`{"route":"${name}"}`)).status, 404);
});

for (const [method, path, status, code] of [
  ["GET", "/quotas/usage", 404, "state_store_not_configured"],
  ["GET", "/nothing", 404, "not_found"],
  ["DELETE", "/config", 405, "method_not_allowed"],
  ["POST", "/explain", 400, "bad_request"],
  ["GET", "/events?limit=0", 400, "bad_request"],
] as const) {
  test(`${method} ${path} is ${status} ${code}`, async () => {
    await using gateway = await startGateway({ listeners, admin: ADMIN, routes: [] }, DEV);
    const response = await call(gateway, path, { method });
    assert.equal(response.status, status, response.text);
    const { error } = response.json() as unknown as { error: Record<string, string> };
    assert.equal(error["code"], code);
    assert.equal(error["request_id"], response.headers.get("x-request-id"));
    assert.equal(response.headers.get("allow"), status === 405 ? "GET, PATCH, PUT" : null);
  });
}

test("GET /quotas/usage: exact record with a store, 400 quota_bad_consumer for a consumer without quotas", async () => {
  await using directory = await temporaryDirectory();
  await using gateway = await startGateway(
    {
      listeners,
      admin: ADMIN,
      routes: [],
      consumers: [
        { name: "a", credentials: [{ type: "api_key", key: "ka" }], quotas: { daily_requests: 5n } },
        { name: "b", credentials: [{ type: "api_key", key: "kb" }] },
      ],
    },
    { environment: { GATEWAY_ADMIN_DEV: "1", GATEWAY_STATE_DB: directory.file("state.db") } },
  );
  await waitUntil(async () => (await call(gateway, "/quotas/usage")).text.includes('"synced":true'), {
    what: "the consumer's row",
  });
  const { consumers } = (await call(gateway, "/quotas/usage")).json() as unknown as {
    consumers: { consumer: string; budgets: object[] }[];
  };
  assert.equal(consumers.length, 1);
  assert.deepEqual(Object.keys(consumers[0]?.budgets[0] ?? {}), [
    "budget",
    "limit",
    "used",
    "remaining",
    "window_start_epoch_s",
    "reset_epoch_s",
  ]);
  assert.equal((await call(gateway, "/quotas/usage?consumer=b")).text.includes('"quota_bad_consumer"'), true);
  assert.equal((await call(gateway, "/quotas/usage?consumer=")).status, 400);
});

test("POST /quotas/adjust takes and gives requests back on disk, and the audit says who, how many and why", async () => {
  await using directory = await temporaryDirectory();
  await using gateway = await startGateway(
    {
      listeners,
      admin: ADMIN,
      routes: [{ ...route("one"), auth_required: true }],
      consumers: [
        { name: "a", credentials: [{ type: "api_key", key: "ka" }], quotas: { daily_requests: 2n } },
        { name: "b", credentials: [{ type: "api_key", key: "kb" }] },
      ],
    },
    { environment: { GATEWAY_ADMIN_DEV: "1", GATEWAY_STATE_DB: directory.file("state.db") } },
  );
  const adjust = async (change: object) =>
    await call(gateway, "/quotas/adjust", {
      method: "POST",
      body: JSON.stringify({ consumer: "a", budget: "daily", reason: "ticket 7", ...change }),
    });
  const ask = async (): Promise<number> => (await gateway.send({ path: "/", fields: ["X-Api-Key: ka"] })).status;
  const taken = await adjust({ delta: 2 });
  assert.match(taken.text, /"used":2,"remaining":0/);
  assert.equal(await ask(), 429);
  const given = await adjust({ delta: -1 });
  assert.match(given.text, /"used":1,"remaining":1/);
  assert.deepEqual([await ask(), await ask()], [200, 429]);
  assert.match((await adjust({ delta: 1, budget: "monthly" })).text, /"quota_bad_budget"/);
  assert.match((await adjust({ delta: 1, consumer: "b" })).text, /"quota_bad_consumer"/);
  assert.equal((await adjust({ delta: 0.5 })).status, 400);
  assert.equal((await adjust({ delta: 2 ** 60 })).status, 400);
  assert.equal((await adjust({ delta: 1, reason: "" })).status, 400);
  const { entries } = (await call(gateway, "/audit")).json() as unknown as { entries: Record<string, string>[] };
  assert.deepEqual(
    entries.map(({ operation, outcome, detail }) => [operation, outcome, detail]),
    [
      ["adjustQuota", "bad_request", undefined],
      ["adjustQuota", "bad_request", undefined],
      ["adjustQuota", "bad_request", undefined],
      ["adjustQuota", "quota_bad_consumer", "b daily +1: ticket 7"],
      ["adjustQuota", "quota_bad_budget", "a monthly +1: ticket 7"],
      ["adjustQuota", "ok", "a daily -1: ticket 7"],
      ["adjustQuota", "ok", "a daily +2: ticket 7"],
    ],
  );
  assert.equal(entries[0]?.["actor"], "loopback");
});

test("a configuration whose file cannot be written is not published", async () => {
  await using gateway = await startGateway({ listeners, admin: ADMIN, routes: [route("one")] }, DEV);
  await rm(gateway.configFile);
  await mkdir(gateway.configFile);
  const response = await call(gateway, "/config", {
    method: "PATCH",
    body: JSON.stringify({ listeners, admin: ADMIN, routes: [route("two")] }),
  });
  assert.deepEqual([response.status, /"config_write_failed"/.test(response.text)], [500, true]);
  assert.equal(await body(gateway), "one");
  assert.equal((await call(gateway, "/config")).headers.get("x-gateway-config-generation"), "1");
});

test("in development a web page's request is refused, and so is any address but loopback", async () => {
  await using gateway = await startGateway({ listeners, admin: ADMIN, routes: [] }, DEV);
  assert.equal((await call(gateway, "/config", { headers: { origin: "http://evil.example" } })).status, 403);
  await assert.rejects(
    startGateway({ listeners, admin: { bind: "0.0.0.0:0" }, routes: [] }, DEV),
    RejectedDocumentError,
  );
  await assert.rejects(startGateway({ listeners, admin: ADMIN, routes: [] }), RejectedDocumentError);
});
