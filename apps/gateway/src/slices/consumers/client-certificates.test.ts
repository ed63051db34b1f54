import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { test } from "node:test";
import type { Consumer } from "@headworks/gateway-contract";
import { CertificateAuthority } from "@headworks/tls-authority";
import { ClientCertificates, plainFingerprint } from "./authentication-gate.ts";

const authority = CertificateAuthority.create();

function certificateFor(dns: string): X509Certificate {
  return new X509Certificate(authority.issueLeaf({ dns: [dns] }, { purpose: "client" }).certificatePem);
}

const withCertificate = (name: string, match: { subject: string } | { fingerprint: string }): Consumer => ({
  name,
  credentials: [{ type: "mtls", ...match }],
});

function nameOf(certificates: ClientCertificates, certificate: X509Certificate): string | undefined {
  const recognition = certificates.read(certificate);
  return recognition.kind === "consumer" ? recognition.identity.name : undefined;
}

test("a certificate is known by its fingerprint, in any spelling, or by the common name of its subject", () => {
  const [byPrint, byName, stranger] = [
    certificateFor("print.test"),
    certificateFor("name.test"),
    certificateFor("else.test"),
  ];
  for (const fingerprint of [byPrint.fingerprint256, plainFingerprint(byPrint.fingerprint256).toUpperCase()]) {
    const certificates = new ClientCertificates([
      withCertificate("acme", { fingerprint }),
      withCertificate("zoo", { subject: "name.test" }),
    ]);
    assert.equal(nameOf(certificates, byPrint), "acme");
    assert.equal(nameOf(certificates, byName), "zoo");
    assert.deepEqual(certificates.read(stranger), { kind: "invalid" });
    assert.equal(nameOf(certificates, byName), "zoo", "asked again, as for each request of a connection");
  }
});

test("a fingerprint says more than a name, and a name is compared whole", () => {
  const certificate = certificateFor("name.test");
  const both = new ClientCertificates([
    withCertificate("named", { subject: "name.test" }),
    withCertificate("printed", { fingerprint: certificate.fingerprint256 }),
  ]);
  assert.equal(nameOf(both, certificate), "printed");
  for (const subject of ["name", "NAME.TEST", "CN=name.test", "name.test\nCN=x"]) {
    assert.equal(
      nameOf(new ClientCertificates([withCertificate("acme", { subject })]), certificate),
      undefined,
      subject,
    );
  }
});

/** Made once with OpenSSL for a subject with two common names: `/CN=first.test/CN=second.test`. */
const TWO_NAMES = `-----BEGIN CERTIFICATE-----
MIIBrjCCAVOgAwIBAgIUTRbPoMP676K09h941ohevCyXNZUwCgYIKoZIzj0EAwIw
KzETMBEGA1UEAwwKZmlyc3QudGVzdDEUMBIGA1UEAwwLc2Vjb25kLnRlc3QwIBcN
MjYxMTIxMTcwNzU4WhgPMjEyNjEwMjgxNzA3NThaMCsxEzARBgNVBAMMCmZpcnN0
LnRlc3QxFDASBgNVBAMMC3NlY29uZC50ZXN0MFkwEwYHKoZIzj0CAQYIKoZIzj0D
AQcDQgAEg62EV0/oqn2o/yEPPJIHGyO3Lf3qMUdiuQXCCkJqaaKgAzz9u+o7Sy4s
zcMBftRBIdu6O8bsoWhte8FkeukYMKNTMFEwHQYDVR0OBBYEFClrPTujlTyeQ1J1
4VHQktJnOrMLMB8GA1UdIwQYMBaAFClrPTujlTyeQ1J14VHQktJnOrMLMA8GA1Ud
EwEB/wQFMAMBAf8wCgYIKoZIzj0EAwIDSQAwRgIhAJ81uJ7SAN7BkFrbCSmOqpJM
U6wV6XYYygwazK9rQrhQAiEA1SMxYHc1gvOdT+WCH6T9d/7uzpdDs4FqwN5yDp6M
KsA=
-----END CERTIFICATE-----
`;
/** The same for `/O=evil\\nCN=admin.test/CN=plain.test`: a line feed inside the organization. */
const NAME_IN_ORGANIZATION = `-----BEGIN CERTIFICATE-----
MIIBuzCCAWGgAwIBAgIUChK2qLs1KiViGiTaXY26GuQ4h0owCgYIKoZIzj0EAwIw
MjEbMBkGA1UECgwSZXZpbApDTj1hZG1pbi50ZXN0MRMwEQYDVQQDDApwbGFpbi50
ZXN0MCAXDTI2MTEyMTE3MDc1OFoYDzIxMjYxMDI4MTcwNzU4WjAyMRswGQYDVQQK
DBJldmlsCkNOPWFkbWluLnRlc3QxEzARBgNVBAMMCnBsYWluLnRlc3QwWTATBgcq
hkjOPQIBBggqhkjOPQMBBwNCAARyD9J4QUcxM0uhGbbBLpWrNWTCuAEAJHObn9gF
E8joqjX95WJnZM8lnGt58pTj4aS+lT1IvdIFYueEMfBqhZsyo1MwUTAdBgNVHQ4E
FgQU/US4Hg9/mD9nPhgcXfcKt36VoJEwHwYDVR0jBBgwFoAU/US4Hg9/mD9nPhgc
XfcKt36VoJEwDwYDVR0TAQH/BAUwAwEB/zAKBggqhkjOPQQDAgNIADBFAiA23+XU
jRvQ81YKpJDhF95jpL2HhxkUif/3ILoNQvnmowIhAKiZ0gZZ4Oivt8bPypeSVVdX
tovS949z739HS5eQpwBj
-----END CERTIFICATE-----
`;

test("a subject with several common names, or with one injected into another part, is refused", () => {
  const two = new X509Certificate(TWO_NAMES);
  for (const subject of ["first.test", "second.test"]) {
    assert.equal(nameOf(new ClientCertificates([withCertificate("acme", { subject })]), two), undefined, subject);
  }
  const evil = new X509Certificate(NAME_IN_ORGANIZATION);
  assert.equal(nameOf(new ClientCertificates([withCertificate("admin", { subject: "admin.test" })]), evil), undefined);
  assert.equal(nameOf(new ClientCertificates([withCertificate("plain", { subject: "plain.test" })]), evil), "plain");
});
