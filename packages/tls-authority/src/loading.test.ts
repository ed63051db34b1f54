import assert from "node:assert/strict";
import { generateKeyPairSync, X509Certificate } from "node:crypto";
import { writeFile, readFile } from "node:fs/promises";
import { once } from "node:events";
import { connect, createServer } from "node:tls";
import { test } from "node:test";
import { peer, runProcess, temporaryDirectory } from "@headworks/testkit";
import { AuthorityError, CertificateAuthority, type AuthorityFiles, type Leaf } from "./index.ts";

const openssl = peer("openssl");
const own = CertificateAuthority.create();
const ownFiles: AuthorityFiles = { certificatePem: own.certificatePem, keyPem: own.keyPem() };
const refuses = (code: string, sentence: RegExp) => (error: unknown) =>
  error instanceof AuthorityError && error.code === code && sentence.test(error.message);

/** A certificate created by OpenSSL with a new key; `extra` are arguments of `openssl req`. */
async function madeByOpenssl(keyArguments: readonly string[], extra: readonly string[] = []): Promise<AuthorityFiles> {
  await using directory = await temporaryDirectory();
  const [certificate, key] = [directory.file("ca.pem"), directory.file("ca.key")];
  const fixed = [
    "req",
    "-x509",
    "-nodes",
    "-subj",
    '/C=AT/O=Odd "Org"/CN=Test, CA',
    "-keyout",
    key,
    "-out",
    certificate,
  ];
  const { code, stderr } = await runProcess(openssl.path, [...fixed, "-newkey", ...keyArguments, ...extra]);
  assert.equal(code, 0, stderr);
  return { certificatePem: await readFile(certificate, "utf8"), keyPem: await readFile(key, "utf8") };
}

async function strictlyVerified(caPem: string, leaf: Leaf): Promise<string> {
  await using directory = await temporaryDirectory();
  await writeFile(directory.file("ca.pem"), caPem);
  await writeFile(directory.file("leaf.pem"), leaf.certificatePem);
  const check = [
    "verify",
    "-x509_strict",
    "-check_ss_sig",
    "-purpose",
    "sslserver",
    "-CAfile",
    directory.file("ca.pem"),
  ];
  const { code, stdout, stderr } = await runProcess(openssl.path, [...check, directory.file("leaf.pem")]);
  return code === 0 ? "OK" : stdout + stderr;
}

/** A handshake over loopback; returns the client's verdict about the server. */
async function handshake(ca: string, leaf: Leaf, servername: string): Promise<string> {
  const server = createServer({ cert: leaf.chainPem, key: leaf.keyPem }, (socket) => socket.end());
  server.on("tlsClientError", () => undefined);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  assert.ok(address !== null && typeof address === "object");
  const client = connect({ port: address.port, host: "127.0.0.1", servername, ca });
  try {
    await once(client, "secureConnect");
    return client.authorized ? `${client.getProtocol()}` : "not authorized";
  } catch (error) {
    return String(error);
  } finally {
    client.destroy();
    server.close();
  }
}

test("a CA is loaded from what it gave and issues for the same trust", async () => {
  const again = CertificateAuthority.load(ownFiles);
  assert.equal(again.fingerprintSha256, own.fingerprintSha256);
  assert.equal(again.keyPem(), own.keyPem());
  assert.equal(await handshake(own.certificatePem, again.issueLeaf({ dns: ["a.test"] }), "a.test"), "TLSv1.3");
  assert.match(await handshake(own.certificatePem, again.issueLeaf({ dns: ["a.test"] }), "b.test"), /altnames/);
  const stranger = CertificateAuthority.create().issueLeaf({ dns: ["a.test"] });
  assert.match(await handshake(own.certificatePem, stranger, "a.test"), /self-signed certificate in certificate chain/);
});

test("the key does not show when a CA is printed or serialized", async () => {
  const { inspect } = await import("node:util");
  assert.ok(!/PRIVATE/.test(JSON.stringify(own) + inspect(own, { depth: 9, showHidden: true })));
});

test("leaves stand OpenSSL's strict verification", { skip: openssl.skip }, async () => {
  const long = `${"a".repeat(60)}.${"b".repeat(60)}.test`;
  for (const names of [{ dns: ["a.test"] }, { dns: [long] }, { ip: ["::1", "10.0.0.1"] }]) {
    assert.equal(await strictlyVerified(own.certificatePem, own.issueLeaf(names)), "OK");
  }
  const other = CertificateAuthority.create();
  assert.match(
    await strictlyVerified(other.certificatePem, own.issueLeaf({ dns: ["a.test"] })),
    /unable to get local issuer/,
  );
});

const importable: [name: string, keyArguments: string[]][] = [
  ["EC P-256", ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"]],
  ["EC P-384", ["ec", "-pkeyopt", "ec_paramgen_curve:P-384"]],
  ["RSA", ["rsa:2048"]],
];

for (const [name, keyArguments] of importable) {
  test(`a foreign ${name} CA issues leaves that verify strictly and work`, { skip: openssl.skip }, async () => {
    const files = await madeByOpenssl(keyArguments, ["-addext", "keyUsage=critical,keyCertSign"]);
    const foreign = CertificateAuthority.load(files);
    assert.equal(foreign.subject, 'C=AT, O=Odd \\"Org\\", CN=Test\\, CA');
    const leaf = foreign.issueLeaf({ dns: ["a.test"] });
    assert.equal(await strictlyVerified(foreign.certificatePem, leaf), "OK");
    assert.equal(await handshake(files.certificatePem, leaf, "a.test"), "TLSv1.3");
  });
}

test("a CA without a key identifier can issue too", { skip: openssl.skip }, async () => {
  const bare = ["-addext", "subjectKeyIdentifier=none", "-addext", "authorityKeyIdentifier=none"];
  const files = await madeByOpenssl(["ec", "-pkeyopt", "ec_paramgen_curve:P-256"], bare);
  const leaf = CertificateAuthority.load(files).issueLeaf({ dns: ["a.test"] });
  assert.equal(await handshake(files.certificatePem, leaf, "a.test"), "TLSv1.3");
});

test("the issuers behind an imported CA go into the chain", () => {
  const root = CertificateAuthority.create();
  const bundle = `comment\n${own.certificatePem}between\r\n${root.certificatePem}`;
  const { chainPem } = CertificateAuthority.load({ ...ownFiles, certificatePem: bundle }).issueLeaf({
    dns: ["a.test"],
  });
  const chain = chainPem.match(/-----BEGIN[^]+?END CERTIFICATE-----/g) ?? [];
  const fingerprints = chain.slice(1).map((pem) => new X509Certificate(pem).fingerprint256);
  assert.deepEqual(fingerprints, [own.fingerprintSha256, root.fingerprintSha256]);
});

const otherKey = (type: "P-256" | "P-521"): string =>
  generateKeyPairSync("ec", { namedCurve: type }).privateKey.export({ type: "pkcs8", format: "pem" }).toString();
const encryptedKey = generateKeyPairSync("ec", {
  namedCurve: "P-256",
  privateKeyEncoding: { type: "pkcs8", format: "pem", cipher: "aes-256-cbc", passphrase: "x" },
  publicKeyEncoding: { type: "spki", format: "pem" },
}).privateKey;
const smallRsa = generateKeyPairSync("rsa", {
  modulusLength: 1024,
  privateKeyEncoding: { type: "pkcs1", format: "pem" },
  publicKeyEncoding: { type: "spki", format: "pem" },
}).privateKey;
const leafFiles = own.issueLeaf({ dns: ["a.test"] });

const refused: [name: string, files: AuthorityFiles, code: string, sentence: RegExp][] = [
  ["no certificate", { ...ownFiles, certificatePem: "" }, "unreadable-certificate", /no PEM certificate/],
  [
    "the key in place of the certificate",
    { ...ownFiles, certificatePem: own.keyPem() },
    "unreadable-certificate",
    /no PEM/,
  ],
  [
    "a damaged certificate",
    { ...ownFiles, certificatePem: own.certificatePem.replace("MII", "AAA") },
    "unreadable-certificate",
    /damaged/,
  ],
  ["no key", { ...ownFiles, keyPem: "" }, "unreadable-key", /cannot be read/],
  ["an encrypted key", { ...ownFiles, keyPem: encryptedKey }, "unreadable-key", /passphrase/],
  ["another key", { ...ownFiles, keyPem: otherKey("P-256") }, "key-mismatch", /does not belong/],
  ["a P-521 key", { ...ownFiles, keyPem: otherKey("P-521") }, "unsupported-key", /secp521r1/],
  ["a small RSA key", { ...ownFiles, keyPem: smallRsa }, "unsupported-key", /1024 bits/],
  ["a leaf", leafFiles, "not-a-ca", /not a CA certificate/],
];

for (const [name, files, code, sentence] of refused) {
  test(`a CA with ${name} is refused with a sentence`, () => {
    assert.throws(() => CertificateAuthority.load(files), refuses(code, sentence));
  });
}

test("an expired CA is refused, and the moment of asking counts", () => {
  assert.throws(() => CertificateAuthority.load(ownFiles, own.notAfter), refuses("expired", /expired on 20/));
  const lastMoment = new Date(own.notAfter.getTime() - 1000);
  assert.equal(CertificateAuthority.load(ownFiles, lastMoment).subject, own.subject);
});

const limited: [name: string, extension: string, sentence: RegExp][] = [
  ["may not sign certificates", "keyUsage=critical,digitalSignature", /not a CA certificate/],
  ["is for signing mail only", "extendedKeyUsage=emailProtection", /purposes other than TLS servers/],
];

for (const [name, extension, sentence] of limited) {
  test(`a CA that ${name} is refused`, { skip: openssl.skip }, async () => {
    const files = await madeByOpenssl(["ec", "-pkeyopt", "ec_paramgen_curve:P-256"], ["-addext", extension]);
    assert.throws(() => CertificateAuthority.load(files), refuses("not-a-ca", sentence));
  });
}

test("issuing takes less than a fifth of a millisecond", () => {
  for (let index = 0; index < 200; index += 1) own.issueLeaf({ dns: [`warm${index}.test`] });
  const rounds = Array.from({ length: 20 }, () => {
    const start = performance.now();
    for (let index = 0; index < 50; index += 1) own.issueLeaf({ dns: [`host${index}.test`] });
    return (performance.now() - start) / 50;
  });
  const bestMs = Math.min(...rounds);
  assert.ok(bestMs < 0.2, `${bestMs} ms in the best round`);
});
