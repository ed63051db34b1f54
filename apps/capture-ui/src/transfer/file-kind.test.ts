import assert from "node:assert/strict";
import { test } from "node:test";
import { fileKind, sessionName } from "./file-kind.ts";

test("a document is recognized by its beginning and name", () => {
  const cases: readonly [string, string, ReturnType<typeof fileKind>][] = [
    ["a.har", '{"log":{}}', "har"],
    ["a.har", '{"comment":"x","log":{}}', "har"],
    ["a.json", '{ "log": { "version": "1.2" } }', "har"],
    ["a.json", '\uFEFF{"har":{"log":{}}}', "har"],
    ["a.json", '{"pages":[],"log":{"version":"1.2"}}', "har"],
    ["a.json", '{"format":"weir-session","session":{"name":"log"}}', "session"],
    ["a.har", "not json", undefined],
    ["a.png", "\u0089PNG", undefined],
    ["empty.har", "", undefined],
  ];
  for (const [name, text, kind] of cases) assert.equal(fileKind(name, text), kind, `${name}: ${text}`);
});

test("session names derive from file names, without invalid characters", () => {
  assert.equal(sessionName("checkout.har"), "checkout");
  assert.equal(sessionName("a\u0000b.json"), "ab");
  assert.equal(sessionName(".har"), "Import");
  assert.equal(sessionName(`${"x".repeat(400)}.har`).length, 255);
});
