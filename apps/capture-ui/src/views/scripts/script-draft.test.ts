import assert from "node:assert/strict";
import { test } from "node:test";
import { SCRIPT_HOOKS, type Script } from "@headworks/capture-contract";
import {
  bodyOfScript,
  draftOfScript,
  filterWords,
  HOOK_LABELS,
  newScript,
  scriptFromEntry,
  scriptOf,
} from "./script-draft.ts";

const SCRIPT: Script = {
  id: "s1",
  name: "Add header",
  description: null,
  source: "function onRequest(request) {}",
  hooks: ["on_request"],
  enabled: false,
  priority: 110,
  match_filter: { host_pattern: "*.example.com", method: "GET" },
  on_error: "continue",
  created_at: "2026-11-28T10:00:00.000Z",
  modified_at: "2026-11-28T10:00:00.000Z",
  problem: null,
};

test("every hook of the contract has a label, in the order of an exchange", () => {
  assert.deepEqual(Object.keys(HOOK_LABELS), [...SCRIPT_HOOKS]);
});

test("a stored script that is not edited is stored as it was", () => {
  const built = scriptOf(draftOfScript(SCRIPT));
  const { enabled: _, ...body } = bodyOfScript(SCRIPT);
  assert.deepEqual(built, { ok: true, rule: body });
});

test("a filter whose fields were emptied is removed", () => {
  const draft = { ...draftOfScript(SCRIPT), filter: { method: " ", host: "", path: "", url: "" } };
  const built = scriptOf(draft);
  assert.equal(built.ok && built.rule.match_filter, null);
});

test("a new script leaves the choice of hooks to the source", () => {
  const built = scriptOf({ ...newScript(), name: "A" });
  assert.ok(built.ok);
  assert.equal("hooks" in built.rule, false);
});

for (const [change, message] of [
  [{ name: " " }, "Enter a name"],
  [{ source: "\n" }, "Enter a source"],
  [{ priority: "soon" }, "Priority must be a number"],
] as const) {
  test(`a draft is refused: ${message}`, () => {
    assert.deepEqual(scriptOf({ ...newScript(), name: "A", ...change }), { ok: false, message });
  });
}

test("a script for a captured request matches its method, host and path with any query", () => {
  const draft = scriptFromEntry({ method: "PUT", url: "https://api.example.com:8443/orders/1?page=2" });
  assert.deepEqual(draft.filter, { method: "PUT", host: "api.example.com", path: "/orders/1?*", url: "" });
  assert.equal(draft.name, "Script PUT api.example.com:8443/orders/1");
  const plain = scriptFromEntry({ method: "GET", url: "https://api.example.com/orders" });
  assert.equal(plain.filter.path, "/orders");
});

test("a URL with a line end stays inside the comment of the source", () => {
  const { source } = scriptFromEntry({ method: "GET", url: "not a url\nalert(1)" });
  assert.match(source, /^\/\/ For requests like GET not a url alert\(1\)\n/u);
});

test("the filter in words", () => {
  assert.equal(filterWords(SCRIPT.match_filter), "GET *.example.com");
  assert.equal(filterWords(undefined), "All traffic");
});
