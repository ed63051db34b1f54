import assert from "node:assert/strict";
import { generateKeyPairSync, X509Certificate } from "node:crypto";
import { rename, rm, writeFile } from "node:fs/promises";
import { connect, type ConnectionOptions, type PeerCertificate } from "node:tls";
import { once } from "node:events";
import { test } from "node:test";
import {
  http2Client,
  rawClient,
  type RawResponse,
  readResponse,
  runProcess,
  startOrigin,
  type TemporaryDirectory,
  temporaryDirectory,
  waitUntil,
} from "@headworks/testkit";
import { CertificateAuthority } from "@headworks/tls-authority";
import type { DocumentInput } from "@headworks/gateway-contract";
import { serving, startGateway, type TestGateway } from "./gateway-rig.ts";

type ListenerInput = NonNullable<DocumentInput["listeners"]>[number];

/** A directory with certificates, and a document of one listener that uses them. */
interface Rig extends AsyncDisposable {
  readonly authority: CertificateAuthority;
  readonly directory: TemporaryDirectory;
  readonly ca: string;
  /** Writes `<name>.pem` and `<name>.key` for these host names, each by renaming as deployment tools do. */
  issue(name: string, hosts: readonly string[]): Promise<{ cert_file: string; key_file: string }>;
}

async function certificates(): Promise<Rig> {
  const directory = await temporaryDirectory();
  const authority = CertificateAuthority.create();
  await writeFile(directory.file("ca.pem"), authority.certificatePem);
  const put = async (file: string, text: string): Promise<string> => {
    await writeFile(directory.file(`${file}.new`), text);
    await rename(directory.file(`${file}.new`), directory.file(file));
    return directory.file(file);
  };
  return {
    authority,
    directory,
    ca: authority.certificatePem,
    issue: async (name, hosts) => {
      const leaf = authority.issueLeaf({ dns: [...hosts], ip: [] });
      return { cert_file: await put(`${name}.pem`, leaf.chainPem), key_file: await put(`${name}.key`, leaf.keyPem) };
    },
    [Symbol.asyncDispose]: async () => await directory.remove(),
  };
}

async function secureGateway(
  tls: NonNullable<ListenerInput["tls"]>,
  more: Partial<ListenerInput> = {},
  originPort = 1,
): Promise<TestGateway> {
  return await startGateway({
    listeners: [{ name: "public", address: "127.0.0.1", port: 0, metrics: true, protocol: "https", tls, ...more }],
    ...serving("api", [originPort]),
    routes: [
      { name: "api", service: "api", match: { path: { type: "prefix", value: "/" } }, action: { type: "proxy" } },
    ],
  });
}

/** The first name of the certificate that the listener shows, or the error of the handshake. */
async function shownName(port: number, options: ConnectionOptions): Promise<string> {
  const socket = connect({ port, host: "127.0.0.1", rejectUnauthorized: false, ...options });
  try {
    await once(socket, "secureConnect");
    const { subjectaltname }: PeerCertificate = socket.getPeerCertificate();
    return (subjectaltname ?? "").split(",")[0] ?? "";
  } catch (error) {
    return error instanceof Error && "code" in error ? String(error.code) : String(error);
  } finally {
    socket.destroy();
  }
}

async function get(port: number, tls: ConnectionOptions, path = "/healthz"): Promise<RawResponse> {
  await using client = await rawClient(port, { tls });
  await client.write(`GET ${path} HTTP/1.1\r\nHost: a.test\r\n\r\n`);
  return await readResponse(client);
}

const NAMES: readonly (readonly [string, string | undefined, string])[] = [
  ["its own name", "a.test", "DNS:a.test"],
  ["another name", "b.test", "DNS:b.test"],
  ["a second name of the same certificate", "c.test", "DNS:b.test"],
  ["a name in upper case", "B.TEST", "DNS:b.test"],
  ["a name with a final dot", "b.test.", "DNS:b.test"],
  ["an unknown name", "x.test", "DNS:fallback.test"],
  ["a name below a known one", "sub.a.test", "DNS:fallback.test"],
  ["no name", undefined, "DNS:fallback.test"],
];
test("TLS: the certificate is chosen by the exact name the client asks for, else the fallback pair", async () => {
  await using rig = await certificates();
  await using gateway = await secureGateway({
    ...(await rig.issue("fallback", ["fallback.test"])),
    certificates: [
      { server_names: ["A.test"], ...(await rig.issue("a", ["a.test"])) },
      { server_names: ["b.test", "c.test"], ...(await rig.issue("b", ["b.test", "c.test"])) },
    ],
  });
  for (const [what, servername, shown] of NAMES) {
    assert.equal(await shownName(gateway.port(), servername === undefined ? {} : { servername }), shown, what);
  }
});

test("TLS: a certificate for *.name is chosen for names with one label more, after one for exactly that name", async () => {
  await using rig = await certificates();
  await using gateway = await secureGateway({
    ...(await rig.issue("fallback", ["fallback.test"])),
    certificates: [
      { server_names: ["*.W.test"], ...(await rig.issue("w", ["*.w.test"])) },
      { server_names: ["exact.w.test"], ...(await rig.issue("e", ["exact.w.test"])) },
      { server_names: ["*.bücher.test"], ...(await rig.issue("i", ["*.xn--bcher-kva.test"])) },
    ],
  });
  for (const [servername, shown] of [
    ["a.w.test", "DNS:*.w.test"],
    ["A.W.TEST", "DNS:*.w.test"],
    ["exact.w.test", "DNS:exact.w.test"],
    ["w.test", "DNS:fallback.test"],
    ["a.b.w.test", "DNS:fallback.test"],
    ["test", "DNS:fallback.test"],
    ["a.xn--bcher-kva.test", "DNS:*.xn--bcher-kva.test"],
  ] as const) {
    assert.equal(await shownName(gateway.port(), { servername }), shown, servername);
  }
});

test("TLS: without a fallback pair the first certificate is the fallback", async () => {
  await using rig = await certificates();
  await using gateway = await secureGateway({
    certificates: [
      { server_names: ["a.test"], ...(await rig.issue("a", ["a.test"])) },
      { server_names: ["b.test"], ...(await rig.issue("b", ["b.test"])) },
    ],
  });
  assert.equal(await shownName(gateway.port(), { servername: "x.test" }), "DNS:a.test");
});

test("TLS: ALPN offers h2, http/1.1 and http/1.0, and not h2 where http2 is false", async () => {
  await using rig = await certificates();
  const pair = await rig.issue("a", ["localhost"]);
  for (const [http2, wanted] of [
    [true, "h2"],
    [false, "http/1.1"],
  ] as const) {
    await using gateway = await secureGateway(pair, { http2 });
    const args = ["-sS", "--cacert", rig.directory.file("ca.pem"), "-w", "%{http_version}", "-o", "/dev/null"];
    const { stdout } = await runProcess("curl", [...args, "--http2", `https://localhost:${gateway.port()}/healthz`]);
    assert.equal(stdout, wanted === "h2" ? "2" : "1.1");
    const old = await runProcess("curl", [...args, "--http1.0", `https://localhost:${gateway.port()}/healthz`]);
    assert.equal(old.stdout, "1.1", "asked in HTTP/1.0, answered in the version of the gateway");
  }
});

test("TLS: requests over HTTP/1.1 and HTTP/2 reach the upstream as coming over https", async () => {
  await using rig = await certificates();
  await using origin = await startOrigin();
  await using gateway = await secureGateway(await rig.issue("a", ["localhost"]), {}, origin.port);
  await get(gateway.port(), { ca: rig.ca, servername: "localhost" }, "/one");
  await using client = await http2Client(gateway.port(), { ca: rig.ca });
  assert.equal((await client.fetch({ ":path": "/two" })).status, 200);
  assert.deepEqual(
    origin.requests.map(({ url, rawHeaders }) => [url, rawHeaders[rawHeaders.indexOf("X-Forwarded-Proto") + 1]]),
    [
      ["/one", "https"],
      ["/two", "https"],
    ],
  );
});

for (const [min, offered, isWelcome] of [
  ["1.3", "TLSv1.2", false],
  ["1.3", "TLSv1.3", true],
  ["1.2", "TLSv1.2", true],
  ["1.2", "TLSv1.1", false],
] as const) {
  test(`TLS: with min_version ${min} a client of ${offered} is ${isWelcome ? "let in" : "turned away"}`, async () => {
    await using rig = await certificates();
    await using gateway = await secureGateway({ ...(await rig.issue("a", ["a.test"])), min_version: min });
    const shown = await shownName(gateway.port(), {
      minVersion: "TLSv1.1",
      maxVersion: offered,
      ciphers: "DEFAULT@SECLEVEL=0",
    });
    assert.equal(shown === "DNS:a.test", isWelcome, shown);
  });
}

test("TLS: openssl s_client talks to the listener and verifies its chain", async () => {
  await using rig = await certificates();
  await using gateway = await secureGateway(await rig.issue("a", ["a.test"]));
  const { stdout } = await runProcess("openssl", [
    "s_client",
    "-connect",
    `127.0.0.1:${gateway.port()}`,
    "-servername",
    "a.test",
    "-verify_hostname",
    "a.test",
    "-CAfile",
    rig.directory.file("ca.pem"),
    "-alpn",
    "http/1.1",
    "-brief",
  ]).then((exit) => ({ stdout: exit.stdout + exit.stderr }));
  assert.match(stdout, /Verification: OK/);
});

test("TLS: new handshakes use certificates as they are in their files now, open connections go on", async () => {
  await using rig = await certificates();
  const pair = await rig.issue("a", ["before.test"]);
  await using gateway = await secureGateway(pair);
  const port = gateway.port();
  await using open = await rawClient(port, { tls: { ca: rig.ca, servername: "before.test" } });
  await rig.issue("a", ["after.test"]);
  await waitUntil(() => gateway.log.some(({ code }) => code === "tls_reloaded"));
  assert.equal(await shownName(port, {}), "DNS:after.test");
  await open.write("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n");
  assert.equal((await readResponse(open)).status, 200);
});

test("TLS: certificates by name follow their files too", async () => {
  await using rig = await certificates();
  const fallback = await rig.issue("f", ["fallback.test"]);
  const named = await rig.issue("a", ["a.test"]);
  await using gateway = await secureGateway({ ...fallback, certificates: [{ server_names: ["a.test"], ...named }] });
  await rig.issue("a", ["a.test", "renewed.test"].toReversed());
  await waitUntil(() => gateway.log.some(({ code }) => code === "tls_reloaded"));
  assert.equal(await shownName(gateway.port(), { servername: "a.test" }), "DNS:renewed.test");
});

for (const [what, spoil] of [
  ["no certificate any more", async (rig: Rig) => await writeFile(rig.directory.file("a.pem"), "nothing")],
  [
    "a key that does not fit",
    async (rig: Rig) => {
      const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
      await writeFile(rig.directory.file("a.key"), privateKey.export({ type: "pkcs8", format: "pem" }));
    },
  ],
  [
    "a key of another kind",
    async (rig: Rig) => {
      const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
      await writeFile(rig.directory.file("a.key"), privateKey.export({ type: "pkcs8", format: "pem" }));
    },
  ],
] as const) {
  test(`TLS: files with ${what} leave the old certificate in use, and the log says so`, async () => {
    await using rig = await certificates();
    const pair = await rig.issue("a", ["a.test"]);
    const fallback = await rig.issue("f", ["fallback.test"]);
    for (const servername of [undefined, "a.test"]) {
      await rig.issue("a", ["a.test"]);
      const named = { ...fallback, certificates: [{ server_names: ["a.test"], ...pair }] };
      await using gateway = await secureGateway(servername === undefined ? pair : named);
      await spoil(rig);
      await waitUntil(() => gateway.log.some(({ code }) => code === "tls_reload_failed"));
      assert.equal(await shownName(gateway.port(), servername === undefined ? {} : { servername }), "DNS:a.test");
    }
  });
}

test("TLS: a certificate that cannot be used keeps no other of its listener from being renewed", async () => {
  await using rig = await certificates();
  const fallback = await rig.issue("f", ["f.test"]);
  const named = ["a", "b"].map(async (name) => ({
    server_names: [`${name}.test`],
    ...(await rig.issue(name, [`${name}.test`])),
  }));
  await using gateway = await secureGateway({ ...fallback, certificates: await Promise.all(named) });
  await rm(rig.directory.file("a.pem"));
  await rig.issue("b", ["renewed.test", "b.test"]);
  await rig.issue("f", ["fresh.test", "f.test"]);
  const shown = async (): Promise<string[]> =>
    await Promise.all(
      ["a.test", "b.test", "f.test"].map(async (servername) => await shownName(gateway.port(), { servername })),
    );
  await waitUntil(async () => (await shown()).join(" ") === "DNS:a.test DNS:renewed.test DNS:fresh.test");
  const failed = gateway.log.filter(({ code }) => code === "tls_reload_failed");
  assert.ok(failed.every(({ err }) => JSON.stringify(err).includes(rig.directory.file("a.pem"))));
  assert.ok(failed.length > 0);

  await rig.issue("a", ["back.test", "a.test"]);
  await waitUntil(async () => (await shownName(gateway.port(), { servername: "a.test" })) === "DNS:back.test");
});

test("TLS: a client certificate is asked for, not demanded, and one of another authority ends the connection", async () => {
  await using rig = await certificates();
  const clients = CertificateAuthority.create();
  await writeFile(rig.directory.file("clients.pem"), clients.certificatePem);
  const client_ca_file = rig.directory.file("clients.pem");
  const named = await rig.issue("b", ["b.test"]);
  const tls = { ...(await rig.issue("a", ["a.test"])), certificates: [{ server_names: ["b.test"], ...named }] };
  await using gateway = await secureGateway({ ...tls, client_ca_file });
  const names = { dns: ["client.test"], ip: [] };
  const good = clients.issueLeaf(names, { purpose: "client" });
  const forServers = clients.issueLeaf(names);
  const foreign = CertificateAuthority.create().issueLeaf(names, { purpose: "client" });
  for (const servername of ["a.test", "b.test"]) {
    const base = { ca: rig.ca, servername };
    assert.equal((await get(gateway.port(), base)).status, 200);
    assert.equal((await get(gateway.port(), { ...base, cert: good.chainPem, key: good.keyPem })).status, 200);
    for (const bad of [foreign, forServers]) {
      await assert.rejects(get(gateway.port(), { ...base, cert: bad.chainPem, key: bad.keyPem }), servername);
    }
  }
});

test("TLS: a verified client certificate makes its owner the consumer, over HTTP/1.1 and HTTP/2", async () => {
  await using rig = await certificates();
  await using origin = await startOrigin();
  const clients = CertificateAuthority.create();
  await writeFile(rig.directory.file("clients.pem"), clients.certificatePem);
  const own = clients.issueLeaf({ dns: ["client.test"], ip: [] }, { purpose: "client" });
  const { fingerprint256 } = new X509Certificate(own.certificatePem);
  const tls = { ...(await rig.issue("a", ["localhost"])), client_ca_file: rig.directory.file("clients.pem") };
  await using gateway = await startGateway({
    listeners: [{ name: "public", address: "127.0.0.1", port: 0, metrics: true, protocol: "https", tls }],
    ...serving("api", [origin.port]),
    consumers: [{ name: "team", credentials: [{ type: "mtls", fingerprint: fingerprint256 }] }],
    routes: [
      {
        name: "api",
        service: "api",
        auth_required: true,
        match: { path: { type: "prefix", value: "/" } },
        action: { type: "proxy" },
      },
    ],
  });
  const base = { ca: rig.ca, servername: "localhost" };
  const shown = { ...base, cert: own.chainPem, key: own.keyPem };
  assert.equal((await get(gateway.port(), base, "/")).status, 401);
  assert.equal((await get(gateway.port(), shown, "/")).status, 200);
  await using client = await http2Client(gateway.port(), shown);
  assert.equal((await client.fetch({ ":path": "/" })).status, 200);
  const names = origin.requests.map(({ rawHeaders }) => rawHeaders[rawHeaders.indexOf("X-Consumer-Name") + 1]);
  assert.deepEqual(names, ["team", "team"]);
});

const GARBAGE: readonly (readonly [string, string])[] = [
  ["a plain request", "GET / HTTP/1.1\r\nHost: a\r\n\r\n"],
  ["random bytes", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".padEnd(600, "\xff")],
  ["an alert", "\x15\x03\x03\x00\x02\x02\x28"],
];
for (const [what, bytes] of GARBAGE) {
  test(`TLS: ${what} instead of a handshake ends that connection only, and is counted`, async () => {
    await using rig = await certificates();
    await using gateway = await secureGateway(await rig.issue("a", ["a.test"]));
    await using client = await rawClient(gateway.port());
    await client.write(bytes);
    await client.collect();
    const text = async (): Promise<string> =>
      (await get(gateway.port(), { ca: rig.ca, servername: "a.test" }, "/metrics")).body.toString();
    assert.match(await text(), /^gateway_tls_handshake_failures_total\{listener="public"\} 1$/m);
  });
}

test("TLS: a handshake that does not go on is ended after the time of a head", async () => {
  await using rig = await certificates();
  await using gateway = await secureGateway(await rig.issue("a", ["a.test"]), { header_timeout_ms: 300 });
  await using silent = await rawClient(gateway.port());
  await using slow = await rawClient(gateway.port());
  await slow.write("\x16\x03\x01");
  await Promise.all([silent.collect(5000), slow.collect(5000)]);
});

test("TLS: 200 connections that stop in the middle of their handshake delay no other client", async () => {
  await using rig = await certificates();
  await using gateway = await secureGateway(await rig.issue("a", ["a.test"]));
  const stuck = await Promise.all(Array.from({ length: 200 }, async () => await rawClient(gateway.port())));
  try {
    for (const client of stuck) await client.write("\x16\x03\x01\x02\x00\x01");
    const startedMs = performance.now();
    assert.equal((await get(gateway.port(), { ca: rig.ca, servername: "a.test" })).status, 200);
    assert.ok(performance.now() - startedMs < 1000);
  } finally {
    for (const client of stuck) client.destroy();
  }
});
