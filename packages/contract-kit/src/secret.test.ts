import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";
import { JsonBytes } from "./operation.ts";
import { nullable, oneOf, strictObject, Type } from "./type.ts";
import { Secret } from "./secret.ts";

test("a secret comes out of nothing but reveal", () => {
  const secret = new Secret("hunter2");
  const shown = [
    String(secret),
    ["secret is", secret].join(" "),
    JSON.stringify({ secret }),
    inspect(secret),
    inspect({ deep: { secret } }),
    JSON.stringify(Object.entries(secret)),
  ];
  for (const text of shown) assert.doesNotMatch(text, /hunter2/);
  assert.equal(String(secret), "[REDACTED]");
  assert.equal(secret.reveal(), "hunter2");
});

test("the schema words say what they say in JSON Schema", () => {
  assert.deepEqual(JSON.parse(JSON.stringify(strictObject({ a: Type.String() }))), {
    type: "object",
    required: ["a"],
    properties: { a: { type: "string" } },
    additionalProperties: false,
  });
  assert.deepEqual(JSON.parse(JSON.stringify(oneOf(["a", "b"], { default: "a" }))), {
    default: "a",
    type: "string",
    enum: ["a", "b"],
  });
  assert.deepEqual(JSON.parse(JSON.stringify(nullable(Type.Integer()))), {
    anyOf: [{ type: "integer" }, { type: "null" }],
  });
});

test("serialized JSON keeps its bytes", () => {
  const bytes = Buffer.from("[1]");
  assert.equal(new JsonBytes(bytes).bytes, bytes);
});
