import assert from "node:assert/strict";
import { test } from "node:test";
import type { Cors } from "@headworks/gateway-contract";
import { issuesOfRoute } from "../../../test/route-documents.ts";
import { cors } from "./cors.slice.ts";

const origins = { allowed_origins: ["https://a.test"] };
const CASES: readonly (readonly [string, Cors, readonly string[]])[] = [
  ["exact origins", { allowed_origins: ["https://a.test", "HTTP://B.test:80"] }, []],
  ["the wildcard alone", { allowed_origins: ["*"], allowed_headers: ["*"] }, []],
  ["the wildcard beside an origin", { allowed_origins: ["https://a.test", "*"] }, ["bad_value allowed_origins.1"]],
  [
    "null, a path, a pattern",
    { allowed_origins: ["null", "https://a.test/x", "https://*.test"] },
    [0, 1, 2].map((at) => `bad_value allowed_origins.${at}`),
  ],
  [
    "a header that is none",
    { ...origins, allowed_headers: ["X-A", "a b", ""] },
    ["bad_header allowed_headers.1", "bad_header allowed_headers.2"],
  ],
  ["all headers exposed", { ...origins, expose_headers: ["X-A", "*"] }, ["bad_header expose_headers.1"]],
  ["credentials for one origin", { ...origins, allow_credentials: true }, []],
  [
    "credentials for every origin",
    { allowed_origins: ["*"], allow_credentials: true },
    ["bad_value allow_credentials"],
  ],
  [
    "credentials with every header",
    { ...origins, allowed_headers: ["*"], allow_credentials: true },
    ["bad_value allow_credentials"],
  ],
];
for (const [name, block, issues] of CASES) {
  test(`cors rules: ${name} ${issues.length === 0 ? "may be" : "is refused"}`, () => {
    const found = issuesOfRoute(cors, { cors: block });
    assert.deepEqual(
      found.map((issue) => issue.replace("routes.0.cors.", "")),
      issues,
    );
  });
}
