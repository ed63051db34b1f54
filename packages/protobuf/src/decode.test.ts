import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  buildSchema,
  decodeMessage,
  encodeMessage,
  EncodeError,
  parseProtoText,
  type JsonValue,
  type MessageType,
} from "./index.ts";

const TEXT = `syntax = "proto3";
package t;
import "google/protobuf/any.proto"; import "google/protobuf/struct.proto"; import "google/protobuf/timestamp.proto";
import "google/protobuf/duration.proto"; import "google/protobuf/field_mask.proto";
import "google/protobuf/wrappers.proto"; import "google/protobuf/empty.proto";
enum Color { COLOR_NONE = 0; RED = 1; BLUE = -2; }
message All {
  double d = 1; float f = 2; int32 i32 = 3; int64 i64 = 4; uint32 u32 = 5; uint64 u64 = 6; sint32 s32 = 7;
  sint64 s64 = 8; fixed32 f32 = 9; fixed64 f64 = 10; sfixed32 sf32 = 11; sfixed64 sf64 = 12; bool b = 13;
  string text_value = 14; bytes raw = 15; Color color = 16; All inner = 17;
  repeated int32 numbers = 18; repeated string texts = 19; repeated All list = 20;
  map<string, int32> counts = 21; map<int64, All> by_id = 22; map<bool, Color> flags = 23;
  oneof choice { string first = 24; All second = 25; }
  google.protobuf.Any any = 30; google.protobuf.Struct struct = 31; google.protobuf.Value value = 32;
  google.protobuf.ListValue values = 33; google.protobuf.Timestamp at = 34; google.protobuf.Duration took = 35;
  google.protobuf.FieldMask mask = 36; google.protobuf.Int64Value wrapped = 37; google.protobuf.Empty nothing = 38;
  google.protobuf.BoolValue truth = 39; string constructor = 40;
}`;
const { schema, issues } = buildSchema([parseProtoText("t.proto", TEXT)]);
const all = typeNamed("t.All");

function typeNamed(name: string): MessageType {
  const type = schema.messages.get(name);
  assert.ok(type, name);
  return type;
}

/** Without the missing prototypes, which deepEqual minds. */
function plain(json: JsonValue): unknown {
  return JSON.parse(JSON.stringify(json));
}

function decode(hex: string): { json: unknown; unknown: readonly unknown[]; issues: readonly string[] } {
  const decoded = decodeMessage(schema, all, Buffer.from(hex.replaceAll(" ", ""), "hex"));
  return { ...decoded, json: plain(decoded.json) };
}

test("the schema links without issues", () => {
  assert.deepEqual(issues, []);
});

/** Each is the same in both directions. */
const FORMS: readonly (readonly [what: string, hex: string, json: Record<string, unknown>])[] = [
  ["a double", "09 000000000000f83f", { d: 1.5 }],
  ["a double that is no number", "09 000000000000f87f", { d: "NaN" }],
  ["a float without the digits it has not", "15 cdcccc3d", { f: 0.1 }],
  ["an infinite float", "15 000080ff", { f: "-Infinity" }],
  ["a negative int32 in ten octets", "18 ffffffffffffffffff01", { i32: -1 }],
  ["an int64 as text", "20 ffffffffffffffff7f", { i64: "9223372036854775807" }],
  ["a uint32", "28 ffffffff0f", { u32: 4_294_967_295 }],
  ["a uint64 as text", "30 ffffffffffffffffff01", { u64: "18446744073709551615" }],
  ["a sint32", "38 03", { s32: -2 }],
  ["the least sint64", "40 ffffffffffffffffff01", { s64: "-9223372036854775808" }],
  ["a fixed32", "4d 01000080", { f32: 2_147_483_649 }],
  ["a fixed64", "51 0100000000000080", { f64: "9223372036854775809" }],
  ["a sfixed32", "5d feffffff", { sf32: -2 }],
  ["a sfixed64", "61 feffffffffffffff", { sf64: "-2" }],
  ["a bool", "68 01", { b: true }],
  ["a text under its JSON name", "72 02 c3bc", { textValue: "ü" }],
  ["bytes in base64", "7a 02 fbff", { raw: "+/8=" }],
  ["an enum by name", "8001 01", { color: "RED" }],
  ["a negative enum", "8001 feffffffffffffffff01", { color: "BLUE" }],
  ["an enum without a name", "8001 05", { color: 5 }],
  ["a message", "8a01 02 1807", { inner: { i32: 7 } }],
  ["packed numbers", "9201 03 019601", { numbers: [1, 150] }],
  ["texts", "9a01 01 61 9a01 00", { texts: ["a", ""] }],
  ["messages", "a201 00 a201 02 1801", { list: [{}, { i32: 1 }] }],
  ["a map of numbers", "aa01 05 0a0161 1002", { counts: { a: 2 } }],
  ["a map of messages by number", "b201 06 0807 1202 1801", { byId: { 7: { i32: 1 } } }],
  ["a map by truth", "ba01 04 0801 1001", { flags: { true: "RED" } }],
  ["a member of a oneof", "c201 01 61", { first: "a" }],
  ["a time", "9202 0c 08a5ebdcca06 1080eba5c302", { at: "2026-01-02T03:04:05.678Z" }],
  ["a negative duration", "9a02 11 08ffffffffffffffffff01 10808eceffffff", { took: "-1.0..." }],
  ["a field mask", "a202 08 0a06 615f622e6364", { mask: "aB.cd" }],
  ["a wrapped number", "aa02 02 0805", { wrapped: "5" }],
  ["a wrapped default", "ba02 00", { truth: false }],
  ["a field called constructor", "c202 01 61", { constructor: "a" }],
  ["a value that is null", "8202 02 0800", { value: null }],
  ["a list of values", "8a02 0d 0a09 11 000000000000f03f 0a00", { values: [1, null] }],
];
for (const [what, hex, json] of FORMS.filter(([, , { took }]) => took === undefined)) {
  test(`${what} is shown as protocol buffers' JSON`, () => {
    assert.deepEqual(decode(hex), { json, unknown: [], issues: [] });
  });
}

test("what was encoded from JSON decodes to that JSON", () => {
  const leaf = fc.record(
    {
      d: fc.oneof(fc.double({ noNaN: true, noDefaultInfinity: true }), fc.constantFrom("NaN", "Infinity")),
      f: fc
        .float({ noNaN: true, noDefaultInfinity: true })
        .map((value) =>
          Number(
            new Intl.NumberFormat("en", { maximumSignificantDigits: 6, useGrouping: false, notation: "scientific" })
              .format(value)
              .toLowerCase(),
          ),
        )
        .map((value) => (Math.abs(value) > 1e38 || Math.abs(value) < 1e-30 ? 0 : value)),
      i32: fc.integer(),
      i64: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map(String),
      u32: fc.integer({ min: 0, max: 4_294_967_295 }),
      u64: fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }).map(String),
      s32: fc.integer(),
      s64: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map(String),
      f32: fc.integer({ min: 0, max: 4_294_967_295 }),
      sf32: fc.integer(),
      sf64: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map(String),
      b: fc.boolean(),
      textValue: fc.string({ unit: "grapheme" }),
      raw: fc.uint8Array().map((bytes) => Buffer.from(bytes).toString("base64")),
      color: fc.constantFrom("RED", "BLUE", 77),
      numbers: fc.array(fc.integer(), { minLength: 1 }),
      counts: fc.dictionary(fc.string(), fc.integer(), { minKeys: 1 }),
      took: fc.constantFrom("1s", "-1.500s", "0.000000001s"),
      mask: fc.constantFrom("a,bC.d"),
      struct: fc.dictionary(fc.string(), fc.constantFrom(1, "a", true, null, [1, { x: [] }]), { minKeys: 1 }),
    },
    { requiredKeys: [] },
  );
  const message = fc.record(
    {
      inner: leaf,
      list: fc.array(leaf, { minLength: 1 }),
      byId: fc.dictionary(fc.nat().map(String), leaf, { minKeys: 1 }),
    },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(message, (json) => {
      const bytes = encodeMessage(schema, all, json);
      const decoded = decodeMessage(schema, all, bytes);
      assert.deepEqual(plain(decoded.json), JSON.parse(JSON.stringify(json, zeroes)));
      assert.deepEqual(decoded.issues, []);
    }),
  );
});

/** JSON has no negative zero. */
function zeroes(_: string, value: unknown): unknown {
  return Object.is(value, -0) ? 0 : value;
}

test("any bytes decode without a throw, and what is shown can be sent as JSON", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
      JSON.stringify(decodeMessage(schema, all, Buffer.from(bytes)));
    }),
    { numRuns: 1000 },
  );
});

test("damaged messages decode without a throw", () => {
  const whole = encodeMessage(schema, all, {
    inner: { list: [{ textValue: "abc" }, { numbers: [1, 2, 3] }] },
    any: { "@type": "x/t.All", at: "2026-01-02T03:04:05Z" },
    struct: { a: [1, { b: null }] },
    byId: { 5: { counts: { x: 1 } } },
  });
  fc.assert(
    fc.property(fc.nat(whole.length - 1), fc.nat(255), fc.nat(whole.length), (at, octet, length) => {
      const damaged = Buffer.from(whole);
      damaged[at] = octet;
      JSON.stringify(decodeMessage(schema, all, damaged.subarray(0, length)));
    }),
    { numRuns: 1000 },
  );
});

test("fields may have names of object machinery", () => {
  const names = ["constructor", "__proto__", "toString"];
  const field = { kind: "string", isRepeated: false, isPacked: false } as const;
  const fields = names.map((name, at) => ({ ...field, number: at + 1, name, jsonName: name }));
  const own = { name: "o.proto", packageName: "", imports: [], enums: [], services: [], extensions: [] };
  const { schema: odd } = buildSchema([{ ...own, messages: [{ name: "Odd", isMapEntry: false, fields }] }]);
  const type = odd.messages.get("Odd");
  assert.ok(type);
  const { json } = decodeMessage(odd, type, Buffer.from("0a0161120162", "hex"));
  assert.equal(JSON.stringify(json), '{"constructor":"a","__proto__":"b"}');
  assert.equal(Object.getPrototypeOf({}), Object.prototype);
});

test("occurrences of one message are merged, and of a oneof the last counts", () => {
  assert.deepEqual(decode("8a01 02 1801 8a01 02 2002").json, { inner: { i32: 1, i64: "2" } });
  assert.deepEqual(decode("c201 01 61 ca01 02 1801").json, { second: { i32: 1 } });
  assert.deepEqual(decode("ca01 02 1801 c201 01 61").json, { first: "a" });
});

test("repeated numbers may be packed or not, whatever the schema says", () => {
  assert.deepEqual(decode("9001 01 9201 02 0203").json, { numbers: [1, 2, 3] });
  assert.deepEqual(decode("1a 02 0102").json, { i32: 2 });
});

test("unknown fields are named with their place", () => {
  assert.deepEqual(decode("a201 05 1801 f80301 f80301").unknown, [
    { path: "list[0]", number: 63, wireType: 0 },
    { path: "", number: 63, wireType: 0 },
  ]);
});

test("an Any of a known type is shown inside, of another as its bytes", () => {
  const known = encodeMessage(schema, all, { any: { "@type": "type.googleapis.com/t.All", i32: 5 } });
  assert.deepEqual(plain(decodeMessage(schema, all, known).json), {
    any: { "@type": "type.googleapis.com/t.All", i32: 5 },
  });
  const formed = { any: { "@type": "x/google.protobuf.Duration", value: "1.5s" } };
  const shown = { any: { "@type": "x/google.protobuf.Duration", value: "1.500s" } };
  assert.deepEqual(plain(decodeMessage(schema, all, encodeMessage(schema, all, formed)).json), shown);
  const other = { any: { "@type": "x/not.Known", value: "AQI=" } };
  assert.deepEqual(plain(decodeMessage(schema, all, encodeMessage(schema, all, other)).json), other);
});

test("a message that is nested without end stops at a depth", () => {
  let bytes = Buffer.alloc(0);
  for (let depth = 0; depth < 500; depth += 1) {
    const length: number[] = bytes.length < 128 ? [bytes.length] : [(bytes.length & 0x7f) | 0x80, bytes.length >> 7];
    bytes = Buffer.concat([Buffer.from([0x8a, 0x01, ...length]), bytes]);
  }
  const { issues: found } = decodeMessage(schema, all, bytes);
  assert.ok(found.some((issue) => issue.endsWith("nested too deep")));
});

test("more values than the limit are not made", () => {
  const packed = Buffer.concat([Buffer.from([0x92, 0x01, 0xc0, 0x84, 0x3d]), Buffer.alloc(1_000_000, 1)]);
  const { json, issues: found } = decodeMessage(schema, all, packed);
  assert.ok((json as { numbers: unknown[] }).numbers.length <= 100_000);
  assert.deepEqual(found, ["numbers: more values than are shown"]);
});

const REFUSED: readonly (readonly [json: unknown, message: string])[] = [
  [[], "t.All: is no t.All"],
  [{ i32: 1.5 }, "i32: is no whole number"],
  [{ i32: 2_147_483_648 }, "i32: is out of range"],
  [{ u64: "-1" }, "u64: is out of range"],
  [{ color: "GREEN" }, "color: t.Color has no value GREEN"],
  [{ inner: { nope: 1 } }, "inner.nope: t.All has no such field"],
  [{ texts: "a" }, "texts: is no array"],
  [{ texts: [1] }, "texts[0]: is no text"],
  [{ raw: "%" }, "raw: is no base64"],
  [{ b: 1 }, "b: is neither true nor false"],
  [{ d: "" }, "d: is no number"],
  [{ any: {} }, 'any: Any needs "@type"'],
  [{ at: "yesterday" }, "at: is no google.protobuf.Timestamp"],
];
for (const [json, message] of REFUSED) {
  test(`${JSON.stringify(json)} is refused: ${message}`, () => {
    assert.throws(() => encodeMessage(schema, all, json as JsonValue), new EncodeError(message));
  });
}
