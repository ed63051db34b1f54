import assert from "node:assert/strict";
import { test } from "node:test";
import type { ConfigDocument } from "@headworks/gateway-contract";
import fc from "fast-check";
import { diffDocuments } from "./diff-documents.ts";
import { readDocument } from "./read-document.ts";

function read(text: string): ConfigDocument {
  const { document } = readDocument(text);
  assert.ok(document !== undefined);
  return document;
}

function told(before: string | undefined, after: string): string[] {
  return diffDocuments(before === undefined ? undefined : read(before), read(after)).map(
    ({ kind, name, change, pointers }) => [change, kind, name, ...pointers].join(" "),
  );
}

const base = `
upstreams: [{name: u, endpoints: [{address: a, port: 1}]}]
routes:
  - {name: one, match: {path: {type: prefix, value: /1}}, action: {type: respond, status: 200}}
  - {name: two, match: {path: {type: prefix, value: /2}, headers: {a/b: x}}, action: {type: respond, status: 200}}
consumers: [{name: c, credentials: [{type: api_key, key: k}], quotas: {daily_requests: 18446744073709551614}}]
webhooks: [{url: "http://h/", events: [breaker_opened]}]`;

const cases: readonly (readonly [string, string | undefined, string, readonly string[]])[] = [
  ["nothing", base, base, []],
  ["the first document", undefined, "policies: [{name: p}]\nadmin: {}", ["added admin ", "added policy p"]],
  ["a value deep inside", base, base.replace("/1}", "/one}"), ["changed route one /match/path/value"]],
  [
    "a name with characters of pointers",
    base,
    base.replace("a/b: x", "a/b: y"),
    ["changed route two /match/headers/a~1b"],
  ],
  ["the last of 64 bits", base, base.replace("614", "615"), ["changed consumer c /quotas/daily_requests"]],
  [
    "a list that grew",
    base,
    base.replace("endpoints: [", "endpoints: [{address: b, port: 2}, "),
    ["changed upstream u /endpoints"],
  ],
  ["a member of a list", base, base.replace("port: 1", "port: 2"), ["changed upstream u /endpoints/0/port"]],
  ["a rename", base, base.replace("name: c", "name: d"), ["removed consumer c", "added consumer d"]],
  ["a webhook's URL", base, base.replace("//h/", "//i/"), ["removed webhook http://h/", "added webhook http://i/"]],
  ["a field that was added", base, `${base}\nname: x`, ["changed gateway  /name"]],
  ["where a setting of the gateway stands", `${base}\nname: x`, `${base}\ngateway: {name: x}`, []],
  ["the order of routes", base, base.replace(/( {2}- \{name: one.*\n)( {2}- .*\n)/, "$2$1"), ["moved route two"]],
];

for (const [name, before, after, expected] of cases) {
  void test(`a difference is named with its place: ${name}`, () => assert.deepEqual(told(before, after), expected));
}

void test("moved routes are the fewest that must move, however large the permutation", () => {
  const routes = (names: readonly number[]): string =>
    JSON.stringify({
      routes: names.map((name) => ({
        name: `r${name}`,
        match: { path: { type: "prefix", value: "/" } },
        action: { type: "respond", status: 200 },
      })),
    });
  const all = Array.from({ length: 9 }, (_, at) => at);
  fc.assert(
    fc.property(fc.shuffledSubarray(all), fc.shuffledSubarray(all), (before, after) => {
      const changes = diffDocuments(read(routes(before)), read(routes(after)));
      const moved = new Set(
        changes.filter(({ change }) => change === "moved").map(({ name }) => Number(name.slice(1))),
      );
      const stay = (names: readonly number[], others: readonly number[]): number[] =>
        names.filter((name) => others.includes(name) && !moved.has(name));
      assert.deepEqual(stay(before, after), stay(after, before));
      const kept = before.filter((name) => after.includes(name));
      let max = 0;
      for (let chosen = 0; chosen < 1 << kept.length; chosen++) {
        const some = kept.filter((_, at) => (chosen >> at) & 1);
        const ranks = some.map((name) => after.indexOf(name));
        if (ranks.every((rank, at) => at === 0 || (ranks[at - 1] ?? 0) < rank)) max = Math.max(max, some.length);
      }
      assert.equal(moved.size, kept.length - max);
    }),
    { numRuns: 100 },
  );
});
