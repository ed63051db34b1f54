import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { after, test } from "node:test";
import { CertificateAuthority } from "@headworks/tls-authority";
import { credentials, temporaryDirectory } from "@headworks/testkit";
import fc from "fast-check";
import { checkDocument, freshFindings, isError } from "#config/check-document.ts";
import { documentSchema, readDocument, type DocumentReading } from "#config/read-document.ts";
import { memberSchema, type Schema } from "#config/schema-shape.ts";
import { allChecks } from "./all-checks.ts";

const directory = await temporaryDirectory();
const { cert, key } = credentials(CertificateAuthority.create());
await writeFile(directory.file("cert"), cert);
await writeFile(directory.file("key"), key);

const { checks, clock, stop } = allChecks();
after(async () => {
  await stop();
  await directory.remove();
});
const environment = { GATEWAY_ADMIN_DEV: "1", KEY: "secret" };

type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
type FieldPath = readonly (string | number)[];

const pointerOf = (fieldPath: FieldPath): string => fieldPath.map((step) => `/${step}`).join("");

const read = (document: Json): DocumentReading => readDocument(JSON.stringify(document), directory.path);

/** `code pointer` of every error. */
function errorsOf(reading: DocumentReading): string[] {
  return checkDocument(reading, { checks, clock, environment }, freshFindings(environment))
    .filter(isError)
    .map(({ code, path }) => `${code} ${path}`);
}

/** A document that nothing is wrong with, and that has most of what one can have. */
const SOUND = {
  gateway: {
    name: "edge",
    max_concurrent_requests: 100,
    load_shed_dry_run: true,
    admission_queue: { enabled: true, max_queue_size: 10 },
    global_policies: ["p0"],
    ssrf_filter: { deny: ["10.0.0.0/8"], allow: ["10.0.0.1"] },
    jwt_providers: [
      { name: "issuer", jwks_url: "https://id.test/keys", issuer: "https://id.test" },
      { name: "other", jwks_url: "https://other.test/keys", issuer: "https://other.test", consumer: "c1" },
    ],
    oidc_providers: [
      { name: "asked", introspection_endpoint: "https://id.test/ask", client_id: "i", client_secret: "${KEY}" },
    ],
  },
  trusted_proxies: ["10.0.0.0/8"],
  authorization: { denied_groups: ["banned"] },
  listeners: [
    { name: "l0", address: "127.0.0.1", port: 8080, policies: ["p1"] },
    { name: "l1", address: "127.0.0.1", port: 8443, protocol: "https", tls: { cert_file: "cert", key_file: "key" } },
    {
      name: "l2",
      address: "::1",
      port: 8443,
      protocol: "https",
      tls: { certificates: [{ server_names: ["a.test"], cert_file: "cert", key_file: "key" }], client_ca_file: "cert" },
    },
  ],
  upstreams: [
    {
      name: "u0",
      endpoints: [
        { address: "h", port: 1, weight: 5 },
        { address: "h", port: 2 },
      ],
      load_balancer: "header_hash",
      hash_header: "x-key",
      health: { consecutive_failures: 3 },
      active_health: { interval_ms: 3000, timeout_ms: 1000, jitter_ms: 100, path: "/up" },
      retries: { backoff_base_ms: 10, backoff_cap_ms: 20, buffer_max_bytes: 100, hedge: { hedge_after_ms: 5 } },
    },
    { name: "u1", protocol: "https", tls: { server_name: "x" }, dns_discovery: { hostname: "h.test", port: 443 } },
    { name: "u2", protocol: "http2", trusted_ca_file: "cert", endpoints: [{ address: "10.0.0.1", port: 443 }] },
  ],
  services: [
    { name: "s0", upstream: "u0", policies: ["p0"] },
    {
      name: "s1",
      split: {
        targets: [
          { upstream: "u1", weight: 0 },
          { upstream: "u2", weight: 1 },
        ],
      },
      sticky: { cookie: "c" },
      authorization: { allowed_consumers: ["c0"] },
    },
  ],
  routes: [
    {
      name: "r0",
      service: "s0",
      match: { path: { type: "prefix", value: "/v0" }, accept: "text/html", headers: { a: "b" } },
      action: { type: "proxy", rewrite: { type: "strip_prefix" } },
      deprecation: { since: "Thu, 01 Jan 2026 00:00:00 GMT", uri: "https://h/" },
      cors: { allowed_origins: ["https://a.test"], allow_credentials: true, allowed_headers: ["x-a"] },
      policies: ["p0", "p1"],
    },
    {
      name: "r1",
      service: "s1",
      match: { path: { type: "regex", value: "^/v1/(.*)$" }, methods: ["GET"], host: "a.test" },
      action: { type: "proxy", rewrite: { type: "regex", pattern: "^/(.*)$", substitution: "/x/$1" } },
      transforms: { request: { headers: { set: { "x-a": "${KEY}" }, rename: { "x-b": "x-c" } } } },
      cache: { ttl_secs: 5, vary: ["x-a"] },
      authorization: { allowed_groups: ["staff"], ip_acl: { allow: ["10.0.0.0/8"] } },
    },
    {
      name: "r2",
      match: { path: { type: "exact", value: "/v2/{id}" } },
      action: { type: "respond", status: 200, headers: { "x-a": "b" }, body: "hello" },
      security_headers: { hsts_max_age_secs: 31_536_000, hsts_include_subdomains: true, hsts_preload: true },
      limits: { max_body_bytes: 5 },
    },
    {
      name: "r3",
      match: { path: { type: "exact", value: "/v3" } },
      action: { type: "redirect", status: 308, scheme: "https", host: "b.test", path: "/" },
      maintenance: { retry_after_secs: 5 },
    },
  ],
  consumers: [
    {
      name: "c0",
      groups: ["staff", "banned"],
      credentials: [
        { type: "api_key", key: "k0", not_before: "2026-01-01T00:00:00Z", not_after: "2027-01-01T00:00:00Z" },
        { type: "jwt", issuer: "https://id.test", audiences: ["a"] },
        { type: "mtls", subject: "c0" },
      ],
      quotas: { daily_requests: 5 },
    },
    {
      name: "c1",
      credentials: [
        { type: "basic", username: "c1", password: "pw" },
        { type: "hmac", key_id: "k", secret: "${KEY}" },
        { type: "jwt", issuer: "https://id.test", audiences: ["b"] },
      ],
      policies: ["p1"],
    },
  ],
  policies: [
    { name: "p0", rate_limits: [{ name: "rl", selector: ["ip", "route"], requests_per: { s: 5 }, burst: 5 }] },
    { name: "p1", callout: { type: "opa", url: "https://opa.test/v1", headers: { "x-a": "b" } } },
  ],
  webhooks: [
    { url: "https://a.test/", events: ["breaker_opened"], backoff_base_ms: 50, backoff_cap_ms: 100 },
    { url: "https://b.test/", events: ["config_published", "breaker_closed"], headers: { "x-a": "b" } },
  ],
  admin: { bind: "127.0.0.1:2019", roles: [{ match: { subject: "a" }, role: "viewer" }] },
  analytics: { traces: { url: "https://traces.test/", sample_ratio: 0.5, buffer: 100, batch_max: 50 } },
} satisfies Json;

interface Flaw {
  readonly fieldPath: FieldPath;
  readonly value: Json;
  /** `code pointer` of each error that it makes, and what else decides whether that is one; `*` for any member. */
  readonly errors: readonly (readonly [error: string, ...dependsOn: string[]])[];
}

/** What only the checks behind the schema find. Each is a member of its own, so that any of them go together. */
const FLAWS: readonly Flaw[] = [
  {
    fieldPath: ["routes", 2, "deprecation"],
    value: { uri: "foo" },
    errors: [
      ["deprecation_empty /routes/2/deprecation"],
      ["uri_without_since /routes/2/deprecation/uri"],
      ["bad_url /routes/2/deprecation/uri"],
    ],
  },
  {
    fieldPath: ["routes", 3, "match", "accept"],
    value: "application/*",
    errors: [["bad_media_type /routes/3/match/accept"]],
  },
  { fieldPath: ["routes", 0, "match", "host"], value: "a b", errors: [["bad_value /routes/0/match/host"]] },
  {
    fieldPath: ["routes", 3, "service"],
    value: "nope",
    errors: [["unknown_reference /routes/3/service", "/services/*/name"]],
  },
  {
    fieldPath: ["routes", 2, "policies"],
    value: ["nope"],
    errors: [["unknown_reference /routes/2/policies/0", "/policies/*/name"]],
  },
  {
    fieldPath: ["listeners", 0, "authorization"],
    value: { allowed_groups: ["nope"], denied_consumers: ["nope"] },
    errors: [
      ["unknown_reference /listeners/0/authorization/allowed_groups/0", "/consumers/*/groups/*"],
      ["unknown_reference /listeners/0/authorization/denied_consumers/0", "/consumers/*/name"],
    ],
  },
  {
    fieldPath: ["services", 2],
    value: { name: "s2", upstream: "nope" },
    errors: [["unknown_reference /services/2/upstream", "/upstreams/*/name"]],
  },
  {
    fieldPath: ["upstreams", 1, "endpoints"],
    value: [{ address: "h:1", port: 1 }],
    errors: [["bad_value /upstreams/1/endpoints/0/address"]],
  },
  {
    fieldPath: ["upstreams", 1, "active_health"],
    value: { interval_ms: 5, timeout_ms: 10, jitter_ms: 0 },
    errors: [
      ["out_of_range /upstreams/1/active_health/interval_ms", "/upstreams/1/active_health/timeout_ms"],
      ["required /upstreams/1/health", "/upstreams/1/active_health"],
    ],
  },
  {
    fieldPath: ["listeners", 0, "tls"],
    value: {},
    errors: [["bad_value /listeners/0/tls", "/listeners/0/protocol"]],
  },
  {
    fieldPath: ["listeners", 3],
    value: { name: "l3", address: "127.0.0.1", port: 8080 },
    errors: [
      ["address_collision /listeners/3/port", "/listeners/0/address", "/listeners/0/port", "/listeners/3/address"],
    ],
  },
  {
    fieldPath: ["routes", 2, "action", "headers", "x y"],
    value: "a",
    errors: [["bad_header /routes/2/action/headers/x y"]],
  },
  {
    fieldPath: ["consumers", 1, "quotas"],
    value: { dry_run: true },
    errors: [["quota_empty /consumers/1/quotas"]],
  },
  {
    fieldPath: ["consumers", 2],
    value: { name: "c2", credentials: [{ type: "api_key", key: "${NOPE}" }, { type: "mtls" }] },
    errors: [
      ["secret_unresolved /consumers/2/credentials/0/key", "/consumers/2/credentials/0/type"],
      ["required /consumers/2/credentials/1", "/consumers/2/credentials/1/type"],
    ],
  },
  {
    fieldPath: ["policies", 2],
    value: { name: "p0" },
    errors: [["duplicate_name /policies/2/name", "/policies/0/name"]],
  },
  {
    fieldPath: ["webhooks", 2],
    value: { url: "/relative", events: [] },
    errors: [["bad_url /webhooks/2/url"], ["empty_events /webhooks/2/events"]],
  },
];

function memberAt(document: Json, fieldPath: FieldPath): Json | undefined {
  let value: Json | undefined = document;
  for (const step of fieldPath) value = (value as Record<string | number, Json> | undefined)?.[step];
  return value;
}

/** The document with another value at a place; undefined for none. All that is around the place is shared with it. */
function changed(document: Json, [step, ...rest]: FieldPath, value: Json | undefined): Json {
  if (step === undefined) return value ?? null;
  const copy = (Array.isArray(document) ? [...document] : { ...(document as object) }) as Record<string | number, Json>;
  if (rest.length > 0) copy[step] = changed(copy[step] ?? null, rest, value);
  else if (value === undefined) delete copy[step];
  else copy[step] = value;
  return copy;
}

interface Member {
  readonly fieldPath: FieldPath;
  readonly schema: Schema;
  readonly isRequired: boolean;
}

/** Every member of a document below its root. */
function membersOf(schema: Schema, value: Json, fieldPath: FieldPath = []): Member[] {
  if (typeof value !== "object" || value === null) return [];
  const steps = Array.isArray(value) ? [...value.keys()] : Object.keys(value);
  return steps.flatMap((step): Member[] => {
    const inner = memberSchema(schema, value, step);
    const own = [...fieldPath, step];
    const member = memberAt(value, [step]);
    if (inner === undefined || member === undefined) return [];
    const branch = schema.anyOf?.find(({ properties }) => properties?.["type"]?.const === memberAt(value, ["type"]));
    const isRequired = Array.isArray(value) || ((branch ?? schema).required ?? []).includes(String(step));
    return [{ fieldPath: own, schema: inner, isRequired }, ...membersOf(inner, member, own)];
  });
}

interface Fault {
  readonly what: string;
  /** The member that is not read. */
  readonly fieldPath: FieldPath;
  /** `code pointer` of its only issue. */
  readonly issue: string;
  readonly document: Json;
}

/** Everything that can be wrong with the structure of one member. */
function faultsOf(document: Json, { fieldPath, schema, isRequired }: Member): Fault[] {
  const pointer = pointerOf(fieldPath);
  const step = fieldPath.at(-1) ?? "";
  const faults: Fault[] = [];
  const plant = (what: string, code: string, value: Json | undefined): void => {
    faults.push({ what, fieldPath, issue: `${code} ${pointer}`, document: changed(document, fieldPath, value) });
  };
  const isWord = schema.const !== undefined || typeof schema.enum?.[0] === "string";
  if (isWord) plant("an unknown word", "bad_value", "wrong");
  else if (schema.enum !== undefined) plant("an unknown number", "bad_value", 999);
  else plant("another type", "type", schema.type === "string" ? 5 : "wrong");
  if (isRequired && typeof step === "string") plant("nothing", "required", undefined);
  if (schema.maximum !== undefined && schema.type === "integer") plant("too much", "out_of_range", schema.maximum + 1);
  if (schema.minLength !== undefined) plant("an empty text", "out_of_range", "");
  if (schema.minItems !== undefined) plant("an empty list", "out_of_range", []);
  if (schema.anyOf !== undefined || schema.properties !== undefined) {
    const surplus = [...fieldPath, "zzzzzzzz"];
    const issue = `unknown_field ${pointerOf(surplus)}`;
    faults.push({ what: "a field too many", fieldPath: surplus, issue, document: changed(document, surplus, 1) });
  }
  if (typeof step === "string" && !isRequired && step.length > 3) {
    const misspelt = [...fieldPath.slice(0, -1), `${step}x`];
    const moved = changed(changed(document, misspelt, memberAt(document, fieldPath) ?? null), fieldPath, undefined);
    faults.push({ what: "another name", fieldPath, issue: `unknown_field ${pointerOf(misspelt)}`, document: moved });
  }
  return faults;
}

/** Whether `path`, in which `*` is any member, is `root` or in it. */
function isAround(root: string, path: string): boolean {
  const steps = path.split("/");
  return root.split("/").every((step, at) => step === steps[at] || steps[at] === "*");
}

/** The document without some of what may be left out. */
function pruned(document: Json, picks: readonly number[]): Json {
  let rest = document;
  for (const pick of picks) {
    const optional = membersOf(documentSchema, rest).filter(
      ({ isRequired, fieldPath }) => !isRequired && fieldPath.length > 1,
    );
    const chosen = optional[pick % optional.length];
    if (chosen === undefined) continue;
    const smaller = changed(rest, chosen.fieldPath, undefined);
    if (errorsOf(read(smaller)).length === 0) rest = smaller;
  }
  return rest;
}

const natural = fc.nat({ max: 1_000_000 });
const scenes = fc.record({
  prunes: fc.array(natural, { maxLength: 6 }),
  flaws: fc.subarray([...FLAWS]),
  member: natural,
  fault: natural,
});

function scene({ prunes, flaws, member, fault }: { prunes: number[]; flaws: Flaw[]; member: number; fault: number }): {
  readonly flawed: Json;
  readonly fault: Fault;
} {
  const flawed = flaws.reduce(
    (document, { fieldPath, value }) => {
      const isThere = memberAt(document, fieldPath.slice(0, -1)) !== undefined;
      return isThere ? changed(document, fieldPath, value) : document;
    },
    pruned(SOUND, prunes),
  );
  const members = membersOf(documentSchema, flawed);
  const faults = faultsOf(flawed, members[member % members.length] as Member);
  return { flawed, fault: faults[fault % faults.length] as Fault };
}

test("the document of these tests has no error, and each flaw has the errors that it names", () => {
  assert.deepEqual(errorsOf(read(SOUND)), []);
  for (const { fieldPath, value, errors } of FLAWS) {
    const found = errorsOf(read(changed(SOUND, fieldPath, value)));
    assert.deepEqual(found.toSorted(), errors.map(([error]) => error).toSorted());
  }
});

const EXAMPLE_BELOW = ["deprecation_empty", "uri_without_since", "bad_url"].map(
  (code) => `${code} /routes/0/deprecation${code === "deprecation_empty" ? "" : "/uri"}`,
);

for (const [what, match, action, ...expected] of [
  [
    "type of its path",
    { path: { type: "prefx", value: "/" } },
    { type: "proxy" },
    "bad_value match/path/type",
    "required service",
  ],
  ["path", {}, { type: "proxy" }, "required match/path", "required service"],
  ["type of its action", { path: { type: "prefix", value: "/" } }, { type: "rspond" }, "bad_value action/type"],
  ["action", { path: { type: "prefix", value: "/" } }, undefined, "required action"],
  [
    "status",
    { path: { type: "exact", value: "/" } },
    { type: "redirect", status: 304, port: 0 },
    "bad_value action/status",
    "out_of_range action/port",
  ],
] as const) {
  test(`a route is checked with all that could be read of it, whatever could not: its ${what}`, () => {
    const route = { name: "a", match: { ...match, accept: "application/*" }, action, deprecation: { uri: "foo" } };
    const errors = errorsOf(readDocument(JSON.stringify({ routes: [route] }), directory.path));
    const own = expected.map((error) => error.replace(" ", " /routes/0/"));
    assert.deepEqual(errors.toSorted(), [...own, "bad_media_type /routes/0/match/accept", ...EXAMPLE_BELOW].toSorted());
  });
}

test("a document whose only fault is structural has exactly that one issue, wherever the fault is", () => {
  for (const member of membersOf(documentSchema, SOUND)) {
    for (const { what, issue, document } of faultsOf(SOUND, member)) {
      assert.deepEqual(errorsOf(read(document)), [issue], `${what} at ${pointerOf(member.fieldPath)}`);
    }
  }
});

test("one structural fault hides no error that does not depend on its member, and makes none up", () => {
  fc.assert(
    fc.property(scenes, (drawn) => {
      const { flawed, fault } = scene(drawn);
      const before = errorsOf(read(flawed));
      const found = errorsOf(read(fault.document));
      const dependsOn = new Map(FLAWS.flatMap(({ errors }) => errors.map(([error, ...others]) => [error, others])));
      const own = pointerOf(fault.fieldPath);
      const mayBeHidden = (error: string): boolean =>
        [error.slice(error.indexOf(" ") + 1), ...(dependsOn.get(error) ?? [])].some((path) => isAround(own, path));
      const where = `${fault.what} at ${own}`;
      const hidden = before.filter((error) => !found.includes(error) && !mayBeHidden(error));
      assert.deepEqual(hidden, [], where);
      assert.deepEqual(
        found.filter((error) => !before.includes(error)),
        before.includes(fault.issue) ? [] : [fault.issue],
        where,
      );
    }),
    { numRuns: 400 },
  );
});

test("no check throws on a document of which something could not be read", () => {
  fc.assert(
    fc.property(scenes, (drawn) => {
      const reading = read(scene(drawn).fault.document);
      for (const document of reading.drafts) {
        // As if it had been read whole: what a check throws is an issue then.
        const errors = errorsOf({ ...reading, document, issues: [], drafts: [document], unread: new Set() });
        assert.ok(!errors.includes("compile_failed "), errors.join("\n"));
      }
    }),
    { numRuns: 100 },
  );
});
