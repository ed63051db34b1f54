import assert from "node:assert/strict";
import { test } from "node:test";
import { guessFormat } from "./import-format.ts";

test("documents are told apart by their beginning", () => {
  const cases: readonly [string, string, string][] = [
    ["api.yaml", "openapi: 3.1.0\n", "openapi"],
    ["api.json", '{"openapi":"3.0.0"}', "openapi"],
    ["x.json", '{"info":{"schema":"https://schema.getpostman.com/json/collection/v2.1.0/"}}', "postman"],
    ["x.json", ' {"log":{}}', "har"],
    ["x.har", "", "har"],
    ["mocks.json", ' [{"id":"1"}]', "json"],
  ];
  for (const [name, text, format] of cases) assert.equal(guessFormat(name, text), format, text);
});
