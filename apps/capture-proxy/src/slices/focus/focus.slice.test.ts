import assert from "node:assert/strict";
import { test } from "node:test";
import type { FocusHost } from "@headworks/capture-contract";
import { startApi } from "../../../test/api-rig.ts";
import type { ApiRig } from "../../../test/api-rig.ts";
import { createFocusSlice } from "./focus.slice.ts";

const startFocus = (): Promise<ApiRig> => startApi({ slices: (host) => [createFocusSlice(host)] });

async function add(api: ApiRig, pattern: string): Promise<FocusHost> {
  const { status, json } = await api.call("POST", "/api/focus", { pattern });
  assert.equal(status, 201, JSON.stringify(json));
  return json as FocusHost;
}

const patterns = async (api: ApiRig): Promise<string[]> =>
  ((await api.call("GET", "/api/focus")).json as FocusHost[]).map(({ pattern }) => pattern);

test("patterns are trimmed, in lower case and listed oldest first", async () => {
  await using api = await startFocus();
  const first = await add(api, " API.Example.test ");
  assert.deepEqual(first, {
    id: first.id,
    pattern: "api.example.test",
    created_at: new Date(api.clock.now()).toISOString(),
  });
  await add(api, "*.a.test");
  await add(api, "*api*");
  assert.deepEqual(await patterns(api), ["api.example.test", "*.a.test", "*api*"]);
});

test("adding a pattern again gives the one that is there", async () => {
  await using api = await startFocus();
  const first = await add(api, "a.test");
  await api.clock.advance(1000);
  assert.deepEqual(await add(api, "A.test"), first);
  assert.deepEqual(await patterns(api), ["a.test"]);
});

test("one is removed by its id, all of them at once", async () => {
  await using api = await startFocus();
  const { id } = await add(api, "a.test");
  await add(api, "b.test");
  await add(api, "c.test");
  assert.equal((await api.call("DELETE", `/api/focus/${id}`)).status, 204);
  assert.deepEqual((await api.call("DELETE", `/api/focus/${id}`)).json, {
    error: "Focus pattern not found",
    code: "NOT_FOUND",
  });
  assert.deepEqual(await patterns(api), ["b.test", "c.test"]);
  assert.equal((await api.call("DELETE", "/api/focus")).status, 204);
  assert.equal((await api.call("DELETE", "/api/focus")).status, 204);
  assert.deepEqual(await patterns(api), []);
});

test("what is no host pattern is refused", async () => {
  await using api = await startFocus();
  for (const body of [
    {},
    { pattern: "" },
    { pattern: " " },
    { pattern: "a/b" },
    { pattern: 1 },
    { pattern: "a".repeat(256) },
    { pattern: "a.test", id: "x" },
  ]) {
    assert.equal((await api.call("POST", "/api/focus", body)).status, 400, JSON.stringify(body));
  }
  assert.deepEqual(await patterns(api), []);
});
