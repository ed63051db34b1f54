import assert from "node:assert/strict";
import { test } from "node:test";
import { compileValueValidator } from "@headworks/contract-kit/server";
import { FIELD_NOTES } from "@headworks/gateway-contract";
import type { TSchema } from "typebox";
import { editorSchema, fieldPaths, noteOf } from "./json-schema.ts";
import { toJson } from "./write-document.ts";

void test("every field of a document is described, and every description has its field", () => {
  const paths = fieldPaths();
  assert.ok(paths.size > 250, `${paths.size} fields`);
  assert.deepEqual(
    Array.from(paths).filter((path) => noteOf(path) === undefined),
    [],
  );
  assert.deepEqual(
    Object.keys(FIELD_NOTES).filter((path) => !paths.has(path)),
    [],
  );
});

void test("the schema for editors is plain JSON Schema 2020-12, with exact bounds of 64 bits", () => {
  const text = toJson(editorSchema(), 2);
  assert.ok(text.startsWith('{\n  "$schema": "https://json-schema.org/draft/2020-12/schema"'));
  assert.ok(!text.includes('"x-'), "keywords of ours stay here");
  assert.match(
    text,
    /"daily_requests": \{\s+"type": "integer",\s+"minimum": 1,\s+"maximum": 18446744073709551615,\s+"description": "Requests per UTC day."/,
  );
  assert.match(
    text,
    /"connect_ms": \{[^}]+"description": "Name lookup, TCP and TLS handshake together. Default: 5000."/,
  );
});

void test("the schema for editors takes and refuses what reading takes and refuses", () => {
  const validate = compileValueValidator(JSON.parse(toJson(editorSchema())) as TSchema, "document");
  const good = {
    gateway: { name: "g" },
    webhooks: [{ url: "http://h/", events: ["breaker_opened"], headers: { "X-A": "b" } }],
    consumers: [{ name: "c", quotas: { daily_requests: 5 } }],
  };
  assert.deepEqual(validate(good), []);
  for (const bad of [
    { surprise: 1 },
    { webhooks: [{ url: 1 }] },
    { webhooks: [{ url: "http://h/", events: ["quota_near_limit"] }] },
    { consumers: [{ name: "c", credentials: [{ type: "x" }] }] },
    { webhooks: [{ url: "u", events: [], headers: { a: 1 } }] },
  ]) {
    assert.notDeepEqual(validate(bad), [], JSON.stringify(bad));
  }
});
