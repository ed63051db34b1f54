import assert from "node:assert/strict";
import { test } from "node:test";
import type { RawFields } from "@headworks/http1";
import { compiledRoute, requestFor, routeWith } from "../../test/routing/requests.ts";
import { isPreflight } from "./context.ts";

const match = { path: { type: "prefix", value: "/" } } as const;
const withCors = compiledRoute(routeWith("r", match, { cors: { allowed_origins: ["*"] } }), 0);
const without = compiledRoute(routeWith("r", match), 0);
const asking: RawFields = ["origin", "https://a.test", "Access-Control-Request-METHOD", "PUT"];

for (const [what, method, fields, route, expected] of [
  ["OPTIONS with both fields", "OPTIONS", asking, withCors, true],
  ["another method", "GET", asking, withCors, false],
  ["the method in lower case", "options", asking, withCors, false],
  ["no Origin", "OPTIONS", asking.slice(2), withCors, false],
  ["no Access-Control-Request-Method", "OPTIONS", asking.slice(0, 2), withCors, false],
  ["a route without cors", "OPTIONS", asking, without, false],
  ["no route", "OPTIONS", asking, undefined, false],
] as const) {
  test(`${what} ${expected ? "is" : "is not"} a preflight`, () => {
    const request = requestFor({ method, fields: [...fields] });
    request.route = route;
    assert.equal(isPreflight(request), expected);
  });
}
