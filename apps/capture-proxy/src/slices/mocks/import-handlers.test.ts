import assert from "node:assert/strict";
import { test } from "node:test";
import type { MockRule } from "@headworks/capture-contract";
import { startApi } from "../../../test/api-rig.ts";
import type { ApiRig } from "../../../test/api-rig.ts";
import { createMocksSlice } from "./mocks.slice.ts";

const startMocks = (): Promise<ApiRig> => startApi({ slices: (host) => [createMocksSlice(host)] });
const list = async (api: ApiRig): Promise<MockRule[]> => (await api.call("GET", "/api/mocks")).json as MockRule[];

const YAML = `
openapi: 3.1.0
paths:
  /a/{id}:
    get: { responses: { "200": { content: { application/json: { example: { id: 1 } } } }, "404": {} } }
`;

test("a dry run shows what an import would make, and makes nothing", async () => {
  await using api = await startMocks();
  const body = { format: "openapi", data: YAML, dry_run: true, enabled: false };
  const { status, json } = await api.call("POST", "/api/mocks/import", body);
  assert.equal(status, 200, JSON.stringify(json));
  const preview = json as { imported: number; dry_run: boolean; rules: MockRule[] };
  assert.deepEqual([preview.imported, preview.dry_run], [2, true]);
  assert.deepEqual(
    preview.rules.map(({ name, enabled }) => [name, enabled]),
    [
      ["OpenAPI: GET /a/{id} -> 200", false],
      ["OpenAPI: GET /a/{id} -> 404", false],
    ],
  );
  assert.deepEqual(await list(api), []);
});

test("an import makes its rules, in a collection where that is asked for", async () => {
  await using api = await startMocks();
  const collection = (await api.call("POST", "/api/mocks/collections", { name: "Pets" })).json as { id: string };
  const { status, json } = await api.call("POST", "/api/mocks/import", {
    format: "openapi",
    data: YAML,
    collection_id: collection.id,
  });
  assert.equal(status, 201, JSON.stringify(json));
  const made = json as { imported: number; format: string; ids: string[] };
  assert.deepEqual([made.imported, made.format], [2, "openapi"]);
  const rules = await list(api);
  assert.deepEqual(
    rules.map(({ id, collection_id: collectionId }) => [id, collectionId]),
    made.ids.toReversed().map((id) => [id, collection.id]),
  );
});

test("what was exported can be imported again, as text and as it is, and gives the same rules under new ids", async () => {
  await using api = await startMocks();
  const config = {
    type: "sequence",
    responses: [
      { status_code: 201, body: "a" },
      { headers: { "X-A": ["1", "2"] }, body_base64: "AP8=" },
    ],
    cycle: false,
  };
  const condition = { type: "not", condition: { type: "json_path", path: "$.a", value: [1] } };
  await api.call("POST", "/api/mocks/advanced", {
    name: "A",
    condition,
    response_config: config,
    tags: ["t"],
    priority: 7,
  });
  await api.call("POST", "/api/mocks", {
    name: "B",
    condition: { type: "all" },
    response: { body: "x" },
    enabled: false,
  });
  const exported = (await api.call("GET", "/api/mocks/export")).json as MockRule[];
  const told = (rules: readonly MockRule[]) =>
    rules.map(({ id: _id, created_at: _c, updated_at: _u, ...rest }) => rest);
  for (const data of [exported, JSON.stringify(exported), { mocks: exported }]) {
    const { status, json } = await api.call("POST", "/api/mocks/import", { format: "json", data });
    assert.equal(status, 201, JSON.stringify(json));
    const again = ((await api.call("GET", "/api/mocks/export")).json as MockRule[]).slice(-2);
    assert.deepEqual(told(again), told(exported));
    assert.equal(new Set([...again, ...exported].map(({ id }) => id)).size, 4);
  }
});

test("a document that cannot be imported is refused with what is wrong, and nothing is made of it", async () => {
  await using api = await startMocks();
  const cases: readonly (readonly [object, RegExp])[] = [
    [{ format: "har", data: "{}" }, /^Import failed: .*log\.entries/],
    [{ format: "openapi", data: "{" }, /^Import failed: .*not JSON/],
    [{ format: "json", data: "[" }, /^Import failed: .*not JSON/],
    [{ format: "json", data: {} }, /^Import failed: .*list of mock rules/],
    [{ format: "json", data: [5] }, /body\/data\/0/],
    [
      { format: "json", data: [{ name: "x", condition: { type: "all" }, response: {} }, { name: "y" }] },
      /body\/data\/1\/condition: is required/,
    ],
    [
      { format: "json", data: [{ name: "x", condition: { type: "all" }, response: {}, colour: 1 }] },
      /body\/data\/0\/colour/,
    ],
    [{ format: "soap", data: "" }, /body\/format/],
    [{ format: "har" }, /body\/data/],
    [{ format: "har", data: {}, collection_id: "none" }, /body\/collection_id/],
  ];
  for (const [body, message] of cases) {
    const { status, json } = await api.call("POST", "/api/mocks/import", body);
    assert.equal(status, 400, JSON.stringify(body));
    assert.match((json as { error: string }).error, message);
  }
  assert.deepEqual(await list(api), []);
});
