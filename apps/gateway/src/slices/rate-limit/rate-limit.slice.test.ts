import assert from "node:assert/strict";
import { test } from "node:test";
import type { ConfigDocument, Policy, Route } from "@headworks/gateway-contract";
import { FakeClock } from "@headworks/testkit";
import { pino } from "pino";
import { type ConsumerIdentity, type Gate, RequestContext, type Verdict } from "#request/context.ts";
import { compileScope, issuesOf } from "../../../test/route-documents.ts";
import { compiledRoute, documentOf, requestFor, routeWith } from "../../../test/routing/requests.ts";
import { createRateLimits, type RateLimits } from "./rate-limit.slice.ts";

const START_MS = Date.UTC(2026, 0, 1);
const path = { type: "prefix", value: "/" } as const;

interface Asking {
  readonly ip?: string;
  /** What X-Forwarded-For says. */
  readonly via?: string;
  readonly consumer?: string;
  readonly listener?: string;
}

/** The slice with a clock that stands still, and routes `a` and `b` of the service `s`. */
class Rig {
  readonly clock = new FakeClock(START_MS);
  readonly dryRuns: string[] = [];
  readonly slice: RateLimits = createRateLimits({
    clock: this.clock,
    log: pino({ level: "silent" }),
    onDryRun: (route) => this.dryRuns.push(route),
  });
  #gates = new Map<string, Gate | undefined>();

  publish(
    policies: readonly Policy[],
    places: Partial<ConfigDocument> = {},
    routePolicies: readonly string[] = [],
  ): void {
    const routes: Route[] = ["a", "b"].map((name) => routeWith(name, { path }, { policies: [...routePolicies] }));
    const document = { ...documentOf(routes), policies, ...places };
    const compiled = this.slice.compile?.(document, compileScope(this.clock));
    this.#gates = new Map(routes.map((route) => [route.name, compiled?.gateFor?.(route)]));
    this.#gates.set("unrouted", compiled?.unroutedGateFor?.({ name: "public", address: "", port: 0 }));
    compiled?.published?.();
  }

  hasGate(route: string): boolean {
    return this.#gates.get(route) !== undefined;
  }

  ask(routeName: string, { ip = "192.0.2.1", via, consumer, listener = "public" }: Asking = {}): Outcome {
    const { generation, framing } = requestFor({ trusted: ["10.0.0.0/8"] });
    const request = new RequestContext({
      generation,
      framing,
      listener: { name: listener, isSecure: false, port: 80 },
      peer: { address: ip, port: 1 },
      startedMs: 0,
      version: "1.1",
      method: "GET",
      target: "/",
      authority: undefined,
      fields: via === undefined ? [] : ["X-Forwarded-For", via],
    });
    if (routeName !== "unrouted") request.route = compiledRoute(routeWith(routeName, { path }), 0);
    if (consumer !== undefined) request.consumer = identity(consumer);
    const verdict = this.#gates.get(routeName)?.check(request);
    return outcomeOf(request, verdict as Verdict);
  }
}

const identity = (name: string): ConsumerIdentity => ({ name, groups: [], priority: undefined, credential: "api_key" });

interface Outcome {
  readonly status: 200 | 429;
  /** `limit/remaining/reset` with the reset in seconds from the start; undefined without the headers. */
  readonly limits: string | undefined;
  readonly retryAfter: string | undefined;
}

function outcomeOf(request: RequestContext, verdict: Verdict): Outcome {
  const isRefused = verdict !== undefined;
  if (isRefused) assert.deepEqual("code" in verdict && verdict.code, "rate_limit_exceeded");
  assert.equal(request.wasRateLimited, isRefused);
  const pairs = [...((isRefused ? verdict.fields : request.responseFields) ?? [])];
  const fields = new Map<string, string>();
  for (let at = 0; at < pairs.length; at += 2) fields.set(pairs[at] ?? "", pairs[at + 1] ?? "");
  const [limit, remaining, reset] = ["Limit", "Remaining", "Reset"].map((name) => fields.get(`X-RateLimit-${name}`));
  return {
    status: isRefused ? 429 : 200,
    limits: limit === undefined ? undefined : `${limit}/${remaining}/${Number(reset) - START_MS / 1000}`,
    retryAfter: fields.get("Retry-After"),
  };
}

const policy = (name: string, rules: Policy["rate_limits"], more: Partial<Policy> = {}): Policy => ({
  name,
  rate_limits: rules ?? [],
  ...more,
});
const passed = (limits: string | undefined): Outcome => ({ status: 200, limits, retryAfter: undefined });
const refused = (limits: string, retryAfter: string): Outcome => ({ status: 429, limits, retryAfter });

test("rate limit: bucket of burst, steady refill; headers are the burst, what is left, and the second of full refill", async () => {
  const rig = new Rig();
  rig.publish([policy("p", [{ selector: ["route"], requests_per: { minute: 6 }, burst: 3 }])], {}, ["p"]);
  assert.deepEqual(rig.ask("a"), passed("3/2/10"));
  assert.deepEqual(rig.ask("a"), passed("3/1/20"));
  assert.deepEqual(rig.ask("a"), passed("3/0/30"));
  assert.deepEqual(rig.ask("a"), refused("3/0/30", "10"));
  await rig.clock.advance(9999);
  assert.deepEqual(rig.ask("a"), refused("3/0/30", "1"), "Retry-After is rounded up, min 1");
  await rig.clock.advance(1);
  assert.deepEqual(rig.ask("a"), passed("3/0/40"));
  await rig.clock.advance(3_600_000);
  assert.deepEqual(rig.ask("a"), passed("3/2/3620"), "never more than the burst");
});

test("rate limit: burst default = window count", () => {
  const rig = new Rig();
  rig.publish([policy("p", [{ selector: ["route"], requests_per: { s: 2 } }])], {}, ["p"]);
  assert.deepEqual(
    ["a", "a", "a"].map((route) => rig.ask(route).status),
    [200, 200, 429],
  );
});

test("rate limit: stacked windows, shortest first, stop at first denial (earlier windows stay charged)", async () => {
  const rig = new Rig();
  rig.publish([policy("p", [{ selector: ["route"], requests_per: { hour: 3, s: 2 } }])], {}, ["p"]);
  assert.deepEqual(rig.ask("a"), passed("2/1/1"), "the tightest window");
  assert.deepEqual(rig.ask("a"), passed("2/0/1"));
  assert.deepEqual(rig.ask("a"), refused("2/0/1", "1"), "the second refuses, the hour is not charged");
  await rig.clock.advance(1000);
  assert.deepEqual(rig.ask("a"), passed("3/0/3600"));
  assert.deepEqual(rig.ask("a"), refused("3/0/3600", "1199"));
  // That refusal took a unit of the second: its burst of two is used up although one request passed.
  assert.deepEqual(rig.ask("a"), refused("2/0/2", "1"));
});

const SELECTORS: readonly (readonly [
  Policy["rate_limits"] extends (infer R)[] | undefined ? (R extends { selector: infer S } ? S : never) : never,
  string,
  Asking,
  string,
  Asking,
  boolean,
])[] = [
  [["ip"], "a", {}, "b", {}, true],
  [["ip"], "a", {}, "a", { ip: "192.0.2.2" }, false],
  [["ip"], "a", { ip: "2001:db8::1" }, "a", { ip: "2001:db8::ffff:1" }, true],
  [["ip"], "a", { ip: "2001:db8:0:1::1" }, "a", { ip: "2001:db8:0:2::1" }, false],
  [["credential"], "a", { ip: "2001:db8::1" }, "a", { ip: "2001:db8::2" }, true],
  // Only a trusted proxy, 10.0.0.0/8 here, can name the client.
  [["ip"], "a", { ip: "192.0.2.9", via: "192.0.2.1" }, "a", { ip: "192.0.2.9", via: "192.0.2.2" }, true],
  [["ip"], "a", { ip: "192.0.2.9", via: "192.0.2.1" }, "b", { ip: "192.0.2.8", via: "192.0.2.1" }, false],
  [["ip"], "a", { ip: "10.0.0.1", via: "192.0.2.1" }, "a", { ip: "10.0.0.1", via: "192.0.2.2" }, false],
  [["ip"], "a", { ip: "10.0.0.1", via: "192.0.2.1" }, "b", { ip: "10.0.0.2", via: "192.0.2.1" }, true],
  [["credential"], "a", { ip: "10.0.0.1", via: "192.0.2.1" }, "b", { ip: "10.0.0.2", via: "192.0.2.1" }, true],
  [["ip"], "a", { consumer: "x" }, "a", { consumer: "y" }, true],
  [["route"], "a", {}, "a", { ip: "192.0.2.2", consumer: "x" }, true],
  [["route"], "a", {}, "b", {}, false],
  [["credential"], "a", { consumer: "x" }, "b", { consumer: "x", ip: "192.0.2.2" }, true],
  [["credential"], "a", { consumer: "x" }, "a", { consumer: "y" }, false],
  // For anonymous requests it falls back to the client IP, which no consumer's name can be mistaken for.
  [["credential"], "a", {}, "a", {}, true],
  [["credential"], "a", {}, "a", { ip: "192.0.2.2" }, false],
  [["credential"], "a", {}, "a", { consumer: "192.0.2.1" }, false],
  [["credential", "route"], "a", { consumer: "x" }, "b", { consumer: "x" }, false],
  [["credential", "route"], "a", { consumer: "x" }, "a", { consumer: "x", ip: "192.0.2.2" }, true],
  [["ip", "route"], "a", {}, "a", {}, true],
  [["ip", "route"], "a", {}, "b", {}, false],
];
for (const [selector, firstRoute, first, secondRoute, second, isShared] of SELECTORS) {
  const text = (route: string, asking: Asking): string => `${route} ${JSON.stringify(asking)}`;
  test(`rate limit: selector ${selector.join("+")}: ${text(firstRoute, first)} and ${text(secondRoute, second)} ${isShared ? "share" : "do not share"}`, () => {
    const rig = new Rig();
    rig.publish([policy("p", [{ selector, requests_per: { hour: 1 } }])], {}, ["p"]);
    assert.equal(rig.ask(firstRoute, first).status, 200);
    assert.equal(rig.ask(secondRoute, second).status, isShared ? 429 : 200);
  });
}

for (const [bits, one, other, isShared] of [
  [48, "2001:db8:0:1::1", "2001:db8:0:2::1", true],
  [56, "2001:db8:0:1::1", "2001:db8:0:ff::1", true],
  [56, "2001:db8:0:1::1", "2001:db8:0:101::1", false],
  [128, "2001:db8::1", "2001:db8::2", false],
  [1, "192.0.2.1", "192.0.2.2", false],
] as const) {
  test(`rate limit: with ipv6_prefix_length ${bits}, ${one} and ${other} ${isShared ? "share" : "do not share"}`, () => {
    const rig = new Rig();
    const rule = { selector: ["ip" as const], requests_per: { hour: 1 }, ipv6_prefix_length: bits };
    rig.publish([policy("p", [rule])], {}, ["p"]);
    assert.equal(rig.ask("a", { ip: one }).status, 200);
    assert.equal(rig.ask("a", { ip: other }).status, isShared ? 429 : 200);
  });
}

const hourly = (name: string, hour: number): Policy => policy(name, [{ selector: ["route"], requests_per: { hour } }]);

const everywhere: Partial<ConfigDocument> = {
  gateway: { global_policies: ["global", "twice"] },
  listeners: [{ name: "public", address: "", port: 0, policies: ["listener", "twice"] }],
  services: [{ name: "s", upstream: "u", policies: ["service", "twice"] }],
  consumers: [{ name: "x", policies: ["consumer", "twice"] }],
};

test("rate limit: policies of every level apply; headers come from the first denying rule, Retry-After is the longest wait", () => {
  for (const [which, limits, expected] of [
    ["consumer", [1, 9, 9, 9, 9], refused("1/0/3600", "3600")],
    ["route", [9, 1, 9, 9, 9], refused("1/0/3600", "3600")],
    ["service", [9, 9, 1, 9, 9], refused("1/0/3600", "3600")],
    ["listener", [9, 9, 9, 1, 9], refused("1/0/3600", "3600")],
    ["global", [9, 9, 9, 9, 1], refused("1/0/3600", "3600")],
  ] as const) {
    const rig = new Rig();
    const names = ["consumer", "route", "service", "listener", "global"];
    rig.publish([...names.map((name, at) => hourly(name, limits[at] ?? 0)), hourly("twice", 9)], everywhere, ["route"]);
    assert.deepEqual(rig.ask("a", { consumer: "x" }), passed("1/0/3600"), which);
    assert.deepEqual(rig.ask("a", { consumer: "x" }), expected, which);
  }
});

test("rate limit: several rules are all evaluated, the most specific refusal names its limit", () => {
  const rig = new Rig();
  const route = policy("route", [{ selector: ["route"], requests_per: { minute: 1 } }]);
  rig.publish([route, hourly("global", 1)], { gateway: { global_policies: ["global"] } }, ["route"]);
  rig.ask("a");
  assert.deepEqual(rig.ask("a"), refused("1/0/60", "3600"));
});

test("rate limit: a policy attached twice is evaluated once", () => {
  const rig = new Rig();
  rig.publish(
    [...["consumer", "service", "listener", "global"].map((name) => hourly(name, 9)), hourly("twice", 2)],
    everywhere,
    ["twice", "twice"],
  );
  assert.deepEqual(
    ["a", "a", "a"].map((name) => rig.ask(name, { consumer: "x" }).status),
    [200, 200, 429],
  );
});

test("rate limit: a consumer's policies apply to that consumer, a listener's to that listener", () => {
  const rig = new Rig();
  rig.publish([hourly("consumer", 1), hourly("listener", 1)], {
    consumers: [{ name: "x", policies: ["consumer"] }],
    listeners: [{ name: "inner", address: "", port: 0, policies: ["listener"] }],
  });
  const statuses = (asking: Asking): number[] => [rig.ask("a", asking).status, rig.ask("a", asking).status];
  assert.deepEqual(statuses({}), [200, 200]);
  assert.deepEqual(statuses({ consumer: "y" }), [200, 200]);
  assert.deepEqual(statuses({ consumer: "x" }), [200, 429]);
  assert.deepEqual(statuses({ listener: "inner" }), [200, 429]);
  assert.deepEqual(rig.ask("a"), passed(undefined), "absent when no policy matched");
});

test("rate limit: listener and global policies limit unrouted requests too", () => {
  const rig = new Rig();
  rig.publish([hourly("global", 1)], { gateway: { global_policies: ["global"] } });
  assert.deepEqual(rig.ask("unrouted"), passed("1/0/3600"), "also on a rate-checked 404");
  assert.deepEqual(rig.ask("unrouted"), refused("1/0/3600", "3600"));
  assert.equal(rig.ask("a").status, 200, "unrouted requests have a key of their own");
});

test("rate limit: dry_run evaluates, reports, no 429, no headers from this bundle", () => {
  const rig = new Rig();
  rig.publish([{ ...hourly("p", 1), dry_run: true }], {}, ["p"]);
  assert.deepEqual([rig.ask("a"), rig.ask("a")], [passed(undefined), passed(undefined)]);
  assert.deepEqual(rig.dryRuns, ["a"]);
});

test("rate limit: a reload keeps the buckets of rules that it does not change, and only those", () => {
  const rig = new Rig();
  const rules = [{ selector: ["route" as const], requests_per: { hour: 1 } }];
  rig.publish([policy("p", rules)], {}, ["p"]);
  rig.ask("a");
  rig.publish([policy("other", rules), policy("p", rules)], {}, ["p"]);
  assert.equal(rig.ask("a").status, 429, "the same rule");
  rig.publish([policy("p", [{ selector: ["route"], requests_per: { hour: 2 } }])], {}, ["p"]);
  assert.deepEqual(rig.ask("a"), passed("2/1/1800"), "another limit");
  rig.publish([policy("p", rules)], {}, ["p"]);
  assert.equal(rig.ask("a").status, 200, "what was gone for a generation starts anew");
});

test("rate limit: a document that is compiled and not published changes nothing", () => {
  const rig = new Rig();
  rig.publish([hourly("p", 1)], {}, ["p"]);
  rig.ask("a");
  rig.slice.compile?.({ ...documentOf([]), policies: [] }, compileScope());
  rig.publish([hourly("p", 1)], {}, ["p"]);
  assert.equal(rig.ask("a").status, 429);
});

test("rate limit: routes that no rule can concern have no gate", () => {
  const rig = new Rig();
  rig.publish([hourly("p", 1), policy("empty", [])], { gateway: { global_policies: ["empty"] } });
  assert.deepEqual([rig.hasGate("a"), rig.hasGate("unrouted")], [false, false]);
});

test("rate limit: the same rule twice in a policy is a warning", () => {
  const rule = { selector: ["route" as const], requests_per: { hour: 1 } };
  const document = { ...documentOf([]), policies: [policy("p", [rule, { ...rule, burst: 2 }, rule])] };
  assert.deepEqual(issuesOf(new Rig().slice, document), ["warning duplicate_setting policies.0.rate_limits.2"]);
});

test("rate limit: counts tell of live keys and of those that had to be forgotten", () => {
  const rig = new Rig();
  rig.publish([policy("p", [{ selector: ["ip"], requests_per: { hour: 1 } }])], {}, ["p"]);
  for (let index = 0; index < 100_000; index += 1) {
    rig.ask("a", { ip: `2001:db8:${Math.floor(index / 65_536)}:${(index % 65_536).toString(16)}::1` });
  }
  const { liveKeys, evictions } = rig.slice.counts();
  assert.ok(liveKeys <= 65_536, String(liveKeys));
  assert.equal(liveKeys + evictions, 100_000);
});
