import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  bodyDraft,
  draftBytes,
  draftOfBytes,
  headerDraft,
  headerDrafts,
  headersList,
  headersRecord,
  isBase64,
  markedBody,
  movedHeader,
  recordDrafts,
} from "./message-draft.ts";

test("headers keep order and duplicates; lines without a name are dropped", () => {
  const list: [string, string][] = [
    ["Set-Cookie", "a=1"],
    ["X-A", ""],
    ["set-cookie", "b=2"],
  ];
  assert.deepEqual(headersList(headerDrafts(list)), list);
  assert.deepEqual(headersList([headerDraft(" ", "x"), headerDraft(" n ", " v ")]), [["n", " v "]]);
});

test("a header moves up to the ends of the list", () => {
  const drafts = headerDrafts([
    ["a", "1"],
    ["b", "2"],
    ["c", "3"],
  ]);
  const names = (moved: ReturnType<typeof movedHeader>) => moved.map((draft) => draft.name).join("");
  const [first, , last] = drafts;
  assert.ok(first !== undefined && last !== undefined);
  assert.equal(names(movedHeader(drafts, first.key, 1)), "bac");
  assert.equal(names(movedHeader(drafts, first.key, -1)), "abc");
  assert.equal(names(movedHeader(drafts, last.key, -1)), "acb");
  assert.equal(names(movedHeader(drafts, last.key, 1)), "abc");
  assert.equal(names(movedHeader(drafts, -5, 1)), "abc");
});

test("a repeated header becomes a list in any case, and is restored", () => {
  const record = headersRecord(
    headerDrafts([
      ["Set-Cookie", "a"],
      ["X", "1"],
      ["set-cookie", "b"],
      ["SET-COOKIE", "c"],
    ]),
  );
  assert.deepEqual(record, { "Set-Cookie": ["a", "b", "c"], X: "1" });
  assert.deepEqual(headersList(recordDrafts(record)), [
    ["Set-Cookie", "a"],
    ["Set-Cookie", "b"],
    ["Set-Cookie", "c"],
    ["X", "1"],
  ]);
});

test("bytes pass through the editor unchanged", () => {
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

test("the base64 mark of the API is removed and added again", () => {
  const draft = bodyDraft("base64:AAE=", "base64");
  assert.deepEqual(draft, { encoding: "base64", text: "AAE=" });
  assert.equal(markedBody(draft), "base64:AAE=");
  assert.equal(markedBody(bodyDraft("base64:AAE=", "utf8")), "base64:AAE=");
  assert.equal(markedBody(bodyDraft(null, null)), "");
});

test("incomplete base64 has no bytes", () => {
  for (const text of ["A", "AAE", "A=A=", "äÄÖÜ", "===="]) {
    assert.equal(isBase64(text), false, text);
    assert.equal(draftBytes({ encoding: "base64", text }), null);
  }
  assert.ok(isBase64("AA\nE="));
});
