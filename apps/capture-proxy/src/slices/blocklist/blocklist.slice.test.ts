import assert from "node:assert/strict";
import { test } from "node:test";
import type { BlockEntry } from "@headworks/capture-contract";
import type { Exchange, TraceStep } from "#exchange/exchange.ts";
import type { SyntheticResponse, Target, Verdict } from "#exchange/phases.ts";
import { type ApiRig, startApi } from "../../../test/api-rig.ts";
import {
  compileBlockRules,
  createBlocklistInterceptor,
  createBlocklistSlice,
  newBlockEntry,
} from "./blocklist.slice.ts";

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

const entry = (id: string, body: Parameters<typeof newBlockEntry>[1]) => newBlockEntry(id, body, 0);

function setUp(...bodies: readonly Parameters<typeof newBlockEntry>[1][]) {
  const hits: string[] = [];
  const rules = compileBlockRules(bodies.map((body, index) => entry(`e${index}`, body)));
  const interceptor = createBlocklistInterceptor({ rules: () => rules, onHit: (id) => hits.push(id) });
  const target = (host: string): Verdict | Promise<Verdict> | undefined =>
    interceptor.onTarget?.({ host, port: 443 } as Target);
  const head = (exchange: Partial<Exchange>): Verdict | Promise<Verdict> | undefined =>
    interceptor.onRequestHead?.(exchange as Exchange);
  return { hits, rules, target, head };
}

test("a bare domain blocks itself and its subdomains, a starred one only those, a glob the whole name", () => {
  const table: readonly (readonly [string, string, boolean])[] = [
    ["ads.test", "ads.test", true],
    ["ads.test", "ADS.test.", true],
    ["ads.test", "x.y.ads.test", true],
    ["ads.test", "badads.test", false],
    ["ads.test", "ads.test.evil", false],
    ["*.ads.test", "x.ads.test", true],
    ["*.ads.test", "ads.test", false],
    ["ads*.test", "ads7.test", true],
    ["ads*.test", "x.ads7.test", false],
    ["*tracker*", "my.tracker.test", true],
    ["10.0.0.0/8", "10.9.8.7", true],
    ["10.0.0.0/8", "11.9.8.7", false],
    ["127.0.0.1", "127.0.0.1", true],
    ["::1", "::1", true],
    ["bücher.test", "xn--bcher-kva.test", true],
  ];
  for (const [pattern, host, expected] of table) {
    assert.equal(setUp({ pattern }).rules.find(host) !== undefined, expected, `${pattern} ${host}`);
  }
});

test("a blocked request gets the entry's response and a trace, and one hit is counted", () => {
  const { head, hits } = setUp({
    pattern: "ads.test",
    status_code: 451,
    response_body: "nö",
    content_type: "text/html; charset=utf-8",
  });
  const steps: TraceStep[] = [];
  const exchange: Partial<Exchange> = {
    request: { host: "x.ads.test" } as Exchange["request"],
    addTrace: (step) => void steps.push(step),
  };
  assert.deepEqual(head(exchange), {
    kind: "respond",
    response: {
      status: 451,
      fields: ["Content-Type", "text/html; charset=utf-8", "Content-Length", "3", "Cache-Control", "no-store"],
      body: Buffer.from("nö"),
    },
  });
  assert.deepEqual(steps, [
    { kind: "block", ruleId: "e0", ruleName: "ads.test", phase: "request", changes: ["answered with 451"] },
  ]);
  assert.deepEqual(hits, ["e0"]);
});

test("a request to another host continues untouched", () => {
  const { head, target, hits } = setUp({ pattern: "ads.test" }, { pattern: "off.test", enabled: false });
  for (const host of ["good.test", "off.test"]) {
    const exchange: Partial<Exchange> = { request: { host } as Exchange["request"] };
    assert.deepEqual(head(exchange), { kind: "continue" });
    assert.deepEqual(target(host), { kind: "continue" });
  }
  assert.deepEqual(hits, []);
});

test("a tunnel to a blocked host is refused at CONNECT", () => {
  const { target, hits } = setUp({ pattern: "ads.test" });
  const verdict = target("ads.test") as { kind: "respond"; response: SyntheticResponse };
  assert.equal(verdict.kind, "respond");
  assert.equal(verdict.response.status, 403);
  assert.equal(verdict.response.body.toString(), "Blocked by Weir");
  assert.deepEqual(hits, ["e0"]);
});

test("the oldest of several matching entries wins, and hits of equal patterns count for the oldest", () => {
  const { head, hits } = setUp(
    { pattern: "*.a.test", status_code: 410 },
    { pattern: "x.a.test", status_code: 411 },
    { pattern: "*.a.test" },
  );
  const verdict = head({ request: { host: "x.a.test" } as Exchange["request"], addTrace: () => undefined }) as {
    response: SyntheticResponse;
  };
  assert.equal(verdict.response.status, 410);
  assert.deepEqual(hits, ["e0"]);
});

test("responses with a status that forbids content have none", () => {
  for (const status_code of [204, 205, 304]) {
    const block = setUp({ pattern: "a.test", status_code, response_body: "text" }).rules.find("a.test");
    assert.equal(block?.response.body.length, 0);
    assert.equal(block?.response.fields.includes("Content-Type"), false);
  }
});

test("thousands of entries cost a look-up about what one costs, and stored nonsense is reported", () => {
  const bodies = Array.from({ length: 5000 }, (_, index) => ({ pattern: `h${index}.test` }));
  const { rules } = setUp(...bodies);
  const started = performance.now();
  for (let count = 0; count < 20_000; count += 1) rules.find(`x.h${count % 5000}.test`);
  assert.ok(performance.now() - started < 2000);
  assert.deepEqual(
    setUp({ pattern: "a//b" }).rules.issues.map(({ pattern }) => pattern),
    ["a//b"],
  );
});
