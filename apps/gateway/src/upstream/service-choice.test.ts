import assert from "node:assert/strict";
import { test } from "node:test";
import type { Service } from "@headworks/gateway-contract";
import { compileService, type SplitKey } from "./service-choice.ts";
import type { UpstreamGroup } from "./upstream-group.ts";

const upstream = (name: string): UpstreamGroup => ({
  name,
  document: { name },
  endpoints: [],
  queueCounts: { saturated: 0, timedOut: 0, evicted: 0 },
  admit: () => ({ epoch: 0 }),
  settle: () => undefined,
  pick: () => undefined,
  countRequest: () => undefined,
  spendRetry: () => false,
  spendHedge: () => false,
});

const groups = new Map(["a", "b", "c"].map((name) => [name, upstream(name)]));
const compile = (service: Omit<Service, "name">) =>
  compileService({ name: "s", ...service }, (name) => {
    const group = groups.get(name);
    if (group === undefined) throw new Error(name);
    return { document: group.document, group };
  });

const request = (requestId: string, cookies: Readonly<Record<string, string>> = {}): SplitKey => ({
  requestId,
  cookie: (name) => cookies[name],
});

const split = (...weights: readonly (readonly [string, number])[]): Omit<Service, "name"> => ({
  split: { targets: weights.map(([name, weight]) => ({ upstream: name, weight })) },
});

test("a service of one upstream always has it, and sets no cookie", () => {
  const choose = compile({ upstream: "a" });
  assert.deepEqual(choose(request("1")), { group: groups.get("a"), host: "endpoint", setCookie: undefined });
});

test("a split keeps its weights over many request ids, never picks a weight of 0, and is stable for an id", () => {
  const choose = compile(split(["a", 90], ["b", 10], ["c", 0]));
  const counts: Record<string, number> = { a: 0, b: 0, c: 0 };
  for (let at = 0; at < 20_000; at++) {
    const { group, setCookie } = choose(request(`id-${at}`));
    counts[group.name] = (counts[group.name] ?? 0) + 1;
    assert.equal(setCookie, undefined);
    if (at < 100) assert.equal(choose(request(`id-${at}`)).group, group);
  }
  assert.equal(counts["c"], 0);
  assert.ok(Math.abs((counts["b"] ?? 0) / 20_000 - 0.1) < 0.01, JSON.stringify(counts));
});

test("the largest weights that a document may have are kept too", () => {
  const choose = compile(split(["a", 65_535], ["b", 65_535], ["c", 65_535]));
  const counts: Record<string, number> = { a: 0, b: 0, c: 0 };
  for (let at = 0; at < 9000; at++) {
    const { group } = choose(request(`id-${at}`));
    counts[group.name] = (counts[group.name] ?? 0) + 1;
  }
  for (const count of Object.values(counts)) assert.ok(Math.abs(count - 3000) < 250, JSON.stringify(counts));
});

test("sticky: a first request gets a cookie, and requests with it keep their upstream, whatever their id", () => {
  const choose = compile({ ...split(["a", 1], ["b", 1]), sticky: { cookie: "member", ttl_s: 60 } });
  const seen = new Set<string>();
  for (let client = 0; client < 50; client++) {
    const first = choose(request("same id"));
    const value = /^member=([\w-]{16}); Path=\/; Max-Age=60; HttpOnly; SameSite=Lax$/.exec(first.setCookie ?? "")?.[1];
    assert.ok(value !== undefined, first.setCookie);
    seen.add(first.group.name);
    for (let at = 0; at < 5; at++) {
      assert.deepEqual(choose(request(`${client} ${at}`, { member: value })), {
        group: first.group,
        host: "endpoint",
        setCookie: undefined,
      });
    }
  }
  assert.deepEqual([...seen].sort(), ["a", "b"]);
});

test("sticky: any client value only selects a target of the split", () => {
  const choose = compile({ ...split(["a", 1], ["b", 0]), sticky: { cookie: "member" } });
  for (const value of ["", "x".repeat(10_000), "\u0000", "__proto__"]) {
    assert.equal(choose(request("1", { member: value })).group.name, "a");
  }
});
