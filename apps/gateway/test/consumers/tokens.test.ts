import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";
import type { DocumentInput } from "@headworks/gateway-contract";
import { startOrigin, temporaryDirectory, waitUntil, type RawResponse } from "@headworks/testkit";
import { writeFile } from "node:fs/promises";
import type { Clock } from "#slice.ts";
import { serving, startGateway, type TestGateway } from "../gateway-rig.ts";
import { assertNotLogged, keyed, OPEN_AND_CLOSED, proxied, seenValues } from "./consumer-rig.ts";
import {
  issuerKey,
  startKeyServer,
  token,
  type IssuerKey,
  type KeyServer,
  type KeyServerState,
} from "./token-issuer.ts";

const NOW_S = 1_780_000_000;
const ISSUER = "https://issuer.test";

type Provider = NonNullable<NonNullable<DocumentInput["jwt_providers"]>[number]>;

/** Both clocks of a gateway, moved together. */
class MovedClock implements Clock {
  #elapsedMs = 0;

  now(): number {
    return NOW_S * 1000 + this.#elapsedMs;
  }

  monotonic(): number {
    return this.#elapsedMs;
  }

  pass(seconds: number): void {
    this.#elapsedMs += seconds * 1000;
  }
}

const provider = (server: KeyServer, more: Partial<Provider> = {}): Provider => ({
  name: "idp",
  jwks_url: `${server.url}/keys`,
  issuer: ISSUER,
  ...more,
});

const documentOf = (
  port: number,
  providers: readonly Provider[],
  more: Partial<DocumentInput> = {},
): DocumentInput => ({
  ...serving("api", [port]),
  jwt_providers: [...providers],
  consumers: [
    { name: "acme", groups: ["gold"], credentials: [{ type: "jwt", issuer: ISSUER, audiences: ["acme-app"] }] },
    { name: "zoo", credentials: [{ type: "jwt", issuer: ISSUER }] },
  ],
  routes: OPEN_AND_CLOSED,
  ...more,
});

const bearer = (text: string): readonly string[] => [`Authorization: Bearer ${text}`];

async function sent(gateway: TestGateway, text: string, path = "/closed"): Promise<RawResponse> {
  return await gateway.send({ path, fields: bearer(text) });
}

function base64url(value: unknown): string {
  return Buffer.from(typeof value === "string" ? value : JSON.stringify(value)).toString("base64url");
}

test("authentication of a request by its token", async (t) => {
  const ec = await issuerKey("ec");
  const rsa = await issuerKey("rsa", "RS256");
  const larger = await issuerKey("larger", "ES384");
  const stranger = await issuerKey("ec");
  await using server = await startKeyServer([ec.jwk, rsa.jwk, larger.jwk]);
  await using origin = await startOrigin();
  await using gateway = await startGateway(documentOf(origin.port, [provider(server)]), { clock: new MovedClock() });
  const good = await token(ec, NOW_S);
  const claims = { iss: ISSUER, sub: "x", exp: NOW_S + 300 };
  const [head = "", body = "", signature = ""] = good.split(".");
  const forged = `${base64url({ alg: "HS256", kid: "ec" })}.${base64url(claims)}`;
  const asSecret = createHmac("sha256", JSON.stringify(ec.jwk)).update(forged).digest("base64url");
  const cases: readonly [title: string, text: string, status: number, consumer?: string][] = [
    ["a good token is its consumer's", good, 200, "zoo"],
    ["who names an audience comes first", await token(ec, NOW_S, { aud: "acme-app" }), 200, "acme"],
    ["one of several audiences is enough", await token(ec, NOW_S, { aud: ["other", "acme-app"] }), 200, "acme"],
    ["another audience is another consumer's", await token(ec, NOW_S, { aud: "other" }), 200, "zoo"],
    ["RSA signs too", await token(rsa, NOW_S), 200, "zoo"],
    [
      "a token without a key id is tried with the keys that fit",
      await token(ec, NOW_S, {}, { kid: undefined }),
      200,
      "zoo",
    ],
    ["a stranger's key of the same id is refused", await token(stranger, NOW_S), 401],
    ["a token that has ended is refused", await token(ec, NOW_S - 400), 401],
    ["half a minute after its end it is let through", await token(ec, NOW_S - 329), 200, "zoo"],
    ["a moment later it is not", await token(ec, NOW_S - 330), 401],
    ["a token that begins later is refused", await token(ec, NOW_S, { nbf: NOW_S + 60 }), 401],
    ["half a minute is not later", await token(ec, NOW_S, { nbf: NOW_S + 30 }), 200, "zoo"],
    ["a token without an end is refused", await token(ec, NOW_S, { exp: undefined }), 401],
    ["an end that is no number is refused", await token(ec, NOW_S, { exp: "later" as never }), 401],
    ["another issuer is refused", await token(ec, NOW_S, { iss: "https://other.test" }), 401],
    ["no issuer is refused", await token(ec, NOW_S, { iss: undefined }), 401],
    ["an unsigned token is refused", `${base64url({ alg: "none" })}.${base64url(claims)}.`, 401],
    ["the public key is no shared secret", `${forged}.${asSecret}`, 401],
    ["an algorithm that is not allowed is refused, though the key is the issuer's", await token(larger, NOW_S), 401],
    ["another signature is refused", `${head}.${body}.${signature.replace(/^./, (c) => (c === "A" ? "B" : "A"))}`, 401],
    ["no signature is refused", `${head}.${body}.`, 401],
    ["other claims are refused", `${head}.${base64url({ ...claims, sub: "y" })}.${signature}`, 401],
    [
      "a critical extension is refused",
      `${base64url({ alg: "ES256", kid: "ec", crit: ["x"], x: 1 })}.${body}.${signature}`,
      401,
    ],
    ["text is no token", "token", 401],
    ["dots are no token", "..", 401],
    ["an empty token is no token", "", 401],
    ["a token in spaces is no token", `${good} ${good}`, 401],
    ["what has no end is no token", "a".repeat(20_000).replace(/(.{50})/g, "$1."), 401],
    [
      "a name of the object prototype is no algorithm",
      `${base64url({ alg: "constructor" })}.${body}.${signature}`,
      401,
    ],
  ];
  for (const [title, text, status, consumer] of cases) {
    await t.test(title, async () => {
      const seen = origin.requests.length;
      const response = await sent(gateway, text, status === 401 ? "/open" : "/closed");
      assert.equal(response.status, status);
      if (status === 401) {
        assert.equal(response.header("www-authenticate"), 'Bearer realm="gateway"');
        assert.equal(origin.requests.length, seen, "the upstream never sees it");
        return;
      }
      const request = origin.requests.at(-1);
      assert.deepEqual(seenValues(request, "x-consumer-name"), [consumer]);
      assert.deepEqual(seenValues(request, "authorization"), [`Bearer ${text}`], "upstreams may want its claims");
    });
  }
  await t.test("two lines are refused, both good", async () => {
    assert.equal((await gateway.send({ path: "/open", fields: [...bearer(good), ...bearer(good)] })).status, 401);
  });
  await t.test("other schemes are the upstream's business", async () => {
    assert.equal((await gateway.send({ path: "/open", fields: ["Authorization: Basic YTpi"] })).status, 200);
  });
  assert.ok(server.fetches() <= 2, "keys are fetched once, and not for every stranger");
  assertNotLogged(gateway, [good, signature]);
});

test("a token that is good is verified once, and not believed when it has ended", async () => {
  const key = await issuerKey("k");
  await using server = await startKeyServer([key.jwk]);
  await using origin = await startOrigin();
  const clock = new MovedClock();
  await using gateway = await startGateway(documentOf(origin.port, [provider(server, { leeway_secs: 0 })]), { clock });
  const text = await token(key, NOW_S, { exp: NOW_S + 30 });
  for (const status of [200, 200, 200]) assert.equal((await sent(gateway, text)).status, status);
  clock.pass(29);
  assert.equal((await sent(gateway, text)).status, 200);
  clock.pass(1);
  assert.equal((await sent(gateway, text)).status, 401);
  assert.equal(server.fetches(), 1);
});

test("what a provider asks for: audience, algorithms, and a consumer for all its tokens", async () => {
  const key = await issuerKey("k", "ES384");
  await using server = await startKeyServer([key.jwk]);
  await using origin = await startOrigin();
  const demands = { audience: "this-api", algorithms: ["ES384"], consumer: "everybody" };
  await using gateway = await startGateway(
    documentOf(origin.port, [provider(server, demands)], { consumers: [{ name: "everybody" }] }),
    { clock: new MovedClock() },
  );
  assert.equal((await sent(gateway, await token(key, NOW_S, { aud: "this-api" }))).status, 200);
  assert.deepEqual(seenValues(origin.requests.at(-1), "x-consumer-name"), ["everybody"]);
  assert.equal((await sent(gateway, await token(key, NOW_S, { aud: "another" }))).status, 401);
  assert.equal((await sent(gateway, await token(key, NOW_S))).status, 401);
});

test("a provider without an issuer speaks for no issuer that another one names", async () => {
  const [ours, theirs] = [await issuerKey("a"), await issuerKey("b")];
  await using named = await startKeyServer([ours.jwk]);
  await using open = await startKeyServer([theirs.jwk]);
  await using origin = await startOrigin();
  const anyIssuer: Provider = { name: "any", jwks_url: `${open.url}/keys`, consumer: "guest" };
  const base = documentOf(origin.port, [anyIssuer, provider(named)]);
  await using gateway = await startGateway(
    { ...base, consumers: [...(base.consumers ?? []), { name: "guest" }] },
    { clock: new MovedClock() },
  );
  assert.equal((await sent(gateway, await token(theirs, NOW_S, { iss: "https://else.test" }))).status, 200);
  assert.deepEqual(seenValues(origin.requests.at(-1), "x-consumer-name"), ["guest"]);
  assert.equal(
    (await sent(gateway, await token(theirs, NOW_S))).status,
    401,
    "signed by the wrong one for that issuer",
  );
  assert.equal((await sent(gateway, await token(ours, NOW_S))).status, 200);
  assert.deepEqual(seenValues(origin.requests.at(-1), "x-consumer-name"), ["zoo"]);
});

test("rules may ask for scopes and claims of a token", async () => {
  const key = await issuerKey("k");
  await using server = await startKeyServer([key.jwk]);
  await using origin = await startOrigin();
  const authorization = { required_scopes: ["read"], required_claims: { tier: "2" } };
  const base = documentOf(origin.port, [provider(server)], {
    routes: [proxied("closed", "/closed", { authorization })],
  });
  await using gateway = await startGateway(
    { ...base, consumers: [...(base.consumers ?? []), keyed("keyed", "good")] },
    { clock: new MovedClock() },
  );
  for (const [claims, status] of [
    [{ scope: "write read", tier: 2 }, 200],
    [{ scope: ["read"], tier: "2" }, 200],
    [{ scope: "write", tier: 2 }, 403],
    [{ scope: "read" }, 403],
  ] as const) {
    assert.equal((await sent(gateway, await token(key, NOW_S, claims))).status, status, JSON.stringify(claims));
  }
  assert.equal(
    (await gateway.send({ path: "/closed", fields: ["X-API-Key: good"] })).status,
    403,
    "a key has no scopes",
  );
  assert.equal((await gateway.send({ path: "/closed" })).status, 401);
});

test("keys change: a new one is fetched for, though not often, and an old one counts for its grace", async () => {
  const [first, second, third] = [await issuerKey("1"), await issuerKey("2"), await issuerKey("3")];
  await using server = await startKeyServer([first.jwk]);
  await using origin = await startOrigin();
  const clock = new MovedClock();
  const rules = { refresh_secs: 300, retired_key_grace_secs: 600 };
  await using gateway = await startGateway(documentOf(origin.port, [provider(server, rules)]), { clock });
  const statusOf = async (key: IssuerKey): Promise<number> => {
    const nowS = clock.now() / 1000;
    return (await sent(gateway, await token(key, nowS, { jti: String(nowS) }))).status;
  };
  assert.deepEqual([await statusOf(first), server.fetches()], [200, 1]);
  server.state.keys = [second.jwk];
  assert.deepEqual([await statusOf(second), server.fetches()], [401, 1], "asked a moment ago");
  clock.pass(5);
  assert.deepEqual([await statusOf(second), server.fetches()], [200, 2]);
  server.state.keys = [second.jwk, third.jwk];
  for (let burst = 0; burst < 5; burst += 1) assert.equal(await statusOf(third), 401);
  assert.equal(server.fetches(), 2, "strangers' key ids do not flood the issuer");
  clock.pass(5);
  assert.deepEqual([await statusOf(third), server.fetches()], [200, 3]);
  assert.equal(await statusOf(first), 200, "retired, within its grace");
  clock.pass(600);
  assert.equal(await statusOf(second), 200);
  assert.equal(await statusOf(first), 401, "its grace is over");
});

test("a retired key ends with its grace, whether or not keys are fetched again", async () => {
  const [first, second] = [await issuerKey("1"), await issuerKey("2")];
  await using server = await startKeyServer([first.jwk]);
  await using origin = await startOrigin();
  const clock = new MovedClock();
  const rules = { retired_key_grace_secs: 60 };
  await using gateway = await startGateway(documentOf(origin.port, [provider(server, rules)]), { clock });
  assert.equal((await sent(gateway, await token(first, NOW_S))).status, 200);
  server.state.keys = [second.jwk];
  clock.pass(5);
  assert.equal((await sent(gateway, await token(second, NOW_S))).status, 200);
  clock.pass(59);
  assert.equal((await sent(gateway, await token(first, NOW_S, { jti: "1" }))).status, 200);
  server.state.keys = [];
  server.state.response = { status: 500, body: "" };
  clock.pass(1);
  assert.notEqual((await sent(gateway, await token(first, NOW_S, { jti: "2" }))).status, 200);
});

test("without a grace a key ends when it is published no more", async () => {
  const [first, second] = [await issuerKey("1"), await issuerKey("2")];
  await using server = await startKeyServer([first.jwk]);
  await using origin = await startOrigin();
  const clock = new MovedClock();
  await using gateway = await startGateway(documentOf(origin.port, [provider(server, { retired_key_grace_secs: 0 })]), {
    clock,
  });
  assert.equal((await sent(gateway, await token(first, NOW_S))).status, 200);
  server.state.keys = [second.jwk];
  clock.pass(60);
  assert.equal((await sent(gateway, await token(second, NOW_S))).status, 200);
  assert.equal((await sent(gateway, await token(first, NOW_S, { jti: "other" }))).status, 401);
});

test("a token that was good is believed no longer than keys are, though it comes again and again", async () => {
  const [first, second] = [await issuerKey("1"), await issuerKey("2")];
  await using server = await startKeyServer([first.jwk]);
  await using origin = await startOrigin();
  const clock = new MovedClock();
  const rules = { refresh_secs: 10, retired_key_grace_secs: 0 };
  await using gateway = await startGateway(documentOf(origin.port, [provider(server, rules)]), { clock });
  const same = await token(first, NOW_S);
  assert.equal((await sent(gateway, same)).status, 200);
  server.state.keys = [second.jwk];
  clock.pass(9);
  assert.deepEqual([(await sent(gateway, same)).status, server.fetches()], [200, 1]);
  clock.pass(1);
  assert.equal((await sent(gateway, same)).status, 200, "the keys of before, while they are fetched again");
  await waitUntil(() => server.fetches() === 2);
  clock.pass(10);
  assert.equal((await sent(gateway, same)).status, 401);
});

test("without keys no request is admitted, and no token is called invalid", async (t) => {
  const key = await issuerKey("k");
  await using origin = await startOrigin();
  const failures: readonly [title: string, response: NonNullable<KeyServerState["response"]>][] = [
    ["an error", { status: 500, body: "{}" }],
    ["a redirect, which is not followed", { status: 302, body: "", fields: { Location: "/elsewhere" } }],
    ["no JSON", { status: 200, body: "<html>" }],
    ["no key set", { status: 200, body: "[]" }],
    ["more than a mebibyte", { status: 200, body: JSON.stringify({ keys: [key.jwk], pad: "x".repeat(1_048_576) }) }],
  ];
  for (const [title, response] of failures) {
    await t.test(title, async () => {
      await using server = await startKeyServer([key.jwk]);
      const clock = new MovedClock();
      await using gateway = await startGateway(documentOf(origin.port, [provider(server)]), { clock });
      server.state.response = response;
      const text = await token(key, NOW_S);
      for (const _ of [1, 2]) {
        const refused = await sent(gateway, text, "/open");
        assert.equal(refused.status, 500);
        const { error } = JSON.parse(refused.body.toString()) as { error: { code: string } };
        assert.equal(error.code, "authentication_unavailable");
      }
      assert.equal(server.fetches(), 1, "an issuer in trouble is left alone");
      for (const told of ["key_set_unavailable", "authentication_unavailable"]) {
        const lines = gateway.log.filter(({ code, target }) => code === told && target !== "gateway::access");
        assert.equal(lines.length, 1, `${told} once, not for each request`);
      }
      assert.equal((await gateway.send({ path: "/open" })).status, 200, "who presents nothing goes on");
      server.state.response = undefined;
      clock.pass(5);
      assert.equal((await sent(gateway, text)).status, 200, "and it recovers");
      server.state.response = response;
      clock.pass(301);
      for (const _ of [1, 2]) {
        const again = await token(key, clock.now() / 1000, { jti: String(clock.now()) });
        assert.equal(
          (await sent(gateway, again)).status,
          200,
          "known keys are believed while the issuer is in trouble",
        );
        clock.pass(10);
      }
      assertNotLogged(gateway, [text, key.jwk.x ?? "no key"]);
    });
  }
  await t.test("nothing listens", async () => {
    const server = await startKeyServer([]);
    await server.close();
    await using gateway = await startGateway(documentOf(origin.port, [provider(server)]), { clock: new MovedClock() });
    assert.equal((await sent(gateway, await token(key, NOW_S))).status, 500);
  });
});

test("keys are fetched through the egress filter", async () => {
  const key = await issuerKey("k");
  await using server = await startKeyServer([key.jwk]);
  await using origin = await startOrigin();
  await using gateway = await startGateway(
    documentOf(origin.port, [provider(server)], { ssrf_filter: { deny: ["127.0.0.0/8"] } }),
    { clock: new MovedClock() },
  );
  assert.equal((await sent(gateway, await token(key, NOW_S))).status, 500);
  assert.equal(server.fetches(), 0);
});

test("a provider may have a certificate authority of its own, and only that is trusted", async () => {
  const key = await issuerKey("k");
  await using server = await startKeyServer([key.jwk], { tls: true });
  await using other = await startKeyServer([key.jwk], { tls: true });
  await using origin = await startOrigin();
  await using files = await temporaryDirectory();
  const trusted = files.file("ca.pem");
  await writeFile(trusted, server.caPem ?? "");
  const text = await token(key, NOW_S);
  for (const [url, status] of [
    [server.url, 200],
    [other.url, 500],
  ] as const) {
    const providers = [provider(server, { jwks_url: `${url}/keys`, trusted_ca_file: trusted })];
    await using gateway = await startGateway(documentOf(origin.port, providers), { clock: new MovedClock() });
    assert.equal((await sent(gateway, text)).status, status);
  }
  await using gateway = await startGateway(documentOf(origin.port, [provider(server)]), { clock: new MovedClock() });
  assert.equal((await sent(gateway, text)).status, 500, "the public roots do not know it");
});

test("a reload keeps the keys that are known, and applies new rules to them", async () => {
  const key = await issuerKey("k");
  await using server = await startKeyServer([key.jwk]);
  await using origin = await startOrigin();
  const clock = new MovedClock();
  const text = await token(key, NOW_S);
  await using gateway = await startGateway(documentOf(origin.port, [provider(server)]), { clock });
  assert.equal((await sent(gateway, text)).status, 200);
  await gateway.reload(documentOf(origin.port, [provider(server, { audience: "new" })]));
  assert.equal((await sent(gateway, text)).status, 401, "what was good before is verified anew");
  await gateway.reload(documentOf(origin.port, [provider(server)]));
  assert.equal((await sent(gateway, text)).status, 200);
  assert.equal(server.fetches(), 1);
});
