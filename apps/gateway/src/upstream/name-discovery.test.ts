import assert from "node:assert/strict";
import type { RecordWithTtl } from "node:dns";
import { test, type TestContext } from "node:test";
import type { Upstream } from "@headworks/gateway-contract";
import { pino } from "pino";
import { NameDiscovery, type NameResolver } from "./name-discovery.ts";
import { UpstreamRegistry } from "./upstream-registry.ts";

type Discovery = NonNullable<Upstream["dns_discovery"]>;

/** DNS records; `10.0.0.1 5` has a TTL of five seconds, without one it is an hour. */
const recordsOf = (addresses: readonly string[]): RecordWithTtl[] =>
  addresses.map((text) => {
    const [address = "", ttl = "3600"] = text.split(" ");
    return { address, ttl: Number(ttl) };
  });

/** Resolves a name to the current value in `responses`; an Error is a failed lookup. */
function rig(context: TestContext, discovery: Discovery, responses: Record<string, unknown>) {
  const asked: string[] = [];
  const log: Record<string, unknown>[] = [];
  const ask = async (kind: string, name: string): Promise<never> => {
    asked.push(`${kind} ${name}`);
    await Promise.resolve();
    const response = responses[name];
    if (response instanceof Error) throw response;
    return response as never;
  };
  const resolver: NameResolver = {
    resolve4: async (name) => recordsOf(await ask("A", name)),
    resolve6: async (name) => recordsOf(await ask("AAAA", name)),
    resolveSrv: async (name) => await ask("SRV", name),
  };
  const registry = new UpstreamRegistry({ nowMs: () => performance.now(), emit: () => undefined });
  let changes = 0;
  const names = new NameDiscovery({
    log: pino({ level: "warn", base: null }, { write: (line) => void log.push(JSON.parse(line) as never) }),
    changed: () => (changes += 1),
    resolver,
  });
  context.mock.timers.enable({ apis: ["setTimeout"] });
  context.after(() => names.stop());
  const publish = (next: Discovery): void => {
    registry.published([{ name: "u", dns_discovery: next }]);
    names.follow(registry.all);
  };
  publish(discovery);
  return {
    asked,
    log,
    names,
    publish,
    changes: () => changes,
    keys: () => registry.get("u")?.endpoints.map(({ key, weight }) => (weight === 1 ? key : `${key} x${weight}`)) ?? [],
    settled: async () => {
      for (let turn = 0; turn < 20; turn++) await Promise.resolve();
    },
    refresh: (ms: number) => context.mock.timers.tick(ms),
  };
}

test("dns_discovery: addresses become endpoints, are resolved again after the interval, and their order does not matter", async (context) => {
  const responses: Record<string, unknown> = { "svc.test": ["10.0.0.2", "10.0.0.1"] };
  const { keys, settled, refresh, asked, changes } = rig(context, { hostname: "svc.test", port: 8080 }, responses);
  await settled();
  assert.deepEqual(keys(), ["10.0.0.1:8080", "10.0.0.2:8080"]);
  responses["svc.test"] = ["10.0.0.1", "10.0.0.2"];
  refresh(33_000);
  await settled();
  assert.deepEqual([asked, changes()], [["A svc.test", "A svc.test"], 1]);
  responses["svc.test"] = ["10.0.0.3"];
  refresh(29_000);
  await settled();
  assert.equal(asked.length, 2, "not before the interval is over");
  refresh(4000);
  await settled();
  assert.deepEqual([keys(), changes()], [["10.0.0.3:8080"], 2]);
});

test("dns_discovery: a TTL below the interval applies, down to a second", async (context) => {
  const responses: Record<string, unknown> = { "svc.test": ["10.0.0.1 5", "10.0.0.2 60"] };
  const { keys, settled, refresh, asked } = rig(context, { hostname: "svc.test", port: 80 }, responses);
  await settled();
  responses["svc.test"] = ["10.0.0.3 0"];
  refresh(4900);
  await settled();
  assert.equal(asked.length, 1);
  refresh(700);
  await settled();
  assert.deepEqual([asked.length, keys()], [2, ["10.0.0.3:80"]]);
  refresh(900);
  await settled();
  assert.equal(asked.length, 2);
  refresh(300);
  await settled();
  assert.equal(asked.length, 3);
});

test("dns_discovery: before the first result, not every upstream has endpoints", async (context) => {
  const responses: Record<string, unknown> = { "svc.test": new Error("queryA ENOTFOUND svc.test") };
  const { settled, refresh, names } = rig(context, { hostname: "svc.test", port: 80 }, responses);
  assert.equal(names.hasFoundAll, false);
  await settled();
  assert.equal(names.hasFoundAll, false);
  responses["svc.test"] = ["10.0.0.1"];
  refresh(33_000);
  await settled();
  assert.equal(names.hasFoundAll, true);
  responses["svc.test"] = new Error("queryA ETIMEOUT svc.test");
  refresh(33_000);
  await settled();
  assert.equal(names.hasFoundAll, true, "the last ones stay");
});

test("dns_discovery: AAAA gives endpoints of IPv6", async (context) => {
  const { keys, settled } = rig(
    context,
    { hostname: "svc.test", port: 80, record_type: "AAAA" },
    { "svc.test": ["::1"] },
  );
  await settled();
  assert.deepEqual(keys(), ["[::1]:80"]);
});

test("dns_discovery: SRV takes the records of the lowest priority, with their ports and weights", async (context) => {
  const { keys, settled } = rig(
    context,
    { hostname: "_http._tcp.test", port: 1, record_type: "SRV" },
    {
      "_http._tcp.test": [
        { name: "b.test", port: 8002, priority: 10, weight: 5 },
        { name: "backup.test", port: 8003, priority: 20, weight: 100 },
        { name: "a.test", port: 8001, priority: 10, weight: 0 },
      ],
    },
  );
  await settled();
  assert.deepEqual(keys(), ["a.test:8001", "b.test:8002 x5"]);
});

for (const [what, response] of [
  ["fails", new Error("queryA ETIMEOUT svc.test")],
  ["finds fewer than min_endpoints", ["10.0.0.9"]],
  ["finds nothing", []],
] as const) {
  for (const failOpen of [true, false]) {
    test(`dns_discovery: a lookup that ${what} ${failOpen ? "keeps what was known" : "leaves none with fail_open: false"}, and logs it`, async (context) => {
      const responses: Record<string, unknown> = { "svc.test": ["10.0.0.1", "10.0.0.2"] };
      const discovery = { hostname: "svc.test", port: 80, min_endpoints: 2, fail_open: failOpen };
      const { keys, settled, refresh, log } = rig(context, discovery, responses);
      await settled();
      responses["svc.test"] = response;
      refresh(33_000);
      await settled();
      assert.deepEqual(keys(), failOpen ? ["10.0.0.1:80", "10.0.0.2:80"] : []);
      assert.deepEqual([log[0]?.["code"], log[0]?.["upstream"]], ["name_discovery_failed", "u"]);
      responses["svc.test"] = ["10.0.0.1", "10.0.0.2"];
      refresh(33_000);
      await settled();
      assert.equal(keys().length, 2);
    });
  }
}

test("dns_discovery: an unrelated reload does not resolve again, another name does", async (context) => {
  const responses = { "svc.test": ["10.0.0.1"], "other.test": ["10.0.0.2"] };
  const { keys, settled, publish, asked, names, refresh } = rig(context, { hostname: "svc.test", port: 80 }, responses);
  await settled();
  publish({ hostname: "svc.test", port: 80 });
  await settled();
  assert.deepEqual([asked.length, keys()], [1, ["10.0.0.1:80"]]);
  publish({ hostname: "other.test", port: 80 });
  await settled();
  assert.deepEqual(keys(), ["10.0.0.2:80"]);
  names.stop();
  refresh(1_000_000);
  await settled();
  assert.equal(asked.length, 2);
});

test("dns_discovery: a result after the stop is ignored", async (context) => {
  const late = Promise.withResolvers<string[]>();
  const { keys, settled, names } = rig(context, { hostname: "svc.test", port: 80 }, { "svc.test": late.promise });
  names.stop();
  late.resolve(["10.0.0.1"]);
  await settled();
  assert.deepEqual(keys(), []);
});

test("dns_discovery: a name with thousands of records yields a bounded number of endpoints", async (context) => {
  const many = Array.from({ length: 5000 }, (_, at) => `10.1.${at >> 8}.${at & 255}`);
  const { keys, settled } = rig(context, { hostname: "svc.test", port: 80 }, { "svc.test": many });
  await settled();
  assert.equal(keys().length, 1000);
});
