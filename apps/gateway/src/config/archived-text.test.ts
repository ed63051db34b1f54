import assert from "node:assert/strict";
import { test } from "node:test";
import { archivedTextSteps, restoredTextSteps } from "./generations.ts";
import { readDocument } from "./read-document.ts";
import { redactedText } from "./secrets.ts";
import { atOnce } from "./steps.ts";
import { normalDocument, redactedDocument } from "./write-document.ts";

const said = (text: string) => normalDocument(readDocument(text).input ?? {});
const archived = (text: string) => atOnce(archivedTextSteps(text, said(text)));
const quoted = (key: string): string => (key.startsWith("$") ? `"${key}"` : key);
const keys = (one: string, two = "${TWO}"): string => `# Why it is so
consumers:
  - name: one # the first
    credentials: [{ type: api_key, key: ${quoted(one)} }]
  - name: two
    credentials: [{ type: api_key, key: ${quoted(two)} }]
`;

void test("a text without inline secrets is archived as it was written, references and comments with it", () => {
  for (const text of [keys("${ONE}", "${file:/run/two}"), "{}", "", "# nothing\n"]) {
    assert.deepEqual(archived(text), { text, isWhole: true });
  }
});

void test("placeholders stand for inline secrets in an archived text, whatever it is written in, and nothing else changes", () => {
  const text = keys("hunter2");
  assert.deepEqual(archived(text), { text: keys(redactedText("hunter2")), isWhole: false });
  const json = JSON.stringify(said(text));
  assert.deepEqual(said(archived(json).text), redactedDocument(said(text)));
});

void test("fields that routes set to a number, a word or nothing leave an archived text as it was laid out", () => {
  const route = (one: string, two: string, three: string): string => `# Version 1
routes:
  - name: r # the first
    match: { path: { type: prefix, value: / } }
    action: { type: respond, status: 200 }
    transforms:
      response: { headers: { set: { X-Version: "${one}", X-Empty: "${two}", X-Frame-Options: "${three}" } } }
`;
  const text = route("1", "", "DENY");
  const expected = route(redactedText("1"), redactedText(""), redactedText("DENY"));
  assert.deepEqual(archived(text), { text: expected, isWhole: false });
});

void test("no inline secret is left in an archived text, in comments, anchors and aliases neither, and none in a long text", () => {
  for (const text of [
    `${keys("hunter2")}# key: hunter2\n`,
    keys("hunter2").replace("hunter2", "&a hunter2").replace('"${TWO}"', "*a"),
    `${keys("hunter2")}# ${"x".repeat(300_000)}\n`,
  ]) {
    const { text: kept, isWhole } = archived(text);
    assert.ok(!isWhole && !kept.includes("hunter2"), kept);
    assert.deepEqual(said(kept), redactedDocument(said(text)));
  }
});

void test("an archived text gets back the secrets that the running document has, wherever that has them, and no others", () => {
  const text = keys("hunter2", "swordfish");
  const back = (running: string): string => atOnce(restoredTextSteps(archived(text).text, said(running)));
  assert.equal(back(text), text);
  assert.equal(back(keys("swordfish", "hunter2")), text);
  assert.equal(back(keys("hunter2", "other")), keys("hunter2", redactedText("swordfish")));
  assert.equal(back("{}"), archived(text).text);
});
