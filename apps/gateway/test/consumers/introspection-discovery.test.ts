import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { test } from "node:test";
import { temporaryDirectory, waitUntil } from "@headworks/testkit";
import { CertificateAuthority } from "@headworks/tls-authority";
import { assertNotLogged, seenValues } from "./consumer-rig.ts";
import { rig, SECRET, startEndpoint, type Rig } from "./introspection-rig.ts";

const plain = (port: number): string => `http://127.0.0.1:${port}`;
const discovering = async (): Promise<Rig> => await rig({}, {}, plain);

test("discovery: tokens are asked about where the issuer's metadata say, which are fetched once", async () => {
  await using r = await discovering();
  const tokens = Array.from({ length: 10 }, (_, at) => `t${at}`);
  for (const token of tokens) r.endpoint.responses.set(token, { active: true, iss: plain(r.endpoint.port) });
  const statuses = await Promise.all(tokens.map(async (token) => await r.ask(token)));
  assert.deepEqual(new Set(statuses), new Set([200]));
  assert.deepEqual(seenValues(r.origin.requests[0], "x-consumer-name"), ["zoo"]);
  assert.equal(await r.ask("other"), 401);
  assert.deepEqual([r.endpoint.lookups, r.endpoint.questions.length], [1, 11]);
});

test("discovery: a slash at the end of the issuer is part of its name and not doubled in the address", async () => {
  const issuer = (port: number): string => `${plain(port)}/`;
  await using r = await rig({}, {}, issuer);
  r.endpoint.metadata = { issuer: issuer(r.endpoint.port), introspection_endpoint: `${plain(r.endpoint.port)}/x` };
  r.endpoint.responses.set("t", { active: true });
  assert.equal(await r.ask("t"), 200);
});

/** What the metadata are that lead nowhere; the right ones are given. */
const USELESS: readonly (readonly [what: string, make: (right: object, issuer: string) => object | number | string])[] =
  [
    ["not there", () => 404],
    ["no JSON", () => "<html>"],
    ["a list", () => "[]"],
    ["larger than a megabyte", (right) => ({ ...right, more: "x".repeat(1_100_000) })],
    ["of another issuer", (right) => ({ ...right, issuer: "https://other.test" })],
    ["of the issuer with a slash behind it", (right, issuer) => ({ ...right, issuer: `${issuer}/` })],
    ["of the issuer in other letters", (right, issuer) => ({ ...right, issuer: issuer.replace("http", "HTTP") })],
    ["of nobody", (right) => ({ ...right, issuer: undefined })],
    ["without an endpoint", (right) => ({ ...right, introspection_endpoint: undefined })],
    ["with an endpoint that is no text", (right) => ({ ...right, introspection_endpoint: 7 })],
    ["with an endpoint that is no URL", (right) => ({ ...right, introspection_endpoint: "ftp://x/" })],
  ];
for (const [what, make] of USELESS) {
  test(`discovery: metadata that are ${what} admit no request, and are fetched again a second later`, async () => {
    await using r = await discovering();
    const issuer = plain(r.endpoint.port);
    const right = r.endpoint.metadata as object;
    r.endpoint.responses.set("t", { active: true });
    r.endpoint.metadata = make(right, issuer);
    assert.deepEqual([await r.ask("t"), await r.ask("t")], [500, 500]);
    assert.deepEqual([r.endpoint.lookups, r.endpoint.questions.length], [1, 0]);
    assert.equal(r.gateway.log.filter(({ code }) => code === "discovery_failed").length, 1);
    r.endpoint.metadata = right;
    r.skip(1000);
    assert.equal(await r.ask("t"), 200);
    assertNotLogged(r.gateway, [SECRET]);
  });
}

test("discovery: lookups that fail are made twice as far apart each time, up to a minute", async () => {
  await using r = await discovering();
  r.endpoint.metadata = 503;
  for (const [at, pauseMs] of [1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000].entries()) {
    assert.equal(await r.ask("t"), 500);
    assert.equal(r.endpoint.lookups, at + 1);
    // Test and gateway take some time too, so that a little less than the pause is waited first.
    r.skip(pauseMs - 900);
    assert.equal(await r.ask("t"), 500);
    assert.equal(r.endpoint.lookups, at + 1, `${pauseMs} ms are not over`);
    r.skip(900);
  }
});

test("discovery: when the endpoint gives no answer the metadata are looked at again, and meanwhile the old one is asked", async () => {
  await using moved = await startEndpoint();
  await using r = await discovering();
  const issuer = plain(r.endpoint.port);
  r.endpoint.responses.set("t1", { active: true });
  assert.equal(await r.ask("t1"), 200);
  for (const token of ["t2", "t3", "t4"]) {
    r.endpoint.responses.set(token, 410);
    moved.responses.set(token, { active: true, iss: issuer });
  }
  r.endpoint.metadata = 503;
  r.skip(5000);
  assert.equal(await r.ask("t2"), 500);
  assert.equal(r.endpoint.lookups, 1, "one that gave answers until now is asked first");
  assert.equal(await r.ask("t3"), 500);
  await waitUntil(() => r.endpoint.lookups === 2);
  r.endpoint.metadata = { issuer, introspection_endpoint: `${plain(moved.port)}/introspect` };
  r.skip(5000);
  assert.equal(await r.ask("t4"), 500);
  await waitUntil(() => r.endpoint.lookups === 3);
  await waitUntil(async () => (await r.ask("t4")) === 200);
  assert.equal(await r.ask("t1"), 200, "what is known stays known");
});

test("discovery: what was found is looked up again after an hour, behind the requests' backs", async () => {
  await using r = await discovering();
  r.endpoint.responses.set("t", { active: true });
  assert.equal(await r.ask("t"), 200);
  r.skip(3_599_000);
  assert.equal(await r.ask("other"), 401);
  assert.equal(r.endpoint.lookups, 1);
  r.skip(1000);
  assert.equal(await r.ask("another"), 401);
  await waitUntil(() => r.endpoint.lookups === 2);
});

test("discovery: the egress filter holds for it", async () => {
  await using r = await rig({}, { gateway: { ssrf_filter: { deny: ["127.0.0.0/8"] } } }, plain);
  assert.equal(await r.ask("t"), 500);
  assert.deepEqual([r.endpoint.lookups, r.endpoint.questions.length], [0, 0]);
});

test("discovery: over https the issuer must prove who it is, and names no endpoint without TLS", async () => {
  await using directory = await temporaryDirectory();
  const authority = CertificateAuthority.create();
  const trusted_ca_file = directory.file("roots.pem");
  await writeFile(trusted_ca_file, authority.certificatePem);
  await using secure = await startEndpoint({ tls: { authority, names: { dns: ["localhost"], ip: ["127.0.0.1"] } } });
  secure.responses.set("t", { active: true });
  const issuer = (): string => `https://localhost:${secure.port}`;
  await using trusting = await rig({ trusted_ca_file }, {}, issuer);
  assert.equal(await trusting.ask("t"), 200);
  await using distrusting = await rig({}, {}, issuer);
  assert.equal(await distrusting.ask("t"), 500);
  secure.metadata = { issuer: issuer(), introspection_endpoint: `${plain(secure.port)}/introspect` };
  await using downgraded = await rig({ trusted_ca_file }, {}, issuer);
  assert.equal(await downgraded.ask("t"), 500);
  assert.equal(secure.questions.length, 1);
});
