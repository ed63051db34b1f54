import assert from "node:assert/strict";
import { delimiter } from "node:path";
import { after, before, test } from "node:test";
import { peer, proxyClient, rawClient, runProcess, startOrigin, waitUntil } from "@headworks/testkit";
import type { Exit, Origin } from "@headworks/testkit";
import { WebSocketServer } from "ws";
import { freePort, startProxyProcess } from "./proxy-processes.ts";
import type { ProxyCommand } from "./proxy-processes.ts";
import { Cleanups, LOCAL_NAMES, MAIN, originAuthority, startWeir } from "./rig.ts";
import type { Weir } from "./rig.ts";

// Debian keeps daemons where only root's PATH looks.
process.env["PATH"] = `${process.env["PATH"] ?? ""}${delimiter}/usr/sbin`;

const cleanups = new Cleanups();
let plain: Origin;
let secure: Origin;
before(async () => {
  const handler = (_request: unknown, response: { end(text: string): void }): void => response.end("from the origin");
  plain = cleanups.use(await startOrigin({ handler }));
  secure = cleanups.use(await startOrigin({ handler, tls: { authority: originAuthority, names: LOCAL_NAMES } }));
});
after(() => cleanups.run());

interface UpstreamCase {
  readonly name: string;
  readonly skip: string | false;
  readonly protocol: "http" | "socks5";
  /** Needs this login. */
  readonly login?: string;
  readonly start: () => Promise<{ readonly port: number } & AsyncDisposable>;
  /** What the failure of an origin that nobody listens at is called behind this proxy. */
  readonly unreachable: RegExp;
}

const squid = peer("squid");
const tinyproxy = peer("tinyproxy");
const microsocks = peer("microsocks");
const danted = peer("danted");
const mitmdump = peer("mitmdump");

const CONNECT_FAILED = /^UPSTREAM_PROXY_CONNECT$/;

const squidCommand =
  (login?: string, parentPort?: number): ProxyCommand =>
  (port, directory) => ({
    command: squid.path,
    args: ["-N", "-f", `${directory}/squid.conf`],
    files: {
      "squid.conf": [
        `http_port 127.0.0.1:${port}`,
        ...(login === undefined
          ? ["http_access allow all"]
          : [
              `auth_param basic program /bin/sh ${directory}/login.sh`,
              "auth_param basic children 1",
              "acl known proxy_auth REQUIRED",
              "http_access allow known",
              "http_access deny all",
            ]),
        ...(parentPort === undefined
          ? []
          : [`cache_peer 127.0.0.1 parent ${parentPort} 0 no-query no-digest default`, "never_direct allow all"]),
        "cache deny all",
        `pid_filename ${directory}/squid.pid`,
        `access_log stdio:${directory}/access.log`,
        `cache_log ${directory}/cache.log`,
        `coredump_dir ${directory}`,
        "shutdown_lifetime 0 seconds",
        "",
      ].join("\n"),
      "login.sh": `while read -r user password; do if [ "$user:$password" = "${login ?? ""}" ]; then echo OK; else echo ERR; fi; done\n`,
    },
  });

const tinyproxyCommand =
  (login?: string, parentPort?: number): ProxyCommand =>
  (port, directory) => ({
    command: tinyproxy.path,
    args: ["-d", "-c", `${directory}/tinyproxy.conf`],
    files: {
      "tinyproxy.conf": [
        `Port ${port}`,
        "Listen 127.0.0.1",
        "Timeout 30",
        ...(login === undefined ? [] : [`BasicAuth ${login.replace(":", " ")}`]),
        ...(parentPort === undefined ? [] : [`Upstream http 127.0.0.1:${parentPort}`]),
        "",
      ].join("\n"),
    },
  });

const dantedCommand: ProxyCommand = (port, directory) => ({
  command: danted.path,
  args: ["-f", `${directory}/danted.conf`, "-p", `${directory}/danted.pid`],
  files: {
    "danted.conf": [
      "logoutput: stderr",
      `internal: 127.0.0.1 port = ${port}`,
      "external: lo",
      "socksmethod: none",
      "clientmethod: none",
      "client pass { from: 0/0 to: 0/0 }",
      "socks pass { from: 0/0 to: 0/0 }",
      "",
    ].join("\n"),
  },
});

const microsocksCommand =
  (...login: string[]): ProxyCommand =>
  (port) => ({ command: microsocks.path, args: ["-i", "127.0.0.1", "-p", String(port), ...login] });

const mitmdumpCommand =
  (mode: string): ProxyCommand =>
  (port, directory) => ({
    command: mitmdump.path,
    args: [
      "--mode",
      mode,
      "--listen-host",
      "127.0.0.1",
      "-p",
      String(port),
      "--set",
      `confdir=${directory}`,
      "--ignore-hosts",
      ".*",
      "-q",
    ],
  });

const cases: readonly UpstreamCase[] = [
  {
    name: "squid",
    skip: squid.skip,
    protocol: "http",
    start: () => startProxyProcess(squidCommand()),
    unreachable: CONNECT_FAILED,
  },
  {
    name: "squid with a login",
    skip: squid.skip,
    protocol: "http",
    login: "user:pass",
    start: () => startProxyProcess(squidCommand("user:pass")),
    unreachable: CONNECT_FAILED,
  },
  {
    name: "tinyproxy",
    skip: tinyproxy.skip,
    protocol: "http",
    start: () => startProxyProcess(tinyproxyCommand()),
    unreachable: CONNECT_FAILED,
  },
  {
    name: "tinyproxy with a login",
    skip: tinyproxy.skip,
    protocol: "http",
    login: "user:pass",
    start: () => startProxyProcess(tinyproxyCommand("user:pass")),
    unreachable: CONNECT_FAILED,
  },
  {
    name: "microsocks",
    skip: microsocks.skip,
    protocol: "socks5",
    start: () => startProxyProcess(microsocksCommand()),
    unreachable: CONNECT_FAILED,
  },
  {
    name: "microsocks with a login",
    skip: microsocks.skip,
    protocol: "socks5",
    login: "user:pass",
    start: () => startProxyProcess(microsocksCommand("-u", "user", "-P", "pass")),
    unreachable: CONNECT_FAILED,
  },
  {
    name: "danted",
    skip: danted.skip,
    protocol: "socks5",
    start: () => startProxyProcess(dantedCommand),
    unreachable: CONNECT_FAILED,
  },
  // It answers CONNECT before it has connected, so that TLS is what fails.
  {
    name: "mitmproxy",
    skip: mitmdump.skip,
    protocol: "http",
    start: () => startProxyProcess(mitmdumpCommand("regular")),
    unreachable: /^UPSTREAM_/,
  },
  {
    name: "mitmproxy in socks5 mode",
    skip: mitmdump.skip,
    protocol: "socks5",
    start: () => startProxyProcess(mitmdumpCommand("socks5")),
    unreachable: /^UPSTREAM_/,
  },
  {
    name: "another Weir",
    skip: false,
    protocol: "http",
    start: () => anotherWeir("http"),
    unreachable: CONNECT_FAILED,
  },
  {
    name: "another Weir by SOCKS5",
    skip: false,
    protocol: "socks5",
    start: () => anotherWeir("socks5"),
    unreachable: CONNECT_FAILED,
  },
];

async function anotherWeir(by: "http" | "socks5"): Promise<{ readonly port: number } & AsyncDisposable> {
  const port = await freePort();
  const weir = await startWeir({ args: ["--no-https", "--enable-socks", `--socks-port=${port}`] });
  return { port: by === "http" ? weir.proxyPort : port, [Symbol.asyncDispose]: () => weir[Symbol.asyncDispose]() };
}

async function weirBy(protocol: string, port: number, login?: string, ...args: string[]): Promise<Weir> {
  return await startWeir({
    args: [
      `--upstream-proxy=127.0.0.1:${port}`,
      `--upstream-protocol=${protocol}`,
      ...(login === undefined ? [] : [`--upstream-auth=${login}`]),
      ...args,
    ],
  });
}

for (const { name, skip, protocol, login, start, unreachable } of cases) {
  test(`${name}: HTTPS, HTTP, tunnels and WebSockets go through it, and its test says so`, { skip }, async () => {
    await using proxy = await start();
    await using weir = await weirBy(protocol, proxy.port, login);
    const client = proxyClient(weir.proxyPort, { ca: weir.caPem });
    const [seenPlain, seenSecure] = [plain.requests.length, secure.requests.length];

    const https = await client.fetch(`https://localhost:${secure.port}/https`);
    assert.equal(https.body.toString(), "from the origin");
    const http = await client.fetch(`http://localhost:${plain.port}/http`);
    assert.equal(http.body.toString(), "from the origin");
    assert.equal(secure.requests.length, seenSecure + 1);
    assert.equal(plain.requests.length, seenPlain + 1);
    assert.equal(plain.requests.at(-1)?.url, "/http");
    assert.ok(!JSON.stringify(plain.requests.at(-1)).toLowerCase().includes("proxy-authorization"));

    const [secureEntry] = await weir.waitForEntries(1, "/https");
    assert.equal(secureEntry?.tls?.upstream_verified, true);
    assert.equal(secureEntry.server_addr, `127.0.0.1:${proxy.port}`);
    assert.deepEqual(await weir.body(secureEntry, "response"), Buffer.from("from the origin"));

    await speaksWebSocket(weir);

    const tried = await fetch(`${weir.apiUrl}/api/upstream/test`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ target: `https://localhost:${secure.port}/tried` }),
    });
    const report = (await tried.json()) as { ok: boolean; via: string; steps: { name: string; ok: boolean }[] };
    assert.ok(report.ok, JSON.stringify(report));
    assert.equal(report.via, "tunnel");
    assert.ok(report.steps.every((step) => step.ok));
    assert.ok(report.steps.some((step) => step.name === "Open a tunnel"));

    const nobody = await freePort();
    const failed = await client.fetch(`https://localhost:${nobody}/nobody`);
    assert.equal(failed.status, 502);
    const [failedEntry] = await weir.waitForEntries(1, `localhost:${nobody}`);
    assert.match(failedEntry?.failure?.code ?? "", unreachable);

    if (login !== undefined) await isRefusedWithoutLogin(weir);
  });
}

async function speaksWebSocket(weir: Weir): Promise<void> {
  const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
  server.on("connection", (socket) =>
    socket.on("message", (message) => socket.send(`echo ${(message as Buffer).toString()}`)),
  );
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as { port: number };
  try {
    const connection = await rawClient(weir.proxyPort);
    await connection.write(
      `GET http://localhost:${port}/ws HTTP/1.1\r\nHost: localhost:${port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`,
    );
    assert.match((await connection.readUntil("\r\n\r\n")).toString(), /^HTTP\/1.1 101 /);
    // A masked text frame: "hi" under a mask of zeros.
    await connection.write("\x81\x82\0\0\0\0hi");
    assert.equal((await connection.read(9)).toString("latin1"), "\x81\x07echo hi");
    connection.destroy();
  } finally {
    for (const socket of server.clients) socket.terminate();
    server.close();
  }
}

async function configure(weir: Weir, upstream_proxy: object): Promise<void> {
  const answer = await fetch(`${weir.apiUrl}/api/config`, {
    method: "PATCH",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ upstream_proxy }),
  });
  assert.equal(answer.status, 200);
}

/** Changes the login while Weir runs; what the proxy says then is told as its refusal, without the password. */
async function isRefusedWithoutLogin(weir: Weir): Promise<void> {
  const client = proxyClient(weir.proxyPort, { ca: weir.caPem });
  for (const [change, path] of [
    [{ auth_password: "not-this" }, "/wrong"],
    [{ auth_username: null }, "/none"],
  ] as const) {
    await configure(weir, change);
    const answer = await client.fetch(`https://localhost:${secure.port}${path}`);
    assert.equal(answer.status, 502);
    assert.match(answer.body.toString(), /UPSTREAM_PROXY_AUTH/);
    const [entry] = await weir.waitForEntries(1, path);
    assert.equal(entry?.failure?.code, "UPSTREAM_PROXY_AUTH");
    assert.ok(!JSON.stringify(entry).includes("not-this"));
  }
  assert.match((await client.fetch(`http://localhost:${plain.port}/none`)).body.toString(), /UPSTREAM_PROXY_AUTH/);
  assert.ok(!weir.process.stderr().includes("not-this"));
}

test("hosts on the bypass list go directly, in whatever case, and the list changes without a restart", async () => {
  await using weir = await weirBy("http", await freePort(), undefined, "--upstream-no-proxy=LOCALHOST,10.0.0.0/8");
  const client = proxyClient(weir.proxyPort, { ca: weir.caPem });
  assert.equal((await client.fetch(`https://localhost:${secure.port}/direct`)).status, 200);
  await configure(weir, { no_proxy_hosts: [] });
  const refused = await client.fetch(`https://localhost:${secure.port}/by-proxy`);
  assert.equal(refused.status, 502);
  assert.match(refused.body.toString(), /UPSTREAM_PROXY_UNREACHABLE/);
  await configure(weir, { enabled: false });
  assert.equal((await client.fetch(`https://localhost:${secure.port}/still`)).status, 502, "waits for a restart");
});

test("a Weir that is its own upstream proxy refuses to go round", async () => {
  const port = await freePort();
  for (const protocol of ["http", "https"]) {
    await using weir = await startWeir({
      args: [`--proxy-port=${port}`, `--upstream-proxy=localhost:${port}`, `--upstream-protocol=${protocol}`],
    });
    const answer = await proxyClient(weir.proxyPort).fetch("http://origin.test/");
    assert.equal(answer.status, 508);
    assert.equal((await weir.waitForEntries(1)).length, 1);
  }
});

for (const [name, skip, command] of [
  ["squid", squid.skip, (parentPort: number) => squidCommand(undefined, parentPort)],
  ["tinyproxy", tinyproxy.skip, (parentPort: number) => tinyproxyCommand(undefined, parentPort)],
] as const) {
  test(`a circle that leads through ${name} is noticed`, { skip }, async () => {
    const port = await freePort();
    await using other = await startProxyProcess(command(port));
    await using weir = await weirBy("http", other.port, undefined, `--proxy-port=${port}`);
    const client = proxyClient(weir.proxyPort, { ca: weir.caPem });
    // The first connection of a squid to its parent is given up unused.
    await waitUntil(async () => (await client.fetch("http://origin.test/first")).status === 508);
    assert.equal((await client.fetch("http://origin.test/round")).status, 508);
    const plainEntries = await weir.waitForEntries(2, "origin.test/round");
    assert.deepEqual(plainEntries.map(({ failure }) => failure?.code).filter(Boolean), ["LOOP"]);
    assert.equal(plainEntries.length, 2);
    const secured = await client.fetch("https://secure.test/round");
    assert.ok([502, 508].includes(secured.status), "what the proxy makes of the refused tunnel is its own");
    const entries = await weir.waitForEntries(2, "secure.test");
    assert.ok(entries.some(({ failure }) => failure?.code === "LOOP"));
    assert.equal(entries.length, 2);
  });
}

test("weir upstream test prints each step, up to the one that fails", { skip: microsocks.skip }, async () => {
  await using proxy = await startProxyProcess(microsocksCommand());
  await using weir = await weirBy("socks5", proxy.port);
  const run = async (...args: string[]): Promise<Exit> =>
    await runProcess(process.execPath, [MAIN, "upstream", "test", ...args, "--api-url", weir.apiUrl]);
  const good = await run("--target", `https://localhost:${secure.port}/`);
  assert.equal(good.code, 0, good.stderr);
  assert.match(good.stdout, /✓ Open a tunnel: SOCKS5 to localhost:\d+ \([\d.]+ ms\)\n.*✓ TLS with the target: TLSv1.3/);
  assert.match(good.stdout, /✓ Get an answer: Status 200/);
  const bad = await run("--target", `localhost:${await freePort()}`);
  assert.match(bad.stdout, /✗ Open a tunnel: The upstream proxy socks5:.* could not connect/);
});
