import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Match } from "@headworks/gateway-contract";
import { compileRouteTable } from "./route-table.ts";
import { compiledRoute, requestFor, routeWith, type RequestParts } from "../../test/routing/requests.ts";

/** Resolves a request over named routes; returns the name of the route, or undefined. */
function resolve(matches: Readonly<Record<string, Match>>, parts: RequestParts): string | undefined {
  const table = compileRouteTable(
    Object.entries(matches).map(([name, match], index) => compiledRoute(routeWith(name, match), index)),
  );
  const request = requestFor(parts);
  const found = table.resolve(request);
  assert.equal(found, request.route !== undefined);
  if (!found) assert.equal(request.pathParameters, undefined);
  return request.route?.name;
}

const exact = (value: string): Match => ({ path: { type: "exact", value } });
const prefix = (value: string): Match => ({ path: { type: "prefix", value } });
const regex = (value: string): Match => ({ path: { type: "regex", value } });

const PATHS: readonly (readonly [string, Readonly<Record<string, Match>>, string, string | undefined])[] = [
  [
    "exact wins over regex and prefix, whatever the order",
    { p: prefix("/a"), r: regex("^/a"), e: exact("/a") },
    "/a",
    "e",
  ],
  ["regex wins over prefix", { p: prefix("/a"), r: regex("^/a") }, "/a/b", "r"],
  ["the first declared of two patterns wins", { one: regex("b"), two: regex("^/ab$") }, "/ab", "one"],
  ["a pattern is searched, not anchored", { r: regex("b.d") }, "/abcde", "r"],
  [
    "the longest prefix wins, whatever the order",
    { a: prefix("/a"), abc: prefix("/a/b/c"), ab: prefix("/a/b") },
    "/a/b/x",
    "ab",
  ],
  ["the first declared of two equal prefixes wins", { one: prefix("/a"), two: prefix("/a/") }, "/a/b", "one"],
  ["a prefix takes its own path", { v1: prefix("/v1") }, "/v1", "v1"],
  ["a prefix takes its own path with a slash", { v1: prefix("/v1") }, "/v1/", "v1"],
  ["a prefix takes what is below it", { v1: prefix("/v1") }, "/v1/x", "v1"],
  ["a prefix ends at a segment boundary", { v1: prefix("/v1") }, "/v10", undefined],
  ["an encoded slash is no segment boundary", { v1: prefix("/v1") }, "/v1%2fx", undefined],
  ["letter case counts in paths", { v1: prefix("/v1") }, "/V1", undefined],
  ["an encoded letter is not its letter", { a: prefix("/a") }, "/%61", undefined],
  ["a slash at the end of a prefix does not count", { v1: prefix("/v1/") }, "/v1", "v1"],
  ["stars behind a prefix mean all paths below it", { v1: prefix("/v1/*"), v2: prefix("/v2/**") }, "/v1/a/b", "v1"],
  ["and the prefix itself", { v1: prefix("/v1/*") }, "/v1", "v1"],
  ["the prefix /* takes everything", { all: prefix("/*") }, "/any", "all"],
  ["the prefix / takes everything", { all: prefix("/") }, "/any/thing", "all"],
  ["the prefix / takes empty segments", { all: prefix("/"), admin: prefix("/admin") }, "//admin", "all"],
  ["an empty segment is a segment", { two: prefix("/a//b") }, "/a//b/c", "two"],
  ["an exact path does not take a slash more", { e: exact("/a") }, "/a/", undefined],
  ["an exact path with a slash does not take one less", { e: exact("/a/") }, "/a", undefined],
  ["a parameter takes one segment", { user: exact("/users/{id}") }, "/users/7", "user"],
  ["a parameter takes no empty segment", { user: exact("/users/{id}") }, "/users/", undefined],
  ["a parameter takes no two segments", { user: exact("/users/{id}") }, "/users/7/x", undefined],
  ["static beats parameter", { user: exact("/users/{id}"), me: exact("/users/me") }, "/users/me", "me"],
  ["the leftmost static segment decides", { right: exact("/{x}/b"), left: exact("/a/{y}") }, "/a/b", "left"],
  [
    "a static segment that leads nowhere is left again",
    { one: exact("/a/{x}/c"), two: exact("/{y}/b/d") },
    "/a/b/d",
    "two",
  ],
  [
    "of two exact routes with the same path the first declared one counts",
    { one: exact("/a"), two: exact("/a") },
    "/a",
    "one",
  ],
  ["no path matches: no route", { a: prefix("/a") }, "/b", undefined],
  ["an asterisk is no path", { all: prefix("/"), any: regex("") }, "*", undefined],
];
for (const [name, matches, target, expected] of PATHS) {
  test(name, () => assert.equal(resolve(matches, { target }), expected));
}

test("no routes at all: no route", () => assert.equal(resolve({}, { target: "/" }), undefined));

test("the query is no part of the path", () => {
  assert.equal(resolve({ a: exact("/a") }, { target: "/a?b=/c" }), "a");
});

test("parameters of a template are raw bytes of the path", () => {
  const table = compileRouteTable([compiledRoute(routeWith("r", exact("/users/{id}/files/{file}")), 0)]);
  const request = requestFor({ target: "/users/a%2Fb/files/%41?x=1" });
  assert.ok(table.resolve(request));
  assert.deepEqual({ ...request.pathParameters }, { id: "a%2Fb", file: "%41" });
});

test("parameters of an abandoned path are not mixed in", () => {
  const table = compileRouteTable([
    compiledRoute(routeWith("one", exact("/{a}/x/{b}/nowhere")), 0),
    compiledRoute(routeWith("two", exact("/{c}/{d}/{e}/end")), 1),
  ]);
  const request = requestFor({ target: "/1/x/3/end" });
  assert.ok(table.resolve(request));
  assert.deepEqual({ ...request.pathParameters }, { c: "1", d: "x", e: "3" });
});

test("named groups of a pattern are parameters; those that took no part are absent", () => {
  const table = compileRouteTable([compiledRoute(routeWith("r", regex("^/(?<kind>a|b)/(?<id>\\d+)?")), 0)]);
  const request = requestFor({ target: "/b/x" });
  assert.ok(table.resolve(request));
  assert.deepEqual({ ...request.pathParameters }, { kind: "b" });
});

test("a failed criterion means no route, never a fall-through to a shorter prefix or another route", () => {
  const matches = { all: prefix("/"), strict: { ...prefix("/v1"), methods: ["GET"] }, other: prefix("/v1") };
  assert.equal(resolve(matches, { target: "/v1/x" }), "strict");
  assert.equal(resolve(matches, { target: "/v1/x", method: "POST" }), undefined);
});

test("a request without a route has no parameters of the route that it missed", () => {
  const user = { ...exact("/users/{id}"), methods: ["GET"] };
  const table = compileRouteTable([compiledRoute(routeWith("user", user), 0)]);
  const request = requestFor({ target: "/users/7", method: "POST" });
  assert.equal(table.resolve(request), false);
  assert.equal(request.pathParameters, undefined);
});

test("a path that exceeds a pattern's work limit has no route, not the next best one", () => {
  const matches = { secret: regex("([ab]*)a[ab]{300}(c)"), open: prefix("/") };
  let seed = 1;
  const noise = Array.from({ length: 60_000 }, () =>
    (seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648) & 65_536 ? "a" : "b",
  ).join("");
  assert.equal(resolve(matches, { target: `/${noise}` }), undefined);
  assert.equal(resolve(matches, { target: "/ab" }), "open");
});

const at = (value: string, more: Partial<Match>): Match => ({ path: { type: "prefix", value }, ...more });
const HOSTS: Readonly<Record<string, Match>> = {
  rest: at("/", {}),
  below: at("/", { host: "*.shop.test" }),
  deep: at("/", { host: "*.eu.shop.test" }),
  shop: at("/", { host: "Shop.Test." }),
  port: at("/admin", { host: "shop.test:8443" }),
  api: at("/api", { host: "shop.test" }),
  rare: at("/rare", { host: "a.shop.test", methods: ["PUT"] }),
  idn: at("/", { host: "b\u00fccher.test" }),
  address: at("/", { host: "[2001:DB8::0:1]" }),
  four: at("/", { host: "192.0.2.1" }),
};
for (const [host, target, expected] of [
  ["shop.test", "/x", "shop"],
  ["SHOP.test.:80", "/x", "shop"],
  ["shop.test", "/api/x", "api"],
  ["shop.test:8443", "/admin", "port"],
  ["shop.test.:8443", "/api", "api"],
  ["shop.test:8443", "/x", "shop"],
  ["shop.test", "/admin", "shop"],
  ["a.shop.test", "/x", "below"],
  ["A.Shop.Test.", "/x", "below"],
  ["a.b.shop.test:1", "/x", "below"],
  ["a.eu.shop.test", "/x", "deep"],
  ["eu.shop.test", "/x", "below"],
  ["shop.test.evil", "/x", "rest"],
  ["myshop.test", "/x", "rest"],
  // The path of the most specific host decides, and a failed criterion there means no route.
  ["a.shop.test", "/rare", undefined],
  ["xn--bcher-kva.test", "/x", "idn"],
  ["XN--BCHER-KVA.TEST.:80", "/x", "idn"],
  ["[2001:db8::1]:80", "/x", "address"],
  ["[2001:db8:0:0::1]", "/x", "address"],
  ["192.0.2.1:80", "/x", "four"],
  [undefined, "/x", "rest"],
  ["", "/x", "rest"],
] as const) {
  test(`match.host: ${target} of ${host} is for ${expected}`, () => {
    assert.equal(resolve(HOSTS, { target, ...(host === undefined ? {} : { host }) }), expected);
  });
}

test("match.host: the next less specific host is tried only if no path of the most specific one matches", () => {
  const matches = { one: at("/a", { host: "a.test" }), below: at("/b", { host: "*.test" }), rest: at("/c", {}) };
  for (const [target, expected] of [
    ["/a", "one"],
    ["/b", "below"],
    ["/c", "rest"],
    ["/d", undefined],
  ] as const) {
    assert.equal(resolve(matches, { target, host: "a.test" }), expected);
  }
});

test("match.host: a path that exceeds a pattern's work limit on the most specific host gets no route of another host", () => {
  const matches = { secret: { ...regex("([ab]*)a[ab]{300}(c)"), host: "a.test" }, open: prefix("/") };
  let seed = 1;
  const noise = Array.from({ length: 60_000 }, () =>
    (seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648) & 65_536 ? "a" : "b",
  ).join("");
  assert.equal(resolve(matches, { target: `/${noise}`, host: "a.test" }), undefined);
  assert.equal(resolve(matches, { target: `/${noise}`, host: "b.test" }), "open");
});

test("match.listener and match.scheme narrow in the same step, so that plain HTTP can redirect what HTTPS serves", () => {
  const matches = {
    redirect: at("/", { scheme: "http", host: "a.test" }),
    served: at("/", { host: "a.test" }),
    inner: at("/", { listener: "inner" }),
    both: at("/both", { listener: "inner", scheme: "https" }),
    rest: at("/", {}),
  };
  for (const [parts, expected] of [
    [{ host: "a.test" }, "redirect"],
    [{ host: "a.test", isSecure: true }, "served"],
    [{ host: "b.test" }, "rest"],
    [{ host: "b.test", listener: "inner" }, "inner"],
    [{ host: "b.test", listener: "inner", target: "/both" }, "inner"],
    [{ host: "b.test", listener: "inner", target: "/both", isSecure: true }, "both"],
    [{ host: "b.test", target: "/both", isSecure: true }, "rest"],
    // A trusted proxy reports the client's scheme.
    [{ host: "a.test", fields: ["X-Forwarded-Proto", "https"] }, "redirect"],
    [{ host: "a.test", fields: ["X-Forwarded-Proto", "HTTPS"], trusted: ["127.0.0.1"] }, "served"],
    [{ host: "a.test", isSecure: true, fields: ["X-Forwarded-Proto", "http"], trusted: ["127.0.0.1"] }, "redirect"],
  ] as const) {
    assert.equal(resolve(matches, parts as RequestParts), expected, JSON.stringify(parts));
  }
});

test("match.headers.host is the requested host, also over HTTP/2, which has no such field", () => {
  const matches = { r: at("/", { headers: { host: "A.test" } }) };
  for (const [host, expected] of [
    ["a.test", "r"],
    ["a.TEST.:80", "r"],
    ["b.test", undefined],
  ] as const) {
    assert.equal(resolve(matches, { host }), expected);
  }
});

test("routing decides for any requested host", () => {
  const table = compileRouteTable(
    Object.entries(HOSTS).map(([name, match], index) => compiledRoute(routeWith(name, match), index)),
  );
  const sign = fc.constantFrom(
    "a",
    ".",
    ":",
    "[",
    "]",
    "*",
    "%",
    "8",
    "@",
    "\u00e9",
    "shop.test",
    "*.shop.test",
    " ",
    "\n",
  );
  fc.assert(
    fc.property(fc.array(sign, { maxLength: 8 }), (signs) => {
      const host = signs.join("");
      const request = requestFor({ host, target: "/x" });
      assert.ok(table.resolve(request));
      const isShop = /^(?:.*\.)?shop\.test\.?(?::[0-9]*)?$/.test(host);
      if (!isShop) assert.ok(!["shop", "below", "port", "api"].includes(request.route?.name ?? ""), host);
    }),
    { numRuns: 3000 },
  );
});

test("cached hosts of clients are bounded and correct", () => {
  const table = compileRouteTable(
    Object.entries(HOSTS).map(([name, match], index) => compiledRoute(routeWith(name, match), index)),
  );
  for (let at = 0; at < 5000; at += 1) {
    const request = requestFor({ host: `h${at}.shop.test` });
    assert.ok(table.resolve(request));
    assert.equal(request.route?.name, "below");
  }
});

const CRITERIA: readonly (readonly [string, Omit<Match, "path">, RequestParts, boolean])[] = [
  ["host: any letter case", { host: "API.example.com" }, { host: "api.Example.COM" }, true],
  ["host: with a port where none is asked for", { host: "a.test" }, { host: "a.test:8080" }, true],
  ["host: with the port that is asked for", { host: "a.test:8080" }, { host: "A.test:8080" }, true],
  ["host: without the port that is asked for", { host: "a.test:8080" }, { host: "a.test" }, false],
  ["host: another port", { host: "a.test:80" }, { host: "a.test:8080" }, false],
  ["host: another name that begins so", { host: "a.test" }, { host: "a.test.evil" }, false],
  ["host: what follows the colon is no port", { host: "a.test" }, { host: "a.test:80x" }, false],
  ["host: absent", { host: "a.test" }, {}, false],
  ["host: an IPv6 address with a port", { host: "[::1]" }, { host: "[::1]:8080" }, true],
  ["methods: any letter case", { methods: ["get"] }, { method: "GET" }, true],
  ["methods: GET does not imply HEAD", { methods: ["GET"] }, { method: "HEAD" }, false],
  ["methods: an empty list allows all", { methods: [] }, { method: "PURGE" }, true],
  ["methods: * allows all", { methods: ["*"] }, { method: "PURGE" }, true],
  ["methods: * beside others allows all", { methods: ["GET", "*"] }, { method: "PURGE" }, true],
  ["headers: whole value", { headers: { "x-v": "2" } }, { fields: ["X-V", "2"] }, true],
  ["headers: another value", { headers: { "x-v": "2" } }, { fields: ["X-V", "20"] }, false],
  ["headers: letter case of the value counts", { headers: { "x-v": "a" } }, { fields: ["X-V", "A"] }, false],
  ["headers: absent", { headers: { "x-v": "2" } }, {}, false],
  ["headers: the first line decides", { headers: { "x-v": "2" } }, { fields: ["X-V", "1", "X-V", "2"] }, false],
  ["headers: the first line is enough", { headers: { "x-v": "2" } }, { fields: ["X-V", "2", "X-V", "1"] }, true],
  ["headers: all of them", { headers: { a: "1", b: "2" } }, { fields: ["a", "1"] }, false],
  ["headers: text beyond ASCII is its UTF-8 bytes", { headers: { a: "é" } }, { fields: ["a", "\u00c3\u00a9"] }, true],
  ["query: name and value", { query: [{ name: "v", value: "2" }] }, { target: "/?a=1&v=2" }, true],
  ["query: another value", { query: [{ name: "v", value: "2" }] }, { target: "/?v=22" }, false],
  ["query: any repeated pair", { query: [{ name: "v", value: "2" }] }, { target: "/?v=1&v=2" }, true],
  ["query: presence with a value", { query: [{ name: "v" }] }, { target: "/?v=x" }, true],
  ["query: presence without equals sign", { query: [{ name: "v" }] }, { target: "/?v" }, true],
  ["query: absent", { query: [{ name: "v" }] }, { target: "/?vv&w=v" }, false],
  ["query: no query at all", { query: [{ name: "v" }] }, { target: "/" }, false],
  ["query: `a` has an empty value", { query: [{ name: "a", value: "" }] }, { target: "/?a" }, true],
  ["query: `a=` has an empty value", { query: [{ name: "a", value: "" }] }, { target: "/?a=&b" }, true],
  ["query: a value is not empty", { query: [{ name: "a", value: "" }] }, { target: "/?a=b" }, false],
  ["query: nothing is decoded", { query: [{ name: "v", value: "a b" }] }, { target: "/?v=a+b&v=a%20b" }, false],
  [
    "query: encoded bytes are compared as they are",
    { query: [{ name: "v", value: "%41" }] },
    { target: "/?v=%41" },
    true,
  ],
  ["query: the first equals sign ends the name", { query: [{ name: "v", value: "a=b" }] }, { target: "/?v=a=b" }, true],
  ["query: a semicolon separates nothing", { query: [{ name: "b" }] }, { target: "/?a;b" }, false],
  ["cookies: value", { cookies: [{ name: "s", value: "1" }] }, { fields: ["Cookie", "a=b; s=1"] }, true],
  ["cookies: in any line", { cookies: [{ name: "s" }] }, { fields: ["Cookie", "a=b", "cookie", "s"] }, true],
  ["cookies: quotes are kept", { cookies: [{ name: "s", value: "1" }] }, { fields: ["Cookie", 's="1"'] }, false],
  [
    "cookies: blanks around a pair do not count",
    { cookies: [{ name: "s", value: "1" }] },
    { fields: ["Cookie", "a;\t s=1 ;b"] },
    true,
  ],
  ["cookies: names are compared with letter case", { cookies: [{ name: "S" }] }, { fields: ["Cookie", "s=1"] }, false],
  ["cookies: absent", { cookies: [{ name: "s" }] }, {}, false],
  [
    "accept rule 1: any member",
    { accept: "application/vnd.a.v2+json" },
    { fields: ["Accept", "text/html, application/vnd.a.v2+json"] },
    true,
  ],
  ["accept rule 1: members of all lines", { accept: "a/b" }, { fields: ["Accept", "x/y", "accept", "a/b"] }, true],
  ["accept rule 1: any letter case", { accept: " A/b " }, { fields: ["Accept", "a/B"] }, true],
  [
    "accept rule 1: parameters and q are ignored",
    { accept: "a/b" },
    { fields: ["Accept", "a/b;charset=utf-8;q=0.1"] },
    true,
  ],
  ["accept rule 1: q=0 still selects", { accept: "a/b" }, { fields: ["Accept", "a/b;q=0"] }, true],
  [
    "accept rule 1: a comma in quotes separates nothing",
    { accept: "a/b" },
    { fields: ["Accept", 'x/y;p="1,a/b,2"'] },
    false,
  ],
  [
    "accept rule 1: an escaped quote does not end the quotes",
    { accept: "a/b" },
    { fields: ["Accept", 'x/y;p="\\",a/b,"'] },
    false,
  ],
  ["accept rule 1: behind quotes members go on", { accept: "a/b" }, { fields: ["Accept", 'x/y;p=",;", a/b'] }, true],
  ["accept rule 2: */* never matches", { accept: "a/b" }, { fields: ["Accept", "*/*"] }, false],
  ["accept rule 2: a/* never matches", { accept: "a/b" }, { fields: ["Accept", "a/*"] }, false],
  ["accept rule 2: a missing field never matches", { accept: "a/b" }, {}, false],
  ["accept: an empty field never matches", { accept: "a/b" }, { fields: ["Accept", ""] }, false],
  ["accept: a longer type is another type", { accept: "a/b" }, { fields: ["Accept", "a/bc, xa/b"] }, false],
];
for (const [name, criteria, parts, expected] of CRITERIA) {
  test(`match.${name} ${expected ? "matches" : "does not match"}`, () => {
    assert.equal(resolve({ r: { ...prefix("/"), ...criteria } }, parts), expected ? "r" : undefined);
  });
}
