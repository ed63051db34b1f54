import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { scanModuleReferences } from "./import-scanner.ts";

const found = (source: string): string[] =>
  scanModuleReferences(source).map(({ kind, typeOnly, specifier }) => `${kind}${typeOnly ? " type" : ""} ${specifier}`);

describe("every form of reference is found", () => {
  const cases: readonly [string, string][] = [
    ['import "./a.ts";', "import ./a.ts"],
    ["import './a.ts'", "import ./a.ts"],
    ['import a from "./a.ts";', "import ./a.ts"],
    ['import * as a from "./a.ts";', "import ./a.ts"],
    ['import { a, b as c } from "./a.ts";', "import ./a.ts"],
    ['import a, { b } from "./a.ts";', "import ./a.ts"],
    ['import a, * as b from "./a.ts";', "import ./a.ts"],
    ['import{a}from"./a.ts"', "import ./a.ts"],
    ['import {\n  a,\n  // why\n  b,\n} from "./a.ts";', "import ./a.ts"],
    ['import { "a b" as c } from "./a.ts";', "import ./a.ts"],
    ['import data from "./a.json" with { type: "json" };', "import ./a.json"],
    ['import type { A } from "./a.ts";', "import type ./a.ts"],
    ['import type A from "./a.ts";', "import type ./a.ts"],
    ['import type * as A from "./a.ts";', "import type ./a.ts"],
    ['import type from "./a.ts";', "import ./a.ts"],
    ['import type, { b } from "./a.ts";', "import ./a.ts"],
    ['import type from from "./a.ts";', "import type ./a.ts"],
    ['import { type A } from "./a.ts";', "import ./a.ts"],
    ['export * from "./a.ts";', "reexport ./a.ts"],
    ['export * as a from "./a.ts";', "reexport ./a.ts"],
    ['export { a } from "./a.ts";', "reexport ./a.ts"],
    ['export type { A } from "./a.ts";', "reexport type ./a.ts"],
    ['export type * from "./a.ts";', "reexport type ./a.ts"],
    ['const a = await import("./a.ts");', "dynamic ./a.ts"],
    ['type A = typeof import("./a.ts");', "dynamic type ./a.ts"],
    ['#!/usr/bin/env node\nimport "./a.ts";', "import ./a.ts"],
    ['const half = count / 2; const s = "/"; import("./a.ts");', "dynamic ./a.ts"],
    ['if (/["\'`]/u.test(x)) await import("./a.ts");', "dynamic ./a.ts"],
    ['count++ / 2; import("./a.ts"); 4 / 2', "dynamic ./a.ts"],
    ['const t = `${a ? `${{ b: "}" }.b}` : "`"}`; import("./a.ts");', "dynamic ./a.ts"],
    ['const t = `in ${await import("./a.ts")} out`;', "dynamic ./a.ts"],
    ['const p = <p>Don\'t</p>;\nimport("./a.ts");', "dynamic ./a.ts"],
    ['const p = <i class="x">a</i>; import("./a.ts"); <b/>', "dynamic ./a.ts"],
  ];
  for (const [source, expected] of cases) {
    test(source, () => assert.deepEqual(found(source), [expected]));
  }
});

describe("text that only looks like a reference is ignored", () => {
  const cases: readonly string[] = [
    '// import "./a.ts";',
    '/* import "./a.ts"; */',
    'const a = "import \\"./a.ts\\"";',
    'const a = `import "./a.ts"`;',
    "const a = 'export * from \"./a.ts\"';",
    'const a = /import "x"/;',
    'host.import("./a.ts");',
    'const o = { import: "./a.ts", export: "./b.ts" };',
    "const url = import.meta.url;",
    "await import(path);",
    'export { a }; const b = "./a.ts";',
    'export const from = "./a.ts";',
    'export default "./a.ts";',
    'export type A = "./a.ts";',
  ];
  for (const source of cases) test(source, () => assert.deepEqual(found(source), []));
});

test("a reference has the line of its keyword", () => {
  const source = 'import "./a.ts";\n\n/* two\nlines */ export {\n  b,\n} from "./b.ts";\nimport("./c.ts");\n';
  assert.deepEqual(
    scanModuleReferences(source).map((reference) => reference.line),
    [1, 4, 7],
  );
});

test("no text makes the scanner throw or run forever", () => {
  const fragments = [
    "import",
    "export",
    "from",
    "type",
    "{",
    "}",
    "*",
    '"./a.ts"',
    "'",
    '"',
    "`",
    "${",
    "/",
    "\\",
    "\n",
    "(",
  ];
  fc.assert(
    fc.property(fc.array(fc.oneof(fc.constantFrom(...fragments), fc.string()), { maxLength: 60 }), (parts) => {
      scanModuleReferences(parts.join(" "));
    }),
  );
});

test("a declaration is found after any well-formed code", () => {
  const pieces = [
    "const a = 1 / 2 / 3;",
    "const r = /[/'\"`]+\\//gu;",
    "const s = 'it\\'s';",
    "const t = `a ${b} c ${`d ${{}} `} \\` `;",
    "// don't `\n",
    "/* ' \" ` */",
    "function f() { return /'/; }",
    "const o = { from: `x`, import: 1 };",
    "label: for (;;) { break label }",
  ];
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...pieces), { maxLength: 12 }), (before) => {
      assert.deepEqual(found(`${before.join("\n")}\nimport { x } from "./last.ts";`), ["import ./last.ts"]);
    }),
  );
});
