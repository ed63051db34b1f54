import assert from "node:assert/strict";
import { test } from "node:test";
import type { Access } from "@headworks/contract-kit";
import { apiExposureProblem } from "./api-exposure.ts";
import { LOCAL_ADMIN, authorize } from "./authorize.ts";

test("a scope covers what it names, and a star everything of its part", () => {
  const table: readonly (readonly [Access, readonly string[] | undefined, string])[] = [
    ["public", undefined, "allowed"],
    ["traffic:read", undefined, "unauthenticated"],
    ["traffic:read", [], "forbidden"],
    ["traffic:read", ["traffic:read"], "allowed"],
    ["traffic:read", ["traffic:write"], "forbidden"],
    ["traffic:read", ["traffic"], "forbidden"],
    ["traffic:read", ["traffic:*"], "allowed"],
    ["traffic:delete", ["*:read"], "forbidden"],
    ["users:write", ["config:write", "users:write"], "allowed"],
    ["users:write", ["users:write:extra"], "forbidden"],
    ["users:write", [":write", "*"], "forbidden"],
    ["users:write", LOCAL_ADMIN.scopes, "allowed"],
  ];
  for (const [access, scopes, expected] of table) {
    assert.equal(authorize(access, scopes && { name: "x", scopes }), expected, `${access} ${String(scopes)}`);
  }
});

test("an API that others can reach needs authentication or an explicit word", () => {
  const table: readonly (readonly [string, boolean, boolean, boolean])[] = [
    ["127.0.0.1", false, false, true],
    ["127.1.2.3", false, false, true],
    ["::1", false, false, true],
    ["localhost", false, false, true],
    ["0.0.0.0", false, false, false],
    ["::", false, false, false],
    ["192.168.1.2", false, false, false],
    ["weir.corp.test", false, false, false],
    ["localhost.evil.test", false, false, false],
    ["0.0.0.0", true, false, true],
    ["0.0.0.0", false, true, true],
  ];
  for (const [apiHost, isAuthenticated, isInsecureAllowed, mayStart] of table) {
    const problem = apiExposureProblem({ apiHost, isAuthenticated, isInsecureAllowed });
    assert.equal(problem === undefined, mayStart, apiHost);
    if (problem !== undefined) assert.match(problem, /--insecure-api/);
  }
});
