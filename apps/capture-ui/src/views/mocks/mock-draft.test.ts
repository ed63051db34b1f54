import assert from "node:assert/strict";
import { test } from "node:test";
import type { MockRule } from "@headworks/capture-contract";
import { draftOfMock, mockOf, newMock } from "./mock-draft.ts";

const rule: MockRule = {
  id: "1",
  name: "Basket",
  description: null,
  tags: ["a", "b"],
  collection_id: "c",
  condition: { type: "all" },
  response_config: {
    type: "single",
    response: {
      status_code: 200,
      headers: {},
      body: "x",
      body_base64: null,
      body_file: null,
      delay_ms: null,
      delay_variance_ms: null,
      template_enabled: false,
    },
  },
  enabled: true,
  priority: 7,
  created_at: "2026-01-01T00:00:00.000Z",
  updated_at: "2026-01-01T00:00:00.000Z",
  hit_count: 0,
  expiration: null,
  expired: false,
  version: 1,
  response_schema: null,
  response_script: null,
  device_id: null,
};

test("a mock converted to a draft and back is unchanged, with every kind of expiration", () => {
  const expirations: readonly MockRule["expiration"][] = [
    null,
    { type: "hit_count", max_hits: 3 },
    { type: "duration", duration_secs: 60 },
    { type: "date_time", expires_at: "2027-01-01T00:00:00.000Z" },
  ];
  for (const expiration of expirations) {
    const draft = draftOfMock({ ...rule, expiration });
    const built = mockOf(draft, draft.condition);
    assert.ok(built.ok);
    assert.deepEqual(built.rule.expiration, expiration);
    assert.deepEqual(built.rule.tags, ["a", "b"]);
    assert.equal(built.rule.priority, 7);
    assert.equal(built.rule.collection_id, "c");
  }
});

test("missing values are reported in a sentence", () => {
  const draft = draftOfMock(rule);
  const wrong = [
    mockOf(newMock(), { type: "all" }),
    mockOf(draft, null),
    mockOf({ ...draft, expires: "hits", expiresValue: "0" }, draft.condition),
    mockOf({ ...draft, expires: "date", expiresValue: "soon" }, draft.condition),
    mockOf({ ...draft, priority: "" }, draft.condition),
    mockOf({ ...draft, config: { ...draft.config, responses: [] } }, draft.condition),
  ];
  for (const result of wrong) {
    assert.ok(!result.ok);
    assert.ok(result.message.length > 8);
  }
});
