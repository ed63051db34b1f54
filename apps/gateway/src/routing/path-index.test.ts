import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Match } from "@headworks/gateway-contract";
import { naiveRoute } from "../../test/routing/naive-router.ts";
import { compiledRoute, documentOf, issueNotes, requestFor, routeWith } from "../../test/routing/requests.ts";
import { checkRoutes } from "./check-routes.ts";
import { PathIndex } from "./path-index.ts";
import { compileRouteTable } from "./route-table.ts";

const segments = fc.constantFrom("a", "b", "aa", "a%2Fb", "", "v1", "v10", "Aa", "BB");
const paths = fc.array(segments, { minLength: 1, maxLength: 4 }).map((list) => `/${list.join("/")}`);
const templates = fc
  .array(fc.oneof(segments, fc.constantFrom("{x}", "{y}", "{z}")), { minLength: 1, maxLength: 4 })
  .map((list) => `/${list.map((segment, at) => (segment.startsWith("{") ? `{p${at}}` : segment)).join("/")}`);
const patterns = fc.constantFrom(
  "^/a",
  "^/a/",
  "^/a/b$",
  "^/a/v1/",
  "^/v1/(?<rest>.*)$",
  "a$",
  "^/b|^/v1",
  "^/(a|b)/",
  "v1",
  "^/a/[ab]",
  "^/aa/v10/a",
  "^/a/.*$",
  "^/a(/|$)",
  "^/v1(?:/.*)?$",
  ".*",
);
const pathMatches: fc.Arbitrary<Match["path"]> = fc.oneof(
  templates.map((value) => ({ type: "exact" as const, value })),
  paths.map((value) => ({ type: "prefix" as const, value })),
  patterns.map((value) => ({ type: "regex" as const, value })),
);

const names = fc.constantFrom("a", "b", "ab");
const values = fc.constantFrom("", "1", "12", "a=b", '"1"');
const optional = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
  fc.oneof({ arbitrary: fc.constant(undefined), weight: 5 }, { arbitrary, weight: 1 });
const pairs = fc.array(
  fc.tuple(names, optional(values)).map(([name, value]) => (value === undefined ? { name } : { name, value })),
  { minLength: 1, maxLength: 2 },
);
const matches: fc.Arbitrary<Match> = fc
  .record({
    path: pathMatches,
    host: fc.option(fc.constantFrom("a.test", "A.test.:80", "*.Test", "*.a.test.", "*"), { nil: undefined }),
    listener: optional(fc.constantFrom("public", "inner")),
    scheme: optional(fc.constantFrom("http", "https")),
    methods: optional(fc.subarray(["get", "POST", "HEAD"])),
    headers: optional(fc.dictionary(names, values, { maxKeys: 1, noNullPrototype: true })),
    query: optional(pairs),
    cookies: optional(pairs),
    accept: optional(fc.constantFrom("x/y", "X/y+z", "a/b")),
  })
  .map((parts) => Object.fromEntries(Object.entries(parts).filter(([, value]) => value !== undefined)) as Match);

const fieldLines = fc.oneof(
  fc.tuple(fc.constantFrom("a", "B", "AB"), values),
  fc.tuple(
    fc.constantFrom("Cookie", "cookie"),
    fc
      .array(fc.constantFrom("a", "a=", "a=1", "b=12", " ab=1 ", 'b="1"', "", "x=a=1"), { maxLength: 4 })
      .map((list) => list.join(";")),
  ),
  fc.tuple(
    fc.constantFrom("Accept", "accept"),
    fc
      .array(fc.constantFrom("x/y", "X/Y;q=0", "*/*", "a/*", 'a/c;p=",a/b,"', " a/b ;q=1", 'a/d;p="\\",x/y"', ""), {
        maxLength: 3,
      })
      .map((list) => list.join(",")),
  ),
);
const requests = fc.record({
  target: fc
    .tuple(
      paths,
      optional(fc.array(fc.constantFrom("a", "a=", "a=1", "b=12", "ab", "a=a=b", "", "aa=1"), { maxLength: 3 })),
    )
    .map(([path, query]) => (query === undefined ? path : `${path}?${query.join("&")}`)),
  method: fc.constantFrom("GET", "POST", "post", "PUT"),
  host: fc.constantFrom(
    "a.test",
    "A.TEST:80",
    "a.test.:80",
    "b.test.:8080",
    "c.a.test",
    "d.c.a.test:1",
    "test",
    "other",
  ),
  listener: fc.constantFrom("public", "inner"),
  isSecure: fc.boolean(),
  fields: fc.array(fieldLines, { maxLength: 4 }).map((lines) => lines.flat()),
});

test("the table decides like a naive router", () => {
  let taken = 0;
  let missed = 0;
  fc.assert(
    fc.property(
      fc.array(matches, { maxLength: 12 }),
      fc.array(requests, { minLength: 1, maxLength: 8 }),
      (list, samples) => {
        const routes = list.map((match, index) => routeWith(`r${index}`, match));
        const table = compileRouteTable(routes.map(compiledRoute));
        for (const parts of samples) {
          const request = requestFor(parts);
          const expected = naiveRoute(routes, request)?.name;
          table.resolve(request);
          assert.equal(request.route?.name, expected, JSON.stringify({ list, parts }));
          if (expected === undefined) missed += 1;
          else taken += 1;
        }
      },
    ),
    { numRuns: 6000 },
  );
  // Random tables must not agree only because nothing ever matches.
  assert.ok(taken > 2000 && missed > 2000, `${taken} taken, ${missed} missed`);
});

test("a route reported as unreachable gets no request", () => {
  let warned = 0;
  const document = documentOf([]);
  const listeners = ["public", "inner"].map((name) => ({ name, address: "", port: 0 }));
  fc.assert(
    fc.property(
      fc.array(matches, { minLength: 2, maxLength: 12 }),
      fc.array(requests, { minLength: 1, maxLength: 20 }),
      (list, samples) => {
        const routes = list.map((match, index) => routeWith(`r${index}`, match));
        const { report, notes } = issueNotes();
        checkRoutes({ ...document, listeners, routes }, report);
        const never = new Set(
          notes.filter((note) => note.includes("route_shadowed")).map((note) => `r${note.split(".")[1]}`),
        );
        warned += never.size;
        const table = compileRouteTable(routes.map(compiledRoute));
        for (const parts of samples) {
          const request = requestFor({ ...parts, isSecure: false });
          table.resolve(request);
          assert.ok(!never.has(request.route?.name ?? ""), JSON.stringify({ list, parts }));
        }
      },
    ),
    { numRuns: 3000 },
  );
  assert.ok(warned > 1000, String(warned));
});

test("paths alone: the table decides like the naive router, over many routes", () => {
  fc.assert(
    fc.property(
      fc.array(pathMatches, { minLength: 10, maxLength: 60 }),
      fc.array(paths, { minLength: 5, maxLength: 20 }),
      (list, targets) => {
        const routes = list.map((path, index) => routeWith(`r${index}`, { path }));
        const index = new PathIndex(list);
        for (const target of targets) {
          const request = requestFor({ target });
          assert.equal(routes[index.find(target, request)]?.name, naiveRoute(routes, request)?.name, target);
        }
      },
    ),
    { numRuns: 1000 },
  );
});

test("segments with colliding hashes are distinguished", () => {
  // With a factor of 31 these have the same hash: 31 * "A" + "a" = 31 * "B" + "B".
  const list = ["/Aa/x", "/BB/x", "/AaAa", "/BBBB", "/AaBB"].map((value) => ({ type: "prefix" as const, value }));
  const index = new PathIndex(list);
  for (const [route, { value }] of list.entries()) {
    assert.equal(index.find(value, { pathParameters: undefined }), route);
  }
  assert.equal(index.find("/BBAa", { pathParameters: undefined }), -1);
});

test("patterns that cannot match are not tried, and the others are tried in declaration order", () => {
  const sources = ["^/orders/\\d+$", "users", "^/users/\\d+$", "^/users/", "^/users/x/y$"];
  const index = new PathIndex(sources.map((value) => ({ type: "regex" as const, value })));
  const find = (path: string): number => index.find(path, { pathParameters: undefined });
  assert.equal(find("/orders/7"), 0);
  assert.equal(find("/users/7"), 1);
  assert.equal(find("/a/users"), 1);
  assert.equal(find("/orders/x"), -1);
  const later = new PathIndex([...sources.slice(2), "users"].map((value) => ({ type: "regex" as const, value })));
  assert.equal(later.find("/users/7", { pathParameters: undefined }), 0);
  assert.equal(later.find("/users/z", { pathParameters: undefined }), 1);
});

test("names of object properties are ordinary parameters and segments", () => {
  const list = ["/{__proto__}/x", "/constructor", "/{toString}"].map((value) => ({ type: "exact" as const, value }));
  const index = new PathIndex(list);
  const sink: { pathParameters: Readonly<Record<string, string>> | undefined } = { pathParameters: undefined };
  assert.equal(index.find("/a/x", sink), 0);
  assert.deepEqual(Object.entries(sink.pathParameters ?? {}), [["__proto__", "a"]]);
  assert.equal(index.find("/constructor", sink), 1);
  assert.equal(sink.pathParameters, undefined);
  assert.equal(index.find("/valueOf", sink), 2);
});

test("five thousand routes of each kind are all found, and nothing else", () => {
  const size = 5000;
  const list: Match["path"][] = [];
  for (let index = 0; index < size; index += 1) {
    list.push({ type: "prefix", value: `/p${index}/x` }, { type: "exact", value: `/e${index}` });
    list.push({ type: "exact", value: `/t${index}/{id}` }, { type: "regex", value: `^/r${index}/[0-9]+$` });
  }
  const table = new PathIndex(list);
  const find = (path: string): number => table.find(path, { pathParameters: undefined });
  for (let index = 0; index < size; index += 1) {
    const asked = [`/p${index}/x/y`, `/e${index}`, `/t${index}/7`, `/r${index}/7`];
    assert.deepEqual(asked.map(find), [4 * index, 4 * index + 1, 4 * index + 2, 4 * index + 3]);
    assert.deepEqual([`/p${index}/xy`, `/e${index}/`, `/t${index}/`, `/r${index}/x`].map(find), [-1, -1, -1, -1]);
  }
});
