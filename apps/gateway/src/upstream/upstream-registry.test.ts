import assert from "node:assert/strict";
import { test } from "node:test";
import type { EventKind, Service, Upstream } from "@headworks/gateway-contract";
import type { PickKey } from "./balancer.ts";
import type { Endpoint } from "./endpoint.ts";
import { compileService, type SplitKey, UpstreamGroup, UpstreamRegistry } from "./upstream-registry.ts";

const KEY: PickKey = { clientAddress: "192.0.2.1", headerValue: undefined };

const endpoints = (count: number, more: Partial<NonNullable<Upstream["endpoints"]>[number]> = {}) =>
  Array.from({ length: count }, (_, at) => ({ address: `10.0.0.${at + 1}`, port: 80, ...more }));

function rig(first: Upstream) {
  const seen: [EventKind, unknown][] = [];
  const time = { nowMs: 0 };
  const registry = new UpstreamRegistry({
    nowMs: () => time.nowMs,
    emit: (kind, payload) => void seen.push([kind, payload]),
  });
  const publish = (document: Upstream): UpstreamGroup => {
    const group = registry.prepare(document);
    registry.published([document]);
    assert.equal(registry.get(document.name), group);
    return group;
  };
  return { registry, seen, time, publish, group: publish(first) };
}

function response(endpoint: Endpoint | undefined, status: number): void {
  assert.ok(endpoint);
  endpoint.answered(endpoint.dispatched(), status, 1);
}

test("a reload keeps state: ejections by address and port, the breaker by upstream name", () => {
  const document: Upstream = {
    name: "u",
    endpoints: endpoints(2),
    health: { consecutive_failures: 1 },
    breaker: { consecutive_failures: 2, open_ms: 5000 },
  };
  const { group, publish, seen, time } = rig(document);
  const [bad] = group.endpoints;
  response(bad, 500);
  const pass = group.admit();
  assert.ok("epoch" in pass);
  group.settle(pass.epoch, false);
  const next = publish({ ...structuredClone(document), breaker: { consecutive_failures: 2, open_ms: 1000 } });
  assert.equal(next, group);
  assert.equal(next.endpoints[0], bad);
  assert.equal(bad?.health, "ejected");
  group.settle(pass.epoch, false);
  assert.deepEqual(group.admit(), { retryAfterS: 1 }, "the streak continued over the reload, with the new open_ms");
  time.nowMs += 1000;
  assert.ok("epoch" in group.admit());
  assert.deepEqual(
    seen.map(([kind]) => kind),
    ["endpoint_ejected", "breaker_opened", "breaker_half_open"],
  );
  assert.deepEqual(seen[0]?.[1], { upstream: "u", endpoint: "10.0.0.1:80" });
});

test("breaker: Retry-After is the time to half-open in whole seconds, rounded up, at least 1", () => {
  const { group, time } = rig({
    name: "u",
    endpoints: endpoints(1),
    breaker: { consecutive_failures: 1, open_ms: 2500 },
  });
  const pass = group.admit();
  assert.ok("epoch" in pass);
  group.settle(pass.epoch, false);
  assert.deepEqual(group.admit(), { retryAfterS: 3 });
  time.nowMs += 2400;
  assert.deepEqual(group.admit(), { retryAfterS: 1 });
  time.nowMs += 100;
  assert.ok("epoch" in group.admit());
  assert.deepEqual(group.admit(), { retryAfterS: 1 }, "all trials are taken");
});

test("breaker: after removal and return, attempts of the first one are ignored", () => {
  const document: Upstream = { name: "u", endpoints: endpoints(1), breaker: { consecutive_failures: 1 } };
  const { group, publish, time } = rig(document);
  const first = group.admit();
  assert.ok("epoch" in first);
  const { epoch } = first;
  publish({ name: "u", endpoints: endpoints(1) });
  const without = group.admit();
  assert.ok("epoch" in without);
  publish(structuredClone(document));
  group.settle(epoch, false);
  group.settle(without.epoch, false);
  assert.equal(group.breaker?.state, "closed");
  time.nowMs += 1;
  const own = group.admit();
  assert.ok("epoch" in own);
  group.settle(own.epoch, false);
  assert.equal(group.breaker?.state, "open");
});

test("health: when all endpoints are ejected, picks come from all of them, and are counted", () => {
  const { group } = rig({ name: "u", endpoints: endpoints(3), health: { consecutive_failures: 1 } });
  for (const endpoint of group.endpoints) response(endpoint, 500);
  const picked = new Set(Array.from({ length: 30 }, () => group.pick(KEY, [])));
  assert.deepEqual([picked.size, group.failOpenPicks], [3, 30]);
});

test("health: without any endpoint, no pick is counted", () => {
  const { group } = rig({ name: "u", endpoints: endpoints(1) });
  const [endpoint] = group.endpoints;
  if (endpoint !== undefined) endpoint.isDraining = true;
  assert.deepEqual([group.pick(KEY, []), group.failOpenPicks], [undefined, 0]);
});

test("health: a single ejected endpoint is picked nevertheless, and counted", () => {
  const { group } = rig({ name: "u", endpoints: endpoints(1), health: { consecutive_failures: 1 } });
  response(group.endpoints[0], 500);
  assert.equal(group.pick(KEY, []), group.endpoints[0]);
  assert.equal(group.failOpenPicks, 1);
});

test("a draining endpoint is never picked, not even when no other is left", () => {
  const { group, publish } = rig({
    name: "u",
    endpoints: [...endpoints(1, { drain: true }), { address: "10.0.0.9", port: 80 }],
    health: { consecutive_failures: 1 },
  });
  for (let at = 0; at < 10; at++) assert.equal(group.pick(KEY, [])?.key, "10.0.0.9:80");
  response(group.endpoints[1], 500);
  assert.equal(group.pick(KEY, [])?.key, "10.0.0.9:80", "ejected, but not draining");
  publish({ name: "u", endpoints: endpoints(1, { drain: true }) });
  assert.equal(group.pick(KEY, []), undefined);
});

test("a retry uses an untried endpoint while one is in rotation", () => {
  const { group } = rig({ name: "u", endpoints: endpoints(3), health: { consecutive_failures: 1 } });
  const [first, second, third] = group.endpoints;
  assert.ok(first && second && third);
  response(third, 500);
  for (let at = 0; at < 10; at++) assert.equal(group.pick(KEY, [first]), second);
  for (let at = 0; at < 10; at++) {
    const again = group.pick(KEY, [first, second]);
    assert.ok(again === first || again === second, "a tried endpoint in rotation is preferred to an ejected one");
  }
  assert.equal(group.failOpenPicks, 0);
});

test("max_ejected_percent limits ejections", () => {
  const { group } = rig({
    name: "u",
    endpoints: endpoints(4),
    health: { consecutive_failures: 1, max_ejected_percent: 50 },
  });
  for (const endpoint of group.endpoints) response(endpoint, 500);
  assert.deepEqual(
    group.endpoints.map(({ health }) => health),
    ["ejected", "ejected", "healthy", "healthy"],
  );
});

test("an unpublished candidate leaves no trace; removed upstreams are dropped", () => {
  const { registry, publish } = rig({ name: "u", endpoints: endpoints(1) });
  registry.prepare({ name: "other", endpoints: endpoints(1) });
  assert.deepEqual(
    registry.all.map(({ name }) => name),
    ["u"],
  );
  publish({ name: "v", endpoints: endpoints(1) });
  assert.deepEqual(
    registry.all.map(({ name }) => name),
    ["v"],
  );
});

test("a removed endpoint or upstream still serves active requests, without events", () => {
  const document: Upstream = {
    name: "u",
    endpoints: endpoints(2),
    health: { consecutive_failures: 1 },
    breaker: { consecutive_failures: 1 },
  };
  const { registry, group, publish, seen } = rig(document);
  const [left] = group.endpoints;
  publish({ ...document, endpoints: endpoints(2).slice(1) });
  response(left, 500);
  registry.published([]);
  assert.equal(group.pick(KEY, [])?.key, "10.0.0.2:80");
  response(group.endpoints[0], 500);
  const pass = group.admit();
  assert.ok("epoch" in pass);
  group.settle(pass.epoch, false);
  assert.deepEqual(group.admit(), { retryAfterS: 30 });
  assert.deepEqual(seen, []);
});

test("discovered endpoints survive a reload, beside listed ones, until the name changes", () => {
  const discovery = { hostname: "svc.test", port: 80 };
  const { group, publish } = rig({ name: "u", endpoints: endpoints(1), dns_discovery: discovery });
  group.discovered([
    { address: "10.0.0.1", port: 80 },
    { address: "10.0.0.7", port: 80 },
  ]);
  const keys = (): string[] => group.endpoints.map(({ key }) => key);
  assert.deepEqual(keys(), ["10.0.0.1:80", "10.0.0.7:80"]);
  publish({ name: "u", dns_discovery: { ...discovery, refresh_interval_s: 5 } });
  assert.deepEqual(keys(), ["10.0.0.1:80", "10.0.0.7:80"]);
  publish({ name: "u", dns_discovery: { ...discovery, hostname: "other.test" } });
  assert.deepEqual(keys(), []);
  assert.equal(group.pick(KEY, []), undefined);
});

test("hedges and retries share one budget and are counted separately", () => {
  const { group } = rig({ name: "u", endpoints: endpoints(1), retries: { attempts: 1 } });
  assert.deepEqual(
    [group.spendRetry(), group.spendHedge(), group.spendHedge(), group.spendRetry()],
    [true, true, true, false],
  );
  assert.deepEqual([group.retries, group.hedges], [1, 2]);
});

const host = { nowMs: () => 0, emit: () => undefined };
const groups = new Map(["a", "b", "c"].map((name) => [name, new UpstreamGroup({ name }, host)]));
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
