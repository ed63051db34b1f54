import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { dependsOnReading, utf8Octets, utf8Reading, wireText } from "./field-text.ts";

test("text is sent in Latin-1 if possible, otherwise in UTF-8", () => {
  for (const [text, octets] of [
    ["plain\ttext", "plain\ttext"],
    ["café", "caf\xe9"],
    ["café €", Buffer.from("café €").toString("latin1")],
    ["日", "\xe6\x97\xa5"],
    ["\ud800", "\xef\xbf\xbd"],
    ["", ""],
  ] as const) {
    assert.equal(wireText(text), octets);
  }
});

test("text sent as UTF-8 is read unchanged", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), (text) => {
      const octets = utf8Octets(text);
      assert.equal(octets, Buffer.from(text).toString("latin1"));
      assert.equal(utf8Reading(octets) ?? octets, text);
    }),
  );
});

test("octets that are plain, no UTF-8 or no octets have no other reading", () => {
  for (const octets of ["", "plain", "caf\xe9", "\xc3", "日", "\xed\xa0\x80"]) {
    assert.equal(utf8Reading(octets), undefined);
  }
});

test("only what may stand for characters beyond ASCII depends on the reading", () => {
  assert.deepEqual(
    [dependsOnReading("a"), dependsOnReading("é"), dependsOnReading("\\u00e9"), dependsOnReading("\\u00e9", true)],
    [false, true, false, true],
  );
});
