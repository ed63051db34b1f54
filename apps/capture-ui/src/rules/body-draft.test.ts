import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { bodyDraft, draftBytes, draftOfBytes, isBase64, markedBody } from "./body-draft.ts";

test("bytes go through the editor unchanged", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
      assert.deepEqual(draftBytes(draftOfBytes(bytes)), new Uint8Array(bytes));
    }),
  );
  const large = new Uint8Array(50_000).fill(255);
  assert.deepEqual(draftBytes(draftOfBytes(large)), large);
});

test("text is shown as text, bytes as base64", () => {
  assert.equal(draftOfBytes(new TextEncoder().encode("größe\n\t")).encoding, "utf8");
  assert.equal(draftOfBytes(Uint8Array.of(0x47, 0, 1)).encoding, "base64");
  assert.equal(draftOfBytes(Uint8Array.of(0xff, 0xfe)).encoding, "base64");
});

test("the mark of the API comes off and goes on again", () => {
  const draft = bodyDraft("base64:AAE=", "base64");
  assert.deepEqual(draft, { encoding: "base64", text: "AAE=" });
  assert.equal(markedBody(draft), "base64:AAE=");
  assert.equal(markedBody(bodyDraft("base64:AAE=", "utf8")), "base64:AAE=");
  assert.equal(markedBody(bodyDraft(null, null)), "");
});

test("half written base64 has no bytes", () => {
  for (const text of ["A", "AAE", "A=A=", "äÄÖÜ", "===="]) {
    assert.equal(isBase64(text), false, text);
    assert.equal(draftBytes({ encoding: "base64", text }), null);
  }
  assert.ok(isBase64("AA\nE="));
});
