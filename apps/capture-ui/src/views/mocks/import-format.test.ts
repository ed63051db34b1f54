import assert from "node:assert/strict";
import { test } from "node:test";
import { guessFormat, sizeProblem } from "./import-format.ts";

test("documents are recognized by their beginning", () => {
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

test("a document above its limit is rejected with the limit of its format", () => {
  const mib = 1_048_576;
  const cases: readonly [Parameters<typeof sizeProblem>[0], number, string | undefined][] = [
    ["har", 100 * mib, undefined],
    ["har", 120 * mib, "The file is 120 MiB; HAR files can be at most 100 MiB"],
    ["openapi", 25 * mib, undefined],
    ["openapi", 26 * mib, "The file is 26.0 MiB; OpenAPI documents can be at most 25.0 MiB"],
    ["postman", 26 * mib, "The file is 26.0 MiB; Postman collections can be at most 25.0 MiB"],
    ["json", 26 * mib, "The file is 26.0 MiB; exports can be at most 25.0 MiB"],
  ];
  for (const [format, sizeBytes, problem] of cases) assert.equal(sizeProblem(format, sizeBytes), problem, format);
});
