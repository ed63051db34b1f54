import assert from "node:assert/strict";
import { test } from "node:test";
import { filledResponse } from "./mock-rule.ts";
import { bodyProblem, schemaProblem } from "./mocks.check.ts";

test("usable schemas are accepted, in their declared draft", () => {
  for (const schema of [
    "true",
    "{}",
    '{"type":"object","properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"type":"integer"}}}',
    '{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"type":"string"}]}',
    '{"$schema":"https://json-schema.org/draft/2020-12/schema","prefixItems":[{"type":"string"}]}',
    '{"type":"string","format":"unheard-of"}',
    '{"type":"string","pattern":"^(a+)+$"}',
  ]) {
    assert.equal(schemaProblem(schema), undefined, schema);
  }
});

test("unusable schemas are rejected with a reason", () => {
  const cases: readonly (readonly [string, RegExp])[] = [
    ["{", /is not JSON/],
    ["[]", /not a JSON Schema/],
    ['"x"', /not a JSON Schema/],
    ['{"type":"strnig"}', /cannot be used/],
    ['{"$ref":"https://elsewhere.test/schema"}', /cannot be used/],
    ['{"$ref":"#/nowhere"}', /cannot be used/],
    ['{"pattern":"(?=a)"}', /cannot be used/],
    [`${'{"not":'.repeat(100_000)}true${"}".repeat(100_000)}`, /cannot be used|not JSON/],
  ];
  for (const [schema, message] of cases) assert.match(schemaProblem(schema) ?? "", message, schema.slice(0, 60));
});

test("bodies must fit the schema, except errors, empty bodies, bytes and templates", () => {
  const schema = '{"type":"object","required":["id"],"properties":{"id":{"type":"string","pattern":"^(a+)+$"}}}';
  const problem = (response: Parameters<typeof filledResponse>[0]) => bodyProblem(schema, filledResponse(response));
  assert.equal(problem({ body: '{"id":"aaa"}' }), undefined);
  assert.match(
    problem({ body: "{}" }) ?? "",
    /does not fit response_schema: the body must have required property 'id'/,
  );
  assert.match(problem({ body: '{"id":1}' }) ?? "", /\/id must be string/);
  assert.match(problem({ body: "no json" }) ?? "", /is not JSON/);
  assert.match(problem({ body: `{"id":"${"a".repeat(100_000)}b"}` }) ?? "", /pattern/);
  const two = '{"properties":{"a":{"pattern":"^x$"},"b":{"pattern":"^y$"}}}';
  assert.equal(bodyProblem(two, filledResponse({ body: '{"a":"x","b":"y"}' })), undefined);
  assert.match(bodyProblem(two, filledResponse({ body: '{"a":"x","b":"x"}' })) ?? "", /\/b must match/);
  for (const response of [
    { status_code: 404, body: "no" },
    {},
    { body_base64: "AA==" },
    { body: "{{uuid}}", template_enabled: true },
  ]) {
    assert.equal(problem(response), undefined, JSON.stringify(response));
  }
});
