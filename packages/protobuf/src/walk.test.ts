import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { buildSchema, parseProtoText, walkFields, type WireValue } from "./index.ts";

function walk(hex: string): ReturnType<typeof walkFields> {
  return walkFields(Buffer.from(hex.replaceAll(" ", ""), "hex"));
}

const GUESSES: readonly (readonly [what: string, hex: string, value: WireValue])[] = [
  ["a number", "08 9601", { type: "varint", value: "150" }],
  ["the largest number", "08 ffffffffffffffffff01", { type: "varint", value: "18446744073709551615" }],
  ["eight octets", "09 0100000000000000", { type: "fixed64", value: "1" }],
  ["four octets", "0d 01000000", { type: "fixed32", value: "1" }],
  ["a text", "0a 05 68656c6c6f", { type: "string", value: "hello" }],
  ["a text of two letters that could be a message", "0a 02 6869", { type: "string", value: "hi" }],
  ["nothing", "0a 00", { type: "string", value: "" }],
  ["a text in UTF-8", "0a 04 c3bcc3a4", { type: "string", value: "üä" }],
  ["octets", "0a 04 ff00ff00", { type: "bytes", value: "/wD/AA==" }],
  [
    "packed numbers",
    "0a 05 00010203ac02".replace("05", "06"),
    { type: "lengthdelimited", value: "AAECA6wC", packed: ["0", "1", "2", "3", "300"] },
  ],
];
for (const [what, hex, value] of GUESSES) {
  test(`without a schema, ${what} is shown as ${value.type}`, () => {
    const { fields, stop } = walk(hex);
    assert.deepEqual([fields.map((field) => field.value), stop], [[value], undefined]);
  });
}

test("messages and groups show their fields", () => {
  const text: WireValue = { type: "string", value: "abc" };
  assert.deepEqual(walk("0a 05 0a03616263").fields[0]?.value, {
    type: "nested",
    value: [{ number: 1, wire_type: 2, name: null, value: text }],
  });
  assert.deepEqual(walk("0b 0a03616263 0c").fields[0]?.value, {
    type: "group",
    value: [{ number: 1, wire_type: 2, name: null, value: text }],
  });
});

test("names and kinds come from a schema", () => {
  const { schema } = buildSchema([
    parseProtoText(
      "a.proto",
      'syntax = "proto3"; message A { bytes raw = 1; A inner = 2; repeated int32 numbers = 3; string text = 4; }',
    ),
  ]);
  const { fields } = walkFields(
    Buffer.from("0a02 6869 1202 2200 1a02 0801 2201 01 2801".replaceAll(" ", ""), "hex"),
    schema.messages.get("A"),
  );
  assert.deepEqual(
    fields.map(({ name, value }) => [name, value]),
    [
      ["raw", { type: "bytes", value: "aGk=" }],
      [
        "inner",
        { type: "nested", value: [{ number: 4, wire_type: 2, name: "text", value: { type: "string", value: "" } }] },
      ],
      ["numbers", { type: "lengthdelimited", value: "CAE=", packed: ["8", "1"] }],
      ["text", { type: "string", value: "\u0001" }],
      [null, { type: "varint", value: "1" }],
    ],
  );
});

const MALFORMED: readonly (readonly [what: string, hex: string, offset: number])[] = [
  ["field number 0", "0801 00", 2],
  ["an end of a group that did not begin", "0801 0c", 2],
  ["a group without an end", "0b 0801", 0],
  ["a group that ends as another", "0b 0801 14", 0],
  ["a length beyond the end", "0801 0a05 61", 2],
  ["a number of eleven octets", "08 ffffffffffffffffffff01", 0],
  ["wire type 6", "0e 00", 0],
  ["a cut tag", "0801 80", 2],
];
for (const [what, hex, offset] of MALFORMED) {
  test(`${what} is named with its place`, () => {
    assert.deepEqual(walk(hex).stop, { reason: "malformed", offset });
  });
}

test("any bytes are walked without a throw and within the limits", () => {
  const limits = { maxDepth: 4, maxFields: 50, maxValueBytes: 200 };
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 400 }), (bytes) => {
      const { fields } = walkFields(Buffer.from(bytes), undefined, limits);
      const text = JSON.stringify(fields);
      assert.ok((text.match(/"number"/gu)?.length ?? 0) <= limits.maxFields);
    }),
    { numRuns: 1000 },
  );
});

test("deep nesting and many groups cost no more than the bytes", () => {
  const groups = Buffer.alloc(200_000, 0x0b);
  assert.equal(walkFields(groups).stop?.reason, "malformed");
  const many = Buffer.alloc(2_000_000, Buffer.from([0x08, 0x01]));
  const { fields, stop } = walkFields(many);
  assert.equal(fields.length, 10_000);
  assert.equal(stop?.reason, "limit");
  const large = Buffer.concat([Buffer.from([0x0a, 0x80, 0x80, 0x80, 0x02]), Buffer.alloc(4_194_304, 0x61)]);
  assert.equal(walkFields(large).stop?.reason, "limit");
});
