import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import type { GrpcSchema } from "@headworks/capture-contract";
import { FakeClock, temporaryDirectory } from "@headworks/testkit";
import { pino } from "pino";
import { createProxy } from "#proxy.ts";
import { startProxyRig, type ProxyRig } from "../../../test/proxy-rig.ts";
import { readSchemaApart, SchemaProblem } from "./schema-handlers.ts";

let rig: ProxyRig;
before(async () => {
  rig = await startProxyRig();
});
after(async () => {
  await rig[Symbol.asyncDispose]();
});
beforeEach(async () => {
  for (const { id } of await rig.api<GrpcSchema[]>("GET", "/grpc/schemas")) {
    await rig.api("DELETE", `/grpc/schemas/${id}`, undefined, 204);
  }
});

const add = async <T = GrpcSchema>(body: unknown, status = 201): Promise<T> =>
  await rig.api<T>("POST", "/grpc/schemas", body, status);

const ORDERS = `syntax = "proto3"; package shop.v1; import "shop/v1/types.proto"; import "google/protobuf/empty.proto";
  service Orders { rpc Get(Order) returns (google.protobuf.Empty); rpc Watch(Order) returns (stream Order);
    rpc Load(stream Order) returns (Order); rpc Talk(stream Order) returns (stream Order); }`;
const TYPES = 'syntax = "proto3"; package shop.v1; message Order { int64 id = 1; map<string, int32> counts = 2; }';

test("files that import each other become one schema, which is listed newest first", async () => {
  const first = await add({
    files: [{ name: "only.proto", text: 'syntax = "proto3"; message A {}' }],
    name: "Old one",
  });
  const second = await add({
    files: [
      { name: "shop/v1/orders.proto", text: ORDERS },
      { name: "types.proto", base64: Buffer.from(TYPES).toString("base64") },
    ],
  });
  assert.deepEqual(
    { ...second, id: "", created_at: "" },
    {
      id: "",
      name: "orders.proto",
      source: "proto",
      files: ["shop/v1/orders.proto", "types.proto"],
      services: [
        {
          name: "shop.v1.Orders",
          methods: [
            ["Get", "google.protobuf.Empty", "unary"],
            ["Watch", "shop.v1.Order", "serverstream"],
            ["Load", "shop.v1.Order", "clientstream"],
            ["Talk", "shop.v1.Order", "bidistream"],
          ].map(([name, response, type]) => ({
            name,
            path: `/shop.v1.Orders/${name}`,
            request_type: "shop.v1.Order",
            response_type: response,
            message_type: type,
          })),
        },
      ],
      messages: 1,
      issues: [],
      created_at: "",
    },
  );
  assert.deepEqual(
    (await rig.api<GrpcSchema[]>("GET", "/grpc/schemas")).map(({ id, name }) => [id, name]),
    [
      [second.id, "orders.proto"],
      [first.id, "Old one"],
    ],
  );
  await rig.api("DELETE", `/grpc/schemas/${first.id}`, undefined, 204);
  await rig.api("DELETE", `/grpc/schemas/${first.id}`, undefined, 404);
});

/** A short field of bytes. */
function field(number: number, value: string | Buffer): Buffer {
  const bytes = Buffer.from(value);
  return Buffer.concat([Buffer.from([number * 8 + 2, bytes.length]), bytes]);
}

test("a descriptor set of protoc is a schema", async () => {
  const number = Buffer.from("180120012805", "hex");
  const message = Buffer.concat([field(1, "M"), field(2, Buffer.concat([field(1, "a"), number]))]);
  const file = Buffer.concat([field(1, "a.proto"), field(2, "p"), field(4, message), field(12, "proto3")]);
  const set = field(1, file).toString("base64");
  const added = await add({ descriptor_set: set });
  assert.deepEqual([added.source, added.files, added.messages], ["descriptor_set", ["a.proto"], 1]);
});

const REFUSED: readonly (readonly [what: string, body: unknown, message: RegExp])[] = [
  ["neither files nor a set", {}, /needs either files or descriptor_set/u],
  ["both", { files: [{ name: "a", text: "" }], descriptor_set: "AA==" }, /cannot be combined with files/u],
  ["a file without text", { files: [{ name: "a.proto" }] }, /needs either text or base64/u],
  ["what is no base64", { descriptor_set: "%%%" }, /is no base64/u],
  ["what is no descriptor set", { descriptor_set: "/////w==" }, /no protocol buffers/u],
  ["an empty file", { files: [{ name: "a.proto", text: "" }] }, /Nothing is declared/u],
  ["a broken file", { files: [{ name: "a.proto", text: "message {" }] }, /a\.proto: illegal/u],
  [
    "an import that was not given",
    { files: [{ name: "a.proto", text: 'syntax = "proto3"; import "/etc/passwd"; message A {}' }] },
    /a\.proto imports \/etc\/passwd, which was not given/u,
  ],
  ["an unknown field", { files: [{ name: "a.proto", text: "" }], colour: "red" }, /colour/u],
];
for (const [what, body, message] of REFUSED) {
  test(`${what} is refused`, async () => {
    const refusal = await add<{ code: string; error: string; details?: unknown }>(body, 400);
    assert.equal(refusal.code, "VALIDATION_ERROR");
    assert.match(JSON.stringify(refusal), message);
    assert.deepEqual(await rig.api("GET", "/grpc/schemas"), []);
  });
}

test("a schema outlives the process", async () => {
  await using directory = await temporaryDirectory();
  const start = async () =>
    await createProxy({
      dataDir: directory.path,
      environment: {},
      flags: { "proxy-port": "0", "api-port": "0" },
      log: pino({ level: "silent" }),
    });
  const first = await start();
  const posted = await fetch(`${first.addresses.api}/api/grpc/schemas`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ files: [{ name: "o.proto", text: TYPES }] }),
  });
  const added: unknown = await posted.json();
  await first.stop(0);
  const second = await start();
  const listed: unknown = await (await fetch(`${second.addresses.api}/api/grpc/schemas`)).json();
  await second.stop(0);
  assert.deepEqual(listed, [added]);
});

test("a schema that takes too long to read is given up", async () => {
  const clock = new FakeClock();
  const files = [{ name: "a.proto", text: TYPES }];
  const reading = readSchemaApart({ kind: "proto", files }, clock, new AbortController().signal);
  const refused = assert.rejects(reading, new SchemaProblem("The schema takes too long to read"));
  await Promise.all([refused, clock.advance(60_000)]);
});
