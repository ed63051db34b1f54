import assert from "node:assert/strict";
import { test } from "node:test";
import type { Condition } from "@headworks/capture-contract";
import { conditionSentence } from "./condition-sentence.ts";

test("conditions read as sentences", () => {
  const cases: readonly [Condition, string][] = [
    [{ type: "all" }, "Everything"],
    [
      {
        type: "and",
        conditions: [
          { type: "method", method: "get" },
          { type: "host", pattern: "^api\\.example\\.com$" },
          { type: "path_pattern", pattern: "^/orders" },
        ],
      },
      "GET, host api.example.com, path begins with /orders",
    ],
    [
      {
        type: "and",
        conditions: [
          { type: "not", condition: { type: "port", port: 80 } },
          {
            type: "or",
            conditions: [
              { type: "url_pattern", pattern: "a.*" },
              { type: "json_path", path: "$.a", value: "" },
            ],
          },
        ],
      },
      "not port 80, (URL matches a.* or JSON body $.a = nothing)",
    ],
    [{ type: "header", name: "x-a", side: "response" }, "response header x-a"],
  ];
  for (const [condition, sentence] of cases) assert.equal(conditionSentence(condition), sentence);
});
