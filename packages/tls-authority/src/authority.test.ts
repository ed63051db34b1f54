import "../test/metadata-reflection.ts";
import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { test } from "node:test";
import * as peculiar from "@peculiar/x509";
import fc from "fast-check";
import { AuthorityError, CertificateAuthority, type LeafNames } from "./index.ts";

const authority = CertificateAuthority.create();
const caCertificate = new X509Certificate(authority.certificatePem);
const issue = (names: LeafNames): X509Certificate => new X509Certificate(authority.issueLeaf(names).certificatePem);
const dayMs = 86_400_000;
const refuses = (code: string, sentence: RegExp) => (error: unknown) =>
  error instanceof AuthorityError && error.code === code && sentence.test(error.message);

test("a CA is self-signed, has CA constraints and a name of its own", () => {
  assert.ok(caCertificate.ca);
  assert.ok(caCertificate.verify(caCertificate.publicKey));
  assert.ok(caCertificate.checkIssued(caCertificate));
  assert.match(authority.subject, /^O=Weir, CN=Weir CA [0-9a-f]{4}$/);
  assert.equal(authority.fingerprintSha256, caCertificate.fingerprint256);
  assert.ok(authority.certificateDer.equals(caCertificate.raw));
  assert.notEqual(CertificateAuthority.create().fingerprintSha256, authority.fingerprintSha256);
});

test("a CA has the requested name and dates", () => {
  const notBefore = new Date("2045-06-01T12:00:00.500Z");
  const long = CertificateAuthority.create({
    commonName: "Ünïcode & <CA>",
    organization: "Org",
    notBefore,
    validDays: 3653,
  });
  assert.equal(long.subject, String.raw`O=Org, CN=Ünïcode & \<CA\>`);
  assert.equal(long.notBefore.toISOString(), "2045-06-01T12:00:00.000Z");
  assert.equal(long.notAfter.getTime(), Date.parse("2045-06-01T12:00:00Z") + 3653 * dayMs - 1000);
  assert.ok(long.notAfter.getUTCFullYear() > 2050, "the end needs the longer form of time");
});

const badCreations = [
  { commonName: "" },
  { commonName: "x".repeat(65) },
  { organization: "line\nbreak" },
  { validDays: 0 },
  { validDays: 3654 },
  { validDays: 1.5 },
  { notBefore: new Date(NaN) },
];

for (const options of badCreations) {
  test(`a CA with ${JSON.stringify(options).slice(0, 40)} is not created`, () => {
    assert.throws(() => CertificateAuthority.create(options), refuses("invalid-option", /\.$/));
  });
}

test("whether a CA expires soon depends on the given day", () => {
  const ca = CertificateAuthority.create({ notBefore: new Date("2026-01-01T00:00:00Z"), validDays: 10 });
  const end = ca.notAfter.getTime();
  assert.equal(ca.isExpiring(end - 3 * dayMs, 2), false);
  assert.equal(ca.isExpiring(end - 3 * dayMs, 3), true);
  assert.equal(ca.isExpiring(end + 1, 0), true);
});

test("a leaf is issued by the CA for its names and nothing else", () => {
  const leaf = issue({ dns: ["Example.com", "*.example.com"], ip: ["127.0.0.1", "::1"] });
  assert.ok(leaf.verify(caCertificate.publicKey));
  assert.ok(leaf.checkIssued(caCertificate));
  assert.equal(leaf.ca, false);
  assert.deepEqual(leaf.keyUsage, ["1.3.6.1.5.5.7.3.1"]);
  assert.equal(
    leaf.subjectAltName,
    "DNS:example.com, DNS:*.example.com, IP Address:127.0.0.1, IP Address:0:0:0:0:0:0:0:1",
  );
  for (const host of ["example.com", "EXAMPLE.COM", "a.example.com"]) assert.ok(leaf.checkHost(host));
  for (const host of ["example.org", "a.b.example.com", "xexample.com"]) assert.equal(leaf.checkHost(host), undefined);
  assert.ok(leaf.checkIP("127.0.0.1") && leaf.checkIP("::1"));
  assert.equal(leaf.checkIP("127.0.0.2"), undefined);
});

test("a leaf begins a day ago, ends within 199 days, and carries the shared key", () => {
  const first = authority.issueLeaf({ dns: ["a.test"] });
  const second = CertificateAuthority.create().issueLeaf({ dns: ["b.test"] });
  assert.equal(first.keyPem, second.keyPem);
  const parsed = new X509Certificate(first.certificatePem);
  const lengthMs = parsed.validToDate.getTime() - parsed.validFromDate.getTime();
  assert.equal(lengthMs, 199 * dayMs - 1000);
  const ageMs = Date.now() - parsed.validFromDate.getTime();
  assert.ok(ageMs > dayMs - 60_000 && ageMs < dayMs + 60_000, `${ageMs}`);
  assert.deepEqual([first.notBefore, first.notAfter], [parsed.validFromDate, parsed.validToDate]);
});

test("a leaf stays within the life of its CA", () => {
  const now = Date.now();
  const young = CertificateAuthority.create({ notBefore: new Date(now - 60_000), validDays: 3 });
  const leaf = young.issueLeaf({ dns: ["a.test"] });
  assert.deepEqual([leaf.notBefore, leaf.notAfter], [young.notBefore, young.notAfter]);
  const old = CertificateAuthority.create({ notBefore: new Date(now - 30 * dayMs), validDays: 29 });
  assert.throws(
    () => old.issueLeaf({ dns: ["a.test"] }),
    refuses("expired", /^The CA certificate expired on 20..-..-..\.$/),
  );
});

test("a leaf from the years after 2049 can be read", () => {
  const late = CertificateAuthority.create({ notBefore: new Date("2049-12-01T00:00:00Z"), validDays: 100 });
  const { certificatePem } = late.issueLeaf(
    { dns: ["a.test"] },
    { notBefore: new Date("2049-12-31T23:59:59Z"), validDays: 1 },
  );
  const leaf = new X509Certificate(certificatePem);
  assert.equal(leaf.validFromDate.toISOString(), "2049-12-31T23:59:59.000Z");
  assert.equal(leaf.validToDate.toISOString(), "2050-01-01T23:59:58.000Z");
});

test("a validity that is not a whole number of days up to 199 is refused", () => {
  for (const validDays of [0, -1, 200, 1.5, NaN]) {
    assert.throws(() => authority.issueLeaf({ dns: ["a.test"] }, { validDays }), refuses("invalid-option", /1 to 199/));
  }
});

const spelledNames: [name: string, names: LeafNames, subjectAltName: string][] = [
  ["a trailing dot", { dns: ["example.com."] }, "DNS:example.com"],
  ["an underscore", { dns: ["_dmarc.a_b.test"] }, "DNS:_dmarc.a_b.test"],
  ["an IDN", { dns: ["Bücher.例え"] }, "DNS:xn--bcher-kva.xn--r8jz45g"],
  ["punycode", { dns: ["XN--BCHER-KVA.de"] }, "DNS:xn--bcher-kva.de"],
  ["one label", { dns: ["localhost"] }, "DNS:localhost"],
  ["an address among the DNS names", { dns: ["10.0.0.1", "[::1]"] }, "IP Address:10.0.0.1, IP Address:0:0:0:0:0:0:0:1"],
  ["brackets and a zone", { ip: ["[fe80::1%eth0]"] }, "IP Address:FE80:0:0:0:0:0:0:1"],
  ["an IPv4 tail", { ip: ["64:ff9b::192.0.2.33"] }, "IP Address:64:FF9B:0:0:0:0:C000:221"],
  ["one address twice", { ip: ["::1", "0:0:0:0:0:0:0:1"] }, "IP Address:0:0:0:0:0:0:0:1"],
  ["one name twice", { dns: ["a.test", "A.test."] }, "DNS:a.test"],
];

for (const [name, names, subjectAltName] of spelledNames) {
  test(`a leaf for ${name} is issued`, () => {
    assert.equal(issue(names).subjectAltName, subjectAltName);
  });
}

const badNames: LeafNames[] = [
  {},
  { dns: [""] },
  { dns: ["."] },
  { dns: ["a..b"] },
  { dns: ["a b"] },
  { dns: ["a\0.example.com"] },
  { dns: ["a,DNS:evil.test"] },
  { dns: ["a/b"] },
  { dns: ["a:443"] },
  { dns: ["*.*.test"] },
  { dns: ["x*.test"] },
  { dns: ["*"] },
  { dns: ["127.0.0.1%eth0"] },
  { dns: [`${"a".repeat(60)}.`.repeat(5)] },
  { ip: ["example.com"] },
  { ip: ["1.2.3"] },
  { ip: ["::1::"] },
  { ip: ["[127.0.0.1]"] },
];

for (const names of badNames) {
  test(`no leaf is issued for ${JSON.stringify(names).slice(0, 50)}`, () => {
    assert.throws(() => authority.issueLeaf(names), refuses("invalid-name", /\.$/));
  });
}

test("a name too long for a common name goes without subject, and the alternative name becomes critical", () => {
  const long = `${"a".repeat(60)}.${"b".repeat(60)}.test`;
  const leaf = issue({ dns: [long] });
  // Node types the subject as a string; for an empty name it is empty.
  assert.ok(!leaf.subject);
  assert.ok(leaf.checkHost(long));
  const critical = (names: LeafNames): boolean | undefined =>
    new peculiar.X509Certificate(authority.issueLeaf(names).certificatePem).getExtension("2.5.29.17")?.critical;
  assert.equal(critical({ dns: [long] }), true);
  assert.equal(critical({ dns: ["short.test"] }), false);
  assert.equal(issue({ dns: ["a".repeat(59) + ".test"] }).subject, `CN=${"a".repeat(59)}.test`);
  assert.equal(issue({ dns: [long, "short.test"] }).subject, "CN=short.test");
});

test("an independent parser finds the extensions and their flags", async () => {
  const { certificatePem } = authority.issueLeaf({ dns: ["a.test"], ip: ["10.0.0.1"] });
  const leaf = new peculiar.X509Certificate(certificatePem);
  const ca = new peculiar.X509Certificate(authority.certificatePem);
  const flags = (certificate: peculiar.X509Certificate): [string, boolean][] =>
    Array.from(certificate.extensions, ({ type, critical }) => [type, critical]);
  assert.deepEqual(flags(ca), [
    ["2.5.29.19", true],
    ["2.5.29.15", true],
    ["2.5.29.14", false],
    ["2.5.29.35", false],
  ]);
  assert.deepEqual(flags(leaf), [
    ["2.5.29.19", true],
    ["2.5.29.15", true],
    ["2.5.29.37", false],
    ["2.5.29.17", false],
    ["2.5.29.14", false],
    ["2.5.29.35", false],
  ]);
  const { digitalSignature, keyCertSign, cRLSign } = peculiar.KeyUsageFlags;
  assert.equal(ca.getExtension(peculiar.KeyUsagesExtension)?.usages, keyCertSign | cRLSign);
  assert.equal(leaf.getExtension(peculiar.KeyUsagesExtension)?.usages, digitalSignature);
  assert.equal(ca.getExtension(peculiar.BasicConstraintsExtension)?.ca, true);
  assert.equal(leaf.getExtension(peculiar.BasicConstraintsExtension)?.ca, false);
  assert.equal(
    leaf.getExtension(peculiar.AuthorityKeyIdentifierExtension)?.keyId,
    ca.getExtension(peculiar.SubjectKeyIdentifierExtension)?.keyId,
  );
  assert.ok(await leaf.verify({ publicKey: ca, date: new Date() }));
});

test("serial numbers are positive, of 128 bits, and do not repeat", () => {
  const serials = Array.from({ length: 500 }, () => issue({ dns: ["a.test"] }).serialNumber);
  assert.equal(new Set(serials).size, serials.length);
  for (const serial of serials) assert.match(serial, /^[0-9A-F]{2,32}$/);
  assert.ok(
    serials.some((serial) => /^[89A-F].{31}$/.test(serial)),
    "the top bit is random too",
  );
});

test("any host name and address gets a valid leaf", () => {
  const label = fc.stringMatching(/^[a-z0-9_]([a-z0-9_-]{0,40}[a-z0-9_])?$/);
  const name = fc.array(label, { minLength: 1, maxLength: 5 }).map((labels) => `${labels.join(".")}.test`);
  fc.assert(
    fc.property(name, fc.ipV4(), fc.ipV6(), (dns, v4, v6) => {
      const leaf = issue({ dns: [dns], ip: [v4, v6] });
      assert.ok(leaf.verify(caCertificate.publicKey));
      assert.ok(leaf.checkHost(dns));
      assert.ok(leaf.checkIP(v4));
      assert.ok(leaf.checkIP(v6));
    }),
  );
});

test("any text is issued for or refused with a sentence", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme", maxLength: 80 }), (text) => {
      try {
        assert.match(issue({ dns: [text] }).subjectAltName ?? "", /^(?:DNS:[a-z0-9_.*-]+|IP Address:[0-9A-F:.]+)$/);
      } catch (error) {
        assert.ok(error instanceof AuthorityError && error.code === "invalid-name", String(error));
      }
    }),
  );
});

test("a certificate for a client proves a client, never a server, and has a key of its own", () => {
  const authority = CertificateAuthority.create();
  const client = authority.issueLeaf({ dns: ["ops.example"] }, { purpose: "client" });
  const usage = new X509Certificate(client.certificatePem).keyUsage;
  assert.deepEqual(usage, ["1.3.6.1.5.5.7.3.2"]);
  assert.notEqual(client.keyPem, authority.issueLeaf({ dns: ["ops.example"] }).keyPem);
});
