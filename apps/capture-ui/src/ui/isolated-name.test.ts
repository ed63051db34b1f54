import assert from "node:assert/strict";
import { test } from "node:test";
import { isolatedName } from "./isolated-name.ts";

test("a name that turns the direction cannot turn the sentence around it", () => {
  assert.equal(isolatedName("log\u202efdp.exe"), "\u2068log\u202efdp.exe\u2069");
  assert.equal(isolatedName("שלום"), "\u2068שלום\u2069");
  assert.equal(isolatedName("a\u2069\u202eb\u2067"), "\u2068a\u202eb\u2069");
});

test("other names stay as they are", () => {
  for (const name of ["", "Checkout", "grün 日本 😀", "a (copy)?"]) assert.equal(isolatedName(name), name);
});
