import assert from "node:assert/strict";
import { test } from "node:test";
import { diffOptions, words } from "./diff-options.ts";

test("what may differ comes from the address, and what it does not name has the service's default", () => {
  assert.deepEqual(diffOptions(new URLSearchParams()), { shape: false });
  assert.deepEqual(diffOptions(new URLSearchParams("paths=$.id, $..at,&headers=&shape=1")), {
    ignore_paths: ["$.id", "$..at"],
    ignore_headers: [],
    shape: true,
  });
});

test("a list without words is empty", () => {
  for (const text of [null, "", " , ,"]) assert.deepEqual(words(text), []);
});
