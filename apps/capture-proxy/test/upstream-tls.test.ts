import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { after, before, test } from "node:test";
import type { SecureVersion, TlsOptions, TLSSocket } from "node:tls";
import type { TrafficEntry, TrafficSnapshot } from "@headworks/capture-contract";
import { peer, proxyClient, runProcess, spawnProcess, startOrigin, temporaryDirectory } from "@headworks/testkit";
import type { Origin, ProxyClient, TemporaryDirectory } from "@headworks/testkit";
import { CertificateAuthority } from "@headworks/tls-authority";
import { entryOf, startProxyRig } from "./proxy-rig.ts";
import type { ProxyRig } from "./proxy-rig.ts";

const servers = CertificateAuthority.create({ commonName: "Servers" });
const clients = CertificateAuthority.create({ commonName: "Clients" });
const strangers = CertificateAuthority.create({ commonName: "Strangers" });
const certificate = clients.issueLeaf({ dns: ["weir.test"] }, { purpose: "client" });
const strange = strangers.issueLeaf({ dns: ["weir.test"] }, { purpose: "client" });

let files: TemporaryDirectory;
let rig: ProxyRig;
let client: ProxyClient;
before(async () => {
  files = await temporaryDirectory();
  const write = (name: string, text: string): void => writeFileSync(files.file(name), text);
  const server = servers.issueLeaf({ dns: ["localhost"] });
  write("server.pem", server.chainPem + server.keyPem);
  write("clients.pem", clients.certificatePem);
  write("roots.pem", servers.certificatePem);
  write("client.pem", certificate.chainPem + certificate.keyPem);
  write("client.crt", certificate.chainPem);
  write("client.key", certificate.keyPem);
  write("stranger.pem", strange.chainPem + strange.keyPem);
  write("passphrase", "open sesame\n");
  write("wrong", "shut\n");
  write("junk.p12", "this is no certificate");
  rig = await startProxyRig({ "upstream-ca": files.file("roots.pem"), "enable-h2-downstream": "true" });
  const ca = await (await fetch(`${rig.proxy.addresses.api}/api/cert/ca`)).text();
  client = proxyClient(Number(new URL(rig.proxy.addresses.proxy).port), { ca });
});
after(async () => {
  await rig[Symbol.asyncDispose]();
  await files.remove();
});

/** An origin that says who issued its client's certificate, or `nobody`. */
async function startAsking(version: SecureVersion, options: TlsOptions = {}): Promise<Origin> {
  return await startOrigin({
    handler: (request: IncomingMessage, response: ServerResponse) => {
      response.end((request.socket as TLSSocket).getPeerCertificate().issuer?.CN ?? "nobody");
    },
    tls: {
      authority: servers,
      options: { ca: clients.certificatePem, requestCert: true, minVersion: version, maxVersion: version, ...options },
    },
  });
}

let requests = 0;
/** Asks the origin through Weir; gives the response's status and text and what the entry says. */
async function ask({ port }: Pick<Origin, "port">): Promise<{ status: number; text: string; entry: TrafficEntry }> {
  requests += 1;
  const response = await client.fetch(`https://localhost:${port}/${requests}`);
  const path = `/${requests}`;
  const { id } = await entryOf<TrafficSnapshot>(rig, path, ({ state }) => state !== "pending");
  const entry = await rig.api<TrafficEntry>("GET", `/traffic/${id}`);
  return { status: response.status, text: response.body.toString(), entry };
}

const FORMS = [
  ["PEM with both", () => files.file("client.pem")],
  ["PEM with a key of its own", () => `${files.file("client.crt")};key=${files.file("client.key")}`],
] as const;

const openssl = peer("openssl");

for (const [version, flag] of [
  ["TLSv1.2", "-tls1_2"],
  ["TLSv1.3", "-tls1_3"],
] as const) {
  test(`${version}: an origin that refuses the certificate is said to refuse it`, { skip: openssl.skip }, async () => {
    const own = [files.file("server.pem"), "-CAfile", files.file("clients.pem"), "-verify_return_error"];
    const args = ["s_server", "-accept", "127.0.0.1:0", flag, "-www", "-Verify", "1", "-cert", ...own];
    await using server = await spawnProcess(openssl.path, args);
    const [, port] = await server.waitForOutput(/ACCEPT 127\.0\.0\.1:([0-9]+)/);
    await rig.api("PATCH", "/config", { upstream_client_certificates: [`localhost=${files.file("stranger.pem")}`] });
    const { status, entry } = await ask({ port: Number(port) });
    assert.equal(status, 502);
    assert.equal(entry.failure?.code, "UPSTREAM_CLIENT_CERTIFICATE");
    assert.match(entry.failure?.message ?? "", /rejected the configured client certificate \(.*unknown ca/);
    await rig.api("PATCH", "/config", { upstream_client_certificates: [`localhost=${files.file("client.pem")}`] });
    assert.equal((await ask({ port: Number(port) })).status, 200);
  });

  for (const [form, source] of FORMS) {
    test(`${version}: an origin that requests a client certificate gets that of its host (${form})`, async () => {
      await using origin = await startAsking(version);
      await rig.api("PATCH", "/config", { upstream_client_certificates: [`localhost=${source()}`] });
      const { status, text, entry } = await ask(origin);
      assert.deepEqual([status, text], [200, "Clients"]);
      assert.equal(entry.tls?.upstream_client_certificate, "sent");
    });
  }

  test(`${version}: without one, the entry says that a client certificate is asked for`, async () => {
    await using origin = await startAsking(version);
    await rig.api("PATCH", "/config", { upstream_client_certificates: [`other.test=${files.file("client.pem")}`] });
    const none = await ask(origin);
    assert.equal(none.status, 502);
    assert.equal(none.entry.failure?.code, "UPSTREAM_CLIENT_CERTIFICATE");
    assert.match(none.entry.failure?.message ?? "", /requires a client certificate, but none is configured for it/);
    assert.match(none.text, /upstream_client_certificates/);
  });

  test(`${version}: an origin that asks and goes on without one is said to have asked, on resumed sessions too`, async () => {
    await using origin = await startAsking(version, { rejectUnauthorized: false });
    await rig.api("PATCH", "/config", { upstream_client_certificates: [] });
    for (let round = 0; round < 3; round += 1) {
      const { text, entry } = await ask(origin);
      assert.deepEqual([text, entry.tls?.upstream_client_certificate], ["nobody", "none"]);
    }
  });

  test(`${version}: of an origin that does not ask nothing is said, and it sees no certificate`, async () => {
    await using origin = await startAsking(version, { requestCert: false });
    await rig.api("PATCH", "/config", { upstream_client_certificates: [`*=${files.file("client.pem")}`] });
    const { text, entry } = await ask(origin);
    assert.deepEqual([text, entry.tls?.upstream_client_certificate], ["nobody", null]);
  });
}

test("a PKCS 12 file of openssl is taken, with its passphrase from a file", { skip: openssl.skip }, async () => {
  await using origin = await startAsking("TLSv1.3");
  const file = files.file("client.p12");
  const command = ["pkcs12", "-export", "-in", files.file("client.pem"), "-out", file, "-passout", "pass:open sesame"];
  assert.equal((await runProcess(openssl.path, command)).code, 0);
  const entry = `localhost=${file};passphrase-file=${files.file("passphrase")}`;
  await rig.api("PATCH", "/config", { upstream_client_certificates: [entry] });
  assert.equal((await ask(origin)).text, "Clients");
  for (const bad of [`localhost=${file}`, `localhost=${file};passphrase-file=${files.file("wrong")}`]) {
    const { error } = await rig.api<{ error: string }>(
      "PATCH",
      "/config",
      { upstream_client_certificates: [bad] },
      400,
    );
    assert.match(error, /the passphrase is wrong or missing/);
  }
});

test("a client certificate that cannot be used is refused when it is set, and names the reason", async () => {
  const at = (name: string): string => files.file(name);
  const table: readonly (readonly [string, RegExp])[] = [
    ["localhost", /must be HOST=FILE/],
    [`localhost=${at("client.pem")};kay=${at("client.key")}`, /must be HOST=FILE/],
    [`localhost=${at("client.pem")};key=`, /must be HOST=FILE/],
    ["localhost=client.pem", /client\.pem must be an absolute path/],
    [`a b=${at("client.pem")}`, /host pattern/],
    [`localhost=${at("none.pem")}`, /none\.pem cannot be used: there is no such file/],
    [`localhost=${files.path}`, /it is a directory/],
    [`localhost=${at("client.crt")}`, /client\.crt holds no private key/],
    [`localhost=${at("client.crt")};key=${at("stranger.pem")}`, /the key belongs to another certificate/],
    [`localhost=${at("client.key")}`, /it holds no certificate/],
    [`localhost=${at("junk.p12")}`, /neither PEM nor PKCS 12/],
  ];
  for (const [entry, expected] of table) {
    const { error } = await rig.api<{ error: string }>(
      "PATCH",
      "/config",
      { upstream_client_certificates: [entry] },
      400,
    );
    assert.match(error, expected, entry);
  }
});

test("old TLS is spoken with the hosts that it is set for, and the entry of another names the setting", async () => {
  for (const [version, text] of [
    ["TLSv1", "1.0"],
    ["TLSv1.1", "1.1"],
  ] as const) {
    await using origin = await startAsking(version, { requestCert: false, ciphers: "DEFAULT:@SECLEVEL=0" });
    await rig.api("PATCH", "/config", { tls_min_version: ["other.test=1.0"] });
    const refused = await ask(origin);
    assert.equal(refused.entry.failure?.code, "UPSTREAM_TLS");
    assert.match(refused.entry.failure?.message ?? "", /tls_min_version lets Weir speak older TLS with this host/);
    await rig.api("PATCH", "/config", { tls_min_version: [`localhost=${text}`, "localhost=1.3"] });
    const { text: body, entry } = await ask(origin);
    assert.deepEqual([body, entry.tls?.upstream_version], ["nobody", version]);
  }
});

test("a newer version than 1.2 can be asked for, and versions that do not exist are refused", async () => {
  await using origin = await startAsking("TLSv1.2", { requestCert: false });
  await rig.api("PATCH", "/config", { tls_min_version: ["*=1.3"] });
  assert.equal((await ask(origin)).entry.failure?.code, "UPSTREAM_TLS");
  for (const bad of ["localhost", "localhost=", "localhost=1.4", "localhost=SSLv3", "a b=1.0"]) {
    await rig.api("PATCH", "/config", { tls_min_version: [bad] }, 400);
  }
  await rig.api("PATCH", "/config", { tls_min_version: [] });
  assert.equal((await ask(origin)).text, "nobody");
});
