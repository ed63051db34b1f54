import assert from "node:assert/strict";
import type { PeerCertificate } from "node:tls";
import { test } from "node:test";
import { mayDo, operatorOf } from "./bind-operation.ts";

const certificate = {
  subject: { CN: "ada" },
  subjectaltname: 'DNS:ops.example, URI:spiffe://acme/ops, URI:"spiffe://a, URI:spiffe://forged"',
  fingerprint256: "AA:BB:" + "00:".repeat(29) + "01",
} as unknown as PeerCertificate;

const BINDINGS = [
  [{ subject: "ada" }, true],
  [{ subject: "Ada" }, false],
  [{ san_dns: "OPS.example" }, true],
  [{ san_dns: "ops.example." }, true],
  [{ san_dns: "example" }, false],
  [{ san_uri: "spiffe://acme/ops" }, true],
  [{ san_uri: "spiffe://acme/op" }, false],
  [{ san_uri: "spiffe://forged" }, false],
  [{ fingerprint: "aabb" + "00".repeat(29) + "01" }, true],
  [{ fingerprint: certificate.fingerprint256 }, true],
  [{ fingerprint: "aabb" + "00".repeat(29) + "02" }, false],
] as const;
for (const [match, isBound] of BINDINGS) {
  test(`a certificate and the binding ${JSON.stringify(match)}`, () => {
    const operator = operatorOf(certificate, [{ match, role: "operator" }]);
    assert.deepEqual(operator, { name: "ada", role: isBound ? "operator" : undefined });
  });
}

test("without bindings every certificate is an administrator", () => {
  assert.equal(operatorOf(certificate, undefined).role, "admin");
});

test("viewers read, operators also work what runs, administrators do everything", () => {
  const may = (role: Parameters<typeof mayDo>[0]): boolean[] =>
    (["config:read", "runtime:execute", "config:write"] as const).map((access) => mayDo(role, access));
  assert.deepEqual(may("viewer"), [true, false, false]);
  assert.deepEqual(may("operator"), [true, true, false]);
  assert.deepEqual(may("admin"), [true, true, true]);
});
