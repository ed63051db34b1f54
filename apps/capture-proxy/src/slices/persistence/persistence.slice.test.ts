import assert from "node:assert/strict";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import type { RulesImport } from "@headworks/capture-contract";
import { strictObject, Type } from "@headworks/contract-kit";
import { portableList } from "#portable/portable-list.ts";
import { createRuleBundles } from "#portable/rule-bundles.ts";
import type { PortableRules } from "#slice.ts";
import { startApi } from "../../../test/api-rig.ts";
import type { ApiRig } from "../../../test/api-rig.ts";
import { createPersistenceSlice } from "./persistence.slice.ts";

interface Rule {
  readonly id: string;
  readonly text: string;
}

interface Rig extends AsyncDisposable {
  readonly api: ApiRig;
  /** By section. */
  readonly rules: Record<string, readonly Rule[]>;
}

/** Two kinds of rules, `mocks` and `rewrites`, in memory. */
async function startPersistence(): Promise<Rig> {
  const rules: Record<string, readonly Rule[]> = { mocks: [], rewrites: [] };
  const parts = ["mocks", "rewrites"].map((key): PortableRules =>
    portableList<Rule>({
      key,
      schemaVersion: 1,
      schemas: [strictObject({ id: Type.String(), text: Type.String() })],
      list: () => rules[key] ?? [],
      check: () => [],
      write: (written) => (rules[key] = written),
      reload: () => undefined,
    }),
  );
  const api = await startApi({
    slices: (host) => [
      createPersistenceSlice(
        host,
        createRuleBundles(host, () => parts),
      ),
    ],
  });
  return { api, rules, [Symbol.asyncDispose]: () => api[Symbol.asyncDispose]() };
}

async function exported({ api }: Rig): Promise<{ readonly mocks: readonly Rule[]; readonly version: number }> {
  const { status, json } = await api.call("GET", "/api/persistence/export");
  assert.equal(status, 200);
  return JSON.parse((json as { data: string }).data) as Awaited<ReturnType<typeof exported>>;
}

const A: Rule = { id: "a", text: "1" };
const B: Rule = { id: "b", text: "2" };

test("an export imports elsewhere without differences, in every form", async () => {
  await using source = await startPersistence();
  source.rules["mocks"] = [A, B];
  const bundle = await exported(source);
  for (const body of [bundle, { data: bundle }, { data: JSON.stringify(bundle) }]) {
    await using target = await startPersistence();
    target.rules["rewrites"] = [A];
    const { status, json } = await target.api.call("POST", "/api/persistence/import?mode=replace", body);
    assert.equal(status, 200, JSON.stringify(json));
    const none = { added: 0, updated: 0, removed: 0, unchanged: 0 };
    assert.deepEqual(json, {
      success: true,
      mode: "replace",
      dry_run: false,
      sections: { mocks: { ...none, added: 2 }, rewrites: { ...none, removed: 1 } },
    });
    assert.deepEqual(await exported(target), bundle);
  }
});

test("an import merges by default, and a dry run changes nothing", async () => {
  await using rig = await startPersistence();
  rig.rules["mocks"] = [A];
  const body = { version: 1, mocks: [{ ...A, text: "new" }, B] };
  const dry = await rig.api.call("POST", "/api/persistence/import?dry_run=true", body);
  assert.deepEqual([(dry.json as RulesImport).dry_run, rig.rules["mocks"]], [true, [A]]);
  await rig.api.call("POST", "/api/persistence/import", body);
  assert.deepEqual(rig.rules, { mocks: [{ ...A, text: "new" }, B], rewrites: [] });
});

test("a bundle of a newer version is rejected with a readable message", async () => {
  await using rig = await startPersistence();
  const { status, json } = await rig.api.call("POST", "/api/persistence/import", { version: 2, mocks: [A] });
  assert.equal(status, 400);
  const { error, code } = json as { error: string; code: string };
  assert.equal(code, "VALIDATION_ERROR");
  assert.match(error, /^A newer Weir wrote the bundle: it has version 2/);
  assert.deepEqual(rig.rules["mocks"], []);
});

test("issues name their path in the request", async () => {
  await using rig = await startPersistence();
  const data = JSON.stringify({ version: 1, mocks: [A, { id: "b" }], rewrites: {} });
  const { json } = await rig.api.call("POST", "/api/persistence/import", { data });
  assert.deepEqual((json as { details: unknown }).details, [
    { path: "body/data/mocks/1/text", message: "is required" },
    { path: "body/data/rewrites", message: "must be a list of rules" },
  ]);
});

test("saving requires the confirmation header to be exactly true", async () => {
  await using rig = await startPersistence();
  for (const headers of [{}, { "x-weir-confirm": "" }, { "x-weir-confirm": "TRUE" }, { "x-weir-confirm": "1" }]) {
    const { status, json } = await rig.api.call("POST", "/api/persistence/save", undefined, headers);
    assert.deepEqual([status, (json as { code: string }).code], [403, "CONFIRM_REQUIRED"], JSON.stringify(headers));
  }
  assert.deepEqual((await rig.api.call("POST", "/api/persistence/load")).json, {
    success: true,
    saved_at: null,
    sections: {},
  });
});

test("loading restores the saved rules, also after a restart", async () => {
  await using rig = await startPersistence();
  rig.rules["mocks"] = [A, B];
  const confirm = { "X-Weir-Confirm": "true" };
  const saved = await rig.api.call("POST", "/api/persistence/save", undefined, confirm);
  assert.deepEqual(saved.json, { success: true, saved_at: new Date(rig.api.clock.now()).toISOString() });
  const file = rig.api.directory.file("saved-rules.json");
  assert.equal(statSync(file).mode & 0o777, 0o600);
  rig.rules["mocks"] = [{ ...B, text: "changed" }];
  rig.rules["rewrites"] = [A];
  const { status, json } = await rig.api.call("POST", "/api/persistence/load");
  assert.equal(status, 200, JSON.stringify(json));
  assert.deepEqual(rig.rules, { mocks: [A, B], rewrites: [] });
  const document = JSON.parse(readFileSync(file, "utf8")) as { version: number };
  writeFileSync(file, JSON.stringify({ ...document, version: 9 }));
  assert.match(
    ((await rig.api.call("POST", "/api/persistence/load")).json as { error: string }).error,
    /^A newer Weir wrote the bundle/,
  );
  writeFileSync(file, '{"version":1');
  assert.equal((await rig.api.call("POST", "/api/persistence/load")).status, 409);
  assert.deepEqual(rig.rules, { mocks: [A, B], rewrites: [] });
});
