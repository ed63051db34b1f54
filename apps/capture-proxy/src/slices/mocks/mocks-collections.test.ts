import assert from "node:assert/strict";
import { test } from "node:test";
import type { MockCollection, MockRule } from "@headworks/capture-contract";
import { startApi } from "../../../test/api-rig.ts";
import type { ApiRig } from "../../../test/api-rig.ts";
import { createMocksSlice } from "./mocks.slice.ts";

const startMocks = (): Promise<ApiRig> => startApi({ slices: (host) => [createMocksSlice(host)] });

async function create(api: ApiRig, path: string, body: object): Promise<string> {
  const { status, json } = await api.call("POST", `/api${path}`, body);
  assert.equal(status, 201, JSON.stringify(json));
  return (json as { id: string }).id;
}

const rule = (collection: string | null, enabled = true) => ({
  name: "R",
  condition: { type: "all" },
  response: { body: "x" },
  collection_id: collection,
  enabled,
});

async function responses(api: ApiRig): Promise<boolean> {
  const { json } = await api.call("POST", "/api/mocks/preview", { request: { url: "http://a.test/" } });
  return (json as { matched: boolean }).matched;
}

test("a collection is created, read, partly updated, and updated with its own representation", async () => {
  await using api = await startMocks();
  const id = await create(api, "/mocks/collections", { name: " C ", description: "d", tags: ["t"], color: "#fff" });
  await create(api, "/mocks", rule(id));
  const now = new Date(api.clock.now()).toISOString();
  const shown = (await api.call("GET", `/api/mocks/collections/${id}`)).json as MockCollection;
  assert.deepEqual(shown, {
    id,
    name: "C",
    description: "d",
    enabled: true,
    tags: ["t"],
    color: "#fff",
    created_at: now,
    updated_at: now,
    rule_count: 1,
  });
  await api.clock.advance(1000);
  const renamed = (await api.call("PUT", `/api/mocks/collections/${id}`, { name: "D", description: null }))
    .json as MockCollection;
  assert.deepEqual([renamed.name, renamed.description, renamed.tags, renamed.created_at], ["D", null, ["t"], now]);
  const again = await api.call("PUT", `/api/mocks/collections/${id}`, renamed);
  assert.deepEqual([again.status, again.json], [200, renamed]);
  assert.equal((await api.call("POST", "/api/mocks/collections", { name: " " })).status, 400);
});

test("a disabled collection disables its rules", async () => {
  await using api = await startMocks();
  const id = await create(api, "/mocks/collections", { name: "C" });
  await create(api, "/mocks", rule(id));
  assert.equal(await responses(api), true);
  await api.call("PUT", `/api/mocks/collections/${id}`, { enabled: false });
  assert.equal(await responses(api), false);
  assert.equal(((await api.call("GET", "/api/mocks")).json as MockRule[])[0]?.enabled, true);
  await api.call("PUT", `/api/mocks/collections/${id}`, { enabled: true });
  assert.equal(await responses(api), true);
});

test("switching a collection switches its rules too, sets what the body says, and toggles without one", async () => {
  await using api = await startMocks();
  const id = await create(api, "/mocks/collections", { name: "C" });
  await create(api, "/mocks", rule(id));
  await create(api, "/mocks", rule(id, false));
  await create(api, "/mocks", { ...rule(null), condition: { type: "host", pattern: "other.test" } });
  const toggle = async (body?: object) => (await api.call("POST", `/api/mocks/collections/${id}/toggle`, body)).json;
  const enabled = async () => ((await api.call("GET", "/api/mocks")).json as MockRule[]).map((each) => each.enabled);
  assert.deepEqual(await toggle(), { id, enabled: false, toggled: 2 });
  assert.deepEqual([await enabled(), await responses(api)], [[true, false, false], false]);
  assert.deepEqual(await toggle({ enabled: true }), { id, enabled: true, toggled: 2 });
  assert.deepEqual([await enabled(), await responses(api)], [[true, true, true], true]);
  const empty = await create(api, "/mocks/collections", { name: "Empty" });
  assert.deepEqual((await api.call("POST", `/api/mocks/collections/${empty}/toggle`)).json, {
    id: empty,
    enabled: false,
    toggled: 0,
  });
});

test("rules outlive their collection unless the body or query says otherwise", async () => {
  await using api = await startMocks();
  for (const [query, body, left] of [
    ["", undefined, 1],
    ["", null, 1],
    ["", {}, 1],
    ["", { delete_rules: false }, 1],
    ["?delete_rules=false", undefined, 1],
    ["", { delete_rules: true }, 0],
    ["?delete_rules=true", undefined, 0],
    ["?delete_rules=true", { delete_rules: true }, 0],
  ] as const) {
    const id = await create(api, "/mocks/collections", { name: "C" });
    const ruleId = await create(api, "/mocks", rule(id));
    const deleted = await api.call("DELETE", `/api/mocks/collections/${id}${query}`, body);
    assert.equal(deleted.status, 204, JSON.stringify([query, body]));
    const rules = (await api.call("GET", "/api/mocks")).json as MockRule[];
    assert.deepEqual(
      rules.map((each) => each.collection_id),
      left === 1 ? [null] : [],
      JSON.stringify([query, body]),
    );
    assert.equal((await api.call("GET", `/api/mocks/collections/${id}`)).status, 404);
    await api.call("DELETE", `/api/mocks/${ruleId}`);
  }
  const id = await create(api, "/mocks/collections", { name: "C" });
  const torn = await api.call("DELETE", `/api/mocks/collections/${id}?delete_rules=true`, { delete_rules: false });
  assert.equal(torn.status, 400);
});
