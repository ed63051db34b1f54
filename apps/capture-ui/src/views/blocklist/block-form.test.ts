import assert from "node:assert/strict";
import { test } from "node:test";
import type { BlockEntry } from "@headworks/capture-contract";
import { NEW_BLOCK, bodyOf, draftOf, restoreBody } from "./block-form.ts";

const entry: BlockEntry = {
  id: "1",
  pattern: "*.ads.example",
  note: null,
  enabled: false,
  hit_count: 7,
  status_code: 403,
  response_body: "no",
  content_type: "text/plain",
  created_at: "2026-01-01T00:00:00.000Z",
  updated_at: "2026-01-01T00:00:00.000Z",
  device_id: null,
};

test("empty fields are filled by the service", () => {
  assert.deepEqual(bodyOf({ ...NEW_BLOCK, pattern: " ads.example " }), {
    ok: true,
    body: { pattern: "ads.example", note: null, content_type: null, response_body: null },
  });
});

test("an entry converted to a draft and back is unchanged", () => {
  assert.deepEqual(bodyOf(draftOf(entry)), {
    ok: true,
    body: { pattern: "*.ads.example", note: null, status_code: 403, content_type: "text/plain", response_body: "no" },
  });
});

test("an empty pattern and an invalid status are rejected at their fields", () => {
  assert.deepEqual(bodyOf({ ...NEW_BLOCK, statusCode: "4x" }), {
    ok: false,
    fields: { pattern: "Enter a host or pattern", status_code: "Enter three digits, such as 403" },
  });
});

test("a deleted entry is restored unchanged, also if disabled", () => {
  const { id: _id, hit_count: _hits, created_at: _created, updated_at: _updated, ...rest } = entry;
  assert.deepEqual(restoreBody(entry), rest);
});
