import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { ScriptHook, ScriptTemplate, ScriptTestResult, TestedRequest } from "@headworks/capture-contract";
import { startApi } from "../../../test/api-rig.ts";
import type { ApiRig } from "../../../test/api-rig.ts";
import { compileMatchFilter } from "./match-filter.ts";
import { SCRIPT_TEMPLATES } from "./script-templates.ts";
import { createScriptsSlice } from "./scripts.slice.ts";

let api: ApiRig;
const stopping = new AbortController();
let stopped: (() => Promise<void>) | undefined;

before(async () => {
  api = await startApi({
    slices: (host) => {
      const slice = createScriptsSlice(host);
      slice.task?.start(stopping.signal);
      stopped = slice.task?.stopped?.bind(slice.task);
      return [slice];
    },
  });
});
after(async () => {
  stopping.abort();
  await stopped?.();
  await api[Symbol.asyncDispose]();
});

function named(name: string): ScriptTemplate {
  const found = SCRIPT_TEMPLATES.find((template) => template.name === name);
  assert.ok(found, name);
  return found;
}

interface Sample {
  readonly hook?: ScriptHook;
  readonly request?: object;
  readonly response?: object;
  /** Edits of the source. */
  readonly edit?: (source: string) => string;
}

async function run(name: string, { hook = "on_request", edit, ...sample }: Sample): Promise<ScriptTestResult> {
  const { source } = named(name);
  const body = { source: edit?.(source) ?? source, hook, ...sample };
  const { status, json } = await api.call("POST", "/api/scripts/test", body);
  assert.equal(status, 200, JSON.stringify(json));
  const result = json as ScriptTestResult;
  assert.equal(result.error, null);
  return result;
}

const onResponse = { hook: "on_response" } as const;

/** A member of a modified message; undefined if the message was not modified. */
const header = (message: Pick<TestedRequest, "headers_list"> | null, name: string): string | undefined =>
  message?.headers_list.find(([each]) => each?.toLowerCase() === name)?.[1];

test("the templates have the names of the contract, and declare exactly the hooks that they name", async () => {
  const { json } = await api.call("GET", "/api/scripts/templates");
  assert.deepEqual(
    (json as ScriptTemplate[]).map(({ name }) => name),
    [
      "Log Requests",
      "Add CORS",
      "Block Domains",
      "Modify Headers",
      "Mock API",
      "Inject Latency",
      "Rewrite URL",
      "Inject Auth Token",
      "Modify JSON Response",
      "Override Status Code",
      "Cache Buster",
      "Strip Response Headers",
      "Conditional Mock",
    ],
  );
  for (const { name, source, hooks, match_filter: filter } of SCRIPT_TEMPLATES) {
    const validation = await api.call("POST", "/api/scripts/validate", { source });
    assert.deepEqual(validation.json, { valid: true, hooks }, name);
    compileMatchFilter(filter ?? null);
  }
});

test("every template can be created as it is", async () => {
  for (const template of SCRIPT_TEMPLATES) {
    const { status, json } = await api.call("POST", "/api/scripts", { ...template, enabled: false });
    assert.equal(status, 201, JSON.stringify(json));
  }
});

test("Log Requests writes a line for the request and one for the response, an error for a failed one", async () => {
  const request = { url: "https://a.test/x" };
  assert.deepEqual((await run("Log Requests", { request })).console, ["GET https://a.test/x"]);
  const ok = await run("Log Requests", { ...onResponse, request, response: { status_code: 204 } });
  assert.deepEqual(ok.console, ["204 GET https://a.test/x 0 ms"]);
  const failed = await run("Log Requests", { ...onResponse, request, response: { status_code: 503 } });
  assert.deepEqual(failed.console, ["[error] 503 GET https://a.test/x 0 ms"]);
});

test("Add CORS responds to preflights, and lets the asking origin read responses", async () => {
  const headers = { Origin: "https://app.test", "Access-Control-Request-Headers": "x-a" };
  const preflight = await run("Add CORS", {
    request: { method: "OPTIONS", headers: { ...headers, "Access-Control-Request-Method": "PUT" } },
  });
  assert.equal(preflight.continue_, false);
  assert.equal(preflight.response?.status_code, 204);
  assert.equal(header(preflight.response, "access-control-allow-origin"), "https://app.test");
  assert.equal(header(preflight.response, "access-control-allow-headers"), "x-a");
  const plain = await run("Add CORS", { request: { method: "OPTIONS", headers } });
  assert.equal(plain.continue_, true);
  const read = await run("Add CORS", { ...onResponse, request: { headers } });
  assert.equal(header(read.modified_response, "access-control-allow-origin"), "https://app.test");
  assert.equal(header(read.modified_response, "access-control-allow-credentials"), "true");
  assert.equal((await run("Add CORS", { ...onResponse, request: {} })).modified, false);
});

test("Block Domains refuses a listed domain and names below it only", async () => {
  for (const [host, isBlocked] of [
    ["ads.example.com", true],
    ["img.ADS.example.com", true],
    ["notads.example.com", false],
  ] as const) {
    const { response } = await run("Block Domains", { request: { url: `https://${host}/` } });
    assert.equal(response?.status_code, isBlocked ? 403 : undefined, host);
  }
});

test("Modify Headers sets, appends and removes fields", async () => {
  const sent = await run("Modify Headers", { request: { headers: { DNT: "1", Accept: "*/*" } } });
  assert.equal(header(sent.modified_request, "x-debug"), "1");
  assert.equal(header(sent.modified_request, "dnt"), undefined);
  const got = await run("Modify Headers", { ...onResponse, response: { headers: { Server: "x" } } });
  assert.equal(header(got.modified_response, "server"), undefined);
  assert.equal(header(got.modified_response, "cache-control"), "no-store");
  assert.equal(header(got.modified_response, "x-seen-by"), "script");
});

test("Mock API responds to its routes, with what was sent, and to nothing else", async () => {
  const users = await run("Mock API", { request: { url: "https://a.test/api/users?page=2" } });
  assert.equal(header(users.response, "content-type"), "application/json");
  assert.equal((JSON.parse(users.response?.body ?? "") as unknown[]).length, 2);
  const created = await run("Mock API", {
    request: { method: "POST", url: "https://a.test/api/users", body: '{"name":"Lin"}' },
  });
  assert.equal(created.response?.status_code, 201);
  assert.deepEqual(JSON.parse(created.response?.body ?? ""), { id: 3, name: "Lin" });
  assert.equal((await run("Mock API", { request: { url: "https://a.test/api/orders" } })).response, null);
});

test("Inject Latency delays within its limits and changes nothing; a test does not wait", async () => {
  const { modified, continue_, delay_ms: delayMs } = await run("Inject Latency", {});
  assert.deepEqual([modified, continue_], [false, true]);
  assert.ok(delayMs >= 200 && delayMs <= 800, String(delayMs));
});

test("Rewrite URL moves requests of its host and path, with their query", async () => {
  const moved = await run("Rewrite URL", { request: { url: "https://api.example.com/v1/users?page=2&q=a%20b" } });
  const url = new URL(moved.modified_request?.url ?? "");
  assert.equal(url.origin + url.pathname, "https://staging.example.com/v2/users");
  assert.deepEqual(Object.fromEntries(url.searchParams), { page: "2", q: "a b" });
  const other = await run("Rewrite URL", { request: { url: "https://api.example.com/v3/users" } });
  assert.equal(other.modified, false);
});

test("Inject Auth Token adds a token where there is none, for one host only", async () => {
  const { match_filter: filter } = named("Inject Auth Token");
  const sees = compileMatchFilter(filter ?? null);
  const request = { method: "GET", url: "https://api.example.com/", path: "/" };
  assert.equal(sees({ ...request, host: "api.example.com" }), true);
  assert.equal(sees({ ...request, host: "other.example.com" }), false);
  const added = await run("Inject Auth Token", { request: {} });
  assert.equal(header(added.modified_request, "authorization"), "Bearer YOUR_TOKEN");
  const kept = await run("Inject Auth Token", { request: { headers: { authorization: "Basic x" } } });
  assert.equal(kept.modified, false);
});

test("Modify JSON Response changes objects and leaves all else", async () => {
  const json = { "Content-Type": "application/problem+json" };
  const changed = await run("Modify JSON Response", {
    ...onResponse,
    response: { headers: json, body: '{"a":1,"internal":2}' },
  });
  assert.deepEqual(JSON.parse(changed.modified_response?.body ?? ""), { a: 1, debug: true });
  for (const response of [
    { headers: json, body: "[1]" },
    { headers: json, body: "null" },
    { headers: { "Content-Type": "text/html" }, body: '{"a":1}' },
  ]) {
    assert.equal((await run("Modify JSON Response", { ...onResponse, response })).modified, false);
  }
});

test("Override Status Code fails a response and tells when to retry", async () => {
  const { modified_response: failed } = await run("Override Status Code", { ...onResponse, request: {}, response: {} });
  assert.deepEqual([failed?.status_code, failed?.status_message], [503, "Service Unavailable"]);
  assert.equal(header(failed, "retry-after"), "1");
  const none = (source: string): string => source.replace("FAILURES = 2", "FAILURES = 0");
  assert.equal((await run("Override Status Code", { ...onResponse, edit: none, response: {} })).modified, false);
});

test("Cache Buster makes GET unconditional and unique, keeps its query, and forbids storing", async () => {
  const { modified_request: sent } = await run("Cache Buster", {
    request: { url: "https://a.test/x?q=1", headers: { "If-None-Match": '"a"' } },
  });
  assert.match(sent?.url ?? "", /^https:\/\/a\.test\/x\?q=1&_=\d{13}$/);
  assert.equal(header(sent, "if-none-match"), undefined);
  assert.equal(header(sent, "cache-control"), "no-cache");
  assert.equal((await run("Cache Buster", { request: { method: "POST" } })).modified, false);
  const got = await run("Cache Buster", { ...onResponse, response: { headers: { ETag: '"a"' } } });
  assert.equal(header(got.modified_response, "etag"), undefined);
  assert.equal(header(got.modified_response, "cache-control"), "no-store");
});

test("Strip Response Headers removes what tells the server's software and forbids framing", async () => {
  const headers = { Server: "x", "X-Powered-By": "y", "X-Frame-Options": "DENY", "Content-Type": "text/plain" };
  const { modified_response: got } = await run("Strip Response Headers", { ...onResponse, response: { headers } });
  assert.deepEqual(got?.headers_list, [["Content-Type", "text/plain"]]);
});

test("Conditional Mock responds to a field, a parameter or a body, and to no other request", async () => {
  for (const [request, isMocked] of [
    [{ headers: { "x-mock": "true" } }, true],
    [{ url: "https://a.test/?mock=1" }, true],
    [{ method: "POST", body: '{"dryRun":true}' }, true],
    [{ method: "POST" }, false],
    [{ url: "https://a.test/?mock=0" }, false],
  ] as const) {
    const { response } = await run("Conditional Mock", { request });
    assert.equal(response?.status_code, isMocked ? 200 : undefined, JSON.stringify(request));
  }
});
