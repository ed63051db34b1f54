import assert from "node:assert/strict";
import { test } from "node:test";
import type { BlockEntry } from "@headworks/capture-contract";
import { startApi } from "../../../test/api-rig.ts";
import type { ApiRig } from "../../../test/api-rig.ts";
import { createBlocklistSlice } from "./blocklist.slice.ts";

const startBlocklist = (): Promise<ApiRig> => startApi({ slices: (host) => [createBlocklistSlice(host)] });

async function create(api: ApiRig, body: object): Promise<string> {
  const { status, json } = await api.call("POST", "/api/blocklist", body);
  assert.equal(status, 201, JSON.stringify(json));
  return (json as { id: string }).id;
}

async function read(api: ApiRig, id: string): Promise<BlockEntry> {
  const { status, json } = await api.call("GET", `/api/blocklist/${id}`);
  assert.equal(status, 200);
  return json as BlockEntry;
}

test("a created entry has the specified defaults and is found by id", async () => {
  await using api = await startBlocklist();
  const id = await create(api, { pattern: " Ads.Example.COM " });
  const now = new Date(api.clock.now()).toISOString();
  assert.deepEqual(await read(api, id), {
    id,
    pattern: "ads.example.com",
    note: null,
    enabled: true,
    hit_count: 0,
    status_code: 403,
    response_body: "Blocked by Weir",
    content_type: "text/plain",
    created_at: now,
    updated_at: now,
    device_id: null,
  });
});

test("the list is newest first, the statistics count enabled and disabled entries", async () => {
  await using api = await startBlocklist();
  for (const pattern of ["a.test", "b.test", "c.test"]) await create(api, { pattern, enabled: pattern !== "b.test" });
  const { json } = await api.call("GET", "/api/blocklist");
  assert.deepEqual(
    (json as BlockEntry[]).map((entry) => entry.pattern),
    ["c.test", "b.test", "a.test"],
  );
  assert.deepEqual((await api.call("GET", "/api/blocklist/stats")).json, {
    total: 3,
    enabled: 2,
    disabled: 1,
    total_hits: 0,
  });
});

test("PUT takes what GET gave, keeps id, hits and creation time, and changes what was changed", async () => {
  await using api = await startBlocklist();
  const id = await create(api, { pattern: "a.test", note: "why", status_code: 451 });
  await api.clock.advance(5000);
  const before = await read(api, id);
  const same = await api.call("PUT", `/api/blocklist/${id}`, before);
  assert.equal(same.status, 200, JSON.stringify(same.json));
  assert.deepEqual(same.json, { ...before, updated_at: new Date(api.clock.now()).toISOString() });
  const changed = await api.call("PUT", `/api/blocklist/${id}`, {
    ...before,
    pattern: "*.b.test",
    response_body: "",
    hit_count: 99,
  });
  assert.deepEqual(changed.json, {
    ...before,
    pattern: "*.b.test",
    response_body: "",
    updated_at: new Date(api.clock.now()).toISOString(),
  });
});

test("a toggle sets what its body says and flips without one", async () => {
  await using api = await startBlocklist();
  const id = await create(api, { pattern: "a.test" });
  const toggle = async (body?: object): Promise<unknown> =>
    (await api.call("POST", `/api/blocklist/${id}/toggle`, body)).json;
  assert.deepEqual(await toggle({ enabled: true }), { id, enabled: true });
  assert.deepEqual(await toggle(), { id, enabled: false });
  assert.deepEqual(await toggle(), { id, enabled: true });
  assert.deepEqual(await toggle({ enabled: false }), { id, enabled: false });
  assert.equal((await read(api, id)).enabled, false);
});

test("a deleted entry is gone, and everything about an unknown id is 404", async () => {
  await using api = await startBlocklist();
  const id = await create(api, { pattern: "a.test" });
  const deleted = await api.call("DELETE", `/api/blocklist/${id}`);
  assert.equal(deleted.status, 204);
  assert.equal(deleted.json, "");
  for (const [method, suffix, body] of [
    ["GET", "", undefined],
    ["PUT", "", { pattern: "a.test" }],
    ["DELETE", "", undefined],
    ["POST", "/toggle", undefined],
  ] as const) {
    const { status, json } = await api.call(method, `/api/blocklist/${id}${suffix}`, body);
    assert.equal(status, 404);
    assert.deepEqual(json, { error: "Block entry not found", code: "NOT_FOUND" });
  }
});

test("an entry for one device alone is refused, since it would block all", async () => {
  await using api = await startBlocklist();
  const id = await create(api, { pattern: "a.test", device_id: null });
  for (const [method, path] of [
    ["POST", "/api/blocklist"],
    ["PUT", `/api/blocklist/${id}`],
  ] as const) {
    const { status, json } = await api.call(method, path, { pattern: "b.test", device_id: "phone" });
    const { code, details } = json as { code: string; details: unknown };
    assert.deepEqual([status, code], [400, "VALIDATION_ERROR"]);
    assert.deepEqual(details, [{ path: "body/device_id", message: "must be null" }]);
  }
  assert.equal((await read(api, id)).pattern, "a.test");
});

test("values that cannot be a block entry are refused with the field's name and change nothing", async () => {
  await using api = await startBlocklist();
  const bad: readonly (readonly [object, string])[] = [
    [{}, "body/pattern"],
    [{ pattern: "" }, "body/pattern"],
    [{ pattern: "   " }, "body/pattern"],
    [{ pattern: "http://a.test/" }, "body/pattern"],
    [{ pattern: "a.test:80" }, "body/pattern"],
    [{ pattern: "a..test" }, "body/pattern"],
    [{ pattern: 5 }, "body/pattern"],
    [{ pattern: `${"a".repeat(250)}.test.x` }, "body/pattern"],
    [{ pattern: "a.test", status_code: 99 }, "body/status_code"],
    [{ pattern: "a.test", status_code: "403" }, "body/status_code"],
    [{ pattern: "a.test", status_code: 600 }, "body/status_code"],
    [{ pattern: "a.test", content_type: "text/plain\r\nX: 1" }, "body/content_type"],
    [{ pattern: "a.test", enabled: "yes" }, "body/enabled"],
    [{ pattern: "a.test", patern: "b.test" }, "body/patern"],
    [{ pattern: "a.test", hit_count: 3 }, "body/hit_count"],
  ];
  for (const [body, path] of bad) {
    const { status, json } = await api.call("POST", "/api/blocklist", body);
    const response = json as { error: string; code: string; details: { path: string }[] };
    assert.equal(status, 400, JSON.stringify(body));
    assert.equal(response.code, "VALIDATION_ERROR");
    assert.equal(response.details[0]?.path, path);
    assert.ok(response.error.includes(path));
  }
  assert.deepEqual((await api.call("GET", "/api/blocklist")).json, []);
});
