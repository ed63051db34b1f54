import assert from "node:assert/strict";
import { test } from "node:test";
import { visibleText } from "./visible-text.ts";

for (const [given, shown] of [
  ["plain text, süß 漢字 🙂\nnext", "plain text, süß 漢字 🙂\nnext"],
  ["\u001b[2Jgone", "\\u{1b}[2Jgone"],
  ["a\rb\tc\u0000", "a\\u{d}b\\u{9}c\\u{0}"],
  ["\u009b31m \u202eabc", "\\u{9b}31m \\u{202e}abc"],
] as const) {
  test(`${JSON.stringify(given)} is shown as ${JSON.stringify(shown)}`, () => assert.equal(visibleText(given), shown));
}
