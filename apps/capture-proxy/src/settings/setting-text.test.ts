import assert from "node:assert/strict";
import { test } from "node:test";
import { parseSettingText } from "./setting-inputs.ts";

test("text is read by the schema of its field", () => {
  const boolean = { type: "boolean" };
  const integer = { type: "integer" };
  const list = { type: "array" };
  const nullable = { anyOf: [integer, { type: "null" }] };
  const table: readonly (readonly [object, string, unknown])[] = [
    [boolean, "TRUE", true],
    [boolean, "off", false],
    [boolean, "2", undefined],
    [boolean, "", undefined],
    [integer, "42", 42],
    [integer, "-1", -1],
    [integer, "0x10", undefined],
    [integer, "1e3", undefined],
    [integer, "", undefined],
    [integer, "9".repeat(30), undefined],
    [list, "a, b,,c ", ["a", "b", "c"]],
    [list, "", []],
    [{ type: "string", enum: ["http"] }, "http", "http"],
    [{ type: "string", enum: ["http"] }, "HTTP", undefined],
    [{ type: "string" }, " as it is ", " as it is "],
    [nullable, "null", null],
    [nullable, "", null],
    [nullable, "7", 7],
    [nullable, "x", undefined],
  ];
  for (const [schema, text, expected] of table) {
    const parsed = parseSettingText(schema, text);
    if (expected === undefined) assert.ok("problem" in parsed, `${JSON.stringify(schema)} ${text}`);
    else assert.deepEqual(parsed, { value: expected }, text);
  }
});
