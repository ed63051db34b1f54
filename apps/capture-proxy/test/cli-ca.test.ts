import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { test } from "node:test";
import { CertificateAuthority } from "@headworks/tls-authority";
import { runProcess, temporaryDirectory } from "@headworks/testkit";
import { authorityPaths, importAuthority, trustGuides } from "#cli/ca.ts";
import { openAuthorityStore } from "#slices/cert/authority-store.ts";
import type { AuthorityStore } from "#slices/cert/authority-store.ts";
import { parts } from "#main.ts";
import { MAIN, runInside, serveWeir, weir } from "./cli-rig.ts";
import type { CommandResult } from "./cli-rig.ts";

/** A command on real files, without a process of its own. */
const inside = async (args: readonly string[]): Promise<CommandResult> => await runInside(args, { parts });

test("path, show, fingerprint and export tell of the same CA, which is made once", async () => {
  await using directory = await temporaryDirectory();
  const ca = async (...args: string[]): Promise<string> => {
    const result = await weir(["ca", ...args, "--data-dir", directory.path]);
    assert.deepEqual([result.code, result.stderr], [0, ""]);
    return result.stdout;
  };
  const path = (await ca("path")).trim();
  assert.equal(path, authorityPaths(directory.file("certs")).certificate);
  const { fingerprint256 } = new X509Certificate(readFileSync(path));
  assert.equal(await ca("fingerprint"), `${fingerprint256}\n`);
  assert.equal(await ca("export"), readFileSync(path, "utf8"));
  const shown = JSON.parse(await ca("show", "--json")) as Record<string, string>;
  assert.deepEqual([shown["fingerprint_sha256"], shown["path"]], [fingerprint256, path]);
  assert.match(await ca("show"), /Subject +.*Weir CA/);
  const file = directory.file("out.der");
  await ca("export", "--der", "-o", file);
  assert.equal(new X509Certificate(readFileSync(file)).fingerprint256, fingerprint256);
  assert.equal(readFileSync(file)[0], 0x30);
});

test("an export is never written over the CA itself or another file of Weir's", async () => {
  await using directory = await temporaryDirectory();
  const paths = authorityPaths(directory.file("certs"));
  await inside(["ca", "path", "--data-dir", directory.path]);
  const key = readFileSync(paths.key, "utf8");
  for (const output of [paths.key, paths.certificate, directory.file("config.json")]) {
    const { code, stderr } = await inside(["ca", "export", "--der", "-o", output, "--data-dir", directory.path]);
    assert.deepEqual([code, stderr.includes("must not be written over")], [2, true], output);
  }
  assert.equal(readFileSync(paths.key, "utf8"), key);
});

test("binary DER goes through a pipe unchanged", async () => {
  await using directory = await temporaryDirectory();
  const script = `"${process.execPath}" "${MAIN}" ca export --der --data-dir "${directory.path}" > "${directory.file("piped.der")}"`;
  assert.equal((await runProcess("sh", ["-c", script], { timeoutMs: 30_000 })).code, 0);
  const path = authorityPaths(directory.file("certs")).certificate;
  assert.deepEqual(readFileSync(directory.file("piped.der")), new X509Certificate(readFileSync(path)).raw);
});

test("an import replaces the CA, keeps the old files, and the service uses the new one", async () => {
  await using directory = await temporaryDirectory();
  const old = (await inside(["ca", "fingerprint", "--data-dir", directory.path])).stdout.trim();
  const made = CertificateAuthority.create({ commonName: "Team CA" });
  await writeFile(directory.file("team.pem"), made.certificatePem);
  await writeFile(directory.file("team-key.pem"), made.keyPem());
  const result = await inside([
    "ca",
    "import",
    directory.file("team.pem"),
    directory.file("team-key.pem"),
    "--data-dir",
    directory.path,
  ]);
  assert.equal(result.code, 0, result.stderr);
  assert.ok(result.stdout.includes(made.fingerprintSha256));
  const paths = authorityPaths(directory.file("certs"));
  for (const path of [paths.certificate, paths.key]) assert.equal(statSync(path).mode & 0o777, 0o600);
  assert.equal(
    (await inside(["ca", "fingerprint", "--data-dir", directory.path])).stdout.trim(),
    made.fingerprintSha256,
  );
  const kept = readdirSync(directory.file("certs")).filter((name) => /^weir-ca-\d{8}T\d{6}Z\.pem$/.test(name));
  assert.deepEqual(
    kept.map((name) => new X509Certificate(readFileSync(directory.file("certs", name))).fingerprint256),
    [old],
  );
});

test("a CA that was imported is known as such until a new one replaces it", async () => {
  await using directory = await temporaryDirectory();
  const made = CertificateAuthority.create();
  await writeFile(directory.file("team.pem"), made.certificatePem);
  await writeFile(directory.file("team-key.pem"), made.keyPem());
  const certs = directory.file("certs");
  const log = { warn: () => undefined, info: () => undefined };
  const open = (): AuthorityStore => openAuthorityStore({ directory: certs, nowMs: Date.now, log });
  assert.equal(open().isImported, false);
  importAuthority(certs, directory.file("team.pem"), directory.file("team-key.pem"), "x");
  const store = open();
  assert.deepEqual([store.isImported, store.current.fingerprintSha256], [true, made.fingerprintSha256]);
  store.renew();
  assert.deepEqual([store.isImported, open().isImported], [false, false]);
});

test("files that are no CA and its key are refused, and nothing is touched", async () => {
  await using directory = await temporaryDirectory();
  const [one, two] = [CertificateAuthority.create(), CertificateAuthority.create()];
  const leaf = one.issueLeaf({ dns: ["example.com"] });
  const write = async (name: string, text: string): Promise<string> => {
    await writeFile(directory.file(name), text);
    return directory.file(name);
  };
  const good = [await write("c.pem", one.certificatePem), await write("k.pem", one.keyPem())] as const;
  importAuthority(directory.file("certs"), good[0], good[1], "x");
  const before = readdirSync(directory.file("certs"));
  const bad: readonly (readonly [string, string, RegExp])[] = [
    [good[0], await write("other.pem", two.keyPem()), /belong|match/i],
    [await write("leaf.pem", leaf.certificatePem), await write("leaf-key.pem", leaf.keyPem), /CA/],
    [good[0], await write("junk.pem", "junk"), /key/i],
    [await write("empty.pem", ""), good[1], /certificate/i],
    [directory.file("missing.pem"), good[1], /Cannot read/],
  ];
  for (const [certificate, key, sentence] of bad) {
    const { code, stderr } = await inside(["ca", "import", certificate, key, "--data-dir", directory.path]);
    assert.equal(code, 1);
    assert.match(stderr, sentence);
  }
  assert.deepEqual(readdirSync(directory.file("certs")), before);
});

test("renew asks first; without a terminal it needs --yes", async () => {
  await using directory = await temporaryDirectory();
  const fingerprint = async (): Promise<string> =>
    (await inside(["ca", "fingerprint", "--data-dir", directory.path])).stdout.trim();
  const old = await fingerprint();
  const unreachable = ["--api-url", "http://127.0.0.1:9"];
  const asked = await inside(["ca", "renew", "--data-dir", directory.path, ...unreachable]);
  assert.deepEqual([asked.code, await fingerprint()], [1, old]);
  assert.match(asked.stderr, /must trust the new one/);
  const done = await inside(["ca", "renew", "--yes", "--data-dir", directory.path, ...unreachable]);
  assert.equal(done.code, 0, done.stderr);
  assert.notEqual(done.stdout.trim(), old);
  assert.equal(await fingerprint(), done.stdout.trim());
});

test("renew goes through the service that holds the CA", async () => {
  await using served = await serveWeir();
  const done = await weir(["ca", "renew", "-y", "--data-dir", served.dataDir, "--api-url", served.api]);
  assert.equal(done.code, 0, done.stderr);
  const info = (await (await fetch(`${served.api}/api/cert/info`)).json()) as { fingerprint_sha256: string };
  assert.equal(done.stdout.trim(), info.fingerprint_sha256);
  assert.equal(
    (await weir(["ca", "fingerprint", "--data-dir", served.dataDir])).stdout.trim(),
    info.fingerprint_sha256,
  );
});

test("install-help prints commands for this system with the real path, and their opposites", async () => {
  await using directory = await temporaryDirectory();
  const { certificate } = authorityPaths(directory.file("certs"));
  const help = await inside(["ca", "install-help", "--data-dir", directory.path]);
  const here = trustGuides(certificate).filter((guide) => guide.platforms.includes(process.platform));
  assert.ok(here.length > 0);
  for (const guide of here) assert.ok(help.stdout.includes(guide.trust), guide.id);
  const undo = await inside(["ca", "install-help", "--undo", "--all", "--data-dir", directory.path]);
  for (const guide of trustGuides(certificate)) assert.ok(undo.stdout.includes(guide.undo), guide.id);
});

test("a path with a space or a quote is one word of the commands", () => {
  const [debian] = trustGuides("/my data/it's.pem");
  assert.ok(debian?.trust.startsWith(String.raw`sudo cp '/my data/it'\''s.pem' /usr`), debian?.trust);
});
