import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { anyCharacter } from "@headworks/testkit";
import { compileTemplate } from "./template.ts";
import type { TemplateRequest } from "./template.ts";

const body = { user: { name: "Ann", tags: ["a", { b: 1 }], none: null, on: true }, "a.b": 1, length: 7 };
const request: TemplateRequest = {
  method: "POST",
  url: "https://shop.test/items/7?q=a%20b",
  path: "/items/7",
  host: "shop.test",
  query: "q=a%20b",
  header: (name) => (name.toLowerCase() === "x-id" ? "42" : undefined),
  queryParameter: (name) => (name === "q" ? "a b" : undefined),
  json: () => body,
  text: () => "raw",
};
const NOW = Date.UTC(2026, 1, 3, 4, 5, 6, 789);
const render = (text: string, limit = 10_000): string => compileTemplate(text).render(request, NOW, limit);

test("each variable has the value the contract documents", () => {
  const cases: readonly (readonly [string, string])[] = [
    ["{{timestamp}}", String(Math.floor(NOW / 1000))],
    ["{{timestamp_ms}}", String(NOW)],
    ["{{date}}", "2026-02-03"],
    ["{{time}}", "04:05:06"],
    ["{{datetime}}", "2026-02-03T04:05:06Z"],
    ["{{request.method}} {{request.url}}", "POST https://shop.test/items/7?q=a%20b"],
    ["{{ request.path }}|{{request.host}}|{{request.query}}", "/items/7|shop.test|q=a%20b"],
    ["{{request.headers.X-Id}}{{request.headers.missing}}", "42"],
    ["{{request.query.q}}{{request.query.none}}", "a b"],
    ["{{request.body.user.name}}", "Ann"],
    ["{{request.body.user.tags}}", '["a",{"b":1}]'],
    ["{{request.body.user.tags.1.b}} {{request.body.user.tags.9}}", "1 "],
    ["{{request.body.user.none}}{{request.body.user.on}}", "nulltrue"],
    ["{{request.body}}", "raw"],
    ["{{request.body.length}}", "7"],
  ];
  for (const [text, expected] of cases) assert.equal(render(text), expected, text);
  assert.match(render("{{uuid}}"), /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  assert.match(render("{{random_int}}"), /^\d{1,6}$/);
  assert.match(render("{{random_float}}"), /^\d\.\d\d$/);
  assert.notEqual(render("{{uuid}}"), render("{{uuid}}"));
});

test("unknown variables stay as written, and inherited members are absent", () => {
  const cases: readonly (readonly [string, string])[] = [
    ["{{nothing}} {{ }} {{}} {{{{", "{{nothing}} {{ }} {{}} {{{{"],
    ["{{request.cookies.a}}", "{{request.cookies.a}}"],
    ["{{{request.method}}}", "{POST}"],
    ["{{nothing {{request.method}}", "{{nothing POST"],
    ["{{request.body.__proto__}}{{request.body.constructor.name}}{{request.body.user.toString}}", ""],
    ["{{request.body.user.name.length}}", ""],
    ["{{constructor}}", "{{constructor}}"],
    [`{{${" ".repeat(600)}uuid}}`, `{{${" ".repeat(600)}uuid}}`],
  ];
  for (const [text, expected] of cases) assert.equal(render(text), expected, text);
});

test("a template needs the body only when it uses it", () => {
  assert.equal(compileTemplate("{{request.path}}{{uuid}}").needsBody, false);
  assert.equal(compileTemplate("x{{request.body.a}}").needsBody, true);
});

test("the result is never longer than allowed, however often a long value is used", () => {
  const long: TemplateRequest = { ...request, text: () => "y".repeat(5_000_000) };
  const result = compileTemplate("{{request.body}}".repeat(100_000)).render(long, NOW, 3_000_000);
  assert.equal(result.length, 3_000_000);
});

test("text without braces is unchanged, and no text throws", () => {
  fc.assert(
    fc.property(fc.string({ unit: anyCharacter }), (text) => typeof render(text) === "string"),
    { numRuns: 50 },
  );
  fc.assert(
    fc.property(
      fc.string().filter((text) => !text.includes("{{")),
      (text) => {
        assert.equal(render(text), text);
      },
    ),
  );
});

test("values are not rendered again", () => {
  const sly: TemplateRequest = { ...request, queryParameter: () => "{{request.headers.X-Id}}" };
  assert.equal(compileTemplate("{{request.query.q}}").render(sly, NOW, 100), "{{request.headers.X-Id}}");
});
