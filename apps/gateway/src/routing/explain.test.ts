import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Match, Route } from "@headworks/gateway-contract";
import { compiledRoute, documentOf, requestFor, routeWith } from "../../test/routing/requests.ts";
import { explainRoute, type RouteExplanation } from "./explain.ts";
import { compileRouteTable } from "./route-table.ts";

const at = (type: Match["path"]["type"], value: string): Match => ({ path: { type, value } });

const routes = [
  routeWith("root", at("prefix", "/")),
  routeWith("v1", at("prefix", "/v1"), {
    action: { type: "proxy", rewrite: { type: "replace_prefix", prefix: "/v1", replacement: "/api" } },
  }),
  routeWith("v1-again", at("prefix", "/v1/")),
  routeWith("v2", {
    ...at("prefix", "/v2"),
    host: "api.test",
    methods: ["GET"],
    headers: { "x-version": "2" },
    query: [{ name: "debug" }],
    cookies: [{ name: "beta", value: "1" }],
    accept: "application/vnd.a.v2+json",
  }),
  routeWith("user", at("exact", "/users/{id}")),
  routeWith("me", at("exact", "/users/me"), { action: { type: "respond", status: 204 } }),
  routeWith("digits", at("regex", "^/users/[0-9]+$")),
  routeWith("numbers", at("regex", "^/numbers/[0-9]+$")),
  routeWith("more-numbers", at("regex", "numbers")),
];

function explain(
  target: string,
  rest: { host?: string; headers?: Record<string, string | string[]> } = {},
): RouteExplanation {
  return explainRoute(documentOf(routes), { method: "GET", target, ...rest });
}

function verdictOf(explanation: RouteExplanation, route: string): string {
  const verdict = explanation.routes.find((each) => each.route === route);
  return `${verdict?.path}: ${verdict?.reason}`;
}

test("the host is the given one, otherwise that of the Host header", () => {
  const hostOf = (asked: Parameters<typeof explain>[1]): string | null | undefined =>
    explain("/v2", asked)
      .routes.find(({ route }) => route === "v2")
      ?.criteria.find(({ kind }) => kind === "host")?.found;
  assert.equal(hostOf({ headers: { Host: "api.test" } }), "api.test");
  assert.equal(hostOf({ headers: { hOST: ["api.test", "b.test"] } }), "api.test");
  assert.equal(hostOf({ host: "api.test", headers: { Host: "b.test" } }), "api.test");
  assert.equal(hostOf({ headers: { "X-Host": "api.test" } }), null);
});

test("a routed request: the route, its rewritten target, and why the others did not win", () => {
  const explanation = explain("/v1/users?x=1");
  assert.equal(explanation.decision, "routed");
  assert.equal(explanation.route, "v1");
  assert.equal(explanation.upstream_target, "/api/users?x=1");
  assert.equal(explanation.reason, 'The route "v1" has the longest prefix of the path, /v1');
  assert.equal(verdictOf(explanation, "v1"), `wins: ${explanation.reason}`);
  assert.equal(verdictOf(explanation, "root"), 'loses: The longer prefix /v1 of the route "v1" decides');
  assert.equal(
    verdictOf(explanation, "v1-again"),
    'loses: It has the same path as the route "v1", which is declared before it',
  );
  assert.equal(verdictOf(explanation, "v2"), "no_match: The path is neither /v2 nor below it");
  assert.equal(verdictOf(explanation, "me"), "no_match: The path is not /users/me");
  assert.equal(verdictOf(explanation, "digits"), "no_match: Nothing in the path matches the pattern ^/users/[0-9]+$");
});

test("precedence of kinds and of segments is explained", () => {
  const me = explain("/users/me");
  assert.equal(me.route, "me");
  assert.equal(me.upstream_target, null);
  assert.equal(
    verdictOf(me, "user"),
    'loses: A static segment comes before a parameter: /users/me of the route "me" decides',
  );
  assert.equal(verdictOf(me, "root"), 'loses: An exact path comes before a prefix: the route "me" decides');
  const user = explain("/users/7");
  assert.deepEqual([user.route, user.parameters], ["user", { id: "7" }]);
  assert.equal(verdictOf(user, "digits"), 'loses: An exact path comes before a pattern: the route "user" decides');
  const numbers = explain("/numbers/7");
  assert.equal(numbers.route, "numbers");
  assert.equal(
    verdictOf(numbers, "more-numbers"),
    'loses: The pattern of the route "numbers" matches too and is declared before it',
  );
});

test("each criterion shows expected and actual values, and whether it holds", () => {
  const explanation = explain("/v2/x?a=1", {
    host: "API.test:8080",
    headers: { "X-Version": ["3", "2"], Cookie: "beta=0; beta=1", accept: "*/*" },
  });
  assert.equal(explanation.decision, "no_route");
  assert.equal(explanation.route, null);
  assert.match(
    explanation.reason,
    /"v2", which asks for something else in headers x-version, accept, query debug; other routes are not tried/,
  );
  const verdict = explanation.routes.find(({ route }) => route === "v2");
  assert.deepEqual(verdict?.criteria, [
    { kind: "host", expected: "api.test", found: "API.test:8080", matches: true },
    { kind: "methods", expected: "GET", found: "GET", matches: true },
    { kind: "headers", name: "x-version", expected: "2", found: "3", matches: false },
    { kind: "accept", expected: "application/vnd.a.v2+json", found: "*/*", matches: false },
    { kind: "query", name: "debug", expected: "(present)", found: null, matches: false },
    { kind: "cookies", name: "beta", expected: "1", found: "0, 1", matches: true },
  ]);
});

test("a request that meets every criterion is routed", () => {
  const headers = { "x-version": "2", cookie: "beta=1", accept: "text/html, application/vnd.a.v2+json;q=0" };
  const explanation = explain("/v2?debug", { host: "api.test", headers });
  assert.equal(explanation.route, "v2");
  assert.match(explanation.reason, /everything it asks for is there$/);
});

test("blanks around the value of a header are ignored, as on the wire", () => {
  const versionOf = (value: string): string | null | undefined =>
    explain("/v2", { headers: { "x-version": value } })
      .routes.find(({ route }) => route === "v2")
      ?.criteria.find(({ name }) => name === "x-version")?.found;
  assert.equal(versionOf(" \t2 1\t "), "2 1");
  assert.equal(versionOf(" "), "");
  assert.equal(versionOf("\u00a02"), "\u00c2\u00a02");
  const host = explain("/v2", { headers: { Host: " api.test " } });
  assert.equal(host.routes.find(({ route }) => route === "v2")?.criteria[0]?.matches, true);
});

test("host, listener and scheme narrow the routes, and the explanation shows it", () => {
  const listeners = [
    { name: "public", address: "", port: 0 },
    { name: "secure", address: "", port: 0, protocol: "https" as const },
  ];
  const own = [
    routeWith("rest", at("prefix", "/")),
    routeWith("below", { ...at("prefix", "/"), host: "*.a.test" }),
    routeWith("shop", { ...at("prefix", "/"), host: "shop.a.test" }),
    routeWith("redirect", { ...at("prefix", "/"), host: "shop.a.test", scheme: "http" }),
    routeWith("inner", { ...at("prefix", "/"), listener: "secure", host: "in.test" }),
  ];
  const ask = (asked: Partial<Parameters<typeof explainRoute>[1]>): RouteExplanation =>
    explainRoute({ routes: own, listeners }, { method: "GET", target: "/x", ...asked });
  const shop = ask({ host: "Shop.A.test.:8080", scheme: "https" });
  assert.equal(shop.route, "shop");
  assert.equal(
    verdictOf(shop, "rest"),
    'loses: The more specific host shop.a.test comes first: the route "shop" decides',
  );
  assert.equal(
    verdictOf(shop, "below"),
    'loses: The more specific host shop.a.test comes first: the route "shop" decides',
  );
  assert.equal(verdictOf(shop, "redirect"), "no_match: It is for the scheme http");
  assert.equal(verdictOf(shop, "inner"), "no_match: It is for the host in.test");
  assert.equal(ask({ host: "b.a.test" }).route, "below");
  assert.equal(ask({ host: "in.test" }).route, "rest");
  assert.equal(ask({ host: "in.test", listener: "secure" }).route, "inner");
  const none = explainRoute({ routes: own.slice(2), listeners }, { method: "GET", target: "/x", host: "b.test" });
  assert.equal(none.reason, "The path of no route for this host, listener and scheme matches");
  assert.deepEqual(none.routes[1]?.criteria, [
    { kind: "host", expected: "shop.a.test", found: "b.test", matches: false },
    { kind: "scheme", expected: "http", found: "http", matches: true },
  ]);
});

test("gates of a route are explained: maintenance, methods, a required credential; the first one that refuses", () => {
  const gated = (rest: Partial<Route>, asked: { method?: string; headers?: Record<string, string> } = {}) => {
    const route = routeWith("api", at("prefix", "/"), rest);
    return explainRoute(documentOf([route]), { method: "GET", target: "/x", ...asked });
  };
  assert.equal(gated({}).gate, null);
  const shut = gated({ methods: ["get", "PUT"], auth_required: true }, { method: "POST" });
  assert.deepEqual([shut.decision, shut.route, shut.upstream_target], ["routed", "api", null]);
  assert.deepEqual(shut.gate, {
    code: "method_not_allowed",
    status: 405,
    reason: 'The route "api" allows GET, PUT and no other method',
  });
  const asking = gated({ methods: ["get", "PUT"], auth_required: true });
  assert.deepEqual([asking.gate?.status, asking.gate?.code, asking.upstream_target], [401, "unauthorized", "/x"]);
  const down = gated({ maintenance: {}, methods: ["PUT"], auth_required: true });
  assert.deepEqual(down.gate, { code: "maintenance", status: 503, reason: 'The route "api" is under maintenance' });
  assert.equal(down.upstream_target, null);
  const headers = { Origin: "https://a.test", "Access-Control-Request-Method": "PUT" };
  const cors = { allowed_origins: ["*"] };
  const preflight = { method: "OPTIONS", headers };
  assert.equal(gated({ maintenance: {}, methods: ["PUT"], cors }, preflight).gate, null);
  assert.equal(gated({ methods: ["PUT"] }, preflight).gate?.status, 405);
  assert.equal(gated({ methods: ["*"] }, { method: "DELETE" }).gate, null);
});

test("a refused target, and a path of the gateway itself, are never routed", () => {
  const refused = explain("/v1/%2e%2e/admin");
  assert.deepEqual([refused.decision, refused.fault, refused.routes], ["refused", "dot-segment", []]);
  assert.equal(refused.reason, "The target has a segment . or .., and requests with one are refused");
  const url = explain("http://host/x");
  assert.deepEqual([url.fault, url.reason], ["not-absolute", "The target must begin with /"]);
  assert.equal(explain("/healthz?x").decision, "gateway");
  assert.equal(explain("/healthz/x").route, "root");
});

test("no path matches", () => {
  const explanation = explainRoute(documentOf(routes.slice(1, 2)), { method: "GET", target: "/other" });
  assert.deepEqual([explanation.decision, explanation.reason], ["no_route", "The path of no route matches"]);
});

test("an explanation survives JSON and agrees with the route table", () => {
  const targets = fc.constantFrom(
    "/",
    "/v1",
    "/v10",
    "/v2?debug",
    "/v2",
    "/users/7",
    "/users/me",
    "/users/",
    "/numbers/1",
    "/x/numbers",
  );
  const headers = fc.dictionary(
    fc.constantFrom("x-version", "accept", "cookie"),
    fc.constantFrom("2", "application/vnd.a.v2+json", "beta=1"),
    { noNullPrototype: true },
  );
  const orders = fc.shuffledSubarray(routes);
  fc.assert(
    fc.property(orders, targets, headers, fc.constantFrom("api.test", "b.test"), (list, target, sent, host) => {
      const explanation = explainRoute(documentOf(list), { method: "GET", target, host, headers: sent });
      assert.deepEqual(JSON.parse(JSON.stringify(explanation)), explanation);
      const request = requestFor({ target, host, fields: Object.entries(sent).flat() });
      compileRouteTable(list.map(compiledRoute)).resolve(request);
      assert.equal(explanation.route, request.route?.name ?? null);
      assert.equal(explanation.routes.filter(({ path }) => path === "wins").length <= 1, true);
      const matching = explanation.routes.filter(({ path }) => path !== "no_match");
      assert.equal(
        matching.length > 0,
        explanation.routes.some(({ path }) => path === "wins"),
      );
    }),
    { numRuns: 2000 },
  );
});
