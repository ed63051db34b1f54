import assert from "node:assert/strict";
import { test } from "node:test";
import type { NewRewriteRule, RewriteAction, RewriteRule, RewriteTemplate } from "@headworks/capture-contract";
import type { SliceHost } from "#slice.ts";
import { startApi } from "../../../test/api-rig.ts";
import type { ApiRig } from "../../../test/api-rig.ts";
import { createRewritesSlice } from "./rewrites.slice.ts";

const startRewrites = (): Promise<ApiRig> => startApi({ slices: (host) => [createRewritesSlice(host)] });

const RULE: NewRewriteRule = {
  name: "rule",
  condition: { type: "all" },
  direction: "both",
  rewrites: [{ type: "set_header", name: "A", value: "1" }],
};

async function create(api: ApiRig, body: object = {}): Promise<string> {
  const { status, json } = await api.call("POST", "/api/rewrites", { ...RULE, ...body });
  assert.equal(status, 201, JSON.stringify(json));
  return (json as { id: string }).id;
}

async function read(api: ApiRig, id: string): Promise<RewriteRule> {
  const { status, json } = await api.call("GET", `/api/rewrites/${id}`);
  assert.equal(status, 200);
  return json as RewriteRule;
}

test("a created rule has the contract's defaults, in any form of its condition", async () => {
  await using api = await startRewrites();
  const id = await create(api, { name: " spaced ", condition: undefined, url_pattern: "^https", method: "GET" });
  const now = new Date(api.clock.now()).toISOString();
  assert.deepEqual(await read(api, id), {
    id,
    name: "spaced",
    condition: {
      type: "and",
      conditions: [
        { type: "url_pattern", pattern: "^https" },
        { type: "method", method: "GET" },
      ],
    },
    direction: "both",
    rewrites: RULE.rewrites,
    enabled: true,
    priority: 100,
    hit_count: 0,
    device_id: null,
    created_at: now,
    updated_at: now,
  });
});

test("the list is newest first, and PUT accepts the body of GET", async () => {
  await using api = await startRewrites();
  const first = await create(api, { name: "first" });
  await create(api, { name: "second" });
  const list = (await api.call("GET", "/api/rewrites")).json as RewriteRule[];
  assert.deepEqual(
    list.map(({ name }) => name),
    ["second", "first"],
  );
  const page = await api.call("GET", "/api/rewrites?limit=1&offset=1");
  assert.deepEqual(
    (page.json as RewriteRule[]).map(({ id }) => id),
    [first],
  );
  assert.equal(page.headers.get("x-total-count"), "2");
  assert.equal((await api.call("GET", "/api/rewrites?limit=1001")).status, 400);
  await api.clock.advance(5000);
  const before = await read(api, first);
  const later = new Date(api.clock.now()).toISOString();
  const same = await api.call("PUT", `/api/rewrites/${first}`, before);
  assert.deepEqual([same.status, same.json], [200, { ...before, updated_at: later }]);
  const changed = await api.call("PUT", `/api/rewrites/${first}`, {
    ...before,
    hit_count: 99,
    priority: 1,
    direction: "response",
    rewrites: [{ type: "set_status", code: 404 }],
  });
  assert.deepEqual(changed.json, {
    ...before,
    priority: 1,
    direction: "response",
    rewrites: [{ type: "set_status", code: 404 }],
    updated_at: later,
  });
});

test("rules are switched singly and in bulk, and unknown ids are named", async () => {
  await using api = await startRewrites();
  const ids = [await create(api), await create(api), await create(api)];
  const [one = "", two = ""] = ids;
  assert.deepEqual((await api.call("POST", `/api/rewrites/${one}/toggle`)).json, { id: one, enabled: false });
  assert.deepEqual((await api.call("POST", `/api/rewrites/${one}/toggle`, { enabled: true })).json, {
    id: one,
    enabled: true,
  });
  const { json } = await api.call("POST", "/api/rewrites/batch-toggle", {
    ids: [one, two, "none", one],
    enabled: false,
  });
  assert.deepEqual(json, { updated: 2, not_found: ["none"], total: 4 });
  const states = await Promise.all(ids.map(async (id) => (await read(api, id)).enabled));
  assert.deepEqual(states, [false, false, true]);
});

test("a deleted rule is gone, and operations on an unknown id are 404", async () => {
  await using api = await startRewrites();
  const id = await create(api);
  assert.equal((await api.call("DELETE", `/api/rewrites/${id}`)).status, 204);
  for (const [method, suffix, body] of [
    ["GET", "", undefined],
    ["PUT", "", RULE],
    ["DELETE", "", undefined],
    ["POST", "/toggle", undefined],
  ] as const) {
    const { status, json } = await api.call(method, `/api/rewrites/${id}${suffix}`, body);
    assert.deepEqual([status, json], [404, { error: "Rewrite rule not found", code: "NOT_FOUND" }]);
  }
});

test("every template is valid with a name and a condition", async () => {
  await using api = await startRewrites();
  const templates = (await api.call("GET", "/api/rewrites/templates")).json as RewriteTemplate[];
  assert.deepEqual(
    templates.map(({ name }) => name),
    ["Add CORS Headers", "HTTP to HTTPS", "Add Auth Header", "Remove Security Headers", "No Caching", "Block Cookies"],
  );
  for (const { name, template } of templates) await create(api, { name, ...template });
});

test("every kind of action is stored unchanged", async () => {
  await using api = await startRewrites();
  const rewrites: RewriteAction[] = [
    { type: "url_rewrite", pattern: "(?i)^http://(.*)", replacement: "https://$1" },
    { type: "set_header", name: "X", value: "", append: true },
    { type: "remove_header", name: "X" },
    { type: "header_rewrite", name: "X", pattern: "a", replacement: "$&", flags: "im" },
    { type: "body_rewrite", pattern: "(?<n>a)", replacement: "$<n>" },
    { type: "query_param", name: "a", value: "" },
    { type: "remove_query_param", name: "a" },
    { type: "map_to_file", path: "dir/", prefix: "/x" },
    { type: "map_to_url", url: "https://a.test/b?c" },
    { type: "set_status", code: 599 },
    { type: "set_method", method: "M-SEARCH" },
    { type: "set_body", content: "aGk=", base64: true, content_type: "text/plain" },
    { type: "json_patch", patch: [{ op: "move", from: "/a", path: "/b~1c" }] },
    { type: "json_merge", patch: null },
  ];
  assert.deepEqual((await read(api, await create(api, { rewrites }))).rewrites, rewrites);
});

test("invalid rules are rejected with the field's path, and nothing changes", async () => {
  await using api = await startRewrites();
  const action = (rewrite: object, direction = "both"): object => ({ rewrites: [rewrite], direction });
  const at = "body/rewrites/0";
  const bad: readonly (readonly [object, string])[] = [
    [{ name: "" }, "body/name"],
    [{ name: " " }, "body/name"],
    [{ direction: undefined }, "body/direction"],
    [{ direction: "up" }, "body/direction"],
    [{ condition: undefined }, "body/condition"],
    [{ condition: { type: "url_pattern", pattern: "(" } }, "body/condition/pattern"],
    [{ url_pattern: "x" }, "body/url_pattern"],
    [{ rewrites: [] }, "body/rewrites"],
    [{ priority: 1.5 }, "body/priority"],
    [{ unknown: 1 }, "body/unknown"],
    [{ hit_count: 1 }, "body/hit_count"],
    [action({ type: "nope" }), `${at}`],
    [action({ type: "set_header", name: "A" }), `${at}/value`],
    [action({ type: "set_header", name: "A", value: "1", more: 1 }), `${at}/more`],
    [action({ type: "set_header", name: "A b", value: "1" }), `${at}/name`],
    [action({ type: "set_header", name: "A", value: "1\r\nB: 2" }), `${at}/value`],
    [action({ type: "set_header", name: "Content-Length", value: "1" }), `${at}/name`],
    [action({ type: "remove_header", name: "transfer-encoding" }), `${at}/name`],
    [action({ type: "body_rewrite", pattern: "(a", replacement: "" }), `${at}/pattern`],
    [action({ type: "body_rewrite", pattern: "a(?=b)", replacement: "" }), `${at}/pattern`],
    [action({ type: "body_rewrite", pattern: "a", replacement: "$1" }), `${at}/replacement`],
    [action({ type: "url_rewrite", pattern: "a", replacement: "b", flags: "g" }), `${at}/flags`],
    [action({ type: "url_rewrite", pattern: "a", replacement: "b" }, "response"), `${at}/type`],
    [action({ type: "set_status", code: 200 }, "request"), `${at}/type`],
    [action({ type: "set_status", code: 101 }), `${at}/code`],
    [action({ type: "set_method", method: "CONNECT" }), `${at}/method`],
    [action({ type: "set_method", method: "get" }), `${at}/method`],
    [action({ type: "map_to_url", url: "/relative" }), `${at}/url`],
    [action({ type: "map_to_url", url: "ftp://a.test/" }), `${at}/url`],
    [action({ type: "map_to_file", path: "/etc/passwd" }), `${at}/path`],
    [action({ type: "map_to_file", path: "../x" }), `${at}/path`],
    [action({ type: "set_body", content: "%%", base64: true }), `${at}/content`],
    [action({ type: "json_patch", patch: [{ op: "add", path: "/a" }] }), `${at}/patch/0/value`],
    [action({ type: "json_patch", patch: [{ op: "move", path: "/a" }] }), `${at}/patch/0/from`],
    [action({ type: "json_patch", patch: [{ op: "add", path: "a", value: 1 }] }), `${at}/patch/0/path`],
    [action({ type: "json_merge" }), `${at}/patch`],
  ];
  for (const [change, path] of bad) {
    const { status, json } = await api.call("POST", "/api/rewrites", { ...RULE, ...change });
    const ownResponse = json as { error: string; code: string; details: { path: string; message: string }[] };
    assert.deepEqual([status, ownResponse.code], [400, "VALIDATION_ERROR"], JSON.stringify([change, json]));
    const first = ownResponse.details[0]?.path ?? "";
    assert.ok(first === path || first === `${path}/type`, `${JSON.stringify(change)}: ${ownResponse.error}`);
  }
  assert.deepEqual((await api.call("GET", "/api/rewrites")).json, []);
  const device = await api.call("POST", "/api/rewrites", { ...RULE, device_id: "phone" });
  assert.deepEqual([device.status, (device.json as { code: string }).code], [400, "VALIDATION_ERROR"]);
});

test("rules export and import unchanged, and nothing is written when one is invalid", async () => {
  const slices: ReturnType<typeof createRewritesSlice>[] = [];
  const start = (): Promise<ApiRig> =>
    startApi({
      slices: (host: SliceHost) => {
        const slice = createRewritesSlice(host);
        slices.push(slice);
        return [slice];
      },
    });
  await using one = await start();
  await using other = await start();
  await create(one, { name: "a", priority: 5 });
  await create(one, { name: "b", enabled: false, direction: "request" });
  const [from, to] = slices.map(({ portableRules }) => portableRules);
  const exported = JSON.parse(JSON.stringify(from?.exportRules())) as RewriteRule[];
  assert.deepEqual(to?.importRules(exported, { mode: "replace", dryRun: false, version: 1 }), {
    counts: { added: 2, updated: 0, removed: 0, unchanged: 0 },
  });
  to?.reload();
  assert.deepEqual(to?.exportRules(), exported);
  const wrong = exported.map((rule) => ({ ...rule, rewrites: [{ type: "map_to_file", path: "/etc/passwd" }] }));
  const outcome = to?.importRules(wrong, { mode: "merge", dryRun: false, version: 1 });
  assert.deepEqual(outcome !== undefined && "issues" in outcome && outcome.issues.map(({ path }) => path), [
    "/0/rewrites/0/path",
    "/1/rewrites/0/path",
  ]);
  assert.equal((other.database.prepare("SELECT count(*) AS n FROM rewrite_rules").get() ?? {})["n"], 2);
});
