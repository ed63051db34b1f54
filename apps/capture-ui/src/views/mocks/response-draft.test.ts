import assert from "node:assert/strict";
import { test } from "node:test";
import type { MockResponse, MockResponseConfig } from "@headworks/capture-contract";
import { configOf, draftOfConfig, mockFields, newResponse } from "./response-draft.ts";

const response: MockResponse = {
  status_code: 503,
  headers: { A: "1", "Set-Cookie": ["a", "b"] },
  body: "busy",
  body_base64: null,
  body_file: null,
  delay_ms: 5,
  delay_variance_ms: null,
  template_enabled: true,
};
const bytes: MockResponse = { ...response, body: null, body_base64: "AAE=" };
const file: MockResponse = { ...response, body: null, body_file: "x.json" };

const CONFIGS: readonly MockResponseConfig[] = [
  { type: "single", response },
  { type: "sequence", responses: [response, bytes], cycle: false },
  { type: "probabilistic", responses: [{ weight: 0, response: file }] },
  {
    type: "conditional",
    conditions: [{ condition: { type: "header_equals", name: "a", value: "b" }, response: bytes }],
    default_response: response,
  },
];

/** Without null members: absent and null are equivalent. */
const bare = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value, (_, inner: unknown) => (inner === null ? undefined : inner)));

test("every kind of answer goes through its draft unchanged", () => {
  for (const config of CONFIGS) {
    const built = configOf(draftOfConfig(config));
    assert.ok(built.ok);
    assert.deepEqual(bare(built.config), bare(config));
  }
});

test("what is not whole is said", () => {
  const draft = draftOfConfig({ type: "single", response });
  const broken = [{ status: "99" }, { status: "600" }, { delayMs: "soon" }, { source: "file" as const, file: " " }];
  for (const change of broken) {
    const result = configOf({ ...draft, responses: [{ ...newResponse(), ...change }] });
    assert.ok(!result.ok, JSON.stringify(change));
  }
  assert.ok(!configOf({ ...draft, responses: [] }).ok);
  assert.ok(!configOf({ ...draft, kind: "probabilistic", responses: [{ ...newResponse(), weight: "half" }] }).ok);
  assert.ok(!configOf({ ...draft, kind: "conditional", responses: [newResponse()] }).ok);
  const everything = { condition: { type: "all" as const }, isWhole: true };
  assert.ok(!configOf({ ...draft, kind: "conditional", responses: [{ ...newResponse(), when: everything }] }).ok);
  assert.ok(configOf({ ...draft, kind: "conditional", responses: [] }).ok);
});

test("fields about framing and coding are not given again", () => {
  assert.deepEqual(
    mockFields([
      ["Content-Length", "5"],
      ["content-encoding", "br"],
      ["ETag", "x"],
    ]),
    [["ETag", "x"]],
  );
});
