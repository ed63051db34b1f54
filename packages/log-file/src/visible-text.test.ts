import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { anyCharacter } from "@headworks/testkit";
import { visibleJson, visibleText } from "./visible-text.ts";

const INVISIBLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u;

test("what could end a line, move, colour, reorder or hide text is written out", () => {
  for (const [text, expected] of [
    ["a\nb\r\nc", "a\\nb\\r\\nc"],
    ["\u001b[31mred\u0007", "\\u001b[31mred\\u0007"],
    ["\u009b31m\u0085", "\\u009b31m\\u0085"],
    ["\u2028\u2029\v\f", "\\u2028\\u2029\\u000b\\f"],
    ["user\u202etxt.exe", "user\\u202etxt.exe"],
    ["\u2066a\u2069\u200bb\ufeff\u00ad", "\\u2066a\\u2069\\u200bb\\ufeff\\u00ad"],
    ["\u{e0041}\u{1f600}", "\\u{e0041}\u{1f600}"],
    ["half \ud83d", "half \\ud83d"],
    ["\u3164\u115f", "\\u3164\\u115f"],
    ["grüße, 日本語, ok", "grüße, 日本語, ok"],
  ] as const) {
    assert.equal(visibleText(text), expected);
  }
});

test("no text whatever leaves anything invisible, and plain text is left alone", () => {
  fc.assert(
    fc.property(fc.string({ unit: anyCharacter, maxLength: 200 }), (text) => {
      assert.doesNotMatch(visibleText(text), INVISIBLE);
      assert.equal(visibleText(visibleText(text)), visibleText(text));
    }),
    { numRuns: 50 },
  );
  fc.assert(fc.property(fc.string({ unit: "grapheme-ascii" }), (text) => assert.equal(visibleText(text), text)));
});

test("a JSON text keeps its value and has nothing invisible", () => {
  fc.assert(
    fc.property(fc.jsonValue({ stringUnit: anyCharacter }), (value) => {
      const json = visibleJson(JSON.stringify(value));
      assert.doesNotMatch(json, INVISIBLE);
      assert.deepEqual(JSON.parse(json), JSON.parse(JSON.stringify(value)));
    }),
  );
});
