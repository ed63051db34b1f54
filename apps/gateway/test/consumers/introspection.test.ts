import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { test } from "node:test";
import { temporaryDirectory, waitUntil } from "@headworks/testkit";
import { CertificateAuthority } from "@headworks/tls-authority";
import { assertNotLogged, keyed, seenValues } from "./consumer-rig.ts";
import { rig, SECRET, START_MS, startEndpoint } from "./introspection-rig.ts";
import { issuerKey, startKeyServer, token as signedToken } from "./token-issuer.ts";

test("introspection: a token is asked about as RFC 7662 says, and its consumer is the one of its issuer", async () => {
  await using r = await rig();
  r.endpoint.responses.set("opaque-1", { active: true, iss: "https://issuer.test", scope: "orders:read orders:write" });
  assert.equal(await r.ask("opaque-1"), 200);
  assert.deepEqual(seenValues(r.origin.requests[0], "x-consumer-name"), ["zoo"]);
  const [question] = r.endpoint.questions;
  assert.deepEqual([question?.token, question?.hint], ["opaque-1", "access_token"]);
  assert.equal(question?.type, "application/x-www-form-urlencoded");
  const credentials = Buffer.from(question?.authorization?.replace("Basic ", "") ?? "", "base64").toString();
  assert.equal(credentials, "gateway+one:s3cret+of+the+%26+client");
  assert.equal(await r.ask("opaque-1", "/scoped"), 200);
  r.endpoint.responses.set("opaque-2", { active: true, scope: "orders:read" });
  assert.equal(await r.ask("opaque-2", "/scoped"), 403);
  assert.equal(await r.ask("opaque-2", "/closed"), 200);
  assertNotLogged(r.gateway, ["opaque-1", SECRET]);
});

test("introspection: every good token may be one consumer's", async () => {
  await using r = await rig({ consumer: "acme" }, { consumers: [keyed("acme", "key-of-acme")] });
  r.endpoint.responses.set("t", { active: true });
  assert.equal(await r.ask("t"), 200);
  assert.deepEqual(seenValues(r.origin.requests[0], "x-consumer-name"), ["acme"]);
});

const REFUSED: readonly (readonly [what: string, response: object])[] = [
  ["not active", { active: false }],
  ["active only in words", { active: "true" }],
  ["over", { active: true, exp: START_MS / 1000 }],
  ["of another issuer", { active: true, iss: "https://other.test" }],
  ["for others", { active: true, aud: ["somebody"] }],
];
for (const [what, response] of REFUSED) {
  test(`introspection: a token that is ${what} is refused on every route`, async () => {
    await using r = await rig({ audience: "orders" });
    r.endpoint.responses.set("t", { aud: "orders", ...response });
    assert.equal(await r.ask("t", "/closed"), 401);
    assert.equal(await r.ask("t", "/open"), 401);
    assert.equal(r.origin.requests.length, 0);
    // What is refused is remembered too.
    assert.equal(r.endpoint.questions.length, 1);
  });
}

test("introspection: an answer is kept for its time, and not longer than the token is good", async () => {
  await using r = await rig({ introspection_cache_ttl_s: 30 });
  r.endpoint.responses.set("long", { active: true });
  r.endpoint.responses.set("short", { active: true, exp: START_MS / 1000 + 5 });
  const asked = async (token: string): Promise<number> => {
    const before = r.endpoint.questions.length;
    await r.ask(token);
    return r.endpoint.questions.length - before;
  };
  assert.deepEqual([await asked("long"), await asked("short")], [1, 1]);
  r.set(4);
  assert.deepEqual([await asked("long"), await asked("short")], [0, 0]);
  r.set(6);
  assert.deepEqual([await asked("long"), await asked("short")], [0, 1]);
  assert.equal(await r.ask("short"), 401);
  // Revoked: from the end of the kept answer on it is refused, and good again ten seconds after somebody says so.
  r.endpoint.responses.delete("long");
  r.set(29);
  assert.equal(await r.ask("long"), 200);
  r.set(31);
  assert.equal(await r.ask("long"), 401);
  r.endpoint.responses.set("long", { active: true });
  r.set(40);
  assert.equal(await r.ask("long"), 401);
  r.set(42);
  assert.equal(await r.ask("long"), 200);
});

const SCOPED: readonly (readonly [what: string, scope: unknown, status: number])[] = [
  ["has them and others", "email openid orders", 200],
  ["lists them", ["orders", "openid"], 200],
  ["lacks one", "openid", 401],
  ["has one that only begins so", "openid orders:write", 401],
  ["says nothing of scopes", undefined, 401],
  ["says something else", 7, 401],
];
for (const [what, scope, status] of SCOPED) {
  test(`introspection: a provider with scopes answers ${status} to a token that ${what}`, async () => {
    await using r = await rig({ scopes: ["openid", "orders"] });
    r.endpoint.responses.set("t", { active: true, ...(scope === undefined ? {} : { scope }) });
    assert.equal(await r.ask("t"), status);
  });
}

test("introspection: fail_open lets requests with unverifiable tokens pass anonymously, without the token", async () => {
  await using r = await rig({ fail_open: true });
  r.endpoint.responses.set("t", 503);
  assert.equal(await r.ask("t", "/open"), 200);
  const [seen] = r.origin.requests;
  assert.deepEqual([seenValues(seen, "authorization"), seenValues(seen, "x-consumer-name")], [[], []]);
  assert.equal(await r.ask("t", "/closed"), 401);
  assert.equal(await r.ask("t", "/scoped"), 401);
  assert.equal(r.gateway.log.filter(({ code }) => code === "authentication_unavailable").length, 1);
  // The issuer rejects the token: that is a reply.
  r.endpoint.responses.delete("t");
  assert.equal(await r.ask("t", "/open"), 401);
});

test("introspection: with several providers only those that gave no answer decide whether requests pass", async () => {
  const dead = { introspection_endpoint: "http://127.0.0.1:9/introspect", client_id: "x", client_secret: "y" };
  const both = async (first: boolean, second: boolean): Promise<number> => {
    await using r = await rig({ fail_open: first }, { oidc_providers: [{ name: "dead", fail_open: second, ...dead }] });
    r.endpoint.responses.set("t", 503);
    return await r.ask("t", "/open");
  };
  assert.equal(await both(true, true), 200);
  assert.equal(await both(true, false), 500);
});

const BROKEN: readonly (readonly [what: string, response: number | string])[] = [
  ["an error", 500],
  ["a refusal of our credentials", 401],
  ["a redirect", 302],
  ["no JSON", "<html>"],
  ["no object", "[true]"],
  ["too much", `{"active":true,"x":"${"y".repeat(70_000)}"}`],
];
for (const [what, response] of BROKEN) {
  test(`introspection: ${what} admits no request: 500 authentication_unavailable, and the next request tries again`, async () => {
    await using r = await rig();
    r.endpoint.responses.set("t", response);
    assert.equal(await r.ask("t"), 500);
    assert.equal(r.origin.requests.length, 0);
    r.endpoint.responses.set("t", { active: true });
    assert.equal(await r.ask("t"), 200);
    const lines = r.gateway.log.filter(({ code }) => code === "introspection_failed");
    assert.equal(lines.length, 1);
    assertNotLogged(r.gateway, [SECRET]);
  });
}

test("introspection: an unreachable endpoint admits no request", async () => {
  await using r = await rig({ introspection_endpoint: "http://127.0.0.1:9/introspect" });
  assert.equal(await r.ask("t"), 500);
  assert.equal(await r.ask("t", "/open"), 500);
  // Others are served.
  assert.equal((await r.gateway.send({ path: "/closed", fields: ["X-API-Key: key-of-acme"] })).status, 200);
});

test("introspection: requests with one token share a question, and questions at a time are bounded", async () => {
  await using r = await rig();
  const open = Promise.withResolvers<void>();
  r.endpoint.gate = open.promise;
  r.endpoint.responses.set("same", { active: true });
  const same = Promise.all(Array.from({ length: 20 }, async () => await r.ask("same")));
  await waitUntil(() => r.endpoint.questions.length === 1);
  const statuses: number[] = [];
  const asking = async (token: string): Promise<void> => void statuses.push(await r.ask(token));
  const others = Promise.all(Array.from({ length: 100 }, async (_, at) => await asking(`made-up-${at}`)));
  await waitUntil(() => r.endpoint.questions.length === 64 && statuses.length === 37);
  open.resolve();
  assert.deepEqual(new Set(await same), new Set([200]));
  await others;
  // 63 beside the one before them; the rest is told to come again, and nobody is let in.
  assert.equal(statuses.filter((status) => status === 401).length, 63);
  assert.equal(statuses.filter((status) => status === 500).length, 37);
  assert.equal(r.endpoint.questions.length, 64);
});

test("introspection: what is no bearer token is not asked about", async () => {
  await using r = await rig();
  for (const odd of ["a b", 'a"b', "ä", "a".repeat(16_385)]) assert.equal(await r.ask(odd), 401, odd.slice(0, 9));
  assert.deepEqual(r.endpoint.questions, []);
});

test("introspection: the egress filter holds for it", async () => {
  await using r = await rig({}, { gateway: { ssrf_filter: { deny: ["127.0.0.0/8"] } } });
  r.endpoint.responses.set("t", { active: true });
  assert.equal(await r.ask("t"), 500);
  assert.deepEqual(r.endpoint.questions, []);
});

test("introspection: tokens whose issuer has published keys are verified here and never asked about", async () => {
  const key = await issuerKey("k1");
  await using keys = await startKeyServer([key.jwk]);
  const jwks_url = `http://127.0.0.1:${keys.port}/keys`;
  await using r = await rig(
    {},
    { gateway: { jwt_providers: [{ name: "keys", jwks_url, issuer: "https://issuer.test" }] } },
  );
  assert.equal(await r.ask(await signedToken(key, START_MS / 1000)), 200);
  const forged = await signedToken(await issuerKey("k1"), START_MS / 1000);
  assert.equal(await r.ask(forged), 401);
  assert.deepEqual(r.endpoint.questions, []);
  const foreign = await signedToken(key, START_MS / 1000, { iss: "https://elsewhere.test" });
  r.endpoint.responses.set(foreign, { active: true });
  assert.equal(await r.ask(foreign), 200);
  assert.equal(r.endpoint.questions.length, 1);
});

test("introspection: a token that keys for any issuer do not verify is asked about", async () => {
  const key = await issuerKey("k1");
  await using keys = await startKeyServer([key.jwk]);
  const jwks_url = `http://127.0.0.1:${keys.port}/keys`;
  await using r = await rig({}, { gateway: { jwt_providers: [{ name: "keys", jwks_url }] } });
  assert.equal(await r.ask(await signedToken(key, START_MS / 1000)), 200);
  assert.deepEqual(r.endpoint.questions, []);
  const foreign = await signedToken(await issuerKey("k2"), START_MS / 1000);
  r.endpoint.responses.set(foreign, { active: true });
  assert.equal(await r.ask(foreign), 200);
  assert.equal(await r.ask(await signedToken(await issuerKey("k3"), START_MS / 1000)), 401);
  assert.equal(r.endpoint.questions.length, 2);
});

test("introspection: over https the endpoint must prove who it is, by roots of its own where they are given", async () => {
  await using directory = await temporaryDirectory();
  const authority = CertificateAuthority.create();
  const trusted_ca_file = directory.file("roots.pem");
  await writeFile(trusted_ca_file, authority.certificatePem);
  await using endpoint = await startEndpoint({ tls: { authority, names: { dns: ["localhost"], ip: ["127.0.0.1"] } } });
  endpoint.responses.set("t", { active: true });
  const introspection_endpoint = `https://localhost:${endpoint.port}/introspect`;
  await using trusting = await rig({ introspection_endpoint, trusted_ca_file });
  assert.equal(await trusting.ask("t"), 200);
  await using distrusting = await rig({ introspection_endpoint });
  assert.equal(await distrusting.ask("t"), 500);
  assert.equal(endpoint.questions.length, 1);
});
