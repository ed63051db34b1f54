import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { checkedOutput, type HookOutput } from "./hook-output.ts";

const NAMES = [
  ..."request change response bodyChanged requestBodyChanged responseBodyChanged stop close delayMs data notes".split(
    " ",
  ),
  ..."tags method url fields status reason __proto__ constructor".split(" "),
];
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** What everything that applies an output relies on. */
function assertSafe(output: HookOutput): void {
  for (const fields of [output.request?.fields, output.change?.fields, output.response?.fields]) {
    if (fields === undefined) continue;
    assert.equal(fields.length % 2, 0);
    for (const [at, part] of fields.entries()) {
      if (at % 2 === 0) assert.match(part, TOKEN);
      else assert.doesNotMatch(part, /[\r\n\0]|[^\0-\xff]/);
    }
  }
  for (const status of [output.change?.status, output.response?.status]) {
    if (status !== undefined) assert.ok(Number.isInteger(status) && status >= 200 && status <= 599);
  }
  for (const reason of [output.change?.reason, output.response?.reason]) {
    if (reason !== undefined) assert.doesNotMatch(reason, /[\r\n\0]|[^\0-\xff]/);
  }
  if (output.request?.method !== undefined) assert.match(output.request.method, TOKEN);
  if (output.delayMs !== undefined) assert.ok(output.delayMs >= 0 && output.delayMs <= 60_000);
  if (output.data !== undefined) assert.equal(typeof JSON.parse(output.data), "object");
  if (output.response !== undefined) assert.ok(Array.isArray(output.response.fields));
  for (const tag of output.tags ?? []) assert.ok(typeof tag === "string" && tag.length <= 64);
  assert.deepEqual(
    Object.keys(output).filter((name) => !NAMES.includes(name)),
    [],
  );
  assert.equal(Object.getPrototypeOf(output), Object.prototype);
}

const leaf = fc.oneof(
  fc.string({ maxLength: 8 }),
  fc.constantFrom("A", "1", "a\r\nb", "\0", "\u010d\u010a", "{}", "[]", "null", "GET", "http://a/", "x".repeat(100)),
  fc.double(),
  fc.integer({ min: -10, max: 700 }),
  fc.boolean(),
  fc.constant(null),
);
const { output: hostile } = fc.letrec((tie) => ({
  output: fc.oneof(
    { withCrossShrink: true },
    leaf,
    fc.array(tie("output"), { maxLength: 6 }),
    fc.dictionary(fc.constantFrom(...NAMES), tie("output"), { maxKeys: 6 }),
  ),
}));

test("a result is safe to apply or an error message, whatever its text says", () => {
  fc.assert(
    fc.property(
      fc.oneof(
        hostile.map((value) => JSON.stringify(value)),
        fc.string(),
        fc.json(),
      ),
      (text) => {
        const output = checkedOutput(text);
        if (typeof output === "string") assert.ok(output.length < 500, output);
        else assertSafe(output);
      },
    ),
    { numRuns: 3000 },
  );
});

test("a result that is no text is an error message", () => {
  for (const value of [null, undefined, 5, {}, Uint8Array.of(0x7b, 0x7d), Symbol("x"), { toString: () => "{}" }]) {
    assert.equal(checkedOutput(value), "The script's result is not readable");
  }
});

for (const [name, value, message] of [
  ["a field name", { request: { fields: ["A B", "1"] } }, '"A B" is no field name'],
  ["a line break", { change: { fields: ["A", "1\r\nB: 2"] } }, '"1\\r\\nB: 2" is no field value'],
  [
    "characters whose low octets are a line break",
    { response: { status: 200, fields: ["A", "\u010d\u010a"] } },
    '"\u010d\u010a" is no field value',
  ],
  ["a reason", { change: { reason: "\u010a" } }, '"\u010a" is no field value'],
  ["an odd list", { request: { fields: ["A"] } }, "header fields are pairs of texts"],
  ["an object as fields", { request: { fields: { length: 2 } } }, "header fields are pairs of texts"],
  ["a method", { request: { method: "A B" } }, "A B is not a method"],
  ["an object as URL", { request: { url: {} } }, "the URL is no text"],
  ["a long URL", { request: { url: "x".repeat(1_100_000) } }, "the URL is longer than 1048576 characters"],
  ["an informational status", { change: { status: 100 } }, "status 100"],
  ["a response without fields", { response: { status: 200 } }, "header fields are pairs of texts"],
  ["a negative delay", { delayMs: -1 }, "delay is no number"],
  ["data that is not JSON", { data: "garbage" }, "Unexpected token 'g', \"garbage\" is not valid JSON"],
  ["data that is a list", { data: "[]" }, "context.data is no object"],
  ["data that is null", { data: "null" }, "an object is expected"],
  ["many fields", { request: { fields: Array.from({ length: 20_002 }, () => "A") } }, "more than 10000 header fields"],
  [
    "large fields",
    { request: { fields: ["A", "x".repeat(1_048_576)] } },
    "header fields of more than 1048576 characters",
  ],
  ["large tags", { tags: ["x".repeat(65)] }, "a tag is longer than 64 characters"],
  ["no object", 5, "an object is expected"],
] as const) {
  test(`a result with ${name} is refused`, () => {
    assert.equal(checkedOutput(JSON.stringify(value)), `The script's result is not valid: ${message}`);
  });
}

test("a huge result is refused before it is parsed", () => {
  assert.equal(checkedOutput("[".repeat(17_000_000)), "The script's result is longer than 4194304 characters");
});

test("a valid result is taken as it is, with the delay limited", () => {
  const output = {
    request: { method: "PUT", url: "http://a/", fields: ["A", "1", "B", "gr\xc3\xbcn\x01"] },
    change: { status: 404, reason: "", fields: [] },
    response: { status: 200, reason: "OK", fields: ["C", "2"] },
    bodyChanged: true,
    stop: true,
    close: true,
    delayMs: 60_000,
    data: '{"a":1}',
    notes: "note",
    tags: ["tag"],
  };
  assert.deepEqual(checkedOutput(JSON.stringify({ ...output, delayMs: 1e9, unknown: 1 })), output);
});
