import assert from "node:assert/strict";
import { existsSync, readFileSync, readdirSync, statSync } from "node:fs";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { proxyClient, rawClient, startOrigin, startRawServer, temporaryDirectory, waitUntil } from "@headworks/testkit";
import { CertificateAuthority } from "@headworks/tls-authority";
import { banner } from "#cli/serve.ts";
import { shellQuoted } from "#cli/terminal.ts";
import { parts } from "#main.ts";
import { runInside, serveWeir, startWeir, weir, window } from "./cli-rig.ts";
import type { ServingWeir } from "./cli-rig.ts";

const port = (url: string): number => Number(new URL(url).port);

test("serve without JSON", async (context) => {
  await using directory = await temporaryDirectory();
  await using child = await startWeir(["-p", "0", "--api-port", "0", "--data-dir", directory.path], {
    env: { RUST_LOG: "loud,info" },
  });
  await child.waitForOutput(/Press Ctrl\+C to stop/, 30_000);
  await child.waitForOutput(/Weir has started/, 30_000);
  const text = child.stdout();
  const exit = await child.stop("SIGTERM");

  await context.test("prints addresses, the CA and its fingerprint, and ends with 0 when asked to", () => {
    assert.match(text, /Proxy +http:\/\/127\.0\.0\.1:\d+\n/);
    assert.match(text, /Web UI, API +http:\/\/127\.0\.0\.1:\d+\n/);
    assert.match(text, /SHA-256 ([0-9A-F]{2}:){31}[0-9A-F]{2}\n/);
    assert.ok(text.includes(directory.path));
    assert.deepEqual([exit.code, exit.signal], [0, null]);
  });

  await context.test("writes the log to standard output and to its file, which is for its owner alone", () => {
    assert.equal(exit.stderr, "");
    const path = directory.file("logs/weir.log");
    const file = readFileSync(path, "utf8");
    assert.match(file, /WARN {2}Parts of the log level are not valid variable=RUST_LOG unread=\["loud"\]\n/);
    assert.match(file, /INFO {2}Weir has started .*\n(?:.*\n)*.* INFO {2}Weir has stopped\n$/);
    for (const line of file.trimEnd().split("\n")) assert.ok(exit.stdout.includes(line), line);
    assert.equal(statSync(path).mode & 0o777, 0o600);
    assert.equal(statSync(directory.file("logs")).mode & 0o777, 0o700);
  });
});

test("serve --json", async (context) => {
  await using directory = await temporaryDirectory();
  const authority = CertificateAuthority.create({ commonName: "Ours already" });
  const [certificate, key] = [directory.file("ours.pem"), directory.file("ours-key.pem")];
  await writeFile(certificate, authority.certificatePem);
  await writeFile(key, authority.keyPem());
  const elsewhere = ["--ca-cert-file", certificate, "--ca-key-file", key];
  await using text = await serveWeir([], { WEIR_LOG: "trace" });
  await using json = await serveWeir(["--log-json", ...elsewhere], { WEIR_LOG: "trace" });
  await using quiet = await serveWeir([], { WEIR_LOG: "off" });

  await context.test("prints one line that a program can use", async () => {
    const line = JSON.parse(text.process.stdout()) as Record<string, unknown>;
    assert.deepEqual(Object.keys(line).toSorted(), [
      "api",
      "certificate",
      "data_dir",
      "fingerprint_sha256",
      "pid",
      "proxy",
      "version",
    ]);
    assert.equal(line["pid"], text.process.pid);
    assert.equal((await fetch(`${text.api}/health`)).status, 200);
  });

  await context.test("uses a CA made elsewhere without touching its files", async () => {
    const facts = JSON.parse(json.process.stdout()) as { certificate: string; fingerprint_sha256: string };
    assert.deepEqual([facts.certificate, facts.fingerprint_sha256], [certificate, authority.fingerprintSha256]);
    assert.equal(await readFile(certificate, "utf8"), authority.certificatePem);
  });

  await context.test("a second start on the same data is refused, and leaves the log of the first alone", async () => {
    const logs = readdirSync(join(text.dataDir, "logs"));
    const same = ["--data-dir", text.dataDir, "--log-rotation", "size:1"];
    const { code, stderr } = await weir(["serve", "-p", "0", "-a", "0", ...same]);
    assert.equal(code, 4);
    assert.match(stderr, /^weir: Another running proxy uses .*\n$/);
    assert.deepEqual(readdirSync(join(text.dataDir, "logs")), logs);
  });

  await context.test("--db-path is refused while another service uses that database, until it is killed", async () => {
    const database = join(text.dataDir, "traffic.db");
    const other = ["-p", "0", "-a", "0", "--json", "--data-dir", directory.file("other"), "--db-path", database];
    const { code, stderr } = await weir(["serve", ...other]);
    assert.equal(code, 4);
    assert.match(stderr, /^weir: Another running proxy uses .*traffic\.db: .*\n$/);
    process.kill(text.process.pid, "SIGKILL");
    await text.process.exited;
    await using second = await startWeir(["serve", ...other]);
    await second.waitForOutput(/^\{"proxy".*\}$/m, 30_000);
  });

  await context.test("an exchange that is open when SIGTERM comes is finished and recorded", async () => {
    await finishesWhatIsOpen(quiet);
  });

  await context.test("a second signal ends at once, whatever is open", async () => {
    await endsWithSecondSignal(json);
  });

  await context.test("the log goes to standard error, as text or JSON lines, and is quiet when told so", async () => {
    const linesOf = async ({ process }: ServingWeir): Promise<string[]> =>
      (await process.stop()).stderr.split("\n").filter((line) => line !== "");
    for (const line of await linesOf(json)) {
      assert.equal(typeof (JSON.parse(line) as { level: unknown }).level, "number");
    }
    for (const line of await linesOf(text)) assert.doesNotMatch(line, /^\{/);
    for (const log of [text, json]) assert.match(log.process.stderr(), /Weir has started/);
    assert.deepEqual(await linesOf(quiet), []);
  });
});

async function finishesWhatIsOpen(served: ServingWeir): Promise<void> {
  const release = Promise.withResolvers<void>();
  const asked = Promise.withResolvers<void>();
  await using origin = await startOrigin({
    handler: (_request, response) => {
      asked.resolve();
      void release.promise.then(() => response.end("late answer"));
    },
  });
  const reply = proxyClient(port(served.proxy)).fetch(`${origin.url}/slow`);
  await asked.promise;
  process.kill(served.process.pid, "SIGTERM");
  await waitUntil(() => isRefused(port(served.proxy)), { what: "the listener's end" });
  release.resolve();
  const response = await reply;
  assert.deepEqual([response.status, response.body.toString()], [200, "late answer"]);
  const exit = await served.process.exited;
  assert.equal(exit.code, 0);
  await using again = await serveAgain(served.dataDir);
  const entries = (await (await fetch(`${again.api}/api/traffic`)).json()) as {
    request: { url: string };
    state: string;
  }[];
  assert.deepEqual(
    entries.map((entry) => [entry.request.url, entry.state]),
    [[`${origin.url}/slow`, "complete"]],
  );
}

async function endsWithSecondSignal(served: ServingWeir): Promise<void> {
  const asked = Promise.withResolvers<void>();
  await using origin = await startRawServer(async (connection) => {
    await connection.readUntil("\r\n\r\n");
    asked.resolve();
    await connection.closed;
  });
  await using client = await rawClient(port(served.proxy));
  await client.write(`GET http://127.0.0.1:${origin.port}/ HTTP/1.1\r\nHost: 127.0.0.1:${origin.port}\r\n\r\n`);
  await asked.promise;
  process.kill(served.process.pid, "SIGTERM");
  await waitUntil(() => isRefused(port(served.proxy)), { what: "the listener's end" });
  // Two signals within a moment are one key press that came on two ways.
  const startMs = performance.now();
  await waitUntil(() => performance.now() - startMs > 450);
  process.kill(served.process.pid, "SIGTERM");
  const exit = await served.process.exited;
  assert.equal(exit.code, 143);
  assert.ok(performance.now() - startMs < 3000);
}

async function serveAgain(dataDir: string): Promise<{ api: string; [Symbol.asyncDispose](): Promise<void> }> {
  const child = await startWeir(["serve", "--json", "-p", "0", "-a", "0", "--data-dir", dataDir]);
  const [line] = await child.waitForOutput(/^\{"proxy".*\}$/m, 30_000);
  const { api } = JSON.parse(line) as { api: string };
  return { api, [Symbol.asyncDispose]: async () => void (await child.stop()) };
}

for (const which of ["proxy", "api"] as const) {
  test(`an occupied ${which} port is named in one sentence, with exit code 3`, async () => {
    const occupant = createServer().listen(0, "127.0.0.1");
    await once(occupant, "listening");
    const taken = (occupant.address() as AddressInfo).port;
    await using directory = await temporaryDirectory();
    const ports = which === "proxy" ? ["-p", String(taken), "-a", "0"] : ["-p", "0", "-a", String(taken)];
    const { code, stdout, stderr } = await weir(["serve", "--data-dir", directory.path, ...ports]);
    occupant.close();
    assert.deepEqual([code, stdout], [3, ""]);
    assert.match(stderr, new RegExp(`^weir: .*\\b${taken}\\b.* port with --${which}-port \\(0 selects .*\\n$`));
  });
}

test("what the user can mend is one sentence with exit code 4", async () => {
  await using directory = await temporaryDirectory();
  await writeFile(directory.file("config.json"), '{"proxy_port": "high"}');
  const cases: readonly (readonly [readonly string[], RegExp])[] = [
    [["--data-dir", directory.path], /config\.json: proxy_port/],
    [["--data-dir", directory.file("config.json", "below")], /Cannot use .*config\.json/],
    [["--data-dir", directory.file("b"), "--api-host", "0.0.0.0", "-a", "0", "-p", "0"], /--insecure-api/],
    [["--data-dir", directory.file("c"), "--host", "192.0.2.77", "-a", "0", "-p", "0"], /192\.0\.2\.77/],
    [
      ["--data-dir", directory.file("c"), "--host", "nowhere.invalid", "-a", "0", "-p", "0"],
      /nowhere\.invalid.*--host/,
    ],
    [
      ["--data-dir", directory.file("d"), "--upstream-ca", directory.file("missing.pem"), "-a", "0", "-p", "0"],
      /missing\.pem/,
    ],
    [["--data-dir", directory.file("f"), "--log-path", directory.path, "-a", "0", "-p", "0"], /--log-path/],
    [["--data-dir", directory.file("f"), "--db-path", directory.path, "-a", "0", "-p", "0"], /--db-path/],
    [
      ["--data-dir", directory.file("f"), "--db-path", directory.file("config.json"), "-a", "0", "-p", "0"],
      /--db-path/,
    ],
    [["--data-dir", directory.file("f"), "--cert-path", process.execPath, "-a", "0", "-p", "0"], /--cert-path/],
    [["--data-dir", directory.file("e"), "--ca-cert-file", "ca.pem", "-a", "0", "-p", "0"], /needs --ca-key-file/],
  ];
  for (const [args, sentence] of cases) {
    const { code, stdout, stderr } = await runInside(["serve", ...args], { parts });
    assert.deepEqual([code, stdout], [4, ""], `${args.join(" ")}: ${stderr}`);
    assert.match(stderr, sentence);
    assert.equal(stderr.trim().split("\n").length, 1, stderr);
  }
});

test("a flag's value that cannot be is a wrong command line, and nothing is made for it", async () => {
  await using directory = await temporaryDirectory();
  const dataDir = directory.file("a");
  const { code, stdout, stderr } = await weir(["serve", "--data-dir", dataDir, "--max-requests", "-5"]);
  assert.deepEqual(
    [code, stdout, stderr],
    [2, "", 'weir: --max-requests must be a whole number from 0 to 1000000; it is "-5"\n'],
  );
  assert.equal(existsSync(dataDir), false);
});

test("--db-path and --cert-path keep traffic and the CA elsewhere, and a start with them finds both again", async () => {
  await using directory = await temporaryDirectory();
  const database = directory.file("disk", "shop.db");
  const certificates = directory.file("keys");
  const places = ["-d", database, "-c", certificates];
  const body = Buffer.alloc(3_000_000, "b");
  await using origin = await startOrigin({ handler: (_request, response) => void response.end(body) });
  let certificate = "";
  {
    await using first = await serveWeir(places);
    certificate = readFileSync(join(certificates, "weir-ca.pem"), "utf8");
    assert.equal(first.certificate, join(certificates, "weir-ca.pem"));
    await proxyClient(port(first.proxy)).fetch(origin.url);
    await waitUntil(async () => (await entries(first.api))[0]?.state === "complete");
    for (const name of ["traffic.db", "bodies", "certs"]) {
      assert.equal(existsSync(join(first.dataDir, name)), false, name);
    }
    const rival = await weir(["serve", "-p", "0", "-a", "0", "--data-dir", directory.file("other"), ...places]);
    assert.equal(rival.code, 4);
    assert.match(rival.stderr, /shop\.db/);
  }
  await using second = await serveWeir([], { WEIR_DB_PATH: database, WEIR_CERT_PATH: certificates });
  assert.equal(readFileSync(join(certificates, "weir-ca.pem"), "utf8"), certificate);
  const [entry] = await entries(second.api);
  const reply = await fetch(`${second.api}/api/traffic/${entry?.id ?? ""}/body/response`);
  assert.equal(Buffer.from(await reply.arrayBuffer()).equals(body), true);
  const shown = await weir(["ca", "path", "--cert-path", certificates]);
  assert.equal(shown.stdout.trim(), join(certificates, "weir-ca.pem"));
  const looked = await weir(["doctor", ...places, "--data-dir", second.dataDir, "--api-url", second.api]);
  assert.match(looked.stdout, /shop\.db, .* is intact/);
});

async function entries(api: string): Promise<readonly { id: string; state: string }[]> {
  return (await (await fetch(`${api}/api/traffic`)).json()) as { id: string; state: string }[];
}

async function isRefused(at: number): Promise<boolean> {
  try {
    const client = await rawClient(at);
    client.destroy();
    return false;
  } catch {
    return true;
  }
}

test("the banner quotes a path so that its command can be copied", () => {
  const facts = {
    proxy: "http://127.0.0.1:1",
    api: "http://127.0.0.1:2",
    dataDir: "/d",
    certificatePath: "/my data/it's.pem",
    fingerprint: "AA",
    command: "npx weir",
    version: "1",
  };
  assert.ok(banner(facts, window(200)).includes(String.raw`--cacert '/my data/it'\''s.pem' https://`));
  assert.equal(shellQuoted("/plain/path.pem"), "/plain/path.pem");
});

test("the banner's command finds this service, whatever port it has", () => {
  const facts = {
    proxy: "http://127.0.0.1:8888",
    dataDir: "/data",
    certificatePath: "/data/ca.pem",
    fingerprint: "AA",
    version: "1",
    command: "npx weir",
  };
  for (const [api, line] of [
    ["http://127.0.0.1:3001", "npx weir run -- curl"],
    ["http://0.0.0.0:3001", "npx weir run -- curl"],
    ["http://127.0.0.1:13001", "npx weir run --api-url http://127.0.0.1:13001 -- curl"],
    ["http://[::1]:3001", "npx weir run --api-url http://[::1]:3001 -- curl"],
  ] as const) {
    assert.ok(banner({ ...facts, api }, window(200)).includes(line), api);
  }
});
