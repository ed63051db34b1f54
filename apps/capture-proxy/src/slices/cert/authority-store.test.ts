import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { temporaryDirectory } from "@headworks/testkit";
import type { TemporaryDirectory } from "@headworks/testkit";
import { CertificateAuthority } from "@headworks/tls-authority";
import { AuthorityStoreError, openAuthorityStore } from "./authority-store.ts";
import type { AuthorityStore, ImportedFiles } from "./authority-store.ts";

const DAY_MS = 86_400_000;

function open(
  directory: TemporaryDirectory,
  options: { imported?: ImportedFiles; nowMs?: number; warnings?: string[] } = {},
): AuthorityStore {
  return openAuthorityStore({
    directory: directory.file("certs"),
    nowMs: () => options.nowMs ?? Date.now(),
    log: { warn: (_facts, message) => void options.warnings?.push(message), info: () => undefined },
    ...(options.imported ? { imported: options.imported } : {}),
  });
}

const certs = (directory: TemporaryDirectory): string[] => readdirSync(directory.file("certs")).sort();

test("the first start makes a CA in private files, later ones load the same", async () => {
  await using directory = await temporaryDirectory();
  const first = open(directory);
  assert.deepEqual(certs(directory), ["weir-ca-key.pem", "weir-ca.pem"]);
  assert.equal(statSync(directory.file("certs")).mode & 0o777, 0o700);
  assert.equal(statSync(directory.file("certs", "weir-ca-key.pem")).mode & 0o777, 0o600);
  assert.equal(readFileSync(first.certificatePath, "utf8"), first.current.certificatePem);
  assert.equal(first.isImported, false);
  assert.equal(open(directory).current.fingerprintSha256, first.current.fingerprintSha256);
});

test("a renewal replaces the CA, keeps the old files and tells who asked", async () => {
  await using directory = await temporaryDirectory();
  const store = open(directory);
  const old = store.current;
  const told: string[] = [];
  const stop = store.onChange((authority) => told.push(authority.fingerprintSha256));
  store.renew();
  stop();
  store.renew();
  assert.notEqual(store.current.fingerprintSha256, old.fingerprintSha256);
  assert.equal(told.length, 1);
  assert.equal(certs(directory).length, 6);
  const kept = certs(directory).map((name) => readFileSync(directory.file("certs", name), "utf8"));
  assert.ok(kept.includes(old.certificatePem));
  assert.ok(kept.includes(old.keyPem()));
  for (const name of certs(directory)) assert.equal(statSync(directory.file("certs", name)).mode & 0o077, 0, name);
  assert.equal(open(directory).current.fingerprintSha256, store.current.fingerprintSha256);
});

test("a key without a certificate is a start that was interrupted: a new CA is made, the key is not overwritten", async () => {
  await using directory = await temporaryDirectory();
  open(directory);
  const key = readFileSync(directory.file("certs", "weir-ca-key.pem"), "utf8");
  rmSync(directory.file("certs", "weir-ca.pem"));
  const store = open(directory);
  assert.notEqual(store.current.keyPem(), key);
  const aside = certs(directory).find((name) => name.startsWith("weir-ca-key.pem.unused-"));
  assert.equal(readFileSync(directory.file("certs", aside ?? ""), "utf8"), key);
});

test("files that cannot be used stop the start with a sentence and stay as they are", async () => {
  const damage: readonly (readonly [string, (directory: TemporaryDirectory) => unknown, RegExp])[] = [
    [
      "no key",
      (directory) => rmSync(directory.file("certs", "weir-ca-key.pem")),
      /weir-ca-key\.pem is missing: put it back, or remove/,
    ],
    [
      "garbage",
      (directory) => writeFileSync(directory.file("certs", "weir-ca.pem"), "garbage"),
      /cannot be used: The CA certificate file holds no PEM certificate/,
    ],
    ["empty", (directory) => writeFileSync(directory.file("certs", "weir-ca.pem"), ""), /cannot be used/],
    [
      "other key",
      (directory) => writeFileSync(directory.file("certs", "weir-ca-key.pem"), CertificateAuthority.create().keyPem()),
      /does not belong to the CA certificate$/,
    ],
    [
      "huge",
      (directory) => writeFileSync(directory.file("certs", "weir-ca.pem"), Buffer.alloc(2_000_000)),
      /too large for a PEM file/,
    ],
    [
      "folder",
      (directory) => (
        rmSync(directory.file("certs", "weir-ca.pem")),
        mkdirSync(directory.file("certs", "weir-ca.pem"))
      ),
      /Cannot read/,
    ],
  ];
  for (const [what, spoil, message] of damage) {
    await using directory = await temporaryDirectory();
    open(directory);
    spoil(directory);
    const before = certs(directory);
    assert.throws(
      () => open(directory),
      (error) => error instanceof AuthorityStoreError && message.test(error.message),
      what,
    );
    assert.deepEqual(certs(directory), before, what);
  }
});

test("an expired CA of our own is replaced at the start, with a warning", async () => {
  await using directory = await temporaryDirectory();
  const old = open(directory).current.fingerprintSha256;
  const warnings: string[] = [];
  const store = open(directory, { nowMs: Date.now() + 2000 * DAY_MS, warnings });
  assert.notEqual(store.current.fingerprintSha256, old);
  assert.match(warnings[0] ?? "", /expired/);
  assert.equal(certs(directory).length, 4);
});

test("a key that others could read is made private again", async () => {
  await using directory = await temporaryDirectory();
  open(directory);
  const key = directory.file("certs", "weir-ca-key.pem");
  chmodSync(key, 0o644);
  const warnings: string[] = [];
  open(directory, { warnings });
  assert.equal(statSync(key).mode & 0o777, 0o600);
  assert.equal(warnings.length, 1);
});

test("a CA made elsewhere is used where it lies and never renewed by us", async () => {
  await using directory = await temporaryDirectory();
  const [key, certificate] = [directory.file("ca.key"), directory.file("ca.crt")];
  execFileSync(
    "openssl",
    [
      "req",
      "-x509",
      "-newkey",
      "rsa:2048",
      "-nodes",
      "-keyout",
      key,
      "-out",
      certificate,
      "-days",
      "30",
      "-subj",
      "/CN=Elsewhere",
    ],
    { stdio: "ignore" },
  );
  const store = open(directory, { imported: { certificateFile: certificate, keyFile: key } });
  assert.equal(store.isImported, true);
  assert.equal(store.certificatePath, certificate);
  assert.match(store.current.subject, /Elsewhere/);
  assert.equal(existsSync(directory.file("certs")), false);
  assert.throws(() => store.renew(), AuthorityStoreError);
  assert.match(store.current.issueLeaf({ dns: ["a.test"] }).chainPem, /BEGIN CERTIFICATE/);
});
