import assert from "node:assert/strict";
import { test } from "node:test";
import { utf8Octets } from "@headworks/http-fields";
import { compilePattern, readReplacement } from "@headworks/linear-pattern";
import type { Replacement } from "@headworks/linear-pattern";
import { valueProblem, withField, withoutField, withRewrittenField } from "./header-edit.ts";

function rewritten(fields: string[], name: string, source: string, by: string): ReturnType<typeof withRewrittenField> {
  const pattern = compilePattern(source);
  const read = readReplacement(by, pattern);
  const { replacement } = read as { replacement: Replacement };
  return withRewrittenField(fields, name, (value) => pattern.replaceAll(value, replacement));
}

test("a set field replaces the first of its name, repeats are removed, order and case of others stay", () => {
  const fields = ["A", "1", "x-one", "2", "B", "3", "X-ONE", "4"];
  assert.deepEqual(withField(fields, "X-One", "new", false), ["A", "1", "X-One", "new", "B", "3"]);
  assert.deepEqual(withField(fields, "X-One", "new", true), [...fields, "X-One", "new"]);
  assert.deepEqual(withField(["A", "1"], "b", "2", false), ["A", "1", "b", "2"]);
  assert.deepEqual(fields, ["A", "1", "x-one", "2", "B", "3", "X-ONE", "4"]);
});

test("all fields of a name are removed, in any case", () => {
  const { fields, count } = withoutField(["Set-Cookie", "a", "B", "1", "set-cookie", "c"], "SET-COOKIE");
  assert.deepEqual([fields, count], [["B", "1"], 2]);
});

test("each field of a name is rewritten separately, at its position", () => {
  assert.deepEqual(
    rewritten(["Set-Cookie", "a=1; Secure", "B", "a", "set-cookie", "b=2; Secure"], "Set-Cookie", "; Secure", ""),
    {
      fields: ["Set-Cookie", "a=1", "B", "a", "set-cookie", "b=2"],
      count: 2,
    },
  );
  assert.deepEqual(rewritten(["A", "x=1"], "a", "(\\w)=(\\d)", "$2=$1"), { fields: ["A", "1=x"], count: 1 });
});

test("a value never gets line breaks, and invalid UTF-8 stays unchanged", () => {
  assert.equal(typeof rewritten(["A", "b"], "a", "b", "x\r\nInjected: 1"), "string");
  assert.deepEqual(rewritten(["A", "caf\xe9 x"], "a", "x", "y"), { fields: ["A", "caf\xe9 y"], count: 1 });
  const utf8 = utf8Octets("größe x");
  assert.deepEqual(rewritten(["A", utf8], "a", "größe", "€"), { fields: ["A", utf8Octets("€ x")], count: 1 });
  assert.deepEqual(rewritten(["A", utf8], "a", " x", ""), { fields: ["A", utf8Octets("größe")], count: 1 });
  assert.notEqual(valueProblem("a\0"), undefined);
  assert.equal(valueProblem("a\tb"), undefined);
});
