import assert from "node:assert/strict";
import { test } from "node:test";
import { startOrigin } from "@headworks/testkit";
import type { DocumentInput } from "@headworks/gateway-contract";
import { issuesOf } from "./consumers/consumer-rig.ts";
import { serving, startGateway, type TestGateway } from "./gateway-rig.ts";

type RouteInput = NonNullable<DocumentInput["routes"]>[number];
type ConsumerInput = NonNullable<DocumentInput["consumers"]>[number];
type Block = NonNullable<RouteInput["authorization"]>;

const keyed = (name: string, more: Partial<ConsumerInput> = {}): ConsumerInput => ({
  name,
  credentials: [{ type: "api_key", key: `${name}-key` }],
  ...more,
});

const routed = (name: string, authorization?: Block, more: Partial<RouteInput> = {}): RouteInput => ({
  name,
  service: "api",
  match: { path: { type: "prefix", value: `/${name}` } },
  action: { type: "proxy" },
  ...(authorization === undefined ? {} : { authorization }),
  ...more,
});

const CONSUMERS: ConsumerInput[] = [keyed("acme", { groups: ["gold"] }), keyed("zoo", { groups: ["free"] })];

const answered = async (gateway: TestGateway, path: string, ...fields: string[]): Promise<[number, string?]> => {
  const response = await gateway.send({ path, fields });
  if (response.status < 400) return [response.status];
  const { error } = JSON.parse(response.body.toString()) as { error: { code: string; message: string } };
  assert.equal(error.message, error.code, "no detail");
  return [response.status, error.code];
};

const ACME = "X-API-Key: acme-key";
const ZOO = "X-API-Key: zoo-key";

test("rules over a route are asked after it is known who sends the request", async (t) => {
  await using origin = await startOrigin();
  const { upstreams, services } = serving("api", [origin.port]);
  await using gateway = await startGateway({
    upstreams,
    services: [
      ...services,
      {
        name: "guarded",
        upstream: "api",
        authorization: { allowed_groups: ["gold"], ip_acl: { deny: ["192.0.2.66"] } },
      },
    ],
    consumers: CONSUMERS,
    trusted_proxies: ["127.0.0.1"],
    routes: [
      routed("free"),
      routed("gold", { allowed_groups: ["gold"] }),
      routed("near", { ip_acl: { allow: ["192.0.2.0/24", "2001:db8::/32"] } }),
      routed("service", undefined, { service: "guarded" }),
      routed("over", { allowed_consumers: ["zoo"] }, { service: "guarded" }),
      routed(
        "fixed",
        { allowed_groups: ["gold"] },
        {
          action: { type: "respond", status: 200 },
          deprecation: { since: "Tue, 01 Jan 2019 00:00:00 GMT" },
        },
      ),
    ],
  });
  const cases: readonly [title: string, path: string, fields: readonly string[], outcome: [number, string?]][] = [
    ["a route without rules is open", "/free", [], [200]],
    ["a member passes", "/gold", [ACME], [200]],
    ["another consumer is forbidden", "/gold", [ZOO], [403, "forbidden"]],
    ["an anonymous client is asked who it is", "/gold", [], [401, "unauthorized"]],
    ["a bad key is no better than none", "/gold", ["X-API-Key: bad"], [401, "unauthorized"]],
    ["addresses alone may admit the anonymous", "/near", ["X-Forwarded-For: 192.0.2.7"], [200]],
    ["in IPv6 too", "/near", ["X-Forwarded-For: 2001:db8::1"], [200]],
    ["and shut out a known consumer", "/near", [ACME, "X-Forwarded-For: 198.51.100.1"], [403, "forbidden"]],
    [
      "the address is the one the trusted proxy saw",
      "/near",
      ["X-Forwarded-For: 192.0.2.7, 198.51.100.1"],
      [403, "forbidden"],
    ],
    ["an address that is none is not let in", "/near", ["X-Forwarded-For: 192.0.2.7x"], [403, "forbidden"]],
    ["the service's rules hold for its routes", "/service", [ZOO], [403, "forbidden"]],
    ["the route's rules come before the service's", "/over", [ZOO], [200]],
    ["a denial of the service holds all the same", "/over", [ZOO, "X-Forwarded-For: 192.0.2.66"], [403, "forbidden"]],
    ["an answer of the gateway's own is guarded too", "/fixed", [ZOO], [403, "forbidden"]],
    [
      "a forged name identifies no consumer",
      "/gold",
      ["X-Consumer-Name: acme", "X_Consumer_Name: acme"],
      [401, "unauthorized"],
    ],
  ];
  for (const [title, path, fields, outcome] of cases) {
    await t.test(title, async () => {
      const seen = origin.requests.length;
      assert.deepEqual(await answered(gateway, path, ...fields), outcome);
      if (outcome[0] >= 400) assert.equal(origin.requests.length, seen, "the upstream never sees it");
    });
  }
  const refused = await gateway.send({ path: "/fixed", fields: [ZOO] });
  assert.equal(refused.header("deprecation"), undefined, "a short-circuit answer says nothing of the version");
  const asked = await gateway.send({ path: "/gold" });
  assert.equal(asked.header("www-authenticate"), 'ApiKey realm="gateway"');
});

test("what a client says of its address counts only behind a trusted proxy", async () => {
  await using origin = await startOrigin();
  await using gateway = await startGateway({
    ...serving("api", [origin.port]),
    routes: [routed("near", { ip_acl: { allow: ["192.0.2.0/24"] } })],
  });
  for (const field of ["X-Forwarded-For: 192.0.2.7", "X-Real-IP: 192.0.2.7", "Forwarded: for=192.0.2.7"]) {
    assert.deepEqual(await answered(gateway, "/near", field), [403, "forbidden"], field);
  }
});

test("listeners and the gateway have rules of their own, and a consumer's come before all", async () => {
  await using origin = await startOrigin();
  await using gateway = await startGateway({
    ...serving("api", [origin.port]),
    listeners: [
      { name: "public", address: "127.0.0.1", port: 0 },
      { name: "inner", address: "127.0.0.1", port: 0, authorization: { allowed_consumers: ["zoo"] } },
    ],
    gateway: { authorization: { allowed_consumers: ["acme"], denied_groups: ["banned"] } },
    consumers: [
      ...CONSUMERS,
      keyed("boss", { authorization: { ip_acl: { allow: ["127.0.0.0/8"] } } }),
      keyed("out", { groups: ["banned"], authorization: { ip_acl: { allow: ["127.0.0.0/8"] } } }),
    ],
    routes: [routed("any")],
  });
  const statusOf = async (listener: string, name: string): Promise<number> =>
    (await gateway.send({ listener, path: "/any", fields: [`X-API-Key: ${name}-key`] })).status;
  for (const [listener, name, status] of [
    ["public", "acme", 200],
    ["public", "zoo", 403],
    ["inner", "acme", 403],
    ["inner", "zoo", 200],
    ["public", "boss", 200],
    ["inner", "boss", 200],
    ["public", "out", 403],
  ] as const) {
    assert.equal(await statusOf(listener, name), status, `${name} at ${listener}`);
  }
});

test("dry_run reports requests that would be refused, and refuses none", async () => {
  await using origin = await startOrigin();
  await using gateway = await startGateway({
    ...serving("api", [origin.port]),
    consumers: CONSUMERS,
    routes: [routed("trial", { allowed_groups: ["gold"], dry_run: true })],
  });
  for (const fields of [[], [ZOO], [ACME]]) {
    assert.deepEqual(await answered(gateway, "/trial", "X-Request-Id: r-1", ...fields), [200]);
  }
  const lines = gateway.log.filter(({ code }) => code === "policy_dry_run");
  const told = lines.map((line) => [
    line["phase"],
    line["would_be_status"],
    line["route"],
    line["consumer"],
    line["request_id"],
  ]);
  assert.deepEqual(told, [
    ["authz", 401, "trial", "anonymous", "r-1"],
    ["authz", 403, "trial", "zoo", "r-1"],
  ]);
  const metrics = await gateway.send({ path: "/metrics" });
  assert.match(metrics.body.toString(), /^gateway_policy_dry_run_total\{phase="authz",route="trial"\} 2$/m);
});

test("rules about consumers stay shut in a document that knows none", async () => {
  await using origin = await startOrigin();
  await using gateway = await startGateway({
    ...serving("api", [origin.port]),
    routes: [routed("scoped", { required_scopes: ["read"] }), routed("asked", undefined, { auth_required: true })],
  });
  assert.deepEqual(await answered(gateway, "/scoped", ACME), [401, "unauthorized"]);
  assert.deepEqual(await answered(gateway, "/asked", ACME), [401, "unauthorized"]);
});

test("a block without a rule, a list that admits all and unknown names are issues", async (t) => {
  const cases: readonly [title: string, block: Block, code: string, path: string][] = [
    ["nothing at all", {}, "required", ""],
    ["dry_run is no rule", { dry_run: true }, "required", ""],
    ["empty lists are no rules", { allowed_consumers: [], required_claims: {}, ip_acl: { allow: [] } }, "required", ""],
    ["all of IPv4", { ip_acl: { allow: ["10.0.0.0/8", "0.0.0.0/0"] } }, "bad_cidr", "/ip_acl/allow/1"],
    ["all of IPv6", { ip_acl: { allow: ["::/0"] } }, "bad_cidr", "/ip_acl/allow/0"],
    ["all of IPv4, mapped", { ip_acl: { allow: ["::ffff:0:0/96"] } }, "bad_cidr", "/ip_acl/allow/0"],
    ["no network", { ip_acl: { deny: ["10.0.0.0/33"] } }, "bad_cidr", "/ip_acl/deny/0"],
    ["an unknown consumer", { allowed_consumers: ["acme", "acne"] }, "unknown_reference", "/allowed_consumers/1"],
    ["an unknown group", { denied_groups: ["golden"] }, "unknown_reference", "/denied_groups/0"],
  ];
  for (const [title, block, code, path] of cases) {
    await t.test(title, async () => {
      const documentOf = (place: "route" | "consumer" | "listener" | "service" | "gateway"): DocumentInput => ({
        ...serving("api", [1]),
        listeners: [
          { name: "public", address: "127.0.0.1", port: 0, ...(place === "listener" && { authorization: block }) },
        ],
        services: [{ name: "api", upstream: "api", ...(place === "service" && { authorization: block }) }],
        consumers: [keyed("acme", { groups: ["gold"], ...(place === "consumer" && { authorization: block }) })],
        routes: [routed("any", place === "route" ? block : undefined)],
        ...(place === "gateway" && { gateway: { authorization: block } }),
      });
      for (const [place, pointer] of [
        ["route", "/routes/0/authorization"],
        ["consumer", "/consumers/0/authorization"],
        ["listener", "/listeners/0/authorization"],
        ["service", "/services/0/authorization"],
        ["gateway", "/gateway/authorization"],
      ] as const) {
        const found = (await issuesOf(documentOf(place))).filter(({ severity }) => severity === "error");
        assert.deepEqual(
          found.map((issue) => [issue.code, issue.path]),
          [[code, pointer + path]],
          place,
        );
      }
    });
  }
  await t.test("a network in deny may be everything", async () => {
    assert.deepEqual(
      await issuesOf({ routes: [routed("any", { ip_acl: { deny: ["0.0.0.0/0"] } })], ...serving("api", [1]) }),
      [],
    );
  });
});
