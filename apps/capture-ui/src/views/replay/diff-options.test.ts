import assert from "node:assert/strict";
import { test } from "node:test";
import { diffOptions, words } from "./diff-options.ts";

test("comparison options come from the URL; others have the service's default", () => {
  assert.deepEqual(diffOptions(new URLSearchParams()), { shape: false });
  assert.deepEqual(diffOptions(new URLSearchParams("paths=$.id, $..at,&headers=&shape=1")), {
    ignore_paths: ["$.id", "$..at"],
    ignore_headers: [],
    shape: true,
  });
});

test("a list of blanks is empty", () => {
  for (const text of [null, "", " , ,"]) assert.deepEqual(words(text), []);
});
