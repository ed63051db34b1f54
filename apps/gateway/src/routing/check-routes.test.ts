import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Action, Match, Route } from "@headworks/gateway-contract";
import { compiledRoute, documentOf, issueNotes, routeWith } from "../../test/routing/requests.ts";
import { checkRoutes } from "./check-routes.ts";
import { compileRewrite } from "./actions.ts";
import { compileRouteTable } from "./route-table.ts";

function issues(...routes: readonly Route[]): { readonly notes: string[]; readonly messages: string[] } {
  const { report, notes, messages } = issueNotes();
  checkRoutes(documentOf(routes), report);
  for (const message of messages) assert.match(message, /^[A-Za-z].*[^.]$/su);
  return { notes, messages };
}

const at = (type: Match["path"]["type"], value: string): Match => ({ path: { type, value } });
const PATH = "routes.0.match.path.value";

const PATHS: readonly (readonly [Match["path"]["type"], string, readonly string[]])[] = [
  ["prefix", "/", []],
  ["prefix", "/v1/", []],
  ["prefix", "/a%2Fb/%C3%A9", []],
  ["exact", "/users/{id}/files/{file_2}", []],
  ["exact", "/", []],
  ["regex", "^/v[12]/(?<id>\\d+)$", []],
  ["regex", "", []],
  ["prefix", "v1", ["bad_value"]],
  ["prefix", "/v1?x", ["bad_value"]],
  ["prefix", "/v1#x", ["bad_value"]],
  ["prefix", "/é", ["bad_value"]],
  ["prefix", "/a b", ["bad_value"]],
  ["prefix", "/a\\b", ["bad_value"]],
  ["prefix", "/a/../b", ["bad_value"]],
  ["prefix", "/a/%2e%2e;/b", ["bad_value"]],
  ["prefix", "/100%", ["bad_value"]],
  ["prefix", "/{id}", ["bad_value"]],
  ["exact", "", ["bad_value"]],
  ["exact", "/a{id}", ["bad_value"]],
  ["exact", "/{id", ["bad_value"]],
  ["exact", "/{}", ["bad_value"]],
  ["exact", "/{1}", ["bad_value"]],
  ["exact", "/{a}/{a}", ["bad_value"]],
  ["exact", "/{a/b}", ["bad_value"]],
  ["exact", "/x/{id}/../y", ["bad_value"]],
  ["exact", "/healthz", ["warning route_shadowed"]],
  // As in other gateways.
  ["prefix", "/api/*", []],
  ["prefix", "/api/**", []],
  ["prefix", "/*", []],
  ["exact", "/things:batch", []],
  ["exact", "/a;v=1/(b)/c,d@e+f", []],
  ["prefix", "/api*", ["bad_value"]],
  ["prefix", "/*/api", ["bad_value"]],
  ["prefix", "/a/*/*", ["bad_value"]],
  ["exact", "/users/*", ["bad_value"]],
  ["exact", "/users/**", ["bad_value"]],
  ["exact", "/*.css", ["bad_value"]],
  ["exact", "/users/:id", ["bad_value"]],
  ["prefix", "/users/:id/files", ["bad_value"]],
  ["exact", "/users/<id>", ["bad_value"]],
  ["exact", "/users/<int:id>/x", ["bad_value"]],
  ["exact", "/users/{id:[0-9]+}", ["bad_value"]],
  ["exact", "/files/{path...}", ["bad_value"]],
  ["exact", "/files/{*path}", ["bad_value"]],
  ["prefix", "/users/{id}/files", ["bad_value"]],
  ["exact", "/users/[0-9]+", ["bad_value"]],
  ["exact", "/users/(.*)", ["bad_value"]],
  ["prefix", "^/users", ["bad_value"]],
  ["prefix", "~/users", ["bad_value"]],
  ["exact", "= /users", ["bad_value"]],
  ["exact", "~* ^/users$", ["bad_value"]],
  ["regex", "~ ^/users", ["regex_invalid"]],
  ["regex", "~/users", ["regex_invalid"]],
  ["regex", "/users/[0-9]+", ["warning bad_value"]],
  ["regex", "\\/users", ["warning bad_value"]],
  ["regex", "[.]css$", []],
  ["regex", "^\\/users", []],
  ["regex", "^/readyz$", ["warning route_shadowed"]],
  ["exact", "/metrics", []],
  ["regex", "^/(a", ["regex_invalid"]],
  ["regex", "(a)\\1", ["regex_invalid"]],
  ["regex", "^/caf\u00e9", ["regex_invalid"]],
  ["regex", "^/caf%C3%A9", []],
  ["regex", "(?=a)", ["regex_invalid"]],
  ["regex", "(a{1000}){1000}", ["regex_invalid"]],
  ["regex", "a".repeat(1001), ["regex_invalid"]],
];
for (const [type, value, codes] of PATHS) {
  test(`${type} ${value.slice(0, 40)} ${codes.length === 0 ? "is a path" : `is ${codes.join()}`}`, () => {
    const expected = codes.map((code) => `${code} ${PATH}`);
    assert.deepEqual(issues(routeWith("r", at(type, value))).notes, expected);
  });
}

for (const [type, value, form] of [
  ["exact", "/users/:id", "{id}"],
  ["exact", "/users/*", 'write type: prefix, value: "/users" for everything below'],
  ["exact", "/*", 'write type: prefix, value: "/" for everything below'],
  ["prefix", "/api*", 'write "/api", or type: regex, value: "^/api"'],
  ["prefix", "~/users", 'write type: regex, value: "^/users"'],
  ["exact", "~* ^/users$", 'write type: regex, value: "^/users$"'],
  ["prefix", "= /users", 'write type: exact, value: "/users"'],
  ["exact", "/users/<int:id>", "{id}"],
] as const) {
  test(`${type} ${value} is told with the form that it has here`, () => {
    assert.ok(issues(routeWith("r", at(type, value))).messages[0]?.includes(form));
  });
}

test("a bad pattern is reported with its path", () => {
  const { messages } = issues(routeWith("r", at("regex", "^/ab[c")));
  assert.match(messages[0] ?? "", /at character 5, the character class is not closed/);
});

test("templates that match the same paths with other names are a conflict", () => {
  const { notes, messages } = issues(
    routeWith("one", at("exact", "/users/{id}/x")),
    routeWith("two", at("exact", "/users/{name}/x")),
    routeWith("fine", at("exact", "/users/{name}/y")),
    routeWith("static", at("exact", "/users/me/x")),
  );
  assert.deepEqual(notes, ["bad_value routes.1.match.path.value"]);
  assert.match(messages[0] ?? "", /"\/users\/\{id\}\/x" of the route "one"/);
});

for (const [type, first, second] of [
  ["exact", "/a", "/a"],
  ["exact", "/a/{b}", "/a/{b}"],
  ["prefix", "/a", "/a"],
  ["prefix", "/a", "/a//"],
  ["regex", "^/a", "^/a"],
] as const) {
  test(`of two routes on ${type} ${first} and ${second} the second never gets a request: a warning`, () => {
    const { notes } = issues(
      routeWith("one", { ...at(type, first), methods: ["GET"] }),
      routeWith("two", { ...at(type, second), methods: ["PUT"] }),
    );
    assert.deepEqual(notes, ["warning route_shadowed routes.1.match.path.value"]);
  });
}

const everywhere = at("prefix", "/");
for (const [first, second, isShadowed] of [
  [{ host: "a.test" }, { host: "b.test" }, false],
  [{ host: "a.test" }, { host: "A.Test." }, true],
  [{ host: "b\u00fccher.test" }, { host: "xn--bcher-kva.test" }, true],
  [{ host: "*.a.test" }, { host: "*.A.test." }, true],
  [{ host: "*.a.test" }, { host: "b.a.test" }, false],
  [{ host: "a.test" }, { host: "a.test:80" }, false],
  [{}, { host: "*" }, true],
  [{}, { host: "a.test" }, false],
  [{ listener: "one" }, { listener: "two" }, false],
  [{ listener: "one" }, {}, false],
  [{}, { listener: "one" }, true],
  [{ scheme: "http" }, { scheme: "https" }, false],
  [{}, { scheme: "http", listener: "one" }, true],
  [{ scheme: "http" }, { scheme: "http", listener: "one" }, true],
  [{ scheme: "http" }, { listener: "one" }, false],
] as const) {
  test(`a route for ${JSON.stringify(second)} behind one for ${JSON.stringify(first)} ${isShadowed ? "never gets" : "gets"} requests`, () => {
    const { notes } = issues(
      routeWith("first", { ...everywhere, ...first }),
      routeWith("second", { ...everywhere, ...second }),
    );
    assert.deepEqual(notes, isShadowed ? ["warning route_shadowed routes.1.match.path.value"] : []);
  });
}

for (const [pattern, type, value, isShadowed] of [
  ["^/", "prefix", "/", true],
  [".*", "prefix", "/", true],
  ["^/.*$", "prefix", "/api", true],
  ["/", "prefix", "/api", true],
  ["^/.+$", "prefix", "/", false],
  ["^/$", "prefix", "/", false],
  ["^/api", "prefix", "/api", true],
  ["^/api", "prefix", "/api/users", true],
  ["^/api", "prefix", "/", false],
  ["^/ap", "prefix", "/api", true],
  ["^/api/", "prefix", "/api", false],
  ["^/api/", "prefix", "/api/users", true],
  ["^/api/.*", "prefix", "/api/users", true],
  ["^/api(/|$)", "prefix", "/api", true],
  ["^/api(?:/.*)?$", "prefix", "/api/users", true],
  ["^/api(?:/.*)?$", "prefix", "/apis", false],
  ["^/api$", "prefix", "/api", false],
  ["^/api[0-9]", "prefix", "/api", false],
  ["^/api|^/b", "prefix", "/api", false],
  ["^/a.i", "prefix", "/api", false],
  ["api", "prefix", "/api", false],
  ["^/api", "exact", "/api", false],
  ["^/api", "regex", "^/api/[0-9]+$", true],
  ["^/api", "regex", "^/ap", false],
  ["^/api", "regex", "^/api?x", false],
  ["^/api(/|$)", "regex", "^/api/x", true],
  ["^/api(/|$)", "regex", "^/api[a-z]", false],
  [".*", "regex", "^/api", true],
  [".*", "regex", "^/a|^/b", false],
] as const) {
  test(`${type} ${value} behind the pattern ${pattern} ${isShadowed ? "never gets" : "gets"} requests`, () => {
    const routes = [routeWith("pattern", at("regex", pattern)), routeWith("other", at(type, value))];
    const warned = issues(...routes).notes.filter((note) => note.startsWith("warning route_shadowed"));
    assert.deepEqual(warned, isShadowed ? ["warning route_shadowed routes.1.match.path.value"] : []);
  });
}

for (const [pattern, isNever] of [
  ["^api/", true],
  ["^https://a/", true],
  ["^/a\\?b=1$", true],
  ["^/a?b", false],
  ["^/?api", false],
  ["api/", false],
  ["^(?:/a|b)", false],
] as const) {
  test(`the pattern ${pattern} ${isNever ? "matches no path: a warning" : "matches paths"}`, () => {
    const warned = issues(routeWith("r", at("regex", pattern))).notes.filter((note) => note.startsWith("warning"));
    assert.deepEqual(warned, isNever ? ["warning route_shadowed routes.0.match.path.value"] : []);
  });
}

test("a scheme without a listener or a trusted proxy never matches", () => {
  const listeners = [
    { name: "plain", address: "", port: 0 },
    { name: "secure", address: "", port: 0, protocol: "https" as const },
  ];
  const never = (match: Partial<Match>, of = listeners, gateway = {}): boolean => {
    const { report, notes } = issueNotes();
    const routes = [routeWith("r", { ...everywhere, ...match })];
    checkRoutes({ ...documentOf(routes), listeners: of, gateway }, report);
    return notes.includes("warning route_shadowed routes.0.match.path.value");
  };
  assert.equal(never({ scheme: "https" }), false);
  assert.equal(never({ scheme: "https", listener: "plain" }), true);
  assert.equal(never({ scheme: "http", listener: "secure" }), true);
  assert.equal(never({ scheme: "https", listener: "secure" }), false);
  assert.equal(never({ scheme: "https" }, listeners.slice(0, 1)), true);
  assert.equal(never({ scheme: "https" }, listeners.slice(0, 1), { trusted_proxies: ["10.0.0.0/8"] }), false);
});

for (const [pattern, exact, isShadowed] of [
  ["^/a$", "/a", true],
  ["^/a\\.json$", "/a.json", true],
  ["^/a/b-c$", "/a/b-c", true],
  ["^/a$", "/{any}", false],
  ["^/a.json$", "/a.json", false],
  ["^/a", "/a", false],
  ["/a$", "/a", false],
  ["^/\\d$", "/d", false],
  ["^/a$", "/b", false],
] as const) {
  test(`a pattern that matches nothing but an exact path of another route is a warning: ${pattern} beside ${exact} ${isShadowed ? "is" : "is not"}`, () => {
    const routes = [routeWith("pattern", at("regex", pattern)), routeWith("exact", at("exact", exact))];
    const isTold = (index: number, ...list: Route[]): boolean =>
      issues(...list).notes.includes(`warning route_shadowed routes.${index}.match.path.value`);
    assert.equal(isTold(0, ...routes), isShadowed);
    assert.equal(isTold(1, ...routes.toReversed()), isShadowed);
  });
}

test("the same value with another type is not shadowed", () => {
  assert.deepEqual(
    issues(...(["exact", "prefix", "regex"] as const).map((type) => routeWith(type, at(type, "/a")))).notes,
    ["warning bad_value routes.2.match.path.value"],
  );
});

const MATCHES: readonly (readonly [Omit<Match, "path">, readonly string[]])[] = [
  [{ host: "api.example.com" }, []],
  [{ host: "API.example.com:8443" }, []],
  [{ host: "[2001:db8::1]:80" }, []],
  [{ host: "example.com:65535" }, []],
  [{ host: "example.com:65536" }, ["bad_value host"]],
  [{ host: "*.example.com" }, []],
  [{ host: "*" }, []],
  [{ host: "example.com." }, []],
  [{ host: "ex\u00e4mple.com" }, []],
  [{ host: "*.ex\u00e4mple.com" }, []],
  [{ host: ".example.com" }, ["bad_value host"]],
  [{ host: "*.example.com:80" }, ["bad_value host"]],
  [{ host: "*example.com" }, ["bad_value host"]],
  [{ host: "www.*" }, ["bad_value host"]],
  [{ host: "*.*.example.com" }, ["bad_value host"]],
  [{ host: "*." }, ["bad_value host"]],
  [{ host: "~^www\\.example\\.com$" }, ["bad_value host"]],
  [{ host: "a.test, b.test" }, ["bad_value host"]],
  [{ host: "example..com" }, ["bad_value host"]],
  [{ headers: { "x-forwarded-proto": "https" } }, ["warning bad_header headers.x-forwarded-proto"]],
  [{ headers: { "cf-ipcountry": "DE" } }, ["warning bad_header headers.cf-ipcountry"]],
  [{ headers: { host: "a.test" } }, ["warning bad_header headers.host"]],
  [{ headers: { Host: "http://a.test" } }, ["bad_value headers.Host"]],
  [{ host: "https://example.com" }, ["bad_value host"]],
  [{ host: "example.com/" }, ["bad_value host"]],
  [{ host: "user@example.com" }, ["bad_value host"]],
  [{ headers: { "x-version": "2" } }, []],
  [{ headers: { "X-Version": "2" } }, ["warning bad_header headers.X-Version"]],
  [{ headers: { "x-version": "2", "X-Version": "3" } }, ["duplicate_name headers.X-Version"]],
  [{ methods: ["*"] }, []],
  [{ methods: ["CONNECT"] }, ["warning route_shadowed methods"]],
  [{ methods: ["CONNECT", "GET"] }, []],
  [{ methods: ["GET|POST", "any"] }, ["warning bad_value methods.0", "warning bad_value methods.1"]],
  [{ headers: { "x-a": "*" } }, ["warning bad_value headers.x-a"]],
  [{ headers: { "x-a": "~^v[12]" } }, ["warning bad_value headers.x-a"]],
  [{ query: [{ name: "v" }, { name: "w", value: "" }, { name: "x", value: "a=b%20+" }] }, []],
  [{ query: [{ name: "a=b" }] }, ["bad_value query.0.name"]],
  [{ query: [{ name: "a&b" }] }, ["bad_value query.0.name"]],
  [{ query: [{ name: "a b" }] }, ["bad_value query.0.name"]],
  [{ query: [{ name: "a", value: "b&c" }] }, ["bad_value query.0.value"]],
  [{ query: [{ name: "a", value: "é" }] }, ["bad_value query.0.value"]],
  [{ query: [{ name: "a", value: "b#" }] }, ["bad_value query.0.value"]],
  [{ cookies: [{ name: "s", value: '"a b"' }, { name: "t" }, { name: "u", value: "" }] }, []],
  [{ cookies: [{ name: "a=b" }] }, ["bad_value cookies.0.name"]],
  [{ cookies: [{ name: "a b" }] }, ["bad_value cookies.0.name"]],
  [{ cookies: [{ name: "a", value: "b;c" }] }, ["bad_value cookies.0.value"]],
  [{ cookies: [{ name: "a", value: " b" }] }, ["bad_value cookies.0.value"]],
  [{ cookies: [{ name: "a", value: "b\n" }] }, ["bad_value cookies.0.value"]],
  [{ accept: "application/vnd.acme.v2+json" }, []],
  [{ accept: "  Application/JSON " }, []],
  [{ accept: "*/*" }, ["bad_media_type accept"]],
  [{ accept: "application/*" }, ["bad_media_type accept"]],
  [{ accept: "application/json; v=2" }, ["bad_media_type accept"]],
  [{ accept: "application/json;" }, ["bad_media_type accept"]],
  [{ accept: "application/json, text/html" }, ["bad_media_type accept"]],
  [{ accept: "application" }, ["bad_media_type accept"]],
  [{ accept: "application/" }, ["bad_media_type accept"]],
  [{ accept: "/json" }, ["bad_media_type accept"]],
  [{ accept: "a/b/c" }, ["bad_media_type accept"]],
  [{ accept: "a /b" }, ["bad_media_type accept"]],
  [{ accept: "   " }, ["bad_media_type accept"]],
];
for (const [match, codes] of MATCHES) {
  test(`match ${JSON.stringify(match)} ${codes.length === 0 ? "is fine" : `is ${codes.join()}`}`, () => {
    const expected = codes.map((code) => code.replace(/ (?=[^ ]*$)/u, " routes.0.match."));
    assert.deepEqual(issues(routeWith("r", { ...at("prefix", "/"), ...match })).notes, expected);
  });
}

test("accept rule 4: accept and cors on one route is worth a warning", () => {
  const route = routeWith("r", { ...at("prefix", "/"), accept: "a/b" }, { cors: { allowed_origins: ["*"] } });
  assert.deepEqual(issues(route).notes, ["warning bad_value routes.0.cors"]);
});

test("a route whose every request gets 405 is worth a warning; one that browsers can preflight all the same is not", () => {
  const notes = (methods: string[], more: Partial<Route>) =>
    issues(routeWith("r", { ...at("prefix", "/"), methods }, more)).notes;
  const cors = { allowed_origins: ["*"] };
  assert.deepEqual(notes(["GET"], { methods: ["POST", "PUT"] }), ["warning bad_value routes.0.methods"]);
  assert.deepEqual(notes(["get", "HEAD"], { methods: ["POST", "Get"] }), []);
  assert.deepEqual(notes([], { methods: ["POST"], cors }), []);
  assert.deepEqual(notes(["GET"], { methods: ["*"] }), []);
  assert.deepEqual(notes(["*"], { methods: ["GET"] }), []);
  assert.deepEqual(notes(["GET", "POST"], { cors }), []);
  assert.deepEqual(notes(["GET", "options"], { cors }), []);
});

const replace = (prefix: string, replacement: string): Action => ({
  type: "proxy",
  rewrite: { type: "replace_prefix", prefix, replacement },
});
const pattern = (source: string, substitution: string): Action => ({
  type: "proxy",
  rewrite: { type: "regex", pattern: source, substitution },
});
const strip: Action = { type: "proxy", rewrite: { type: "strip_prefix" } };

const ACTIONS: readonly (readonly [string, Match, Action, readonly string[]])[] = [
  ["strip_prefix of a prefix", at("prefix", "/v1"), strip, []],
  ["strip_prefix of an exact path", at("exact", "/v1"), strip, []],
  ["strip_prefix of a template", at("exact", "/{v}"), strip, ["bad_value rewrite.type"]],
  ["strip_prefix of a pattern", at("regex", "^/v1"), strip, ["bad_value rewrite.type"]],
  ["replace_prefix", at("prefix", "/v1"), replace("/v1", "/api"), []],
  ["replace_prefix by nothing", at("prefix", "/v1"), replace("/v1", ""), []],
  ["replace_prefix of more than the route's", at("prefix", "/v1"), replace("/v1/old", "/new"), []],
  ["replace_prefix of less than the route's", at("prefix", "/v1/x"), replace("/v1", ""), []],
  ["replace_prefix below a pattern", at("regex", "a"), replace("/v1", ""), []],
  ["replace_prefix of what never comes", at("prefix", "/v1"), replace("/v2", ""), ["warning bad_value rewrite.prefix"]],
  ["replace_prefix of half a segment", at("prefix", "/v10"), replace("/v1", ""), ["warning bad_value rewrite.prefix"]],
  ["replace_prefix of no path", at("prefix", "/v1"), replace("v1", ""), ["bad_value rewrite.prefix"]],
  ["replace_prefix by no path", at("prefix", "/v1"), replace("/v1", "api"), ["bad_value rewrite.replacement"]],
  ["replace_prefix by a query", at("prefix", "/v1"), replace("/v1", "/a?b"), ["bad_value rewrite.replacement"]],
  ["replace_prefix by a dot segment", at("prefix", "/v1"), replace("/v1", "/a/.."), ["bad_value rewrite.replacement"]],
  ["replace_prefix by //", at("prefix", "/v1"), replace("/v1", "//a"), ["bad_value rewrite.replacement"]],
  ["regex", at("exact", "/{id}"), pattern("^/(?<a>x)(y)?", "/$a/$1/${2}/$id/$0/$"), []],
  ["regex with a parameter of a pattern", at("regex", "(?<id>x)"), pattern("x", "$id"), []],
  [
    "regex with an unknown name",
    at("prefix", "/"),
    pattern("(?<a>x)", "$b"),
    ["warning bad_value rewrite.substitution"],
  ],
  ["regex with an unknown group", at("prefix", "/"), pattern("(x)", "$2"), ["warning bad_value rewrite.substitution"]],
  [
    "regex that is none",
    at("prefix", "/"),
    pattern("(x", "y"),
    ["bad_value rewrite.pattern".replace("bad_value", "regex_invalid")],
  ],
  ["regex that makes a query", at("prefix", "/"), pattern("x", "?y"), ["bad_value rewrite.substitution"]],
  ["regex that makes a header", at("prefix", "/"), pattern("x", "a\r\nb"), ["bad_value rewrite.substitution"]],
  [
    "redirect",
    at("prefix", "/"),
    { type: "redirect", status: 301, scheme: "https", host: "a.test", path: "/a?b#c" },
    [],
  ],
  [
    "redirect to a bad host",
    at("prefix", "/"),
    { type: "redirect", status: 301, host: "a.test/x" },
    ["bad_value host"],
  ],
  [
    "redirect with two ports",
    at("prefix", "/"),
    { type: "redirect", status: 301, host: "a:1", port: 2 },
    ["bad_value port"],
  ],
  ["redirect to a bad path", at("prefix", "/"), { type: "redirect", status: 301, path: "/a b" }, ["bad_value path"]],
  ["redirect to a header", at("prefix", "/"), { type: "redirect", status: 301, path: "/a\r\nb" }, ["bad_value path"]],
  [
    "redirect to another host by path",
    at("prefix", "/"),
    { type: "redirect", status: 301, path: "//evil.test" },
    ["bad_value path"],
  ],
  [
    "redirect to another host by backslash",
    at("prefix", "/"),
    { type: "redirect", status: 301, path: "/\\evil.test" },
    ["bad_value path"],
  ],
  ["redirect to itself", at("prefix", "/"), { type: "redirect", status: 301 }, ["warning bad_value"]],
  ["respond", at("prefix", "/"), { type: "respond", status: 200, headers: { "content-type": "a/b" }, body: "x" }, []],
  [
    "respond with framing",
    at("prefix", "/"),
    { type: "respond", status: 200, headers: { "Content-Length": "5" } },
    ["bad_header headers.Content-Length"],
  ],
  [
    "respond with the ids of requests",
    at("prefix", "/"),
    { type: "respond", status: 200, headers: { "x-request-id": "5", "X-Correlation-Id": "6" } },
    ["bad_header headers.x-request-id", "bad_header headers.X-Correlation-Id"],
  ],
  ["respond 204 with a body", at("prefix", "/"), { type: "respond", status: 204, body: "x" }, ["bad_value body"]],
];
for (const [name, match, action, codes] of ACTIONS) {
  test(`${name} ${codes.length === 0 ? "is fine" : `is ${codes.join()}`}`, () => {
    const expected = codes.map((code) => {
      const [fieldPath = "", ...words] = code.split(" ").toReversed();
      if (words.length === 0 || fieldPath === "bad_value") return `${code} routes.0.action`;
      return `${words.toReversed().join(" ")} routes.0.action.${fieldPath}`;
    });
    assert.deepEqual(issues(routeWith("r", match, { action })).notes, expected);
  });
}

test("all issues of a route are reported, not only the first", () => {
  const route = routeWith("r", { ...at("prefix", "x"), host: "a/b", accept: "*" }, { action: replace("a", "b") });
  assert.equal(issues(route).notes.length, 5);
});

test("any document without errors compiles and runs", () => {
  const text = fc.string({
    unit: fc.constantFrom("/", "{", "}", "a", "(", ")", "*", "$", "1", "%", "2", "f", ".", "\\", "?", "é", " "),
    maxLength: 8,
  });
  const path = fc.oneof(
    text,
    text.map((rest) => `/${rest}`),
  );
  const types = fc.constantFrom("exact", "prefix", "regex");
  const rewrites = fc.oneof(
    fc.constant(strip),
    fc.tuple(path, path).map(([prefix, replacement]) => replace(prefix, replacement)),
    fc.tuple(text, text).map(([source, substitution]) => pattern(source, substitution)),
  );
  fc.assert(
    fc.property(fc.array(fc.tuple(types, path, rewrites), { maxLength: 3 }), path, (parts, target) => {
      const routes = parts.map(([type, value, action], index) => routeWith(`r${index}`, at(type, value), { action }));
      fc.pre(issues(...routes).notes.every((note) => note.startsWith("warning ")));
      compileRouteTable(routes.map(compiledRoute));
      for (const route of routes) {
        compileRewrite(route)({ target, path: target, query: undefined, pathParameters: undefined });
      }
    }),
    { numRuns: 5000 },
  );
});
