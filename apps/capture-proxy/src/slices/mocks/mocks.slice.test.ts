import assert from "node:assert/strict";
import { test } from "node:test";
import type { MockRule } from "@headworks/capture-contract";
import { STATE_MIGRATIONS, openDatabase } from "#storage/database.ts";
import { startApi } from "../../../test/api-rig.ts";
import type { ApiRig } from "../../../test/api-rig.ts";
import { createMocksSlice } from "./mocks.slice.ts";

const startMocks = (): Promise<ApiRig> => startApi({ slices: (host) => [createMocksSlice(host)] });

const ALL = { type: "all" };
const plain = { name: "Plain", condition: ALL, response: { body: "x" } };

async function create(api: ApiRig, body: object, path = "/api/mocks"): Promise<string> {
  const { status, json } = await api.call("POST", path, body);
  assert.equal(status, 201, JSON.stringify(json));
  return (json as { id: string }).id;
}

async function read(api: ApiRig, id: string): Promise<MockRule> {
  const { status, json } = await api.call("GET", `/api/mocks/${id}`);
  assert.equal(status, 200);
  return json as MockRule;
}

const names = async (api: ApiRig, query = ""): Promise<string[]> =>
  ((await api.call("GET", `/api/mocks${query}`)).json as MockRule[]).map(({ name }) => name);

test("a minimal rule has the defaults of the contract", async () => {
  await using api = await startMocks();
  const id = await create(api, { name: " A ", condition: ALL, response: {} });
  const now = new Date(api.clock.now()).toISOString();
  assert.deepEqual(await read(api, id), {
    id,
    name: "A",
    description: null,
    tags: [],
    collection_id: null,
    condition: ALL,
    response_config: {
      type: "single",
      response: {
        status_code: 200,
        headers: {},
        body: null,
        body_base64: null,
        body_file: null,
        delay_ms: null,
        delay_variance_ms: null,
        template_enabled: false,
      },
    },
    enabled: true,
    priority: 100,
    created_at: now,
    updated_at: now,
    hit_count: 0,
    expiration: null,
    expired: false,
    version: 1,
    response_schema: null,
    response_script: null,
    device_id: null,
  });
});

test("every accepted form of a rule is read", async () => {
  await using api = await startMocks();
  const flat = await read(
    api,
    await create(api, {
      url_pattern: "*/api/*",
      method: "POST",
      status_code: 503,
      headers: { A: "b" },
      body: "no",
      delay_ms: 5,
    }),
  );
  assert.equal(flat.name, "POST */api/*");
  assert.deepEqual(flat.condition, {
    type: "and",
    conditions: [
      { type: "url_pattern", pattern: "*/api/*" },
      { type: "method", method: "POST" },
    ],
  });
  const { response } = flat.response_config as { response: { status_code: number; body: string; delay_ms: number } };
  assert.deepEqual([response.status_code, response.body, response.delay_ms], [503, "no", 5]);
  const config = {
    type: "conditional",
    conditions: [
      { condition: { type: "or", conditions: [{ type: "header_equals", name: "A", value: "b" }] }, response: {} },
    ],
    default_response: { status_code: 404 },
  };
  const advanced = await create(
    api,
    { name: "C", condition: ALL, response_config: config, description: "d", tags: ["t"] },
    "/api/mocks/advanced",
  );
  assert.equal((await read(api, advanced)).response_config.type, "conditional");
  await create(api, { path_pattern: "/only" });
});

test("PUT accepts the body of GET without a change; a change keeps the previous state as a version", async () => {
  await using api = await startMocks();
  const id = await create(api, {
    ...plain,
    expiration: { type: "hit_count", max_hits: 3 },
    response_schema: "true",
    response: { body: "1" },
  });
  const before = await read(api, id);
  await api.clock.advance(1000);
  const same = await api.call("PUT", `/api/mocks/${id}`, before);
  assert.equal(same.status, 200, JSON.stringify(same.json));
  assert.deepEqual({ ...(same.json as object), updated_at: before.updated_at }, before);
  const changed = await api.call("PUT", `/api/mocks/${id}`, {
    name: "New",
    response: { body: "2" },
    condition: ALL,
    comment: "why",
  });
  const after = changed.json as MockRule;
  assert.deepEqual(
    [after.name, after.version, after.expiration, after.created_at],
    ["New", 2, null, before.created_at],
  );
  assert.deepEqual(
    after.version_history?.map(({ version, comment, response_config: config }) => [version, comment, config]),
    [[1, "why", before.response_config]],
  );
  assert.equal((await api.call("PUT", `/api/mocks/${id}`, after)).status, 200);
  assert.equal((await read(api, id)).version, 2);
});

test("a rollback restores a version and makes a new one; unknown versions are 404", async () => {
  await using api = await startMocks();
  const id = await create(api, plain);
  for (const body of ["2", "3"]) await api.call("PUT", `/api/mocks/${id}`, { ...plain, response: { body } });
  const rolled = await api.call("POST", `/api/mocks/${id}/rollback`, { version: 1 });
  assert.equal(rolled.status, 200);
  const rule = rolled.json as MockRule;
  assert.equal(rule.version, 4);
  assert.equal((rule.response_config as { response: { body: string } }).response.body, "x");
  const versions = (await api.call("GET", `/api/mocks/${id}/versions`)).json as { version: number }[];
  assert.deepEqual(
    versions.map(({ version }) => version),
    [3, 2, 1],
  );
  assert.equal((await api.call("POST", `/api/mocks/${id}/rollback`, { version: 9 })).status, 404);
});

test("only the latest versions are kept", async () => {
  await using api = await startMocks();
  const id = await create(api, plain);
  for (let index = 0; index < 55; index += 1) {
    await api.call("PUT", `/api/mocks/${id}`, { ...plain, response: { body: String(index) } });
  }
  const versions = (await api.call("GET", `/api/mocks/${id}/versions`)).json as { version: number }[];
  assert.deepEqual([versions.length, versions[0]?.version, versions.at(-1)?.version], [50, 55, 6]);
});

test("rules are listed newest first, paged, by collection, label, state and text", async () => {
  await using api = await startMocks();
  const collection = await create(api, { name: "C" }, "/api/mocks/collections");
  await create(api, { ...plain, name: "A", tags: ["x"] });
  await create(api, { ...plain, name: "B", enabled: false, description: "Special" });
  await create(api, { ...plain, name: "C", collection_id: collection });
  assert.deepEqual(await names(api), ["C", "B", "A"]);
  assert.deepEqual(await names(api, "?limit=1&offset=1"), ["B"]);
  assert.deepEqual(await names(api, `?collection_id=${collection}`), ["C"]);
  assert.deepEqual(await names(api, "?tag=x"), ["A"]);
  assert.deepEqual(await names(api, "?enabled=false"), ["B"]);
  assert.deepEqual(await names(api, "?search=special"), ["B"]);
  const { headers } = await api.call("GET", "/api/mocks?limit=1");
  assert.equal(headers.get("x-total-count"), "3");
});

test("a copy is a new rule with the same content under another name", async () => {
  await using api = await startMocks();
  const id = await create(api, { ...plain, tags: ["t"], priority: 3 });
  const copies = [
    await create(api, { new_name: "Named" }, `/api/mocks/${id}/duplicate`),
    ((await api.call("POST", `/api/mocks/${id}/duplicate`, null)).json as { id: string }).id,
    ((await api.call("POST", `/api/mocks/${id}/duplicate`)).json as { id: string }).id,
  ];
  assert.deepEqual(await names(api), ["Plain (copy)", "Plain (copy)", "Named", "Plain"]);
  const copy = await read(api, copies[0] ?? "");
  assert.deepEqual([copy.tags, copy.priority, copy.version, copy.hit_count], [["t"], 3, 1, 0]);
});

test("rules are switched in bulk, and unknown ids are named", async () => {
  await using api = await startMocks();
  const ids = [await create(api, plain), await create(api, plain)];
  const { json } = await api.call("POST", "/api/mocks/batch-toggle", {
    ids: [...ids, "nobody", ids[0]],
    enabled: false,
  });
  assert.deepEqual(json, { updated: 2, not_found: ["nobody"], total: 3 });
  assert.deepEqual(
    ((await api.call("GET", "/api/mocks")).json as MockRule[]).map(({ enabled }) => enabled),
    [false, false],
  );
  assert.deepEqual((await api.call("POST", `/api/mocks/${ids[0]}/toggle`)).json, { id: ids[0], enabled: true });
  assert.deepEqual((await api.call("POST", `/api/mocks/${ids[0]}/toggle`, { enabled: true })).json, {
    id: ids[0],
    enabled: true,
  });
});

test("a request can be tried on one rule or all, without a hit or advancing a sequence", async () => {
  await using api = await startMocks();
  const condition = {
    type: "and",
    conditions: [
      { type: "host", pattern: "a.test" },
      { type: "json_path", path: "$.id", value: 7 },
    ],
  };
  const id = await create(api, {
    name: "S",
    condition,
    response_config: { type: "sequence", responses: [{ body: "1" }, { body: "2" }] },
  });
  await create(api, { ...plain, name: "Later", priority: 200 });
  const request = { method: "POST", url: "http://a.test/x", body: '{"id":7}' };
  for (let times = 0; times < 2; times += 1) {
    const { json } = await api.call("POST", "/api/mocks/preview", { request });
    const { response, ...rest } = json as { response: { body: string } };
    assert.deepEqual([rest, response.body], [{ matched: true, rule_id: id, rule_name: "S", response_index: 0 }, "1"]);
  }
  const tested = (await api.call("POST", `/api/mocks/${id}/test`, { request })).json as { matches: boolean };
  assert.equal(tested.matches, true);
  const other = await api.call("POST", `/api/mocks/${id}/test`, { request: { ...request, body: "{}" } });
  const { matches, explanation } = other.json as { matches: boolean; explanation: string[] };
  assert.equal(matches, false);
  assert.match(explanation.join("\n"), /\$\.id/);
  const binary = { url: "http://b.test/", body: "base64:AP8=", method: "GET" };
  assert.equal(
    ((await api.call("POST", "/api/mocks/preview", { request: binary })).json as { rule_name: string }).rule_name,
    "Later",
  );
  assert.equal((await read(api, id)).hit_count, 0);
  for (const body of [
    {},
    { request, entry_id: "x" },
    { request: { url: "no url" } },
    { request: { url: "ftp://a/" } },
  ]) {
    assert.equal((await api.call("POST", "/api/mocks/preview", body)).status, 400, JSON.stringify(body));
  }
});

test("invalid rules are rejected with the field's name, and nothing is created", async () => {
  await using api = await startMocks();
  const response = (response: object) => ({ name: "n", condition: ALL, response });
  const config = (response_config: object) => ({ name: "n", condition: ALL, response_config });
  const bad: readonly (readonly [object, string])[] = [
    [{ condition: ALL, response: {} }, "body/name"],
    [{ name: " ", condition: ALL, response: {} }, "body/name"],
    [{ name: "n", response: {} }, "body/condition"],
    [{ name: "n", condition: ALL }, "body/response"],
    [{ name: "n", condition: { type: "url_pattern", pattern: "(a" }, response: {} }, "body/condition/pattern"],
    [{ name: "n", condition: { type: "status_code", range: "5xx" }, response: {} }, "body/condition"],
    [{ name: "n", condition: ALL, url_pattern: "x", response: {} }, "body/url_pattern"],
    [{ name: "n", condition: ALL, response: {}, body: "x" }, "body/response"],
    [{ name: "n", condition: ALL, response: {}, response_config: { type: "single", response: {} } }, "body/response"],
    [{ name: "n", condition: ALL, response: {}, colour: 1 }, "body/colour"],
    [{ name: "n", condition: ALL, response: {}, hit_count: 1 }, "body/hit_count"],
    [{ name: "n", condition: ALL, response: {}, collection_id: "none" }, "body/collection_id"],
    [
      { name: "n", condition: ALL, response: {}, expiration: { type: "hit_count", max_hits: 0 } },
      "body/expiration/max_hits",
    ],
    [
      { name: "n", condition: ALL, response: {}, expiration: { type: "date_time", expires_at: "soon" } },
      "body/expiration/expires_at",
    ],
    [
      { name: "n", condition: ALL, response: { body: "[]" }, response_schema: '{"type":"object"}' },
      "body/response_config/response/body",
    ],
    [{ name: "n", condition: ALL, response: {}, response_schema: "{" }, "body/response_schema"],
    [{ name: "n", condition: ALL, response: {}, response_script: "x" }, "body/response_script"],
    [response({ status_code: 199 }), "body/response/status_code"],
    [response({ status_code: 600 }), "body/response/status_code"],
    [response({ headers: { "bad name": "x" } }), "body/response_config/response/headers/bad name"],
    [response({ headers: { A: "x\r\nB: c" } }), "body/response_config/response/headers/A"],
    [response({ body: "x", body_base64: "AA==" }), "body/response_config/response/body_base64"],
    [response({ body_base64: "not base64" }), "body/response_config/response/body_base64"],
    [response({ delay_ms: -1 }), "body/response/delay_ms"],
    [config({ type: "many" }), "body/response_config"],
    [config({ type: "sequence", responses: [] }), "body/response_config/responses"],
    [config({ type: "probabilistic", responses: [{ weight: 0, response: {} }] }), "body/response_config/responses"],
    [
      config({
        type: "conditional",
        conditions: [{ condition: { type: "body_matches", pattern: "(?=a)" }, response: {} }],
        default_response: {},
      }),
      "body/response_config/conditions/0/condition/pattern",
    ],
  ];
  for (const [body, path] of bad) {
    const { status, json } = await api.call("POST", "/api/mocks", body);
    const refusal = json as { code: string; details?: { path: string }[] };
    assert.equal(status, 400, JSON.stringify(body));
    assert.equal(refusal.code, "VALIDATION_ERROR");
    assert.equal(refusal.details?.[0]?.path, path, JSON.stringify(json));
  }
  const device = await api.call("POST", "/api/mocks", { ...plain, device_id: "phone" });
  assert.deepEqual([device.status, (device.json as { code: string }).code], [400, "VALIDATION_ERROR"]);
  assert.deepEqual(await names(api), []);
});

test("operations on an unknown rule or collection are 404", async () => {
  await using api = await startMocks();
  const calls: readonly (readonly [string, string, unknown])[] = [
    ["GET", "/mocks/x", undefined],
    ["PUT", "/mocks/x", plain],
    ["DELETE", "/mocks/x", undefined],
    ["POST", "/mocks/x/toggle", undefined],
    ["POST", "/mocks/x/duplicate", undefined],
    ["POST", "/mocks/x/rollback", { version: 1 }],
    ["GET", "/mocks/x/versions", undefined],
    ["POST", "/mocks/x/test", { request: { url: "http://a/" } }],
    ["GET", "/mocks/x/analytics", undefined],
    ["GET", "/mocks/x/history", undefined],
    ["GET", "/mocks/collections/x", undefined],
    ["PUT", "/mocks/collections/x", {}],
    ["DELETE", "/mocks/collections/x", undefined],
    ["POST", "/mocks/collections/x/toggle", undefined],
  ];
  for (const [method, path, body] of calls) {
    const { status, json } = await api.call(method, `/api${path}`, body);
    assert.deepEqual([status, (json as { code: string }).code], [404, "NOT_FOUND"], `${method} ${path}`);
  }
});

test("rules, versions, collections and their order survive a restart", async () => {
  await using api = await startMocks();
  const collection = await create(api, { name: "C", tags: ["a"], color: "red" }, "/api/mocks/collections");
  const id = await create(api, {
    ...plain,
    collection_id: collection,
    expiration: { type: "duration", duration_secs: 5 },
  });
  await api.call("PUT", `/api/mocks/${id}`, { ...plain, collection_id: collection, response: { body: "2" } });
  await create(api, { ...plain, name: "Second" });
  const before = (await api.call("GET", "/api/mocks/export")).json;
  const again = createMocksSlice(api.host);
  const input = {
    params: undefined,
    query: undefined,
    body: undefined,
    headers: {},
    signal: new AbortController().signal,
  };
  assert.deepEqual((again.operations.exportMocks(input) as { body: unknown }).body, before);
  assert.deepEqual(
    (again.operations.listMockCollections(input) as { body: unknown }).body,
    (await api.call("GET", "/api/mocks/collections")).json,
  );
});

test("a migration creates the tables in any older database", () => {
  const database = openDatabase(":memory:", { migrations: STATE_MIGRATIONS });
  const tables = database
    .prepare("SELECT name FROM sqlite_schema WHERE name LIKE 'mock_%' AND type = 'table' ORDER BY name")
    .all();
  database.close();
  assert.deepEqual(
    tables.map(({ name }) => name),
    ["mock_collections", "mock_hit_stats", "mock_hits", "mock_rules", "mock_versions"],
  );
});
