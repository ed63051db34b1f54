import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Match, Rewrite } from "@headworks/gateway-contract";
import { requestFor, routeWith } from "../../test/routing/requests.ts";
import { checkPath } from "./request-path.ts";
import { compileRewrite } from "./rewrite.ts";

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
