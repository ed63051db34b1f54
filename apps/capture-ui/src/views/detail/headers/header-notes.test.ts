import assert from "node:assert/strict";
import { test } from "node:test";
import { headerNote } from "./header-notes.ts";

test("common fields have a note in any case; unknown and prototype names have none", () => {
  assert.match(headerNote("Content-Type") ?? "", /media type/iu);
  assert.match(headerNote("set-cookie") ?? "", /cookie/u);
  for (const name of ["x-unknown", "constructor", "__proto__", ""]) assert.equal(headerNote(name), null, name);
});
