import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { mkdir, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname } from "node:path";
import { after, before, describe, test } from "node:test";
import { CertificateAuthority } from "@headworks/tls-authority";
import { peer, runProcess, startOrigin, temporaryDirectory, waitUntil } from "@headworks/testkit";
import type { Exit, Origin, TemporaryDirectory } from "@headworks/testkit";
import {
  CA_VARIABLES,
  clientEnvironment,
  der,
  derObjectId,
  javaTrustStore,
  writeTrustFiles,
} from "#cli/client-environment.ts";

import { reachable } from "#cli/run-command.ts";
import { MAIN, serveWeir, startWeir, weir } from "./cli-rig.ts";
import type { ServingWeir } from "./cli-rig.ts";

let origin: Origin;
let directory: TemporaryDirectory;
/** A Weir that runs beside the tests and trusts the origin: what a program gets does not depend on whose proxy it is. */
let served: ServingWeir;
before(async () => {
  directory = await temporaryDirectory();
  origin = await startOrigin({
    tls: true,
    handler: (_request, response) => void response.end("hello from the origin"),
  });
  await writeFile(directory.file("origin-ca.pem"), origin.caPem ?? "");
  served = await serveWeir(["--upstream-ca", directory.file("origin-ca.pem")]);
});
after(async () => {
  await served[Symbol.asyncDispose]();
  await origin.close();
  await directory.remove();
});

/** `weir run` with that Weir. */
async function runShared(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Exit> {
  return await weir(["run", ...args], { env: { ...env, WEIR_API_URL: served.api }, timeoutMs: 60_000 });
}

const FACTS = {
  proxyUrl: "http://127.0.0.1:8888",
  apiUrl: "http://127.0.0.1:3001",
  noProxy: "",
  trust: { bundle: "/t/bundle.pem", extra: "/t/extra.pem", javaStore: "/t/store.p12", wgetrc: "/t/wgetrc" },
};

test("a program gets proxy and trust variables, and its other variables stay", () => {
  const env = clientEnvironment(
    { HOME: "/home/a", NO_PROXY: "localhost", no_proxy: "x", JAVA_TOOL_OPTIONS: "-Xmx1g" },
    FACTS,
  );
  for (const name of ["http_proxy", "HTTPS_PROXY", "all_proxy"]) assert.equal(env[name], FACTS.proxyUrl);
  assert.equal(env["NO_PROXY"] ?? env["no_proxy"], undefined);
  assert.equal(env["SSL_CERT_FILE"], FACTS.trust.bundle);
  assert.equal(env["NODE_EXTRA_CA_CERTS"], FACTS.trust.extra);
  assert.equal(env["NODE_USE_ENV_PROXY"], "1");
  assert.equal(env["WEIR_API_URL"], FACTS.apiUrl);
  assert.equal(env["HOME"], "/home/a");
  assert.match(
    env["JAVA_TOOL_OPTIONS"] ?? "",
    /^-Xmx1g -Dhttp\.proxyHost=127\.0\.0\.1 -Dhttp\.proxyPort=8888 .*trustStore=\/t\/store\.p12 /,
  );
});

test("Java gets hosts to reach directly in its own spelling, addresses without brackets, and paths with spaces quoted", () => {
  const facts = {
    ...FACTS,
    noProxy: "localhost, .example.com",
    trust: { ...FACTS.trust, javaStore: "/my dir/s.p12" },
    proxyUrl: "http://[::1]:8888",
  };
  const options = clientEnvironment({}, facts)["JAVA_TOOL_OPTIONS"] ?? "";
  assert.ok(options.includes("-Dhttp.nonProxyHosts=localhost|*.example.com"));
  assert.ok(options.includes('"-Djavax.net.ssl.trustStore=/my dir/s.p12"'));
  assert.ok(options.includes("-Dhttps.proxyHost=::1 "));
});

test("trust files hold the system's roots, the user's and the CA, readable by nobody else, and go away", async () => {
  await using directory = await temporaryDirectory();
  const [ours, users] = [CertificateAuthority.create(), CertificateAuthority.create()];
  await writeFile(directory.file("corporate.pem"), `# a comment\n${users.certificatePem}`);
  await writeFile(directory.file("wgetrc"), "quiet = on");
  const files = writeTrustFiles(ours.certificatePem, {
    REQUESTS_CA_BUNDLE: directory.file("corporate.pem"),
    SSL_CERT_FILE: directory.file("none"),
    WGETRC: directory.file("wgetrc"),
  });
  const fingerprints = (path: string): string[] =>
    (readFileSync(path, "utf8").match(/-----BEGIN[^-]+-----[^-]+-----END[^-]+-----/g) ?? []).map(
      (pem) => new X509Certificate(pem).fingerprint256,
    );
  const all = fingerprints(files.bundle);
  assert.ok(all.length > 20, `${all.length} roots`);
  assert.equal(new Set(all).size, all.length);
  for (const authority of [ours, users]) assert.ok(all.includes(authority.fingerprintSha256));
  assert.deepEqual(fingerprints(files.extra), [ours.fingerprintSha256, users.fingerprintSha256]);
  assert.equal(readFileSync(files.wgetrc, "utf8"), `quiet = on\nca_certificate = ${files.bundle}\n`);
  for (const name of readdirSync(files.directory)) {
    assert.equal((await stat(`${files.directory}/${name}`)).mode & 0o777, 0o600, name);
  }
  assert.equal((await stat(files.directory)).mode & 0o777, 0o700);
  files.remove();
  assert.equal(existsSync(files.directory), false);
});

test("DER lengths and identifiers are written as X.690 says", () => {
  assert.deepEqual([...der(0x04, Buffer.alloc(127)).subarray(0, 2)], [0x04, 0x7f]);
  assert.deepEqual([...der(0x04, Buffer.alloc(128)).subarray(0, 3)], [0x04, 0x81, 0x80]);
  assert.deepEqual([...der(0x04, Buffer.alloc(65_536)).subarray(0, 5)], [0x04, 0x83, 0x01, 0x00, 0x00]);
  assert.equal(derObjectId("1.2.840.113549").toString("hex"), "06062a864886f70d");
  assert.equal(derObjectId("2.5.29.37.0").toString("hex"), "0604551d2500");
});

const openssl = peer("openssl");
test("OpenSSL reads the Java trust store as PKCS #12 without a password", { skip: openssl.skip }, async () => {
  await using directory = await temporaryDirectory();
  const authorities = [CertificateAuthority.create(), CertificateAuthority.create()];
  await writeFile(
    directory.file("store.p12"),
    javaTrustStore(authorities.map((authority) => authority.certificateDer)),
  );
  const { stdout, stderr } = await runProcess(openssl.path, [
    "pkcs12",
    "-in",
    directory.file("store.p12"),
    "-nokeys",
    "-nomacver",
    "-passin",
    "pass:",
  ]);
  const found = (stdout.match(/-----BEGIN[^-]+-----[^-]+-----END[^-]+-----/g) ?? []).map(
    (pem) => new X509Certificate(pem).fingerprint256,
  );
  assert.deepEqual(
    found,
    authorities.map((authority) => authority.fingerprintSha256),
    stderr,
  );
});

const keytool = peer("keytool");
test("Java's own keytool lists the store's certificates as trusted", { skip: keytool.skip }, async () => {
  await using directory = await temporaryDirectory();
  const authority = CertificateAuthority.create();
  await writeFile(directory.file("store.p12"), javaTrustStore([authority.certificateDer]));
  const { stdout } = await runProcess(
    keytool.path,
    ["-list", "-keystore", directory.file("store.p12"), "-storetype", "PKCS12"],
    { input: "\n", timeoutMs: 60_000 },
  );
  assert.match(stdout, /trustedCertEntry/);
  assert.ok(stdout.includes(authority.fingerprintSha256), stdout);
});

test("a listener on every address is reached where the API was reached", () => {
  assert.equal(reachable("http://0.0.0.0:8888", "http://192.0.2.1:3001"), "http://192.0.2.1:8888");
  assert.equal(reachable("http://[::]:8888", "http://127.0.0.1:3001"), "http://127.0.0.1:8888");
  assert.equal(reachable("http://127.0.0.1:8888", "http://localhost:3001"), "http://127.0.0.1:8888");
});

const codes: readonly (readonly [string, readonly string[], number])[] = [
  ["succeeds", ["true"], 0],
  ["fails", ["false"], 1],
  ["exits with 42", ["sh", "-c", "exit 42"], 42],
  ["is ended by SIGKILL", ["sh", "-c", "kill -KILL $$"], 137],
  ["is ended by SIGTERM", ["sh", "-c", "kill -TERM $$"], 143],
  ["does not exist", ["/no/such/program"], 127],
  ["cannot be executed", ["/etc/passwd"], 126],
];
describe("weir run ends as the program ends", () => {
  for (const [how, command, code] of codes) {
    test(`a program that ${how} gives ${code}`, async () => {
      const result = await runShared(["--", ...command]);
      assert.equal(result.code, code, result.stderr);
      if (code < 126 || code > 127) assert.deepEqual([result.stdout, result.stderr], ["", ""]);
    });
  }
});

describe("weir run with real programs over HTTPS", () => {
  const programs: readonly (readonly [string, (url: string) => string[]])[] = [
    ["curl", (url) => ["-sS", url]],
    ["wget", (url) => ["-qO-", url]],
    ["python3", (url) => ["-c", `import urllib.request as u; print(u.urlopen("${url}").read().decode(), end="")`]],
    ["node", (url) => ["-e", `fetch("${url}").then(async (r) => process.stdout.write(await r.text()))`]],
    ["git", (url) => ["ls-remote", `${url}/repo.git`]],
  ];
  for (const [name, args] of programs) {
    const program = name === "node" ? { path: process.execPath, skip: false as const } : peer(name);
    test(`${name} is captured and trusts the CA without being told`, { skip: program.skip }, async () => {
      const before = origin.requests.length;
      const result = await runShared(["--summary", "--", program.path, ...args(origin.url)], {
        NO_PROXY: "127.0.0.1,localhost",
      });
      assert.match(result.stderr, new RegExp(`GET +200 +${origin.url}`), result.stderr);
      assert.ok(origin.requests.length > before);
      if (name !== "git") assert.deepEqual([result.code, result.stdout], [0, "hello from the origin"]);
    });
  }

  const java = peer("java");
  test("Java's HttpClient is captured and trusts the CA without being told", { skip: java.skip }, async () => {
    const source = directory.file("Get.java");
    await writeFile(
      source,
      `import java.net.URI; import java.net.http.*;
       class Get { public static void main(String[] a) throws Exception {
         System.out.print(HttpClient.newHttpClient().send(HttpRequest.newBuilder(URI.create(a[0])).build(), HttpResponse.BodyHandlers.ofString()).body()); } }`,
    );
    const result = await runShared([
      "--summary",
      "--",
      java.path,
      source,
      origin.url.replace("127.0.0.1", "localhost"),
    ]);
    assert.deepEqual([result.code, result.stdout], [0, "hello from the origin"], result.stderr);
    assert.match(result.stderr, /GET +200 +https:\/\/localhost/);
  });

  test("--summary prints a table and totals on standard error, standard output stays the program's", async () => {
    const curl = peer("curl");
    if (curl.skip !== false) return;
    const trusting = ["--upstream-ca", directory.file("origin-ca.pem")];
    const result = await weir(["run", ...trusting, "--summary", "--", curl.path, "-sS", `${origin.url}/a?b=c`]);
    assert.equal(result.stdout, "hello from the origin");
    assert.match(result.stderr, /Method +Status +URL/);
    assert.ok(result.stderr.includes(`${origin.url}/a?b=c`));
    assert.match(result.stderr, /weir: 1 exchange, .* sent, .* received\n$/);
  });

  test("a HAR file that cannot be written is said before the program runs", async () => {
    const result = await runShared(["--har", directory.file("no", "such", "folder.har"), "--", "echo", "ran"]);
    assert.deepEqual([result.code, result.stdout], [1, ""]);
    assert.match(result.stderr, /^weir: Cannot write .*folder\.har: /);
  });
});

test("the program's standard streams are the terminal's own", async () => {
  const result = await weir(["run", "--isolated", "--", "sh", "-c", "cat; echo err >&2"], { input: "through\n" });
  assert.deepEqual(result, { code: 0, signal: null, stdout: "through\n", stderr: "err\n" });
});

test("flags after the program belong to it, with and without dashes before it", async () => {
  const echo = ["sh", "-c", 'echo "$@"', "sh", "--har", "x", "-v", "--", "--json"];
  assert.equal((await runShared(echo)).stdout, "--har x -v -- --json\n");
  assert.equal((await runShared(["--", ...echo])).stdout, "--har x -v -- --json\n");
});

test("a signal sent to weir reaches the program, whose answer to it counts", async () => {
  const script = 'trap "echo got it; exit 7" TERM; echo ready; while :; do sleep 0.05; done';
  await using child = await startWeir(["run", "--isolated", "--", "sh", "-c", script]);
  await child.waitForOutput(/ready/, 30_000);
  process.kill(child.pid, "SIGTERM");
  const exit = await child.exited;
  assert.deepEqual([exit.code, exit.stdout], [7, "ready\ngot it\n"]);
});

test("nothing is left behind by a run without a directory of its own", async () => {
  await using directory = await temporaryDirectory();
  const result = await weir(["run", "--isolated", "--", "sh", "-c", 'echo "$SSL_CERT_FILE"'], {
    env: { TMPDIR: directory.path },
  });
  assert.equal(result.code, 0);
  const bundle = result.stdout.trim();
  assert.ok(bundle.startsWith(directory.path) && bundle !== tmpdir(), bundle);
  assert.equal(existsSync(dirname(bundle)), false);
  assert.deepEqual(readdirSync(directory.path), []);
});

interface Session {
  readonly id: string;
  readonly name: string;
  readonly is_current: boolean;
  readonly request_count: number;
}

async function sessions(): Promise<readonly Session[]> {
  return (await (await fetch(`${served.api}/api/sessions`)).json()) as Session[];
}

test("with a Weir running, a run gets a session there, and the former session is active again afterwards", async () => {
  const curl = peer("curl");
  if (curl.skip !== false) return;
  const active = (await sessions()).find((session) => session.is_current);
  const result = await runShared(["--session", "my run", "--", curl.path, "-sS", origin.url]);
  assert.deepEqual([result.code, result.stdout], [0, "hello from the origin"], result.stderr);
  await waitUntil(
    async () => (await sessions()).some((session) => session.name === "my run" && session.request_count === 1),
    { what: "the entry in its session" },
  );
  assert.equal((await sessions()).find((session) => session.is_current)?.id, active?.id);
});

test("with a Weir running, a run without a name goes to the active session, where people are looking", async () => {
  const count = async (): Promise<number> =>
    ((await (await fetch(`${served.api}/api/traffic/count`)).json()) as { count: number }).count;
  const [already, there] = [await count(), await sessions()];
  const script = "fetch(process.argv[1]).then(r=>r.text())";
  const result = await runShared(["--", process.execPath, "-e", script, `${origin.url}/seen`]);
  assert.equal(result.code, 0, result.stderr);
  await waitUntil(async () => (await count()) === already + 1, { what: "the entry in the active session" });
  assert.equal((await sessions()).length, there.length);
});

test("a directory that is kept holds one session for each run, and weir inside a run speaks to its service past the proxy", async () => {
  const kept = directory.file("kept");
  await mkdir(kept);
  const first = await weir(["run", "--data-dir", kept, "--session", "first", "--", "true"]);
  assert.equal(first.code, 0, first.stderr);
  const inside = [process.execPath, MAIN, "sessions", "list", "--json"];
  const listed = await weir(["run", "--data-dir", kept, "--session", "second", "--", ...inside]);
  const names = (JSON.parse(listed.stdout) as { name: string }[]).map((session) => session.name);
  for (const name of ["first", "second"]) assert.ok(names.includes(name), names.join());
});

test("every variable that names certificates today is replaced by ours", () => {
  const parent = Object.fromEntries(CA_VARIABLES.map((name) => [name, "/old"]));
  const env = clientEnvironment(parent, FACTS);
  for (const name of CA_VARIABLES) assert.ok([FACTS.trust.bundle, FACTS.trust.extra].includes(env[name] ?? ""), name);
});
