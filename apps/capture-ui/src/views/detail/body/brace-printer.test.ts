import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { printBraces } from "./brace-printer.ts";

test("minified CSS gets a line for each declaration", () => {
  assert.equal(
    printBraces("a{color:red;background:url(data:x;y,{z)}@media (min-width:9px){b{top:0}}", "css"),
    [
      "a {",
      "  color:red;",
      "  background:url(data:x;y,{z)",
      "}",
      "@media (min-width:9px) {",
      "  b {",
      "    top:0",
      "  }",
      "}",
    ].join("\n"),
  );
});

test("minified JavaScript gets a line for each statement", () => {
  assert.equal(
    printBraces("function f(a,b){for(var i=0;i<9;i++){g(a)}return{x:1}}f(1,2);", "javascript"),
    [
      "function f(a, b) {",
      "  for(var i=0; i<9; i++) {",
      "    g(a)",
      "  }",
      "  return {",
      "    x:1",
      "  }",
      "}",
      "f(1, 2);",
    ].join("\n"),
  );
});

test("a statement that continues after a block stays on its line", () => {
  assert.equal(printBraces("if(a){b()}else{c()}", "javascript"), "if(a) {\n  b()\n} else {\n  c()\n}");
  assert.equal(
    printBraces("(function(){a()})();x={b:{}}.b", "javascript"),
    "(function() {\n  a()\n})();\nx= {\n  b: {\n  }\n}.b",
  );
});

test("strings, templates, patterns and comments are not broken", () => {
  for (const piece of ['"a;{b}"', "'it\\'s;'", "`x;{${y}}`", "/[;{/]+;\\//g", "/* ; { */"]) {
    assert.ok(printBraces(`x=${piece};y()`, "javascript").includes(piece), piece);
  }
  assert.ok(printBraces("a=b/c;d=e/f;", "javascript").includes("a=b/c;\nd=e/f;"));
});

test("printing preserves all characters except white space", () => {
  const part = fc.constantFrom(
    "{",
    "}",
    "(",
    ")",
    ";",
    "'",
    '"',
    "`",
    "/",
    "*",
    "//",
    "/*",
    "a",
    "\\",
    "\n",
    ",",
    "return",
    "é",
  );
  fc.assert(
    fc.property(
      fc.array(part, { maxLength: 40 }),
      fc.constantFrom("css" as const, "javascript" as const),
      (parts, language) => {
        const bare = (text: string) => text.replaceAll(/\s/gu, "");
        assert.equal(bare(printBraces(parts.join(""), language)), bare(parts.join("")));
      },
    ),
    { numRuns: 500 },
  );
});

test("a megabyte of minified source is printed within seconds", () => {
  const started = performance.now();
  printBraces("function a(b){return b/2+'x'}".repeat(35_000), "javascript");
  assert.ok(performance.now() - started < 5000);
});
