import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { apiInfo, operations } from "@headworks/capture-contract";
import { adminOperations } from "@headworks/gateway-contract";
import { firstDifference, openApiTexts } from "./write-openapi.ts";

type Table = Readonly<Record<string, { readonly method: string; readonly path: string }>>;

for (const { document, prefix, tables } of [
  {
    document: "packages/capture-contract/openapi.json",
    prefix: apiInfo.prefix,
    tables: Object.values<Table>(operations),
  },
  { document: "packages/gateway-contract/openapi.json", prefix: "", tables: [adminOperations as Table] },
]) {
  describe(`the OpenAPI document ${document}`, () => {
    test("has a path for every operation of the contract", () => {
      const { paths } = JSON.parse(openApiTexts().get(document) ?? "") as {
        paths: Record<string, Record<string, unknown>>;
      };
      const all = tables.flatMap((table) => Object.values(table));
      assert.ok(all.length > 0);
      for (const { method, path } of all) {
        assert.ok(paths[prefix + path]?.[method.toLowerCase()], `${method} ${path}`);
      }
    });

    test("is deterministic", () => {
      assert.equal(openApiTexts().get(document), openApiTexts().get(document));
    });
  });
}

describe("the first difference between the committed and the generated document", () => {
  const cases: readonly [string, string, string, string | undefined][] = [
    ["nothing for equal texts", "a\nb\n", "a\nb\n", undefined],
    ["the changed line with both versions", "a\nb\n", "a\nc\n", "line 2:\n  - b\n  + c"],
    ["the end, if lines were added", "a", "a\nb", "line 2:\n  - (end of file)\n  + b"],
    ["the end, if lines were removed", "a\nb", "a", "line 2:\n  - b\n  + (end of file)"],
    ["the first line, if nothing was committed", "", "a\n", "line 1:\n  - \n  + a"],
  ];
  for (const [name, committed, wanted, expected] of cases) {
    test(`is ${name}`, () => assert.equal(firstDifference(committed, wanted), expected));
  }
});
