import assert from "node:assert/strict";
import { test } from "node:test";
import type {
  NewScript,
  Script,
  ScriptConfig,
  ScriptExecution,
  ScriptMatch,
  ScriptTestResult,
  TrafficEntry,
  TrafficSnapshot,
} from "@headworks/capture-contract";
import type { PortableRules } from "#slice.ts";
import type { ActiveScript, ScriptEngine, ScriptEngineParts } from "#scripting/script-engine.ts";
import { startApi } from "../../../test/api-rig.ts";
import type { ApiRig } from "../../../test/api-rig.ts";
import type { HookCall } from "#scripting/script-pipeline.ts";
import { createScriptsSlice } from "./scripts.slice.ts";

/** A source that cannot be compiled, for the validation below. */
const BROKEN = "function onRequest( {";

/** An API with an engine that records what it is given; sources are valid unless they are {@link BROKEN}. */
interface ScriptsRig extends ApiRig {
  readonly loaded: () => readonly ActiveScript[];
  /** How often scripts were loaded. */
  readonly loads: () => number;
  readonly record: (call: HookCall) => void;
  readonly values: ScriptEngineParts["values"];
  /** The entry that the last test was made on. */
  readonly testedEntry: () => TrafficEntry | undefined;
  readonly portable: PortableRules;
}

async function startScripts(): Promise<ScriptsRig> {
  const loads: (readonly ActiveScript[])[] = [];
  let parts: ScriptEngineParts | undefined;
  let portable: PortableRules | undefined;
  let testedEntry: TrafficEntry | undefined;
  const createEngine = (given: ScriptEngineParts): ScriptEngine => {
    parts = given;
    return {
      runner: {
        problemOf: () => undefined,
        validate: (source: string) =>
          Promise.resolve(
            source === BROKEN
              ? { valid: false, error: "expecting ')'", line: 1, column: 20 }
              : { valid: true, hooks: source.includes("onResponse") ? ["on_response"] : ["on_request"] },
          ),
      } as Partial<ScriptEngine["runner"]> as ScriptEngine["runner"],
      pipeline: { name: "scripts", createStoreFilter: () => undefined } as unknown as ScriptEngine["pipeline"],
      start: () => Promise.resolve(),
      stop: () => Promise.resolve(),
      load: (scripts) => {
        loads.push(scripts);
      },
      test: (_body, entry) => {
        testedEntry = entry;
        return Promise.resolve(TESTED);
      },
      readTypes: () => "declare const console: Console;",
    };
  };
  const api = await startApi({
    slices: (host) => {
      const isCaptured = (id: string): boolean => ["entry", "tunnel"].includes(id);
      Object.assign(host.store, {
        getRow: (id: string) => Promise.resolve(isCaptured(id) ? ({ id } as TrafficSnapshot) : undefined),
        getEntry: (id: string) =>
          Promise.resolve(isCaptured(id) ? ({ id, is_passthrough: id === "tunnel" } as TrafficEntry) : undefined),
      });
      const slice = createScriptsSlice(host, createEngine);
      portable = slice.portableRules;
      return [slice];
    },
  });
  assert.ok(parts && portable);
  return Object.assign(api, {
    loaded: () => loads.at(-1) ?? [],
    loads: () => loads.length,
    record: parts.onCall,
    values: parts.values,
    testedEntry: () => testedEntry,
    portable,
  });
}

const TESTED: ScriptTestResult = {
  modified: false,
  continue_: true,
  response: null,
  error: null,
  console: [],
  changes: [],
  duration_ms: 1,
  delay_ms: 0,
  request: null,
  modified_request: null,
  original_response: null,
  modified_response: null,
  modified_payload: null,
};

const SCRIPT: NewScript = { name: "script", source: "function onRequest(request) {}" };

async function create(api: ApiRig, body: object = {}): Promise<string> {
  const { status, json } = await api.call("POST", "/api/scripts", { ...SCRIPT, ...body });
  assert.equal(status, 201, JSON.stringify(json));
  return (json as { id: string }).id;
}

async function read(api: ApiRig, id: string): Promise<Script> {
  const { status, json } = await api.call("GET", `/api/scripts/${id}`);
  assert.equal(status, 200, JSON.stringify(json));
  return json as Script;
}

async function list(api: ApiRig): Promise<Script[]> {
  return (await api.call("GET", "/api/scripts")).json as Script[];
}

const names = (scripts: readonly { readonly name: string }[]): string[] => scripts.map(({ name }) => name);

function execution(scriptId: string, more: Partial<HookCall> = {}): HookCall {
  return {
    scriptId,
    scriptName: "script",
    hook: "on_request",
    entryId: "entry",
    durationMs: 1.5,
    error: null,
    console: [],
    changes: [],
    atMs: Date.UTC(2026, 0, 1),
    ...more,
  };
}

test("a created script has the contract's defaults, and the hooks that its source declares", async () => {
  await using api = await startScripts();
  const { status, json } = await api.call("POST", "/api/scripts", { ...SCRIPT, name: " spaced " });
  const now = new Date(api.clock.now()).toISOString();
  const { id } = json as { id: string };
  const script = {
    id,
    name: "spaced",
    description: null,
    source: SCRIPT.source,
    hooks: ["on_request"],
    enabled: true,
    priority: 100,
    on_error: "stop_chain",
    created_at: now,
    modified_at: now,
    problem: null,
  };
  assert.deepEqual([status, json], [201, { id, script }]);
  assert.deepEqual(await read(api, id), script);
});

test("given hooks are kept, each once and in the order of an exchange", async () => {
  await using api = await startScripts();
  const id = await create(api, { hooks: ["on_traffic_store", "on_response", "on_traffic_store"] });
  assert.deepEqual((await read(api, id)).hooks, ["on_response", "on_traffic_store"]);
});

test("a name of spaces, a source of spaces and an unknown hook are refused", async () => {
  await using api = await startScripts();
  for (const [body, path] of [
    [{ name: "  " }, "body/name"],
    [{ name: "x".repeat(256) }, "body/name"],
    [{ source: " \n" }, "body/source"],
    [{ hooks: ["on_fire"] }, "body/hooks/0"],
    [{ match_filter: { port: 80 } }, "body/match_filter/port"],
    [{ language: "python" }, "body/language"],
  ] as const) {
    const { status, json } = await api.call("POST", "/api/scripts", { ...SCRIPT, ...body });
    const { code, details } = json as { code: string; details: { path: string }[] };
    assert.deepEqual([status, code, details[0]?.path], [400, "VALIDATION_ERROR", path]);
  }
  assert.deepEqual(await list(api), []);
});

test("a source that cannot be compiled is refused with line and column, for a new script and for an update", async () => {
  await using api = await startScripts();
  const id = await create(api);
  for (const [method, path] of [
    ["POST", "/api/scripts"],
    ["PUT", `/api/scripts/${id}`],
  ] as const) {
    const { status, json } = await api.call(method, path, { name: "broken", source: BROKEN });
    const { details } = json as { details: unknown };
    const message = "line 1, column 20: expecting ')'";
    assert.deepEqual([status, details], [400, [{ path: "body/source", message }]]);
  }
  assert.deepEqual(names(await list(api)), ["script"]);
});

test("an update changes only what is given, and null clears the description and the filter", async () => {
  await using api = await startScripts();
  const id = await create(api, { description: "old", match_filter: { method: "GET" }, on_error: "continue" });
  const before = await read(api, id);
  await api.clock.advance(5000);
  const modified_at = new Date(api.clock.now()).toISOString();
  assert.equal((await api.call("PUT", `/api/scripts/${id}`, { priority: 5 })).status, 204);
  assert.deepEqual(await read(api, id), { ...before, priority: 5, modified_at });
  await api.call("PUT", `/api/scripts/${id}`, { description: null, match_filter: null });
  const { match_filter: _filter, ...unfiltered } = before;
  assert.deepEqual(await read(api, id), { ...unfiltered, priority: 5, description: null, modified_at });
  assert.equal((await api.call("PUT", `/api/scripts/${id}`, { source: " " })).status, 400);
});

test("PUT accepts the body of GET, whose read-only members change nothing", async () => {
  await using api = await startScripts();
  const id = await create(api, { match_filter: { host_pattern: "*.test" } });
  const before = await read(api, id);
  const body = { ...before, id: "other", created_at: "2020-01-01T00:00:00.000Z", problem: "none" };
  assert.equal((await api.call("PUT", `/api/scripts/${id}`, body)).status, 204);
  assert.deepEqual(await read(api, id), before);
});

test("hooks follow a new source, unless they were chosen", async () => {
  await using api = await startScripts();
  const source = "function onResponse() {}";
  const follows = await create(api);
  const chosen = await create(api, { hooks: ["on_traffic_store"] });
  for (const id of [follows, chosen]) await api.call("PUT", `/api/scripts/${id}`, { source });
  assert.deepEqual((await read(api, follows)).hooks, ["on_response"]);
  assert.deepEqual((await read(api, chosen)).hooks, ["on_traffic_store"]);
});

test("scripts are listed, loaded and run by priority, then by age", async () => {
  await using api = await startScripts();
  await create(api, { name: "late", priority: 200 });
  await create(api, { name: "first of 100" });
  await create(api, { name: "second of 100" });
  await create(api, { name: "early", priority: -1 });
  await create(api, { name: "off", priority: 0, enabled: false });
  const order = ["early", "first of 100", "second of 100", "late"];
  const { json, headers } = await api.call("GET", "/api/scripts");
  assert.deepEqual(names(json as Script[]), ["early", "off", ...order.slice(1)]);
  assert.equal(headers.get("x-total-count"), "5");
  assert.deepEqual(names(api.loaded()), order);
});

test("a script is switched by its state or by a given one, and a disabled one is not loaded", async () => {
  await using api = await startScripts();
  const id = await create(api);
  const toggle = async (body?: object): Promise<unknown> =>
    (await api.call("POST", `/api/scripts/${id}/toggle`, body)).json;
  assert.deepEqual(await toggle(), { id, enabled: false });
  assert.deepEqual(api.loaded(), []);
  assert.deepEqual(await toggle({ enabled: false }), { id, enabled: false });
  assert.deepEqual(await toggle(), { id, enabled: true });
  const [script] = api.loaded();
  assert.deepEqual([script?.id, script?.name, script?.source], [id, "script", SCRIPT.source]);
  assert.deepEqual([script?.onError, [...(script?.hooks ?? [])]], ["stop_chain", ["on_request"]]);
});

test("a move by one place renumbers all priorities in steps of ten from 100, disabled scripts included", async () => {
  await using api = await startScripts();
  await create(api, { name: "a", priority: 1 });
  await create(api, { name: "b", priority: 2, enabled: false });
  const id = await create(api, { name: "c", priority: 3 });
  assert.equal((await api.call("POST", `/api/scripts/${id}/reorder`, { direction: "up" })).status, 204);
  const after = (await list(api)).map(({ name, priority }) => [name, priority]);
  assert.deepEqual(after, [
    ["a", 100],
    ["c", 110],
    ["b", 120],
  ]);
  await api.call("POST", `/api/scripts/${id}/reorder`, { direction: "down" });
  assert.deepEqual(names(await list(api)), ["a", "b", "c"]);
});

test("a move beyond the first or last place is refused and changes nothing", async () => {
  await using api = await startScripts();
  const first = await create(api, { priority: 7 });
  const last = await create(api, { priority: 7 });
  const before = await list(api);
  for (const [id, direction, end] of [
    [first, "up", "first"],
    [last, "down", "last"],
  ] as const) {
    const { status, json } = await api.call("POST", `/api/scripts/${id}/reorder`, { direction });
    assert.deepEqual(
      [status, (json as { error: string }).error],
      [400, `body/direction: the script is already the ${end} one`],
    );
  }
  assert.deepEqual(await list(api), before);
});

test("a given priority is set as it is; both or none of priority and direction are refused", async () => {
  await using api = await startScripts();
  await create(api, { name: "other" });
  const id = await create(api, { name: "moved" });
  assert.equal((await api.call("POST", `/api/scripts/${id}/reorder`, { priority: 42 })).status, 204);
  assert.deepEqual(
    (await list(api)).map(({ name, priority }) => [name, priority]),
    [
      ["moved", 42],
      ["other", 100],
    ],
  );
  for (const body of [{}, { direction: "up", priority: 1 }, { direction: "left" }]) {
    assert.equal((await api.call("POST", `/api/scripts/${id}/reorder`, body)).status, 400);
  }
});

test("operations on an unknown script are 404", async () => {
  await using api = await startScripts();
  const id = await create(api);
  assert.equal((await api.call("DELETE", `/api/scripts/${id}`)).status, 204);
  for (const [method, suffix, body] of [
    ["GET", "", undefined],
    ["PUT", "", SCRIPT],
    ["DELETE", "", undefined],
    ["POST", "/toggle", undefined],
    ["POST", "/reorder", { direction: "up" }],
    ["GET", "/history", undefined],
    ["DELETE", "/history", undefined],
  ] as const) {
    const { status, json } = await api.call(method, `/api/scripts/${id}${suffix}`, body);
    assert.deepEqual([status, (json as { error: string }).error], [404, "Script not found"], `${method} ${suffix}`);
  }
});

test("a change is announced once, and a deleted script is not loaded", async () => {
  await using api = await startScripts();
  const topics: string[] = [];
  api.events.changed = (topic) => topics.push(topic);
  const id = await create(api);
  await api.call("PUT", `/api/scripts/${id}`, { priority: 1 });
  await api.call("POST", `/api/scripts/${id}/toggle`);
  await api.call("POST", `/api/scripts/${id}/toggle`);
  await api.call("DELETE", `/api/scripts/${id}`);
  assert.deepEqual(
    topics,
    Array.from({ length: 5 }, () => "scripts"),
  );
  assert.deepEqual(api.loaded(), []);
});

test("the preview names the scripts that would run for a request, in order", async () => {
  await using api = await startScripts();
  await create(api, { name: "all", priority: 3 });
  await create(api, { name: "host", priority: 2, match_filter: { host_pattern: "*.Shop.test" } });
  await create(api, { name: "path", priority: 1, match_filter: { path_pattern: "/cart?id=*", method: "post" } });
  await create(api, { name: "response", source: "function onResponse() {}" });
  await create(api, { name: "session", hooks: ["on_session_start"] });
  await create(api, { name: "no hook", hooks: [] });
  await create(api, { name: "off", enabled: false });
  const preview = async (body: object): Promise<string[]> => {
    const { status, json } = await api.call("POST", "/api/scripts/match-preview", body);
    assert.equal(status, 200, JSON.stringify(json));
    return names(json as ScriptMatch[]);
  };
  const url = "https://api.shop.test:8443/cart?id=1";
  assert.deepEqual(await preview({ url }), ["host", "all", "response"]);
  assert.deepEqual(await preview({ url, method: "POST" }), ["path", "host", "all", "response"]);
  assert.deepEqual(await preview({ url, hook: "on_response" }), ["response"]);
  assert.deepEqual(await preview({ url, host: "else.test", path: "/cart?id=", method: "Post" }), [
    "path",
    "all",
    "response",
  ]);
  assert.deepEqual(await preview({ url, hook: "on_session_start" }), ["session"]);
  const [first] = (await api.call("POST", "/api/scripts/match-preview", { url })).json as ScriptMatch[];
  assert.deepEqual(Object.keys(first ?? {}), ["id", "name", "priority", "enabled", "hooks", "match_filter"]);
  const refused = await api.call("POST", "/api/scripts/match-preview", { url: "/cart" });
  assert.deepEqual(
    [refused.status, (refused.json as { error: string }).error],
    [400, "body/url: must be an absolute URL"],
  );
});

test("validation tells the problem of a source and its hooks, and stores nothing", async () => {
  await using api = await startScripts();
  const validate = async (source: string): Promise<unknown> =>
    (await api.call("POST", "/api/scripts/validate", { source })).json;
  assert.deepEqual(await validate(BROKEN), { valid: false, error: "expecting ')'", line: 1, column: 20 });
  assert.deepEqual(await validate("function onResponse() {}"), { valid: true, hooks: ["on_response"] });
  assert.deepEqual(await list(api), []);
});

test("a test takes a captured entry or a sample, and refuses both, unknown entries and tunnels", async () => {
  await using api = await startScripts();
  const run = async (body: object): Promise<number> =>
    (await api.call("POST", "/api/scripts/test", { source: SCRIPT.source, hook: "on_request", ...body })).status;
  assert.equal(await run({ request: { url: "https://a.test/" } }), 200);
  assert.equal(api.testedEntry(), undefined);
  assert.equal(await run({ entry_id: "entry" }), 200);
  assert.equal(api.testedEntry()?.id, "entry");
  assert.equal(await run({ entry_id: "entry", request: {} }), 400);
  assert.equal(await run({ entry_id: "entry", response: {} }), 400);
  assert.equal(await run({ entry_id: "none" }), 404);
  assert.equal(await run({ entry_id: "tunnel" }), 400);
  assert.equal(await run({ hook: "on_fire" }), 400);
});

test("history is newest first, per script or of all, with the total count beside a limited list", async () => {
  await using api = await startScripts();
  const [one, two] = [await create(api), await create(api)];
  for (const [id, atMs] of [
    [one, 1000],
    [two, 2000],
    [one, 3000],
  ] as const) {
    api.record(execution(id, { atMs }));
  }
  const times = async (path: string): Promise<[number[], string | null]> => {
    const { json, headers } = await api.call("GET", path);
    const shown = (json as ScriptExecution[]).map(({ timestamp }) => Date.parse(timestamp));
    return [shown, headers.get("x-total-count")];
  };
  assert.deepEqual(await times("/api/scripts/history"), [[3000, 2000, 1000], "3"]);
  assert.deepEqual(await times("/api/scripts/history?limit=1"), [[3000], "3"]);
  assert.deepEqual(await times(`/api/scripts/${one}/history`), [[3000, 1000], "2"]);
  assert.deepEqual(await times(`/api/scripts/${one}/history?limit=1`), [[3000], "2"]);
  assert.equal((await api.call("GET", "/api/scripts/history?limit=1001")).status, 400);
  assert.equal((await api.call("DELETE", `/api/scripts/${one}/history`)).status, 204);
  assert.deepEqual(await times("/api/scripts/history"), [[2000], "1"]);
});

test("an execution is shown with its script, hook, entry, result, lines and changes", async () => {
  await using api = await startScripts();
  const id = await create(api);
  api.record(execution(id, { error: "line 2: no", console: ["warn: a"], changes: ["set header A"] }));
  api.record(execution(id, { hook: null, entryId: null }));
  const { json } = await api.call("GET", "/api/scripts/history");
  const common = { script_id: id, script_name: "script", duration_ms: 1.5, timestamp: "2026-01-01T00:00:00.000Z" };
  assert.deepEqual(json, [
    { ...common, success: true, error: null, console: [], changes: [] },
    {
      ...common,
      hook: "on_request",
      traffic_entry_id: "entry",
      success: false,
      error: "line 2: no",
      console: ["warn: a"],
      changes: ["set header A"],
    },
  ]);
});

test("the traces of an entry are oldest first, keep the names of deleted scripts, and are 404 for unknown entries", async () => {
  await using api = await startScripts();
  const [kept, deleted] = [await create(api), await create(api)];
  api.record(execution(deleted, { scriptName: "gone" }));
  api.record(execution(kept, { scriptName: "kept" }));
  api.record(execution(kept, { scriptName: "kept", entryId: "other" }));
  await api.call("DELETE", `/api/scripts/${deleted}`);
  const { json } = await api.call("GET", "/api/traffic/entry/script-traces");
  assert.deepEqual(
    (json as ScriptExecution[]).map(({ script_name }) => script_name),
    ["gone", "kept"],
  );
  const history = await api.call("GET", "/api/scripts/history");
  assert.deepEqual(
    (history.json as ScriptExecution[]).map(({ script_name }) => script_name),
    ["kept", "kept"],
  );
  assert.equal((await api.call("GET", "/api/traffic/none/script-traces")).status, 404);
});

test("a deleted script takes its values with it", async () => {
  await using api = await startScripts();
  const [kept, deleted] = [await create(api), await create(api)];
  for (const id of [kept, deleted]) api.values.write(id, { a: "1" });
  await api.call("DELETE", `/api/scripts/${deleted}`);
  assert.deepEqual([...api.values.all().keys()], [kept]);
});

test("an imported script that cannot be compiled is kept with its problem, and is not previewed", async () => {
  await using api = await startScripts();
  const id = await create(api);
  const script = { ...(await read(api, id)), source: BROKEN };
  const imported = api.portable.importRules([script], { mode: "replace", dryRun: false, version: 1 });
  assert.deepEqual(imported, { counts: { added: 0, updated: 1, removed: 0, unchanged: 0 } });
  api.portable.reload();
  assert.equal((await list(api))[0]?.problem, "line 1, column 20: expecting ')'");
  const preview = await api.call("POST", "/api/scripts/match-preview", { url: "https://a.test/" });
  assert.deepEqual(preview.json, []);
});

test("an import removes the values of scripts that it replaces, and keeps those of the others", async () => {
  await using api = await startScripts();
  const [kept, removed] = [await create(api), await create(api)];
  for (const id of [kept, removed]) api.values.write(id, { a: "1" });
  api.portable.importRules([await read(api, kept)], { mode: "replace", dryRun: false, version: 1 });
  api.portable.reload();
  assert.deepEqual([...api.values.all().keys()], [kept]);
  assert.deepEqual(
    api.loaded().map(({ id }) => id),
    [kept],
  );
});

test("a new memory limit loads the scripts again", async () => {
  await using api = await startScripts();
  await create(api);
  const before = api.loads();
  await api.call("PUT", "/api/scripts/config", { timeout_ms: 100 });
  assert.equal(api.loads(), before);
  await api.call("PUT", "/api/scripts/config", { memory_limit_mb: 64 });
  assert.equal(api.loads(), before + 1);
});

test("the limits are read and changed under both of their names, and hold at once", async () => {
  await using api = await startScripts();
  const shown = {
    timeout_ms: 5000,
    memory_limit_mb: 10,
    capture_console: true,
    history_limit: 10_000,
    max_memory_bytes: 10_485_760,
    enable_console: true,
    allow_network: false,
    allow_fs: false,
  };
  const put = async (body: object): Promise<unknown> => (await api.call("PUT", "/api/scripts/config", body)).json;
  assert.deepEqual((await api.call("GET", "/api/scripts/config")).json, shown);
  assert.deepEqual(await put(shown), shown);
  const changed = { ...shown, timeout_ms: 250, memory_limit_mb: 20, max_memory_bytes: 20_971_520 };
  assert.deepEqual(await put({ timeout_ms: 250, memory_limit_mb: 20 }), changed);
  assert.equal(api.settings.running.script_memory_limit_mb, 20);
  assert.deepEqual(await put({ max_memory_bytes: 10_485_760 }), { ...shown, timeout_ms: 250 });
  const quiet = (await put({ enable_console: false })) as ScriptConfig;
  assert.deepEqual([quiet.capture_console, quiet.enable_console], [false, false]);
  assert.deepEqual(await put({ ...quiet, memory_limit_mb: 30 }), {
    ...quiet,
    memory_limit_mb: 30,
    max_memory_bytes: 31_457_280,
  });
});

test("limits out of range, that contradict each other, or that would open the sandbox are refused", async () => {
  await using api = await startScripts();
  const before = (await api.call("GET", "/api/scripts/config")).json;
  for (const [body, path] of [
    [{ timeout_ms: 9 }, "body/timeout_ms"],
    [{ timeout_ms: 250, memory_limit_mb: 513 }, "body/memory_limit_mb"],
    [{ max_memory_bytes: 10_485_761 }, "body/max_memory_bytes"],
    [{ memory_limit_mb: 20, max_memory_bytes: 31_457_280 }, "body/max_memory_bytes"],
    [{ allow_network: true }, "body/allow_network"],
    [{ allow_fs: true }, "body/allow_fs"],
  ] as const) {
    const { status, json } = await api.call("PUT", "/api/scripts/config", body);
    assert.deepEqual([status, (json as { details: { path: string }[] }).details[0]?.path], [400, path]);
  }
  assert.deepEqual((await api.call("GET", "/api/scripts/config")).json, before);
});

test("the declarations of the script API are text for editors", async () => {
  await using api = await startScripts();
  const { headers, json } = await api.call("GET", "/api/scripts/types");
  assert.equal(headers.get("content-type"), "text/plain; charset=utf-8");
  assert.equal(json, "declare const console: Console;");
});
