import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Action, Match, Rewrite } from "@headworks/gateway-contract";
import { requestFor, routeWith } from "../../test/routing/requests.ts";
import { compileResponseAction, compileRewrite } from "./actions.ts";
import { checkPath } from "./request-path.ts";

const path = { type: "prefix", value: "/" } as const;

function response(action: Action, target = "/a/b?c=d", authority: string | undefined = "gw.test:8080") {
  return compileResponseAction(routeWith("r", { path }, { action }))({ target, authority });
}

type Redirect = Extract<Action, { type: "redirect" }>;
const REDIRECTS: readonly (readonly [string, Omit<Redirect, "type" | "status">, string])[] = [
  ["scheme and host: absolute, path and query kept", { scheme: "https", host: "b.test" }, "https://b.test/a/b?c=d"],
  ["host alone: the scheme of the request", { host: "b.test" }, "//b.test/a/b?c=d"],
  ["path alone: same host", { path: "/new" }, "/new"],
  ["a path replaces the query too", { scheme: "https", host: "b.test", path: "/new?x=1" }, "https://b.test/new?x=1"],
  ["nothing: path and query of the request", {}, "/a/b?c=d"],
  ["a port", { scheme: "https", host: "b.test", port: 8443 }, "https://b.test:8443/a/b?c=d"],
  ["a host with a port of its own", { scheme: "http", host: "b.test:81" }, "http://b.test:81/a/b?c=d"],
  ["scheme alone: the host of the request without its port", { scheme: "https" }, "https://gw.test/a/b?c=d"],
  ["port alone: the host of the request with that port", { port: 9443 }, "//gw.test:9443/a/b?c=d"],
];
for (const [name, fields, location] of REDIRECTS) {
  test(`redirect with ${name}`, () => {
    const got = response({ type: "redirect", status: 308, ...fields });
    assert.deepEqual(got, { status: 308, fields: ["Location", location], body: "" });
  });
}

test("redirect keeps the host of an IPv6 request", () => {
  const got = response({ type: "redirect", status: 301, scheme: "https" }, "/", "[::1]:80");
  assert.deepEqual(got, { status: 301, fields: ["Location", "https://[::1]/"], body: "" });
});

test("a path that begins with // is not taken for a host by a redirect", () => {
  const got = response({ type: "redirect", status: 302 }, "//evil.test/x");
  assert.ok("status" in got);
  const location = new URL(got.fields[1] ?? "", "http://gw.test:8080/");
  assert.equal(location.host, "gw.test:8080");
  assert.equal(location.pathname, "//evil.test/x");
});

test("a redirect that needs the host of a request without one is refused", () => {
  const got = compileResponseAction(
    routeWith("r", { path }, { action: { type: "redirect", status: 301, scheme: "https" } }),
  )({
    target: "/",
    authority: undefined,
  });
  assert.deepEqual(got, { code: "bad_request", message: "The request does not say for which host it is" });
});

for (const target of ["/a\r\nSet-Cookie: x=y", "/a b", "/é", "/a\u0000"]) {
  test(`a redirect to ${JSON.stringify(target)} is refused: it cannot be written as a header`, () => {
    assert.deepEqual(response({ type: "redirect", status: 301 }, target), { code: "invalid_redirect_target" });
  });
}

test("respond sends text/plain by default", () => {
  const got = response({ type: "respond", status: 404, body: "gone" });
  assert.deepEqual(got, { status: 404, fields: ["Content-Type", "text/plain"], body: Buffer.from("gone") });
});

test("respond declares the encoding of text beyond ASCII", () => {
  const got = response({ type: "respond", status: 200, body: "é" });
  assert.deepEqual(got, {
    status: 200,
    fields: ["Content-Type", "text/plain; charset=utf-8"],
    body: Buffer.from([0xc3, 0xa9]),
  });
});

test("respond: a configured content type replaces the default, in any letter case; headers keep order and spelling", () => {
  const headers = { "X-A": "1", "content-TYPE": "application/json", b: "é" };
  const got = response({ type: "respond", status: 200, headers, body: "{}" });
  assert.ok("status" in got);
  assert.deepEqual(got.fields, ["X-A", "1", "content-TYPE", "application/json", "b", "\u00c3\u00a9"]);
});

test("respond without content has no content type", () => {
  for (const status of [204, 304]) {
    assert.deepEqual(response({ type: "respond", status }), { status, fields: [], body: "" });
  }
});

test("respond: changes to the fields of one response do not affect the next", () => {
  const respond = compileResponseAction(
    routeWith("r", { path }, { action: { type: "respond", status: 200, body: "a" } }),
  );
  const first = respond({ target: "/", authority: undefined });
  assert.ok("status" in first);
  first.fields.push("X", "1");
  const second = respond({ target: "/", authority: undefined });
  assert.ok("status" in second);
  assert.deepEqual(second.fields, ["Content-Type", "text/plain"]);
});

test("a proxy route has no response of its own", () => {
  assert.throws(() => compileResponseAction(routeWith("r", { path })), TypeError);
});

function rewritten(
  rewrite: Rewrite | undefined,
  target: string,
  path: Match["path"] = { type: "prefix", value: "/v1" },
  pathParameters?: Readonly<Record<string, string>>,
): string | undefined {
  const action = rewrite === undefined ? { type: "proxy" as const } : { type: "proxy" as const, rewrite };
  const request = requestFor({ target });
  request.pathParameters = pathParameters;
  return compileRewrite(routeWith("r", { path }, { action }))(request);
}

const strip: Rewrite = { type: "strip_prefix" };
const replace = (prefix: string, replacement: string): Rewrite => ({ type: "replace_prefix", prefix, replacement });
const pattern = (source: string, substitution: string): Rewrite => ({ type: "regex", pattern: source, substitution });

const CASES: readonly (readonly [string, Rewrite | undefined, string, string | undefined])[] = [
  ["no rewrite leaves every byte", undefined, "/v1//a%2Fb/%41?x=%20&&y#".slice(0, -1), "/v1//a%2Fb/%41?x=%20&&y"],
  ["strip_prefix removes the route's prefix", strip, "/v1/users", "/users"],
  ["strip_prefix leaves at least a slash", strip, "/v1", "/"],
  ["strip_prefix keeps a slash at the end", strip, "/v1/", "/"],
  ["strip_prefix puts the query back untouched", strip, "/v1?a=/v1&b=%2F", "/?a=/v1&b=%2F"],
  ["strip_prefix keeps an empty query", strip, "/v1/x?", "/x?"],
  ["strip_prefix leaves no // at the join", strip, "/v1//evil.test/x", "/evil.test/x"],
  ["strip_prefix keeps // elsewhere", strip, "/v1/a//b/", "/a//b/"],
  ["strip_prefix keeps encoded slashes", strip, "/v1/a%2F%2Fb", "/a%2F%2Fb"],
  ["replace_prefix replaces it", replace("/v1", "/api"), "/v1/users?x", "/api/users?x"],
  ["replace_prefix with nothing", replace("/v1", ""), "/v1/users", "/users"],
  ["replace_prefix with nothing leaves at least a slash", replace("/v1", ""), "/v1", "/"],
  ["replace_prefix with a slash", replace("/v1", "/"), "/v1/users", "/users"],
  ["replace_prefix with a slash at the end", replace("/v1", "/api/"), "/v1/users", "/api/users"],
  ["replace_prefix of the whole path", replace("/v1", "/api"), "/v1", "/api"],
  ["replace_prefix of a prefix with a slash at the end", replace("/v1/", "/api"), "/v1/users", "/api/users"],
  ["replace_prefix of / puts something in front", replace("/", "/api"), "/v1/x", "/api/v1/x"],
  ["replace_prefix leaves no // at the join", replace("/v1", "/api/"), "/v1//x", "/api/x"],
  ["replace_prefix ends at a segment boundary", replace("/v1", "/api"), "/v10/x", "/v10/x"],
  ["replace_prefix of something else changes nothing", replace("/v2", "/api"), "/v1/x", "/v1/x"],
  ["replace_prefix happens once", replace("/v1", "/api"), "/v1/v1/x", "/api/v1/x"],
  ["replace_prefix takes $ literally", replace("/v1", "/$1"), "/v1/x", "/$1/x"],
  ["regex replaces the first match only", pattern("a", "b"), "/aXa", "/bXa"],
  ["regex: groups by number", pattern("^/(\\w+)/(\\w+)$", "/$2/${1}x"), "/one/two?q", "/two/onex?q"],
  ["regex: the whole match is $0", pattern("v1", "[$0]"), "/v1/x", "/[v1]/x"],
  ["regex: groups by name", pattern("^/(?<v>v\\d)/(?<rest>.*)", "/$rest/${v}"), "/v1/x/y", "/x/y/v1"],
  ["regex: a longer name is another name", pattern("^/(?<v>v1)", "/$v2"), "/v1/x", "/x"],
  ["regex: braces end a name", pattern("^/(?<v>v1)", "/${v}2"), "/v1/x", "/v12/x"],
  ["regex: an unknown group is empty", pattern("^/v1", "/a$9b${nope}"), "/v1/x", "/ab/x"],
  ["regex: a group that took no part is empty", pattern("^/v1(z)?", "/a$1"), "/v1/x", "/a/x"],
  ["regex: a lone $ stays", pattern("^/v1", "/a$/$$/$-/${"), "/v1/x", "/a$/$$/$-/${/x"],
  ["regex: no match changes nothing", pattern("^/v2", "/api"), "/v1/x", "/v1/x"],
  ["regex: a missing slash is added", pattern("^/v1/", ""), "/v1/x", "/x"],
  ["regex: everything can go", pattern(".*", ""), "/v1/x?q", "/?q"],
  ["regex: no // at the join before", pattern("v1", "/api"), "/v1/x", "/api/x"],
  ["regex: no // at the join behind", pattern("^/v1", "/api/"), "/v1/x", "/api/x"],
  ["regex: no // at the join with a group", pattern("^/v1(.*)", "/api/$1"), "/v1/x", "/api/x"],
  ["regex: no // at the beginning", pattern("^/v1", ""), "/v1//evil.test", "/evil.test"],
  ["regex: // of the client elsewhere stays", pattern("v1", "v2"), "//a//v1//b", "//a//v2//b"],
  ["regex: only the path is looked at", pattern("x", "y"), "/a?x", "/a?x"],
  ["regex: a dot segment that comes out is refused", pattern("^/(.)x(.)", "/$1$2"), "/.x./etc", undefined],
  ["regex: an encoded dot segment that comes out is refused", pattern("%25", "%"), "/%252e/x", undefined],
  ["regex: a cut percent encoding is refused", pattern("41", ""), "/%41", undefined],
];
for (const [name, rewrite, target, expected] of CASES) {
  test(name, () => assert.equal(rewritten(rewrite, target), expected));
}

test("strip_prefix of the prefix / changes nothing", () => {
  assert.equal(rewritten(strip, "/a/b", { type: "prefix", value: "/" }), "/a/b");
});

test("strip_prefix does not count slashes at the end of the prefix", () => {
  assert.equal(rewritten(strip, "/v1/a", { type: "prefix", value: "/v1/" }), "/a");
  assert.equal(rewritten(strip, "/v1", { type: "prefix", value: "/v1/" }), "/");
});

test("regex: a name is the pattern's group first, then the route's parameter", () => {
  const path = { type: "exact", value: "/{id}/{kind}" } as const;
  const rewrite = pattern("^/(?<id>\\w)\\w*", "/$id/${kind}/$1");
  assert.equal(rewritten(rewrite, "/abc/d", path, { id: "abc", kind: "d" }), "/a/d/a/d");
});

test("regex: a path too costly to rewrite is refused, not sent unchanged", () => {
  let seed = 1;
  const noise = Array.from({ length: 60_000 }, () =>
    (seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648) & 65_536 ? "a" : "b",
  ).join("");
  assert.equal(rewritten(pattern("([ab]*)a[ab]{300}(c)", "/x"), `/${noise}a${"b".repeat(300)}c`), undefined);
});

test("no rewrite creates // at a join, loses the query, or produces a path that checkPath refuses", () => {
  const piece = fc.constantFrom("/", "v1", "a", "%2f", "%2e", ".", "..", ";", "b");
  const path = fc.array(piece, { maxLength: 10 }).map((pieces) => `/${pieces.join("")}`);
  const clean = path.filter((each) => checkPath(each) === "ok" && !each.includes("//"));
  const rewrites = fc.oneof(
    fc.constant(strip),
    fc.tuple(clean, fc.oneof(clean, fc.constant(""))).map(([prefix, replacement]) => replace(prefix, replacement)),
    fc
      .tuple(
        fc.constantFrom("^/v1", "(/)(v1)?", "a(.*)", "(.*)/(.*)", "", "$", "%2.", "[.]"),
        fc.constantFrom("", "/", "/x/", "$1", "/$1/$2/", "$2/$1", "."),
      )
      .map(([source, substitution]) => pattern(source, substitution)),
  );
  fc.assert(
    fc.property(rewrites, clean, fc.constantFrom("", "?", "?a=//b"), (rewrite, from, query) => {
      const to = rewritten(rewrite, from + query, { type: "prefix", value: "/v1" });
      if (to === undefined) return;
      assert.equal(checkPath(to), "ok", `${from} becomes ${to}`);
      assert.equal(to.slice(to.length - query.length), query);
      const rest = to.slice(0, to.length - query.length);
      assert.ok(!rest.includes("?") && !rest.includes("//"), `${from} becomes ${to}`);
    }),
    { numRuns: 10_000 },
  );
});
