import assert from "node:assert/strict";
import { test } from "node:test";
import type { Breakpoint } from "@headworks/capture-contract";
import { startApi } from "../../../test/api-rig.ts";
import type { ApiRig } from "../../../test/api-rig.ts";
import { createBreakpointsSlice } from "./breakpoints.slice.ts";

const startBreakpoints = (): Promise<ApiRig> => startApi({ slices: (host) => [createBreakpointsSlice(host)] });
const RULE = { name: "Users", condition: { type: "path_pattern", pattern: "^/users" }, direction: "request" } as const;

async function create(api: ApiRig, body: object): Promise<string> {
  const { status, json } = await api.call("POST", "/api/breakpoints", body);
  assert.equal(status, 201, JSON.stringify(json));
  return (json as { id: string }).id;
}

async function read(api: ApiRig, id: string): Promise<Breakpoint> {
  const { status, json } = await api.call("GET", `/api/breakpoints/${id}`);
  assert.equal(status, 200);
  return json as Breakpoint;
}

test("a created rule has the specified defaults and is found by id", async () => {
  await using api = await startBreakpoints();
  const id = await create(api, RULE);
  const now = new Date(api.clock.now()).toISOString();
  assert.deepEqual(await read(api, id), {
    id,
    ...RULE,
    enabled: true,
    priority: 100,
    timeout_secs: null,
    hit_count: 0,
    device_id: null,
    created_at: now,
    updated_at: now,
  });
});

test("the short form of agents and command lines becomes a condition and a name", async () => {
  await using api = await startBreakpoints();
  const rule = await read(api, await create(api, { url_pattern: "*/api/users/*", method: "post", enabled: false }));
  assert.deepEqual(rule.condition, {
    type: "and",
    conditions: [
      { type: "url_pattern", pattern: "*/api/users/*" },
      { type: "method", method: "post" },
    ],
  });
  assert.equal(rule.direction, "both");
  assert.equal(rule.enabled, false);
  assert.match(rule.name, /users/);
});

test("an invalid rule is refused with the path of the error, and nothing is stored", async () => {
  await using api = await startBreakpoints();
  for (const [body, path] of [
    [{ name: "n", direction: "both" }, "body/condition"],
    [{ ...RULE, condition: { type: "path_pattern", pattern: "(" } }, "body/condition/pattern"],
    [{ ...RULE, condition: { type: "odd" } }, "body/condition"],
    [{ ...RULE, name: " " }, "body/name"],
    [{ ...RULE, direction: "sideways" }, "body/direction"],
    [{ ...RULE, timeout_secs: 0 }, "body/timeout_secs"],
    [{ ...RULE, extra: 1 }, "body/extra"],
    [{ ...RULE, url_pattern: "x" }, "body/url_pattern"],
  ] as const) {
    const { status, json } = await api.call("POST", "/api/breakpoints", body);
    const { code, details } = json as { code: string; details: { path: string }[] };
    assert.deepEqual([status, code, details[0]?.path], [400, "VALIDATION_ERROR", path], JSON.stringify(json));
  }
  assert.deepEqual((await api.call("GET", "/api/breakpoints")).json, []);
});

test("the list is newest first, says how many there are, and comes in pages", async () => {
  await using api = await startBreakpoints();
  for (const name of ["a", "b", "c"]) await create(api, { ...RULE, name });
  const names = async (query: string): Promise<string[]> => {
    const { json, headers } = await api.call("GET", `/api/breakpoints${query}`);
    assert.equal(headers.get("x-total-count"), "3");
    return (json as Breakpoint[]).map(({ name }) => name);
  };
  assert.deepEqual(await names(""), ["c", "b", "a"]);
  assert.deepEqual(await names("?limit=1&offset=1"), ["b"]);
  assert.equal((await api.call("GET", "/api/breakpoints?limit=1001")).status, 400);
});

test("PUT takes what GET gave, keeps id and creation time, and changes what was changed", async () => {
  await using api = await startBreakpoints();
  const id = await create(api, { ...RULE, timeout_secs: 30 });
  await api.clock.advance(5000);
  const before = await read(api, id);
  const updated_at = new Date(api.clock.now()).toISOString();
  const same = await api.call("PUT", `/api/breakpoints/${id}`, before);
  assert.deepEqual([same.status, same.json], [200, { ...before, updated_at }]);
  const changes = { condition: { type: "all" }, direction: "both", priority: 1, timeout_secs: null } as const;
  const changed = await api.call("PUT", `/api/breakpoints/${id}`, { ...before, ...changes, hit_count: 99 });
  assert.deepEqual(changed.json, { ...before, ...changes, updated_at });
  assert.deepEqual(await read(api, id), changed.json);
});

test("a toggle sets what its body says and flips without one", async () => {
  await using api = await startBreakpoints();
  const id = await create(api, RULE);
  const toggle = async (body?: object): Promise<unknown> =>
    (await api.call("POST", `/api/breakpoints/${id}/toggle`, body)).json;
  assert.deepEqual(await toggle({ enabled: true }), { id, enabled: true });
  assert.deepEqual(await toggle(), { id, enabled: false });
  assert.deepEqual(await toggle(), { id, enabled: true });
  assert.equal((await read(api, id)).enabled, true);
});

test("a deleted rule is gone, and everything about an unknown id is 404", async () => {
  await using api = await startBreakpoints();
  const id = await create(api, RULE);
  assert.equal((await api.call("DELETE", `/api/breakpoints/${id}`)).status, 204);
  for (const [method, path, body, error] of [
    ["GET", id, undefined, "Breakpoint not found"],
    ["PUT", id, RULE, "Breakpoint not found"],
    ["DELETE", id, undefined, "Breakpoint not found"],
    ["POST", `${id}/toggle`, undefined, "Breakpoint not found"],
    ["GET", "paused/x", undefined, "Paused item not found"],
    ["POST", "paused/x/resume", { action: "continue" }, "Paused item not found"],
    ["POST", "resume-all", { rule_id: id }, "Breakpoint not found"],
  ] as const) {
    const { status, json } = await api.call(method, `/api/breakpoints/${path}`, body);
    assert.deepEqual([status, json], [404, { error, code: "NOT_FOUND" }], `${method} ${path}`);
  }
});

test("a rule for one device alone is refused, since it would pause all", async () => {
  await using api = await startBreakpoints();
  const { status, json } = await api.call("POST", "/api/breakpoints", { ...RULE, device_id: "phone" });
  assert.deepEqual([status, (json as { code: string }).code], [400, "VALIDATION_ERROR"]);
});

test("pause-all is switched on by a bare call, set by a body, and off after resume-all", async () => {
  await using api = await startBreakpoints();
  const off = { enabled: false, direction: "request", timeout_secs: null, paused_count: 0 };
  const state = async (): Promise<unknown> => (await api.call("GET", "/api/breakpoints/pause-all")).json;
  assert.deepEqual(await state(), off);
  await api.call("POST", "/api/breakpoints/pause-all");
  assert.deepEqual(await state(), { ...off, enabled: true });
  const set = await api.call("POST", "/api/breakpoints/pause-all", { direction: "both", timeout_secs: 5 });
  assert.deepEqual(set.json, { enabled: true, direction: "both", timeout_secs: 5, paused_count: 0 });
  assert.deepEqual((await api.call("POST", "/api/breakpoints/resume-all")).json, { resumed_count: 0 });
  assert.deepEqual(await state(), { enabled: false, direction: "both", timeout_secs: 5, paused_count: 0 });
});

test("exported rules are imported elsewhere without a difference", async () => {
  await using api = await startBreakpoints();
  await create(api, RULE);
  await create(api, { ...RULE, name: "second", timeout_secs: 9, priority: -5 });
  const slice = createBreakpointsSlice(api.host);
  const exported: unknown = JSON.parse(JSON.stringify(slice.portableRules?.exportRules()));
  await using other = await startBreakpoints();
  const target = createBreakpointsSlice(other.host).portableRules;
  const request = { mode: "replace", dryRun: false, version: 1 } as const;
  assert.deepEqual(target?.importRules(exported, request), {
    counts: { added: 2, updated: 0, removed: 0, unchanged: 0 },
  });
  target?.reload();
  assert.deepEqual(target?.exportRules(), exported);
  const [first] = exported as Breakpoint[];
  const broken = [{ ...first, condition: { type: "path_pattern", pattern: "(" } }];
  const outcome = target?.importRules(broken, request);
  assert.ok(outcome !== undefined && "issues" in outcome);
  assert.equal(outcome.issues[0]?.path, "/0/condition/pattern");
});
