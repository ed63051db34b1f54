import assert from "node:assert/strict";
import { test } from "node:test";
import type { SecurityHeaders } from "@headworks/gateway-contract";
import { issuesOfRoute } from "../../../test/route-documents.ts";
import { decorated, decoratorOf, routeWith } from "../../../test/routing/requests.ts";
import { securityHeaders } from "./security-headers.slice.ts";

const decoratorWith = (block: SecurityHeaders): ReturnType<typeof decoratorOf> =>
  decoratorOf(securityHeaders, routeWith("r", { path: { type: "prefix", value: "/" } }, { security_headers: block }));

const all: SecurityHeaders = {
  hsts_max_age_secs: 60,
  hsts_include_subdomains: true,
  hsts_preload: true,
  nosniff: true,
  content_security_policy: "default-src 'self'",
  frame_options: "sameorigin",
};

test("security headers are on every response of the route, including refusals, and replace the upstream's", () => {
  const decorator = decoratorWith(all);
  assert.equal(decorator?.on, "every-route-response");
  const expected = [
    ["X-Frame-Options", "SAMEORIGIN"],
    ["Strict-Transport-Security", "max-age=60; includeSubDomains; preload"],
    ["X-Content-Type-Options", "nosniff"],
    ["Content-Security-Policy", "default-src 'self'"],
  ].flat();
  for (const origin of ["upstream", "action", "short-circuit"] as const) {
    const upstream = ["x-frame-options", "ALLOWALL", "X-FRAME-OPTIONS", "x"];
    assert.deepEqual(decorated(decorator, upstream, origin), expected, origin);
  }
});

for (const [block, expected] of [
  [{ hsts_max_age_secs: 1 }, ["Strict-Transport-Security", "max-age=1"]],
  [{ frame_options: "deny" }, ["X-Frame-Options", "DENY"]],
] as const) {
  test(`only what the block names is sent: ${Object.keys(block).join()}`, () => {
    assert.deepEqual(decorated(decoratorWith(block), [], "upstream"), expected);
  });
}

test("an empty block, and a route without one, have no cost", () => {
  assert.equal(decoratorWith({ nosniff: false }), undefined);
  assert.equal(decoratorOf(securityHeaders, routeWith("r", { path: { type: "prefix", value: "/" } })), undefined);
});

const BAD_POLICIES = ["a\r\nSet-Cookie: x=y", " a", "a ", "a\0b", "ü", "a\tb"];
const BLOCKS: readonly (readonly [SecurityHeaders, readonly string[]])[] = [
  [all, []],
  [{ hsts_include_subdomains: true }, ["required hsts_max_age_secs"]],
  [{ hsts_max_age_secs: 1, hsts_preload: true }, ["required hsts_include_subdomains"]],
  ...BAD_POLICIES.map(
    (policy) => [{ content_security_policy: policy }, ["bad_header content_security_policy"]] as const,
  ),
];
for (const [block, issues] of BLOCKS) {
  test(`${JSON.stringify(block)} ${issues.length === 0 ? "is fine" : `is ${issues.join()}`}`, () => {
    const found = issuesOfRoute(securityHeaders, { security_headers: block });
    assert.deepEqual(
      found.map((issue) => issue.replace("routes.0.security_headers.", "")),
      issues,
    );
  });
}
