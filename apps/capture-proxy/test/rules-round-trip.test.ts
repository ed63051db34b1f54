import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { after, before, describe, test } from "node:test";
import type { ConfigDocument, RuleBundle } from "@headworks/capture-contract";
import { temporaryDirectory } from "@headworks/testkit";
import { runInside } from "./cli-rig.ts";
import type { CommandResult } from "./cli-rig.ts";
import { startProxyRig } from "./proxy-rig.ts";
import type { ProxyRig } from "./proxy-rig.ts";

/** A rule of each kind, with everything a person can set that differs from its default. */
async function addRules(rig: ProxyRig): Promise<void> {
  await rig.api("POST", "/blocklist", { pattern: "ads.test", note: "ä", status_code: 451, response_body: "no" }, 201);
  await rig.api("POST", "/blocklist", { pattern: "*.later.test", enabled: false }, 201);
  await rig.api("POST", "/focus", { pattern: "*.api.test" }, 201);
  const condition = {
    type: "and",
    conditions: [
      { type: "url_pattern", pattern: "*/users/*" },
      { type: "not", condition: { type: "header", name: "X-Internal" } },
      { type: "graphql_type", operation_type: "mutation" },
      { type: "json_path", path: "$.id", value: { a: [1, null, "x"] } },
    ],
  };
  await rig.api("POST", "/breakpoints", { name: "Pause", condition, direction: "both", priority: 5 }, 201);
  await rig.api(
    "POST",
    "/rewrites",
    {
      name: "Header",
      condition,
      direction: "response",
      rewrites: [{ type: "set_header", name: "X-A", value: "1" }],
      enabled: false,
    },
    201,
  );
  const { id } = await rig.api<{ id: string }>("POST", "/mocks/collections", { name: "Set", tags: ["a"] }, 201);
  await rig.api(
    "POST",
    "/mocks/advanced",
    {
      name: "Two answers",
      condition,
      collection_id: id,
      response_config: { type: "sequence", responses: [{ status_code: 500, body: "ä" }, { status_code: 201 }] },
    },
    201,
  );
  const request = { method: "PUT", url: "http://a.test/x?y=1", headers: { "X-A": "1" }, body: "ä" };
  await rig.api("POST", "/replay/saved", { name: "Again", request, tags: ["t"] }, 201);
  await rig.api(
    "POST",
    "/ws-traffic/rules",
    { name: "No ticks", match: { text: "tick" }, action: { type: "drop" } },
    201,
  );
  await rig.api(
    "POST",
    "/scripts",
    {
      name: "Script",
      description: "ä",
      source: "function onResponse(request, response) { response.headers['X-B'] = 'ä'; }",
      match_filter: { host_pattern: "*.test", method: "GET" },
      on_error: "continue",
      priority: 5,
      enabled: false,
    },
    201,
  );
  await rig.api("POST", "/throttle", { name: "Slow", download_bps: 1000, delay_ms: 5, enabled: true });
}

async function exported(rig: ProxyRig): Promise<RuleBundle> {
  const { data } = await rig.api<{ data: string }>("GET", "/persistence/export");
  return JSON.parse(data) as RuleBundle;
}

/** What two exports have in common when the rules are the same. */
function content({ exported_at: _time, ...rest }: RuleBundle): unknown {
  return rest;
}

describe("rules of every kind", () => {
  let source: ProxyRig;
  let target: ProxyRig;
  let empty: RuleBundle;
  before(async () => {
    [source, target] = await Promise.all([startProxyRig(), startProxyRig()]);
    empty = await exported(source);
    await addRules(source);
  });
  after(async () => {
    await Promise.all([source[Symbol.asyncDispose](), target[Symbol.asyncDispose]()]);
  });

  test("go elsewhere without a difference, and back", async () => {
    const bundle = await exported(source);
    const { version: _version, versions, exported_at: _time, ...sections } = bundle;
    assert.deepEqual(Object.keys(versions), Object.keys(sections));
    for (const [key, rules] of Object.entries(sections)) assert.notDeepEqual(rules, empty[key], `${key} has a rule`);
    await addRules(target);
    await target.api("POST", "/persistence/import?mode=replace", { data: JSON.stringify(bundle) });
    assert.deepEqual(content(await exported(target)), content(bundle));
    await target.api("POST", "/persistence/import?mode=merge", bundle);
    assert.deepEqual(content(await exported(target)), content(bundle));
    await target.api("POST", "/persistence/import?mode=replace", empty);
    assert.deepEqual(content(await exported(target)), content(empty));
  });

  test("are in force as soon as they are imported, and not when one of them is refused", async () => {
    const entry = {
      id: "b1",
      pattern: "127.0.0.1",
      note: null,
      enabled: true,
      hit_count: 0,
      status_code: 418,
      response_body: "no",
      content_type: "text/plain",
      created_at: "2026-01-01T00:00:00.000Z",
      updated_at: "2026-01-01T00:00:00.000Z",
      device_id: null,
    };
    await target.api("POST", "/persistence/import", { ...empty, block_list: [entry], rewrites: [{}] }, 400);
    assert.equal((await target.send()).status, 200);
    await target.api("POST", "/persistence/import", { ...empty, block_list: [entry] });
    assert.equal((await target.send()).status, 418);
    await target.api("POST", "/persistence/import?mode=replace", empty);
    assert.equal((await target.send()).status, 200);
  });

  test("go along with the settings", async () => {
    await source.api("PATCH", "/config", { max_requests: 123 });
    const document = await source.api<ConfigDocument>("GET", "/config/export");
    await target.api("POST", "/config/import?mode=replace", { config: document });
    const taken = await target.api<ConfigDocument>("GET", "/config/export");
    assert.deepEqual(taken.settings, document.settings);
    assert.deepEqual(content(taken.rules as RuleBundle), content(document.rules as RuleBundle));
  });

  test("the command line takes rules out and in, keeps them and puts them back", async () => {
    const directory = await temporaryDirectory();
    const weir = async (...args: string[]): Promise<CommandResult> => {
      const result = await runInside([...args, "--api-url", target.proxy.addresses.api]);
      assert.equal(result.code, 0, `${args.join(" ")}: ${result.stderr}`);
      return result;
    };
    await target.api("POST", "/focus", { pattern: "a.test" }, 201);
    const { stdout } = await weir("persistence", "export");
    const bundle = JSON.parse(stdout) as RuleBundle;
    assert.deepEqual(content(bundle), content(await exported(target)));
    const file = directory.file("rules.json");
    await writeFile(file, stdout);
    await weir("persistence", "save");
    await target.api("DELETE", "/focus", undefined, 204);
    await weir("persistence", "import", file, "--mode", "replace", "--dry-run");
    assert.deepEqual(await target.api("GET", "/focus"), []);
    await weir("persistence", "import", file, "--mode", "replace");
    assert.deepEqual(content(await exported(target)), content(bundle));
    await target.api("DELETE", "/focus", undefined, 204);
    await weir("persistence", "load");
    assert.deepEqual(content(await exported(target)), content(bundle));
    const settings = JSON.parse((await weir("config", "export", "--json")).stdout) as ConfigDocument;
    await writeFile(file, JSON.stringify(settings));
    await weir("config", "import", file);
    await directory.remove();
  });
});
