import assert from "node:assert/strict";
import { test } from "node:test";
import { positionInFile, readBundle, sectionLabel } from "./bundle.ts";

test("a file is recognized by its top-level members", () => {
  assert.deepEqual(readBundle('{"version":1,"mocks":[]}'), { ok: true, kind: "rules" });
  assert.deepEqual(readBundle('{"version":9,"settings":{},"rules":{}}'), { ok: true, kind: "config" });
});

test("a foreign file is rejected with a reason", () => {
  const cases: readonly [string, RegExp][] = [
    ["", /Not valid JSON/u],
    ['{"version":1', /Not valid JSON/u],
    ["[]", /Not a Weir export/u],
    ["null", /Not a Weir export/u],
    ["{}", /version is missing/u],
    ['{"log":{"version":"1.2"}}', /HAR/u],
  ];
  for (const [text, expected] of cases) {
    const read = readBundle(text);
    assert.ok(!read.ok, text);
    assert.match(read.message, expected);
  }
});

test("kinds of rules have display names", () => {
  assert.equal(sectionLabel("block_list"), "Block list");
  assert.equal(sectionLabel("mocks"), "Mocks");
  assert.equal(sectionLabel("message_rules"), "Message rules");
});

test("positions of errors are those in the file", () => {
  assert.equal(positionInFile("body/mocks/1/text"), "mocks/1/text");
  assert.equal(positionInFile("/body/rules/rewrites"), "rules/rewrites");
  assert.equal(positionInFile("body"), "");
});
