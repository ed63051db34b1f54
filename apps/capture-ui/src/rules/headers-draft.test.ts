import assert from "node:assert/strict";
import { test } from "node:test";
import { headerDraft, headerDrafts, headersList, headersRecord, movedHeader, recordDrafts } from "./headers-draft.ts";

test("fields keep order and duplicates, and lines without a name are left out", () => {
  const list: [string, string][] = [
    ["Set-Cookie", "a=1"],
    ["X-A", ""],
    ["set-cookie", "b=2"],
  ];
  assert.deepEqual(headersList(headerDrafts(list)), list);
  assert.deepEqual(headersList([headerDraft(" ", "x"), headerDraft(" n ", " v ")]), [["n", " v "]]);
});

test("a line moves and stops at the ends", () => {
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

test("by name, a repeated field becomes a list whatever the case of its letters, and comes back", () => {
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
