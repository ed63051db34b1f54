import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { test } from "node:test";
import { Secret } from "@headworks/contract-kit";
import type { ConfigDocument, Consumer, Route } from "@headworks/gateway-contract";
import { FakeClock } from "@headworks/testkit";
import { CertificateAuthority } from "@headworks/tls-authority";
import fc from "fast-check";
import { pino } from "pino";
import { EgressDialer } from "#egress/egress-dialer.ts";
import { type Gate, RequestContext, type Verdict } from "#request/context.ts";
import { TrustedProxies } from "#request/forwarding-rules.ts";
import type { CompileScope } from "#slice.ts";
import { createConsumers } from "./consumers.slice.ts";

const log = pino({ level: "silent" });
const clock = new FakeClock();
const authority = CertificateAuthority.create();
const certificate = new X509Certificate(
  authority.issueLeaf({ dns: ["client.test"] }, { purpose: "client" }).certificatePem,
);
const stranger = new X509Certificate(authority.issueLeaf({ dns: ["else.test"] }, { purpose: "client" }).certificatePem);

const KEYED: Consumer = { name: "keyed", priority: 9, credentials: [{ type: "api_key", key: "good" }] };
const CERTIFIED: Consumer = {
  name: "certified",
  groups: ["machines"],
  credentials: [{ type: "mtls", fingerprint: certificate.fingerprint256 }],
};

const route = (name: string, isClosed: boolean): Route => ({
  name,
  match: { path: { type: "prefix", value: "/" } },
  action: { type: "respond", status: 200 },
  ...(isClosed ? { auth_required: true } : {}),
});

function documentOf(...consumers: Consumer[]): ConfigDocument {
  return {
    gateway: {},
    listeners: [],
    upstreams: [],
    services: [],
    routes: [],
    consumers,
    policies: [],
    webhooks: [],
    admin: undefined,
    analytics: undefined,
  };
}

function gateOf(document: ConfigDocument, isClosed = false): Gate | undefined {
  const scope: CompileScope = {
    generation: 1,
    clock,
    log,
    secret: (text) => new Secret(text),
    readFile: () => Buffer.alloc(0),
  };
  const slice = createConsumers({ dialer: new EgressDialer({ log }), clock, log });
  return slice.compile?.(document, scope).gateFor?.(route("any", isClosed));
}

function requestOf(document: ConfigDocument, fields: string[], shown?: X509Certificate): RequestContext {
  return new RequestContext({
    generation: {
      number: 1,
      contentHash: 1,
      document,
      routes: { resolve: () => false },
      routeList: [],
      trustedProxies: new TrustedProxies([]),
      unroutedGates: new Map(),
    },
    listener: { name: "main", port: 443, isSecure: true },
    peer: { address: "127.0.0.1", port: 1, ...(shown === undefined ? {} : { certificate: shown }) },
    startedMs: 0,
    version: "1.1",
    method: "GET",
    target: "/",
    authority: "gateway.test",
    fields,
    framing: { kind: "none" },
  });
}

function codeOf(verdict: Verdict | Promise<Verdict> | undefined): string | undefined {
  assert.ok(!(verdict instanceof Promise), "nothing is waited for");
  return verdict !== undefined && "code" in verdict ? verdict.code : undefined;
}

test("a document without consumers and providers has no gate, except on routes with auth_required", () => {
  assert.equal(gateOf(documentOf()), undefined);
  assert.notEqual(gateOf(documentOf(), true), undefined);
  assert.notEqual(gateOf(documentOf(KEYED)), undefined);
});

test("a certificate identifies the consumer if no field does", () => {
  const document = documentOf(KEYED, CERTIFIED);
  const cases: readonly [
    title: string,
    fields: string[],
    shown: X509Certificate | undefined,
    isClosed: boolean,
    outcome: [code: string | undefined, consumer: string | undefined],
  ][] = [
    ["a certificate alone", [], certificate, true, [undefined, "certified"]],
    ["a key beside it", ["X-API-Key", "good"], certificate, true, [undefined, "keyed"]],
    ["a bad key beside it", ["X-API-Key", "bad"], certificate, false, ["unauthorized", undefined]],
    [
      "a field that is no credential here",
      ["Authorization", "Basic YTpi"],
      certificate,
      true,
      [undefined, "certified"],
    ],
    ["a certificate of no consumer", [], stranger, false, ["unauthorized", undefined]],
    ["a key, and a certificate of no consumer", ["X-API-Key", "good"], stranger, true, [undefined, "keyed"]],
    ["neither, where none is asked for", [], undefined, false, [undefined, undefined]],
    ["neither, where one is", [], undefined, true, ["unauthorized", undefined]],
  ];
  for (const [title, fields, shown, isClosed, outcome] of cases) {
    const request = requestOf(document, fields, shown);
    const code = codeOf(gateOf(document, isClosed)?.check(request));
    assert.deepEqual([code, request.consumer?.name], outcome, title);
  }
});

test("a certificate is ignored if no consumer has one", () => {
  const document = documentOf(KEYED);
  const request = requestOf(document, [], certificate);
  assert.equal(codeOf(gateOf(document)?.check(request)), undefined);
  assert.equal(request.consumer, undefined);
});

test("the request learns the consumer's name, groups and priority, and how it proved itself", () => {
  const document = documentOf(KEYED, CERTIFIED);
  const byKey = requestOf(document, ["X-API-Key", "good"]);
  assert.equal(codeOf(gateOf(document)?.check(byKey)), undefined);
  assert.deepEqual(byKey.consumer, { name: "keyed", groups: [], priority: 9, credential: "api_key" });
  assert.deepEqual([...(byKey.credentialFields ?? [])], ["x-api-key"]);
  const byCertificate = requestOf(document, [], certificate);
  assert.equal(codeOf(gateOf(document)?.check(byCertificate)), undefined);
  assert.deepEqual(byCertificate.consumer, {
    name: "certified",
    groups: ["machines"],
    priority: undefined,
    credential: "mtls",
  });
  assert.equal(byCertificate.credentialFields, undefined);
});

test("whatever a client sends as credentials, the gate neither throws nor lets it in", async () => {
  const everything: Consumer = {
    name: "everything",
    credentials: [
      { type: "api_key", key: "a-long-enough-key" },
      { type: "basic", username: "ann", password: "a-long-enough-password" },
      { type: "hmac", key_id: "key-1", secret: "a-long-enough-secret" },
      { type: "jwt", issuer: "https://issuer.test" },
    ],
  };
  // Nothing listens there, so keys cannot be fetched.
  const provider = { name: "idp", jwks_url: "http://127.0.0.1:1/keys", issuer: "https://issuer.test" };
  const document: ConfigDocument = { ...documentOf(everything, CERTIFIED), gateway: { jwt_providers: [provider] } };
  const gate = gateOf(document, true);
  const json = fc.json().map((text) => Buffer.from(text).toString("base64url"));
  const head = fc
    .record({ alg: fc.constantFrom("none", "HS256", "RS256", "ES256", "x"), kid: fc.oneof(fc.string(), fc.integer()) })
    .map((value) => Buffer.from(JSON.stringify(value)).toString("base64url"));
  const token = fc.tuple(fc.oneof(head, json), json, fc.base64String()).map((parts) => parts.join("."));
  const octets = fc.string({ unit: fc.integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code)) });
  const authorization = fc
    .tuple(
      fc.constantFrom("Basic", "basic", "Bearer", "BEARER", "", "Digest"),
      fc.constantFrom(" ", "", "  ", "\t"),
      fc.oneof(token, octets, fc.base64String()),
    )
    .map((parts) => parts.join(""));
  const signing = fc
    .constantFrom("Key-Id", "Timestamp", "Nonce", "Body-Sha256", "Signature")
    .map((name) => `X-Gateway-${name}`);
  const hex = fc.string({ unit: fc.constantFrom("0", "5", "a", "f"), minLength: 64, maxLength: 64 });
  const field = fc.oneof(
    fc.tuple(fc.constant("X-API-Key"), octets),
    fc.tuple(fc.constant("Authorization"), authorization),
    fc.tuple(signing, fc.oneof(octets, hex, fc.constantFrom("key-1", "0", "n".repeat(16)))),
    fc.tuple(octets, octets),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(field, { maxLength: 8 }), async (fields) => {
      const request = requestOf(document, fields.flat());
      const verdict = await gate?.check(request);
      assert.ok(verdict !== undefined && "code" in verdict);
      assert.ok(verdict.code === "unauthorized" || verdict.code === "authentication_unavailable");
      assert.equal(request.consumer, undefined);
    }),
    { numRuns: 2000 },
  );
});
