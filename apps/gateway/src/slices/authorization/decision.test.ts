import assert from "node:assert/strict";
import { test } from "node:test";
import type { Authorization } from "@headworks/gateway-contract";
import { networkContains, parseAddress, parseNetwork } from "@headworks/host-patterns";
import fc from "fast-check";
import type { ConsumerIdentity } from "#request/context.ts";
import { objectionTo } from "./decision.ts";
import { RuleBlock, type Level } from "./rule-block.ts";

const LEVELS: readonly Level[] = ["consumer", "route", "service", "listener", "gateway"];

interface Who {
  readonly name?: string;
  readonly groups?: readonly string[];
  readonly claims?: Readonly<Record<string, unknown>>;
  readonly address?: string;
}

function consumerOf({ name, groups = [], claims }: Who): ConsumerIdentity | undefined {
  if (name === undefined) return undefined;
  const base = { name, groups, priority: undefined };
  return claims === undefined ? { ...base, credential: "api_key" } : { ...base, credential: "jwt", claims };
}

/** The status of the refusal; 200 when the request may pass. */
function decided(documents: Partial<Record<Level, Authorization>>, who: Who, withTrials = false): number {
  const blocks = LEVELS.flatMap((level) => {
    const document = documents[level];
    return document === undefined ? [] : [new RuleBlock(level, document)];
  });
  const subject = { consumer: consumerOf(who), address: parseAddress(who.address ?? "192.0.2.1") };
  return objectionTo(subject, blocks, withTrials)?.status ?? 200;
}

const anonymous: Who = {};
const acme: Who = { name: "acme", groups: ["gold", "eu"] };
const token = (claims: Readonly<Record<string, unknown>>): Who => ({ name: "acme", claims });

test("rules of one block", async (t) => {
  const cases: readonly [title: string, block: Authorization, who: Who, status: number][] = [
    ["an allowed consumer passes", { allowed_consumers: ["acme"] }, acme, 200],
    ["a list of allowed consumers is closed", { allowed_consumers: ["zoo"] }, acme, 403],
    ["an empty list is not closed", { allowed_consumers: [], denied_consumers: ["zoo"] }, acme, 200],
    ["deny wins over allow", { allowed_consumers: ["acme"], denied_consumers: ["acme"] }, acme, 403],
    ["one allowed group is enough", { allowed_groups: ["gold", "silver"] }, acme, 200],
    ["a list of allowed groups is closed", { allowed_groups: ["silver"] }, acme, 403],
    ["a consumer without groups is in none", { allowed_groups: ["gold"] }, { name: "zoo" }, 403],
    ["one denied group is enough", { denied_groups: ["eu"] }, acme, 403],
    ["all kinds of rules must be met", { allowed_consumers: ["acme"], allowed_groups: ["silver"] }, acme, 403],
    ["the anonymous are asked who they are", { allowed_consumers: ["acme"] }, anonymous, 401],
    ["the anonymous cannot go round a list of the denied", { denied_consumers: ["acme"] }, anonymous, 401],
    ["the anonymous have no scopes", { required_scopes: ["read"] }, anonymous, 401],
    ["the anonymous have no claims", { required_claims: { tier: "1" } }, anonymous, 401],
    ["scopes are separated by spaces", { required_scopes: ["read", "write"] }, token({ scope: "write read" }), 200],
    ["scopes may be a list", { required_scopes: ["read"] }, token({ scope: ["write", "read"] }), 200],
    ["every scope is required", { required_scopes: ["read", "write"] }, token({ scope: "read" }), 403],
    ["a scope is a whole word", { required_scopes: ["read"] }, token({ scope: "readable" }), 403],
    ["a consumer without a token has no scopes", { required_scopes: ["read"] }, acme, 403],
    ["a scope that is no text is none", { required_scopes: ["7"] }, token({ scope: [7] }), 403],
    ["a claim that is text must be equal", { required_claims: { tier: "gold" } }, token({ tier: "gold" }), 200],
    ["a claim that is a number is compared as text", { required_claims: { tier: "2" } }, token({ tier: 2 }), 200],
    ["letter case of a claim counts", { required_claims: { tier: "gold" } }, token({ tier: "Gold" }), 403],
    ["true is not the text true", { required_claims: { admin: "true" } }, token({ admin: true }), 403],
    ["a list is not its only member", { required_claims: { tier: "gold" } }, token({ tier: ["gold"] }), 403],
    ["a claim must be there", { required_claims: { tier: "gold" } }, token({}), 403],
    ["what all objects have is no claim", { required_claims: { constructor: "x" } }, token({}), 403],
    ["an allowed address passes", { ip_acl: { allow: ["192.0.2.0/24"] } }, anonymous, 200],
    ["allowed addresses close the rest", { ip_acl: { allow: ["198.51.100.0/24"] } }, anonymous, 403],
    ["unless the rest is allowed", { ip_acl: { allow: ["198.51.100.0/24"], default: "allow" } }, anonymous, 200],
    ["a denied address does not pass", { ip_acl: { deny: ["192.0.2.1"] } }, anonymous, 403],
    ["denied addresses leave the rest open", { ip_acl: { deny: ["192.0.2.2"] } }, anonymous, 200],
    ["deny comes before allow", { ip_acl: { deny: ["192.0.2.1"], allow: ["192.0.2.0/24"] } }, anonymous, 403],
    ["the default alone may close", { ip_acl: { default: "deny" } }, acme, 403],
    ["IPv6 has rules too", { ip_acl: { allow: ["2001:db8::/32"] } }, { address: "2001:db8::7" }, 200],
    ["a mapped address is the IPv4 one", { ip_acl: { deny: ["192.0.2.1"] } }, { address: "::ffff:192.0.2.1" }, 403],
    ["what is no address is not let in", { ip_acl: { deny: ["192.0.2.1"] } }, { address: "unknown" }, 403],
    [
      "an address that is not allowed is refused before anybody is asked who they are",
      { allowed_consumers: ["acme"], ip_acl: { allow: ["198.51.100.0/24"] } },
      anonymous,
      403,
    ],
  ];
  for (const [title, block, who, status] of cases) {
    await t.test(title, () => assert.equal(decided({ route: block }, who), status));
  }
});

test("blocks at several levels", async (t) => {
  const cases: readonly [title: string, blocks: Partial<Record<Level, Authorization>>, who: Who, status: number][] = [
    ["no block, no objection", {}, anonymous, 200],
    [
      "the most specific level that says who may pass decides",
      { route: { allowed_consumers: ["acme"] }, gateway: { allowed_consumers: ["zoo"] } },
      acme,
      200,
    ],
    [
      "it decides against the less specific one, too",
      { route: { allowed_consumers: ["zoo"] }, gateway: { allowed_consumers: ["acme"] } },
      acme,
      403,
    ],
    [
      "a consumer's own block comes before the route's",
      { consumer: { allowed_groups: ["gold"] }, route: { allowed_consumers: ["zoo"] } },
      acme,
      200,
    ],
    [
      "a denial at the least specific level wins",
      { route: { allowed_consumers: ["acme"] }, gateway: { denied_consumers: ["acme"] } },
      acme,
      403,
    ],
    [
      "a denied address wins over an allowed consumer",
      { consumer: { allowed_consumers: ["acme"] }, listener: { ip_acl: { deny: ["192.0.2.0/24"] } } },
      acme,
      403,
    ],
    [
      "a block of addresses may admit the anonymous where less specific levels ask who they are",
      { route: { ip_acl: { allow: ["192.0.2.0/24"] } }, gateway: { allowed_consumers: ["acme"] } },
      anonymous,
      200,
    ],
    [
      "a block that only denies opens nothing that is closed below it",
      { route: { denied_consumers: ["zoo"] }, gateway: { allowed_consumers: ["zoo"] } },
      acme,
      403,
    ],
    [
      "a block that only denies addresses opens nothing either",
      { route: { ip_acl: { deny: ["10.0.0.0/8"] } }, gateway: { allowed_consumers: ["acme"] } },
      anonymous,
      401,
    ],
    [
      "a block that only denies consumers asks who it is, though the next admits addresses",
      { route: { denied_consumers: ["zoo"] }, gateway: { ip_acl: { allow: ["192.0.2.0/24"] } } },
      anonymous,
      401,
    ],
    [
      "not being admitted weighs more than not being known",
      { route: { denied_consumers: ["zoo"] }, gateway: { ip_acl: { allow: ["10.0.0.0/8"] } } },
      anonymous,
      403,
    ],
    [
      "a block on trial decides nothing",
      { route: { allowed_consumers: ["zoo"], dry_run: true }, gateway: { allowed_consumers: ["acme"] } },
      acme,
      200,
    ],
    [
      "a block on trial opens nothing",
      { route: { allowed_consumers: ["acme"], dry_run: true }, gateway: { allowed_consumers: ["zoo"] } },
      acme,
      403,
    ],
  ];
  for (const [title, blocks, who, status] of cases) {
    await t.test(title, () => assert.equal(decided(blocks, who), status));
  }
});

test("with trials, blocks on trial count as if they were in force", () => {
  const blocks = { route: { allowed_consumers: ["zoo"], dry_run: true }, gateway: { allowed_consumers: ["acme"] } };
  assert.equal(decided(blocks, acme, true), 403);
  assert.equal(decided(blocks, { name: "zoo" }, true), 200);
  assert.equal(decided(blocks, anonymous, true), 401);
});

/** The rules once more, as one would explain them: sets of whole levels instead of one walk. */
function naive(documents: readonly Authorization[], who: Who): number {
  const { name, groups = [], claims = {} } = who;
  const has = (list: readonly string[] | undefined): boolean => list !== undefined && list.length > 0;
  const address = parseAddress(who.address ?? "192.0.2.1");
  const inAny = (networks: readonly string[] | undefined): boolean =>
    (networks ?? []).some((text) => {
      const network = parseNetwork(text);
      return network !== undefined && address !== undefined && networkContains(network, address);
    });
  const isDenied = (block: Authorization): boolean =>
    inAny(block.ip_acl?.deny) ||
    (name !== undefined && (block.denied_consumers ?? []).includes(name)) ||
    groups.some((group) => (block.denied_groups ?? []).includes(group));
  if (documents.some(isDenied)) return 403;
  const admitsSomebody = (block: Authorization): boolean =>
    has(block.allowed_consumers) ||
    has(block.allowed_groups) ||
    has(block.required_scopes) ||
    Object.keys(block.required_claims ?? {}).length > 0;
  const asksWho = (block: Authorization): boolean =>
    admitsSomebody(block) || has(block.denied_consumers) || has(block.denied_groups);
  const decisive = documents.findIndex(
    (block) => admitsSomebody(block) || has(block.ip_acl?.allow) || block.ip_acl?.default !== undefined,
  );
  const decider = documents[decisive];
  const acl = decider?.ip_acl;
  if (acl !== undefined && !inAny(acl.allow)) {
    if (acl.default === "deny" || (acl.default === undefined && has(acl.allow))) return 403;
  }
  const considered = decisive === -1 ? documents : documents.slice(0, decisive + 1);
  if (name === undefined) return considered.some(asksWho) ? 401 : 200;
  if (decider === undefined) return 200;
  const { scope: granted } = claims;
  const scopes = typeof granted === "string" ? granted.split(" ") : [];
  const isMet =
    (!has(decider.allowed_consumers) || (decider.allowed_consumers ?? []).includes(name)) &&
    (!has(decider.allowed_groups) || groups.some((group) => (decider.allowed_groups ?? []).includes(group))) &&
    (decider.required_scopes ?? []).every((scope) => scopes.includes(scope)) &&
    Object.entries(decider.required_claims ?? {}).every(([claim, value]) => claims[claim] === value);
  return isMet ? 200 : 403;
}

test("the decision is the one that the rules explain, whatever blocks stand at whatever levels", () => {
  const names = fc.uniqueArray(fc.constantFrom("a", "b", "c"), { maxLength: 2 });
  const optional = <T>(values: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
    fc.option(values, { nil: undefined, freq: 2 });
  const networks = fc.uniqueArray(fc.constantFrom("192.0.2.0/25", "192.0.2.128/25", "2001:db8::/32"), { maxLength: 2 });
  const block = fc
    .record({
      allowed_consumers: optional(names),
      denied_consumers: optional(names),
      allowed_groups: optional(names),
      denied_groups: optional(names),
      required_scopes: optional(names),
      required_claims: optional(fc.dictionary(fc.constantFrom("x", "y"), fc.constantFrom("1", "2"), { maxKeys: 2 })),
      ip_acl: optional(
        fc.record({
          allow: optional(networks),
          deny: optional(networks),
          default: optional(fc.constantFrom("allow" as const, "deny" as const)),
        }),
      ),
    })
    // What was left out is left out, as in a document.
    .map((whole) => structuredWithout(whole) as Authorization);
  const who = fc
    .record({
      name: optional(fc.constantFrom("a", "b", "c")),
      groups: names,
      claims: fc.record({ scope: fc.constantFrom("", "a", "a b", "c"), x: fc.constantFrom("1", "2") }),
      address: fc.constantFrom("192.0.2.1", "192.0.2.200", "2001:db8::1", "198.51.100.1"),
    })
    .map(({ name, groups, ...rest }): Who =>
      name === undefined ? { address: rest.address } : { name, groups, ...rest },
    );
  const seen = new Map<number, number>();
  fc.assert(
    fc.property(
      fc.tuple(optional(block), optional(block), optional(block)),
      who,
      ([consumer, route, gateway], each) => {
        const documents = { ...(consumer && { consumer }), ...(route && { route }), ...(gateway && { gateway }) };
        const expected = naive(
          [consumer, route, gateway].filter((one) => one !== undefined),
          each,
        );
        seen.set(expected, (seen.get(expected) ?? 0) + 1);
        assert.equal(decided(documents, each), expected);
      },
    ),
    { numRuns: 3000 },
  );
  for (const status of [200, 401, 403]) assert.ok((seen.get(status) ?? 0) > 100, `${status} came up often enough`);
});

function structuredWithout(value: object): object {
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, each]) => each !== undefined)
      .map(([key, each]: [string, unknown]) => [
        key,
        typeof each === "object" && each !== null && !Array.isArray(each) ? structuredWithout(each) : each,
      ]),
  );
}
