import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { peer, runProcess, temporaryDirectory, type TemporaryDirectory } from "@headworks/testkit";
import { CertificateAuthority } from "@headworks/tls-authority";
import { startGateway, type TestGateway } from "./gateway-rig.ts";

const openssl = peer("openssl");
const { skip } = openssl;
const CBC_AND_RSA = ["ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-SHA", "DHE-RSA-AES128-GCM-SHA256", "AES128-SHA"];
let directory: TemporaryDirectory;
let gateway: TestGateway;

/** The port of the data listener with a certificate of that key, of the one that names suites, or of the admin API. */
function portOf(server: "ecdsa" | "rsa" | "named" | "admin"): number {
  return server === "admin" ? Number(new URL(gateway.gateway.adminUrl ?? "").port) : gateway.port(server);
}

before(async () => {
  if (skip !== false) return;
  directory = await temporaryDirectory();
  const authority = CertificateAuthority.create();
  const leaf = authority.issueLeaf({ dns: ["a.test"] });
  const ecdsa = { cert_file: directory.file("ecdsa.pem"), key_file: directory.file("ecdsa.key") };
  const rsa = { cert_file: directory.file("rsa.pem"), key_file: directory.file("rsa.key") };
  const client = authority.issueLeaf({ dns: ["operator"] }, { purpose: "client" });
  await Promise.all([
    writeFile(ecdsa.cert_file, leaf.chainPem),
    writeFile(ecdsa.key_file, leaf.keyPem),
    writeFile(directory.file("ca.pem"), authority.certificatePem),
    writeFile(directory.file("client.pem"), client.certificatePem),
    writeFile(directory.file("client.key"), client.keyPem),
  ]);
  const made = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=a.test"];
  await runProcess(openssl.path, [...made, "-keyout", rsa.key_file, "-out", rsa.cert_file], { timeoutMs: 30_000 });
  const listener = { address: "127.0.0.1", port: 0, protocol: "https" } as const;
  gateway = await startGateway({
    listeners: [
      { name: "ecdsa", ...listener, tls: ecdsa },
      // The certificate by name has a context of its own, which has to have the same rules.
      { name: "rsa", ...listener, tls: { certificates: [{ server_names: ["a.test"], ...rsa }] } },
      { name: "named", ...listener, tls: { ...rsa, ciphers: CBC_AND_RSA } },
    ],
    routes: [],
    admin: { bind: "127.0.0.1:0", tls: { ...ecdsa, client_ca_file: directory.file("ca.pem") } },
  });
});
after(async () => {
  await gateway[Symbol.asyncDispose]();
  await directory.remove();
});

/** What `openssl s_client` says. */
async function connect(port: number, args: readonly string[], input = ""): Promise<string> {
  const common = ["s_client", "-connect", `127.0.0.1:${port}`, "-servername", "a.test"];
  const identity = ["-cert", directory.file("client.pem"), "-key", directory.file("client.key")];
  const exit = await runProcess(openssl.path, [...common, ...identity, ...args], { input, timeoutMs: 15_000 });
  return `${exit.stdout}\n${exit.stderr}`;
}

/** The suite that is agreed on with a client that offers these; `none` when there is none. */
async function agreed(port: number, offered: string): Promise<string> {
  const isOf1_3 = offered.startsWith("TLS_");
  const args = isOf1_3 ? ["-tls1_3", "-ciphersuites", offered] : ["-tls1_2", "-cipher", `${offered}:@SECLEVEL=0`];
  const said = await connect(port, args);
  const [, suite] = /^New, [\w.]+, Cipher is (\S+)/m.exec(said) ?? [];
  if (suite === undefined) assert.match(said, /handshake failure|no cipher/i);
  return suite === undefined || suite === "(NONE)" ? "none" : suite;
}

const SUITES: readonly {
  readonly offered: string;
  readonly ecdsa: string;
  readonly rsa: string;
  readonly named: string;
}[] = [
  ...["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"].map((suite) => ({
    offered: suite,
    ecdsa: suite,
    rsa: suite,
    named: suite,
  })),
  ...["AES128-GCM-SHA256", "AES256-GCM-SHA384", "CHACHA20-POLY1305"].flatMap((suite) => [
    { offered: `ECDHE-ECDSA-${suite}`, ecdsa: `ECDHE-ECDSA-${suite}`, rsa: "none", named: "none" },
    {
      offered: `ECDHE-RSA-${suite}`,
      ecdsa: "none",
      rsa: `ECDHE-RSA-${suite}`,
      named: suite === "AES128-GCM-SHA256" ? `ECDHE-RSA-${suite}` : "none",
    },
  ]),
  // CBC.
  ...["AES256-SHA384", "AES128-SHA"].flatMap((suite) => [
    { offered: `ECDHE-ECDSA-${suite}`, ecdsa: "none", rsa: "none", named: "none" },
    {
      offered: `ECDHE-RSA-${suite}`,
      ecdsa: "none",
      rsa: "none",
      named: suite === "AES128-SHA" ? `ECDHE-RSA-${suite}` : "none",
    },
  ]),
  // Without forward secrecy, the first ones with authenticated encryption.
  ...["AES128-GCM-SHA256", "AES128-SHA"].map((suite) => ({
    offered: suite,
    ecdsa: "none",
    rsa: "none",
    named: suite === "AES128-SHA" ? suite : "none",
  })),
  { offered: "DHE-RSA-AES128-GCM-SHA256", ecdsa: "none", rsa: "none", named: "DHE-RSA-AES128-GCM-SHA256" },
  // The server's order decides, except that a client that prefers ChaCha20 gets it.
  {
    offered: "AES128-SHA:ECDHE-RSA-AES256-GCM-SHA384:ECDHE-RSA-AES128-GCM-SHA256",
    ecdsa: "none",
    rsa: "ECDHE-RSA-AES128-GCM-SHA256",
    named: "ECDHE-RSA-AES128-GCM-SHA256",
  },
  {
    offered: "ECDHE-RSA-CHACHA20-POLY1305:ECDHE-RSA-AES128-GCM-SHA256",
    ecdsa: "none",
    rsa: "ECDHE-RSA-CHACHA20-POLY1305",
    named: "ECDHE-RSA-AES128-GCM-SHA256",
  },
];

test(
  "TLS: suites have forward secrecy and authenticated encryption, unless a listener names others",
  { skip },
  async () => {
    const wrong = await Promise.all(
      SUITES.flatMap(({ offered, ecdsa, rsa, named }) =>
        Object.entries({ ecdsa, rsa, named, ...(offered.includes("ECDSA-AES") ? { admin: ecdsa } : {}) }).map(
          async ([server, wanted]) => {
            const got = await agreed(portOf(server as "rsa"), offered);
            return got === wanted ? [] : [`${server}, offered ${offered}: ${got} instead of ${wanted}`];
          },
        ),
      ),
    );
    assert.deepEqual(wrong.flat(), []);
  },
);

for (const server of ["ecdsa", "rsa", "named", "admin"] as const) {
  test(`TLS 1.2: a client that asks for renegotiation is refused it (${server})`, { skip }, async () => {
    // A line with "R" makes s_client renegotiate.
    const said = await connect(portOf(server), ["-tls1_2"], "R\n");
    assert.match(said, /RENEGOTIATING/);
    assert.match(said, /no renegotiation/);
  });
}
