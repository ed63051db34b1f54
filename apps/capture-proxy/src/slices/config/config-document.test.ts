import assert from "node:assert/strict";
import { test } from "node:test";
import type { ConfigDocument, ConfigImport, FocusHost } from "@headworks/capture-contract";
import { strictObject, Type } from "@headworks/contract-kit";
import { portableList } from "#portable/portable-list.ts";
import { createRuleBundles } from "#portable/rule-bundles.ts";
import { startApi } from "../../../test/api-rig.ts";
import type { ApiRig } from "../../../test/api-rig.ts";
import { createConfigSlice } from "./config.slice.ts";

type Rule = Pick<FocusHost, "id" | "pattern">;

interface Rig extends AsyncDisposable {
  readonly api: ApiRig;
  rules: readonly Rule[];
}

const SECRET = "hunter2-hunter2";

async function startConfig(flags: Record<string, string> = {}): Promise<Rig> {
  const rig: { rules: readonly Rule[] } = { rules: [] };
  const part = portableList<Rule>({
    key: "focus",
    schemaVersion: 1,
    schemas: [strictObject({ id: Type.String(), pattern: Type.String() })],
    list: () => rig.rules,
    check: () => [],
    write: (rules) => (rig.rules = rules),
    reload: () => undefined,
  });
  const api = await startApi({
    flags,
    slices: (host) => [
      createConfigSlice(
        host,
        createRuleBundles(host, () => [part]),
      ),
    ],
  });
  return Object.assign(rig, { api, [Symbol.asyncDispose]: () => api[Symbol.asyncDispose]() });
}

async function exported({ api }: Rig): Promise<ConfigDocument> {
  const { status, json } = await api.call("GET", "/api/config/export");
  assert.equal(status, 200);
  return json as ConfigDocument;
}

test("settings and rules go elsewhere in one document, passwords stay", async () => {
  await using source = await startConfig({ "upstream-auth": `u:${SECRET}` });
  await source.api.call("PATCH", "/api/config", { max_requests: 77, ignored_domains: ["b.test", "a.test"] });
  source.rules = [{ id: "1", pattern: "a" }];
  const document = await exported(source);
  assert.doesNotMatch(JSON.stringify(document), new RegExp(SECRET));
  const own = source.api.settings.configured.upstream_proxy.auth_password;
  assert.equal(own, SECRET);
  for (const body of [document, { config: document }, { config_json: JSON.stringify(document) }]) {
    await using target = await startConfig();
    const { status, json } = await target.api.call("POST", "/api/config/import", body);
    assert.equal(status, 200, JSON.stringify(json));
    assert.deepEqual(json, {
      success: true,
      mode: "merge",
      dry_run: false,
      settings: ["max_requests", "ignored_domains", "upstream_proxy.auth_username"],
      sections: { focus: { added: 1, updated: 0, removed: 0, unchanged: 0 } },
    });
    assert.deepEqual(await exported(target), document);
    assert.equal(target.api.settings.configured.max_requests, 77);
  }
  // Importing the document into its own source changes nothing, the password included.
  const again = await source.api.call("POST", "/api/config/import?mode=replace", document);
  assert.deepEqual((again.json as ConfigImport).settings, []);
  assert.equal(source.api.settings.configured.upstream_proxy.auth_password, SECRET);
});

test("a dry run says which settings would change, and changes neither them nor rules", async () => {
  await using rig = await startConfig();
  const before = await exported(rig);
  const body = { version: 1, settings: { max_requests: 5 }, rules: { version: 1, focus: [{ id: "1", pattern: "a" }] } };
  const { json } = await rig.api.call("POST", "/api/config/import?dry_run=true", body);
  assert.deepEqual([(json as ConfigImport).settings, (json as ConfigImport).dry_run], [["max_requests"], true]);
  assert.deepEqual((json as ConfigImport).sections["focus"]?.added, 1);
  assert.deepEqual(await exported(rig), before);
});

test("settings and rules may come alone", async () => {
  await using rig = await startConfig();
  await rig.api.call("POST", "/api/config/import", { version: 1, settings: { max_requests: 6 } });
  await rig.api.call("POST", "/api/config/import", {
    version: 1,
    rules: { version: 1, focus: [{ id: "1", pattern: "a" }] },
  });
  assert.deepEqual([rig.api.settings.configured.max_requests, rig.rules.length], [6, 1]);
});

test("one thing that is wrong keeps everything from being changed, and says where it is", async () => {
  await using rig = await startConfig();
  const before = await exported(rig);
  const rules = { version: 1, focus: [{ id: "1", pattern: "a" }] };
  const cases: readonly (readonly [body: unknown, status: number, path: string | undefined])[] = [
    [{ version: 1, settings: { max_requests: -1 }, rules }, 400, "body/settings/max_requests"],
    [{ config: { version: 1, settings: { nothing: 1 }, rules } }, 400, "body/config/settings/nothing"],
    [{ version: 1, settings: { max_requests: 5 }, rules: { version: 1, focus: [{}] } }, 400, "body/rules/focus/0/id"],
    [{ version: 1, settings: { max_requests: 5 }, rules: { version: 2 } }, 400, "body/rules/version"],
    [{ version: 1, settings: 5 }, 400, "body/settings"],
    [{ version: 1, settings: { upstream_proxy: null } }, 400, "body/settings/upstream_proxy"],
    [{ version: 1, rules: [] }, 400, "body/rules"],
    [{ version: 1, other: 1 }, 400, "body/other"],
    [{ settings: {} }, 400, "body/version"],
    [[], 400, "body"],
  ];
  for (const [body, expected, path] of cases) {
    const { status, json } = await rig.api.call("POST", "/api/config/import", body);
    assert.equal(status, expected, JSON.stringify(body));
    assert.equal((json as { details?: readonly { path: string }[] }).details?.[0]?.path, path, JSON.stringify(body));
  }
  assert.deepEqual(await exported(rig), before);
});

test("the sections of the mirror and of auto save go along, and one that is no object is refused", async () => {
  await using source = await startConfig();
  const sections = {
    mirror: { output_dir: "/srv/mirror", host_filter: ["a.test"] },
    auto_save: { interval_seconds: 60, rotate_after_requests: 5 },
  };
  await source.api.call("PATCH", "/api/config", sections);
  const document = await exported(source);
  await using target = await startConfig();
  const { json } = await target.api.call("POST", "/api/config/import", document);
  assert.deepEqual((json as ConfigImport).settings, [
    "mirror.output_dir",
    "mirror.host_filter",
    "auto_save.interval_seconds",
    "auto_save.rotate_after_requests",
  ]);
  const refused = await target.api.call("POST", "/api/config/import", { version: 1, settings: { auto_save: null } });
  const { details } = refused.json as { details: readonly { path: string }[] };
  assert.deepEqual([refused.status, details[0]?.path], [400, "body/settings/auto_save"]);
});

test("a document of a newer version is refused with a sentence", async () => {
  await using rig = await startConfig();
  const { json } = await rig.api.call("POST", "/api/config/import", { version: 2, settings: { max_requests: 5 } });
  assert.match((json as { error: string }).error, /^A newer Weir wrote the document: it has version 2/);
});
