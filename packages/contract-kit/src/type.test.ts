import assert from "node:assert/strict";
import { test } from "node:test";
import { Type as TypeBox } from "typebox";
import { Type } from "./type.ts";

/** Each makes schemas with what is given: TypeBox's functions or ours. */
const MAKERS: readonly (readonly [string, (type: typeof Type) => unknown])[] = [
  ["texts", ({ String: text }) => [text(), text({ pattern: "^a$", maxLength: 3, description: "d" })]],
  [
    "numbers",
    ({ Integer, Number: number }) => [Integer(), Integer({ minimum: 1 }), number(), number({ default: 0.5 })],
  ],
  [
    "simple values",
    ({ Boolean: flag, Null, Unknown }) => [flag({ default: true }), Null(), Unknown(), Unknown({ title: "t" })],
  ],
  ["literals", ({ Literal }) => [Literal("a"), Literal(1), Literal(true, { description: "d" })]],
  ["lists", ({ Array: list, String: text }) => [list(text()), list(text(), { maxItems: 3 })]],
  ["choices", ({ Union, String: text, Null }) => [Union([text(), Null()]), Union([text(), Null()], { default: null })]],
  [
    "objects",
    ({ Object: object, Optional, String: text, Integer }) => [
      object({}),
      object({ a: Optional(text()) }),
      object(
        { b: text({ title: "t" }), a: Optional(Integer()), c: Integer() },
        { additionalProperties: false, $id: "O" },
      ),
    ],
  ],
  [
    "records",
    ({ Record: record, String: text, Integer }) => [
      record(text(), Integer()),
      record(text({ pattern: "^[a-z]$" }), text(), { maxProperties: 3 }),
      record(text({ maxLength: 3 }), text()),
    ],
  ],
  ["anything", ({ Unsafe }) => [Unsafe({ type: "string", enum: ["a"] }), Unsafe({ $ref: "A" })]],
];

for (const [name, make] of MAKERS) {
  test(`schemas of ${name} are those that TypeBox makes, keywords in the same order`, () => {
    assert.equal(JSON.stringify(make(Type)), JSON.stringify(make(TypeBox)));
  });
}

test("an optional property stays optional in a copy of its object, and its schema alone is as it was", () => {
  const name = Type.String();
  const first = Type.Object({ name: Type.Optional(name) });
  assert.deepEqual(Type.Object({ ...first.properties, id: name }).required, ["id"]);
  assert.deepEqual(Object.keys(Type.Optional(name)), ["type"]);
});
