import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import fc from "fast-check";
import {
  buildSchema,
  decodeMessage,
  DescriptorError,
  encodeMessage,
  missingImports,
  parseProtoText,
  ProtoTextError,
  readDescriptorSet,
  type SchemaFile,
} from "./index.ts";

function schemaOf(...texts: readonly string[]): ReturnType<typeof buildSchema> {
  return buildSchema(texts.map((text, at) => parseProtoText(`${at}.proto`, text)));
}

test("names are looked up from the inside out", () => {
  const { schema, issues } = schemaOf(`syntax = "proto3"; package a.b;
    message T { int32 outer = 1; }
    message M { message T { int32 inner = 1; } T near = 1; .a.b.T far = 2; b.T half = 3; Other.T other = 4; }
    message Other { message T { int32 other = 1; } }`);
  assert.deepEqual(issues, []);
  const types = [...(schema.messages.get("a.b.M")?.fields.values() ?? [])].map((field) =>
    field.kind === "message" ? field.type.name : field.kind,
  );
  assert.deepEqual(types, ["a.b.M.T", "a.b.T", "a.b.T", "a.b.Other.T"]);
});

test("files see each other's types, and what is missing is named", () => {
  const { schema, issues } = schemaOf(
    'syntax = "proto3"; package one; import "two.proto"; message A { two.B b = 1; two.Missing c = 2; int32 d = 3; }',
    'syntax = "proto3"; package two; message B { one.A a = 1; } service S { rpc Go(B) returns (Gone); rpc Ok(B) returns (B); }',
  );
  assert.deepEqual(issues, [
    "0.proto: two.Missing of one.A.c is not declared",
    "1.proto: Gone of two.S.Go is not declared",
  ]);
  assert.deepEqual([...(schema.messages.get("one.A")?.fields.keys() ?? [])], [1, 3]);
  assert.deepEqual([...(schema.services.get("two.S")?.methods.keys() ?? [])], ["Ok"]);
});

test("services say which sides stream", () => {
  const { schema } = schemaOf(`syntax = "proto3"; message M {} service S { rpc U(M) returns (M);
    rpc C(stream M) returns (M); rpc R(M) returns (stream M); rpc B(stream M) returns (stream M) {} }`);
  assert.deepEqual(
    [...(schema.services.get("S")?.methods.values() ?? [])].map(({ name, isClientStreaming, isServerStreaming }) => [
      name,
      isClientStreaming,
      isServerStreaming,
    ]),
    [
      ["U", false, false],
      ["C", true, false],
      ["R", false, true],
      ["B", true, true],
    ],
  );
});

test("proto2 has groups, extensions and fields that are not packed by themselves", () => {
  const { schema, issues } = schemaOf(`syntax = "proto2"; package p;
    message M { optional group Part = 1 { optional int32 n = 2; } extensions 100 to 200; repeated int32 loose = 3;
      repeated int32 tight = 4 [packed = true]; }
    extend M { optional string note = 100; }`);
  assert.deepEqual(issues, []);
  const type = schema.messages.get("p.M");
  assert.ok(type);
  const json = { part: { n: 7 }, loose: [1, 2], tight: [3, 4], "[p.note]": "x" };
  const bytes = encodeMessage(schema, type, json);
  assert.equal(bytes.toString("hex"), "0b10070c1801180222020304a2060178");
  assert.deepEqual(JSON.parse(JSON.stringify(decodeMessage(schema, type, bytes).json)), json);
});

test("a number or a name that is taken keeps its first meaning", () => {
  const file = parseProtoText("a.proto", 'syntax = "proto3"; message A { int32 first = 1; }');
  const again = parseProtoText("b.proto", 'syntax = "proto3"; message A { string second = 1; string third = 2; }');
  const { schema, issues } = buildSchema([file, again]);
  assert.deepEqual(issues, ["b.proto: A is declared twice"]);
  assert.deepEqual(
    [...(schema.messages.get("A")?.fields.values() ?? [])].map(({ name }) => name),
    ["first"],
  );
});

test("imports are confined to what was given and to well-known files", () => {
  const text = (imports: readonly string[]): string =>
    `syntax = "proto3"; ${imports.map((name) => `import "${name}";`).join(" ")} message M {}`;
  const files = [
    parseProtoText("shop/a.proto", text(["shop/b.proto", "google/protobuf/any.proto", "google/api/annotations.proto"])),
    parseProtoText("b.proto", text(["/etc/passwd", "../secret.proto", "google/protobuf/other.proto"])),
  ];
  assert.deepEqual(
    missingImports(files).map(({ missing }) => missing),
    ["/etc/passwd", "../secret.proto", "google/protobuf/other.proto"],
  );
});

const BROKEN: readonly (readonly [what: string, text: string])[] = [
  ["no .proto at all", "<html></html>"],
  ["an end in the middle", 'syntax = "proto3"; message A { int32 a'],
  ["an open string", 'syntax = "proto3'],
  ["a number twice", 'syntax = "proto3"; message A { int32 a = 1; int32 b = 1; }'],
  ["deep nesting", `syntax = "proto3"; ${"message A { ".repeat(5000)}${"} ".repeat(5000)}`],
];
for (const [what, text] of BROKEN) {
  test(`a file with ${what} is refused with its name`, () => {
    assert.throws(
      () => parseProtoText("x.proto", text),
      (error) => error instanceof ProtoTextError && error.message.startsWith("x.proto: "),
    );
  });
}

test("texts that are nearly .proto never throw anything else", () => {
  const words = [
    "message",
    "A",
    "{",
    "}",
    "int32",
    "=",
    "1",
    ";",
    "enum",
    "oneof",
    "map",
    "<",
    ">",
    "string",
    ",",
    "rpc",
    "service",
    "(",
    ")",
    "returns",
    "stream",
    "option",
    "[",
    "]",
    '"',
    "extend",
    "reserved",
    "repeated",
    "__proto__",
    "constructor",
    "group",
    ".",
    "//",
    "/*",
    "import",
    "package",
    "-",
    "syntax",
    "proto3",
  ];
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...words), { maxLength: 40 }), (tokens) => {
      try {
        buildSchema([parseProtoText("x.proto", `syntax = "proto3"; ${tokens.join(" ")}`)]);
      } catch (error) {
        assert.ok(error instanceof ProtoTextError, String(error));
      }
    }),
    { numRuns: 2000 },
  );
  assert.equal(Object.keys(Object.prototype).length, 0);
});

test("everything works where no code can be made of text", () => {
  const script = `
    import { buildSchema, decodeMessage, encodeMessage, parseProtoText } from ${JSON.stringify(new URL("index.ts", import.meta.url).href)};
    const { schema } = buildSchema([parseProtoText("a.proto", 'syntax = "proto3"; message A { map<string, A> m = 1; int64 n = 2; }')]);
    const type = schema.messages.get("A");
    console.log(JSON.stringify(decodeMessage(schema, type, encodeMessage(schema, type, { m: { x: { n: "1" } } })).json));`;
  const { stdout, stderr } = spawnSync(
    process.execPath,
    ["--disallow-code-generation-from-strings", "--input-type=module", "--eval", script],
    { encoding: "utf8" },
  );
  assert.equal(stdout, '{"m":{"x":{"n":"1"}}}\n', stderr);
});

/** What protoc makes of a file with a message of each kind; see the comments for its text. */
const DESCRIPTOR_SET = descriptorSet();

function descriptorSet(): Buffer {
  const { schema } = buildSchema([
    parseProtoText(
      "descriptor.proto",
      `syntax = "proto2"; package d;
      message Set { repeated File file = 1; }
      message File { optional string name = 1; optional string package = 2; repeated string dependency = 3;
        repeated Message message_type = 4; repeated Enum enum_type = 5; repeated Service service = 6;
        optional string syntax = 12; }
      message Message { optional string name = 1; repeated Field field = 2; repeated Message nested_type = 3;
        optional Options options = 7; repeated Oneof oneof_decl = 8; }
      message Options { optional bool map_entry = 7; }
      message Oneof { optional string name = 1; }
      message Field { optional string name = 1; optional int32 number = 3; optional int32 label = 4;
        optional int32 type = 5; optional string type_name = 6; optional int32 oneof_index = 9;
        optional string json_name = 10; optional bool proto3_optional = 17; optional FieldOptions options = 8; }
      message FieldOptions { optional bool packed = 2; }
      message Enum { optional string name = 1; repeated Value value = 2; }
      message Value { optional string name = 1; optional int32 number = 2; }
      message Service { optional string name = 1; repeated Method method = 2; }
      message Method { optional string name = 1; optional string input_type = 2; optional string output_type = 3;
        optional bool client_streaming = 5; optional bool server_streaming = 6; }`,
    ),
  ]);
  const type = schema.messages.get("d.Set");
  assert.ok(type);
  const entry = {
    name: "CountsEntry",
    field: [
      { name: "key", number: 1, label: 1, type: 9 },
      { name: "value", number: 2, label: 1, type: 5 },
    ],
    options: { map_entry: true },
  };
  const order = {
    name: "Order",
    field: [
      { name: "order_id", number: 1, label: 1, type: 3, json_name: "orderId" },
      { name: "kind", number: 2, label: 1, type: 14, type_name: ".shop.Kind" },
      { name: "counts", number: 3, label: 3, type: 11, type_name: ".shop.Order.CountsEntry" },
      { name: "numbers", number: 4, label: 3, type: 5 },
      { name: "loose", number: 5, label: 3, type: 5, options: { packed: false } },
      { name: "card", number: 6, label: 1, type: 9, oneof_index: 0 },
      { name: "cash", number: 7, label: 1, type: 8, oneof_index: 0 },
      { name: "note", number: 8, label: 1, type: 9, oneof_index: 1, proto3_optional: true },
    ],
    nested_type: [entry],
    oneof_decl: [{ name: "payment" }, { name: "_note" }],
  };
  return encodeMessage(schema, type, {
    file: [
      {
        name: "shop.proto",
        package: "shop",
        dependency: ["google/protobuf/empty.proto"],
        message_type: [order],
        enum_type: [
          {
            name: "Kind",
            value: [
              { name: "NONE", number: 0 },
              { name: "BIG", number: 3 },
            ],
          },
        ],
        service: [
          {
            name: "Orders",
            method: [
              {
                name: "Watch",
                input_type: ".shop.Order",
                output_type: ".google.protobuf.Empty",
                server_streaming: true,
              },
            ],
          },
        ],
        syntax: "proto3",
      },
    ],
  });
}

test("a descriptor set gives the schema that the text of its files gives", () => {
  const [file, ...others] = readDescriptorSet(DESCRIPTOR_SET);
  assert.equal(others.length, 0);
  const text = parseProtoText(
    "shop.proto",
    `syntax = "proto3"; package shop; import "google/protobuf/empty.proto";
    message Order { int64 order_id = 1; Kind kind = 2; map<string, int32> counts = 3; repeated int32 numbers = 4;
      repeated int32 loose = 5 [packed = false]; oneof payment { string card = 6; bool cash = 7; }
      optional string note = 8; }
    enum Kind { NONE = 0; BIG = 3; }
    service Orders { rpc Watch(Order) returns (stream google.protobuf.Empty); }`,
  );
  const json = { orderId: "5", kind: "BIG", counts: { a: 1 }, numbers: [1], loose: [2], cash: true, note: "" };
  const outcomes = [file, text].map((one) => {
    assert.ok(one);
    const { schema, issues } = buildSchema([one]);
    const type = schema.messages.get("shop.Order");
    assert.ok(type);
    const bytes = encodeMessage(schema, type, json);
    const method = schema.services.get("shop.Orders")?.methods.get("Watch");
    const shown: unknown = JSON.parse(JSON.stringify(decodeMessage(schema, type, bytes).json));
    return {
      issues,
      hex: bytes.toString("hex"),
      shown,
      streams: method?.isServerStreaming,
      output: method?.output.name,
    };
  });
  assert.deepEqual(outcomes[0], outcomes[1]);
  assert.deepEqual(outcomes[0]?.shown, json);
});

test("damaged descriptor sets are refused or read, and never throw anything else", () => {
  fc.assert(
    fc.property(fc.nat(DESCRIPTOR_SET.length - 1), fc.nat(255), (at, octet) => {
      const damaged = Buffer.from(DESCRIPTOR_SET);
      damaged[at] = octet;
      let files: SchemaFile[] = [];
      try {
        files = readDescriptorSet(damaged);
      } catch (error) {
        assert.ok(error instanceof DescriptorError, String(error));
      }
      buildSchema(files);
    }),
    { numRuns: 2000 },
  );
  assert.throws(() => readDescriptorSet(Buffer.alloc(0)), new DescriptorError("The descriptor set has no files"));
});
