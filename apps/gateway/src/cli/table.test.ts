import assert from "node:assert/strict";
import { test } from "node:test";
import { painter, tableText, visibleText } from "./table.ts";

const plain = painter({ write: () => undefined }, {});

test("columns are as wide as their widest cell, numbers stand flush right, and no line ends in blanks", () => {
  const text = tableText(
    ["name", "used", "note"],
    [
      ["a", "7", ""],
      ["longer", "12345", "x"],
    ],
    plain,
    ["used"],
  );
  assert.equal(text, "name     used  note\na           7\nlonger  12345  x\n");
});

test("what comes from outside cannot steer the terminal", () => {
  assert.equal(tableText(["n"], [["\u001b[2J"]], plain), "n\n\\u{1b}[2J\n");
});

for (const [name, output, environment, isPainted] of [
  ["a terminal", { isTTY: true }, {}, true],
  ["a file", { isTTY: false }, {}, false],
  ["a terminal under NO_COLOR", { isTTY: true }, { NO_COLOR: "1" }, false],
  ["a terminal under an empty NO_COLOR", { isTTY: true }, { NO_COLOR: "" }, true],
  ["a dumb terminal", { isTTY: true }, { TERM: "dumb" }, false],
] as const) {
  test(`${name} gets ${isPainted ? "" : "no "}colours`, () => {
    const text = painter({ write: () => undefined, ...output }, environment)("red", "x");
    assert.equal(text !== "x", isPainted);
  });
}

for (const [given, shown] of [
  ["plain text, süß 漢字 🙂\nnext", "plain text, süß 漢字 🙂\nnext"],
  ["\u001b[2Jgone", "\\u{1b}[2Jgone"],
  ["a\rb\tc\u0000", "a\\u{d}b\\u{9}c\\u{0}"],
  ["\u009b31m \u202eabc", "\\u{9b}31m \\u{202e}abc"],
] as const) {
  test(`${JSON.stringify(given)} is shown as ${JSON.stringify(shown)}`, () => assert.equal(visibleText(given), shown));
}
