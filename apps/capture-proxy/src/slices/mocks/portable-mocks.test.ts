import assert from "node:assert/strict";
import { test } from "node:test";
import type { MockCollection, MockRule } from "@headworks/capture-contract";
import type { ImportOutcome, PortableRules } from "#slice.ts";
import { startApi } from "../../../test/api-rig.ts";
import type { ApiRig } from "../../../test/api-rig.ts";
import { createMocksSlice } from "./mocks.slice.ts";

interface Section {
  readonly collections: readonly MockCollection[];
  readonly rules: readonly MockRule[];
}

async function startMocks(): Promise<{ api: ApiRig; portable: PortableRules; section: () => Section }> {
  let portable: PortableRules | undefined;
  const api = await startApi({
    slices: (host) => {
      const slice = createMocksSlice(host);
      portable = slice.portableRules;
      return [slice];
    },
  });
  const found = portable ?? assert.fail("the slice has no portable rules");
  return { api, portable: found, section: () => structuredClone(found.exportRules()) as Section };
}

async function create(api: ApiRig, path: string, body: object): Promise<string> {
  const { status, json } = await api.call("POST", `/api${path}`, body);
  assert.equal(status, 201, JSON.stringify(json));
  return (json as { id: string }).id;
}

/** Creates rules of every kind, with versions, a collection, hits and a sequence in progress. */
async function filled(api: ApiRig): Promise<void> {
  const collection = await create(api, "/mocks/collections", { name: "C", tags: ["x"], enabled: false });
  const responses = [{ body: "1" }, { body_base64: "AP8=", headers: { A: ["1", "2"] } }];
  const sequence = {
    name: "S",
    condition: { type: "all" },
    response_config: { type: "sequence", responses },
    priority: 5,
  };
  const id = await create(api, "/mocks/advanced", { ...sequence, collection_id: collection, tags: ["t"] });
  await api.call("PUT", `/api/mocks/${id}`, { ...sequence, condition: { type: "host", pattern: "a" }, comment: "c" });
  const rule = (await api.call("GET", `/api/mocks/${id}`)).json as MockRule;
  await api.call("PUT", `/api/mocks/${id}`, {
    ...rule,
    response_config: { ...rule.response_config, current_index: 1 },
  });
  await create(api, "/mocks", {
    name: "E",
    url_pattern: "*x*",
    body: "e",
    collection_id: collection,
    expiration: { type: "hit_count", max_hits: 4 },
  });
}

function import_(
  portable: PortableRules,
  api: ApiRig,
  data: unknown,
  mode: "merge" | "replace",
  dryRun = false,
): ImportOutcome {
  const outcome = api.database.transaction(() => portable.importRules(data, { mode, dryRun, version: 1 }));
  if (!dryRun && "counts" in outcome) portable.reload();
  return outcome;
}

test("an export imports elsewhere without differences, and again without changes", async () => {
  const one = await startMocks();
  const other = await startMocks();
  await using _ = one.api;
  await using _other = other.api;
  await filled(one.api);
  await create(other.api, "/mocks", { name: "Old", url_pattern: "*", body: "old" });
  const section = one.section();
  assert.deepEqual(import_(other.portable, other.api, section, "replace"), {
    counts: { added: 3, updated: 0, removed: 1, unchanged: 0 },
  });
  assert.deepEqual(other.section(), section);
  assert.deepEqual(import_(other.portable, other.api, section, "merge"), {
    counts: { added: 0, updated: 0, removed: 0, unchanged: 3 },
  });
  assert.deepEqual(other.section(), section);
});

test("a merge keeps existing rules and their order, and accepts a bare list of rules", async () => {
  const { api, portable, section } = await startMocks();
  await using _ = api;
  await filled(api);
  const before = section();
  const [first] = before.rules;
  const changed = { ...first, name: "Changed" };
  const added = { ...first, id: "new", name: "Added" };
  assert.deepEqual(import_(portable, api, [added, changed], "merge"), {
    counts: { added: 1, updated: 1, removed: 0, unchanged: 0 },
  });
  assert.deepEqual(
    section().rules.map(({ name }) => name),
    ["Changed", "E", "Added"],
  );
  assert.deepEqual(section().collections, before.collections);
});

test("a dry run and an invalid import write nothing", async () => {
  const { api, portable, section } = await startMocks();
  await using _ = api;
  await filled(api);
  const before = section();
  assert.deepEqual(import_(portable, api, { collections: [], rules: [] }, "replace", true), {
    counts: { added: 0, updated: 0, removed: 3, unchanged: 0 },
  });
  const [rule] = before.rules;
  const bad: readonly (readonly [unknown, string])[] = [
    [5, ""],
    [{ rules: [], more: 1 }, ""],
    [{ rules: [{ ...rule, condition: { type: "host", pattern: "(" } }] }, "/rules/0/condition/pattern"],
    [{ rules: [{ ...rule, collection_id: "nowhere" }] }, "/rules/0/collection_id"],
    [{ collections: [{ id: "x" }], rules: [] }, "/collections/0/name"],
    [[{ ...rule, response_config: { type: "none" } }], "/0/response_config"],
  ];
  for (const [data, path] of bad) {
    const outcome = import_(portable, api, data, "replace");
    assert.ok("issues" in outcome, JSON.stringify(data));
    assert.equal(outcome.issues[0]?.path, path, JSON.stringify(outcome));
  }
  assert.deepEqual(section(), before);
});
