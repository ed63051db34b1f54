import assert from "node:assert/strict";
import { test } from "node:test";
import type { NewScript, Script } from "@headworks/capture-contract";
import { startApi } from "../../../test/api-rig.ts";
import type { ApiRig } from "../../../test/api-rig.ts";
import { createScriptsSlice } from "./scripts.slice.ts";

const startScripts = (): Promise<ApiRig> => startApi({ slices: (host) => [createScriptsSlice(host)] });

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

test("a created script has the contract's defaults, and the hooks that its source declares", async () => {
  await using api = await startScripts();
  const id = await create(api, { name: " spaced " });
  const now = new Date(api.clock.now()).toISOString();
  assert.deepEqual(await read(api, id), {
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
  });
});
