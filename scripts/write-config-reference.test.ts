import assert from "node:assert/strict";
import { test } from "node:test";
import { referenceText } from "./write-config-reference.ts";

test("a section has a table of all its fields, required ones in bold, with escaped bars", () => {
  const text = referenceText({
    type: "object",
    properties: {
      version: { type: "integer", minimum: 1, maximum: 1, description: "Version." },
      routes: {
        type: "array",
        description: "Routes.",
        items: {
          type: "object",
          required: ["name"],
          properties: {
            name: { type: "string", description: "a | b" },
            kind: { enum: ["one", "two"] },
            match: {
              anyOf: [{ properties: { path: { type: "string" } } }, { properties: { path: { type: "string" } } }],
            },
            ratio: { type: "number", exclusiveMinimum: 0, maximum: 1 },
            share: { type: "number", exclusiveMinimum: 0 },
            count: { type: "integer", minimum: 0 },
            most: { type: "integer", maximum: 9 },
            tags: { type: "array", items: { type: "string" } },
          },
        },
      },
    },
  });
  assert.ok(text.includes("| `version` | integer 1 to 1 | Version. |"));
  assert.ok(text.includes("## routes\n\nRoutes.\n\nA list; each member has:\n\n| Field"));
  assert.ok(text.includes("| **`name`** | string | a \\| b |"));
  assert.ok(text.includes("| `kind` | `one` `two` |  |"));
  assert.equal(text.split("`match.path`").length, 2, "once");
  assert.ok(text.includes("| `ratio` | number above 0 to 1 |"));
  assert.ok(text.includes("| `share` | number above 0 |"));
  assert.ok(text.includes("| `count` | integer from 0 |"));
  assert.ok(text.includes("| `most` | integer to 9 |"));
  assert.ok(text.includes("| `tags` | list of string |  |"));
});
