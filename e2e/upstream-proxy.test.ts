import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { proxyClient, rawClient, runProcess, startOrigin, waitUntil } from "@headworks/testkit";
import type { Exit, Origin } from "@headworks/testkit";
import { WebSocketServer } from "ws";
import {
  danted,
  dantedCommand,
  microsocks,
  microsocksCommand,
  mitmdump,
  mitmdumpCommand,
  squid,
  squidCommand,
  tinyproxy,
  tinyproxyCommand,
} from "./proxy-peers.ts";
import { freePort, startProxyProcess, startTurns } from "./proxy-processes.ts";
import type { Turns } from "./proxy-processes.ts";
import { Cleanups, LOCAL_NAMES, MAIN, originAuthority, startWeir } from "./rig.ts";
import type { Weir } from "./rig.ts";

const cleanups = new Cleanups();
let plain: Origin;
let secure: Origin;
before(async () => {
  const handler = (_request: unknown, response: { end(text: string): void }): void => response.end("from the origin");
  plain = cleanups.use(await startOrigin({ handler }));
  secure = cleanups.use(await startOrigin({ handler, tls: { authority: originAuthority, names: LOCAL_NAMES } }));
});
after(() => cleanups.run());

type Protocol = "http" | "socks5";

const LOGIN = { auth_username: "user", auth_password: "pass" };
const NO_LOGIN = { auth_username: null, auth_password: null };

/** One Weir for all proxies of a protocol, which take turns, because a change of the port needs a restart. */
interface Shared {
  readonly weir: Weir;
  readonly turns: Turns;
  /** The credentials for the proxy; at first those of the command line. */
  login: typeof LOGIN | typeof NO_LOGIN | undefined;
}

const shared = new Map<Protocol, Promise<Shared>>();

async function startShared(protocol: Protocol): Promise<Shared> {
  const turns = cleanups.use(await startTurns());
  return { turns, weir: cleanups.use(await weirBy(protocol, turns.port, "--upstream-auth=user:pass")), login: LOGIN };
}

/** The Weir of a protocol, with this proxy as upstream. */
async function sharedWeir(protocol: Protocol, port: number, login: typeof LOGIN | typeof NO_LOGIN): Promise<Shared> {
  const made = shared.get(protocol) ?? startShared(protocol);
  shared.set(protocol, made);
  const one = await made;
  one.turns.leadTo(port);
  if (one.login !== login) await configure(one.weir, login);
  one.login = login;
  return one;
}

interface UpstreamCase {
  readonly name: string;
  readonly skip: string | false;
  readonly protocol: Protocol;
  readonly needsLogin?: true;
  readonly start: () => Promise<{ readonly port: number } & AsyncDisposable>;
  /** The failure code of an origin with a closed port behind this proxy. */
  readonly unreachable: RegExp;
}

const CONNECT_FAILED = /^UPSTREAM_PROXY_CONNECT$/;

/** Proxies with credentials come first, because the command line has credentials. */
const cases: readonly UpstreamCase[] = [
  {
    name: "squid with a login",
    skip: squid.skip,
    protocol: "http",
    needsLogin: true,
    start: () => startProxyProcess(squidCommand("user:pass")),
    unreachable: CONNECT_FAILED,
  },
  {
    name: "squid",
    skip: squid.skip,
    protocol: "http",
    start: () => startProxyProcess(squidCommand()),
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
    needsLogin: true,
    start: () => startProxyProcess(tinyproxyCommand("user:pass")),
    unreachable: CONNECT_FAILED,
  },
  {
    name: "microsocks with a login",
    skip: microsocks.skip,
    protocol: "socks5",
    needsLogin: true,
    start: () => startProxyProcess(microsocksCommand("-u", "user", "-P", "pass")),
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
    name: "danted",
    skip: danted.skip,
    protocol: "socks5",
    start: () => startProxyProcess(dantedCommand),
    unreachable: CONNECT_FAILED,
  },
  // It responds to CONNECT before it has connected, so TLS fails.
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

let another: Promise<{ readonly http: number; readonly socks5: number }> | undefined;

async function anotherWeir(by: Protocol): Promise<{ readonly port: number } & AsyncDisposable> {
  const start = async (): Promise<{ readonly http: number; readonly socks5: number }> => {
    const socks5 = await freePort();
    const weir = cleanups.use(await startWeir({ args: ["--no-https", "--enable-socks", `--socks-port=${socks5}`] }));
    return { http: weir.proxyPort, socks5 };
  };
  another ??= start();
  return { port: (await another)[by], [Symbol.asyncDispose]: async () => undefined };
}

async function weirBy(protocol: Protocol, port: number, ...args: string[]): Promise<Weir> {
  return await startWeir({
    args: [`--upstream-proxy=127.0.0.1:${port}`, `--upstream-protocol=${protocol}`, ...args],
  });
}

for (const [at, { name, skip, protocol, needsLogin, start, unreachable }] of cases.entries()) {
  test(`${name}: HTTPS, HTTP, tunnels and WebSockets use it, and its test succeeds`, { skip }, async () => {
    await using proxy = await start();
    const by = await sharedWeir(protocol, proxy.port, needsLogin ? LOGIN : NO_LOGIN);
    const { weir, turns } = by;
    const client = proxyClient(weir.proxyPort, { ca: weir.caPem });
    const [seenPlain, seenSecure] = [plain.requests.length, secure.requests.length];

    const https = await client.fetch(`https://localhost:${secure.port}/${at}/https`);
    assert.equal(https.body.toString(), "from the origin");
    const http = await client.fetch(`http://localhost:${plain.port}/${at}/http`);
    assert.equal(http.body.toString(), "from the origin");
    assert.equal(secure.requests.length, seenSecure + 1);
    assert.equal(plain.requests.length, seenPlain + 1);
    assert.equal(plain.requests.at(-1)?.url, `/${at}/http`);
    assert.ok(!JSON.stringify(plain.requests.at(-1)).toLowerCase().includes("proxy-authorization"));

    const [secureEntry] = await weir.waitForEntries(1, `/${at}/https`);
    assert.equal(secureEntry?.tls?.upstream_verified, true);
    assert.equal(secureEntry.server_addr, `127.0.0.1:${turns.port}`);
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
    const failedEntry = (await weir.waitForEntries(1, `localhost:${nobody}`)).at(-1);
    assert.match(failedEntry?.failure?.code ?? "", unreachable);

    if (needsLogin) await isRefusedWithoutLogin(by, at);
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
    // A masked text frame: "hi" with a zero mask.
    await connection.write("\x81\x82\0\0\0\0hi");
    assert.equal((await connection.read(9)).toString("latin1"), "\x81\x07echo hi");
    connection.destroy();
  } finally {
    for (const socket of server.clients) socket.terminate();
    server.close();
  }
}

async function configure(weir: Weir, upstream_proxy: object): Promise<void> {
  const response = await fetch(`${weir.apiUrl}/api/config`, {
    method: "PATCH",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ upstream_proxy }),
  });
  assert.equal(response.status, 200);
}

/** Changes the credentials at run time; the entry has the proxy's refusal, without the password. */
async function isRefusedWithoutLogin(by: Shared, at: number): Promise<void> {
  const { weir } = by;
  by.login = undefined;
  const client = proxyClient(weir.proxyPort, { ca: weir.caPem });
  for (const [change, path] of [
    [{ auth_password: "not-this" }, `/${at}/wrong`],
    [{ auth_username: null }, `/${at}/none`],
  ] as const) {
    await configure(weir, change);
    const response = await client.fetch(`https://localhost:${secure.port}${path}`);
    assert.equal(response.status, 502);
    assert.match(response.body.toString(), /UPSTREAM_PROXY_AUTH/);
    const [entry] = await weir.waitForEntries(1, path);
    assert.equal(entry?.failure?.code, "UPSTREAM_PROXY_AUTH");
    assert.ok(!JSON.stringify(entry).includes("not-this"));
  }
  assert.match((await client.fetch(`http://localhost:${plain.port}/none`)).body.toString(), /UPSTREAM_PROXY_AUTH/);
  assert.ok(!weir.process.stderr().includes("not-this"));
}

test("hosts on the bypass list are reached directly, in any case, and the list changes without a restart", async () => {
  await using weir = await weirBy("http", await freePort(), "--upstream-no-proxy=LOCALHOST,10.0.0.0/8");
  const client = proxyClient(weir.proxyPort, { ca: weir.caPem });
  assert.equal((await client.fetch(`https://localhost:${secure.port}/direct`)).status, 200);
  await configure(weir, { no_proxy_hosts: [] });
  const refused = await client.fetch(`https://localhost:${secure.port}/by-proxy`);
  assert.equal(refused.status, 502);
  assert.match(refused.body.toString(), /UPSTREAM_PROXY_UNREACHABLE/);
  await configure(weir, { enabled: false });
  assert.equal((await client.fetch(`https://localhost:${secure.port}/still`)).status, 502, "applies after a restart");
});

test("a Weir that is its own upstream proxy detects the loop", async () => {
  const port = await freePort();
  for (const protocol of ["http", "https"]) {
    await using weir = await startWeir({
      args: [`--proxy-port=${port}`, `--upstream-proxy=localhost:${port}`, `--upstream-protocol=${protocol}`],
    });
    const response = await proxyClient(weir.proxyPort).fetch("http://origin.test/");
    assert.equal(response.status, 508);
    assert.equal((await weir.waitForEntries(1)).length, 1);
  }
});

for (const [name, skip, command] of [
  ["squid", squid.skip, (parentPort: number) => squidCommand(undefined, parentPort)],
  ["tinyproxy", tinyproxy.skip, (parentPort: number) => tinyproxyCommand(undefined, parentPort)],
] as const) {
  test(`a loop through ${name} is detected`, { skip }, async () => {
    const { weir } = await sharedWeir("http", 0, NO_LOGIN);
    await using other = await startProxyProcess(command(weir.proxyPort));
    await sharedWeir("http", other.port, NO_LOGIN);
    const client = proxyClient(weir.proxyPort, { ca: weir.caPem });
    // squid leaves its first connection to its parent unused.
    await waitUntil(async () => (await client.fetch(`http://${name}.test/first`)).status === 508);
    assert.equal((await client.fetch(`http://${name}.test/round`)).status, 508);
    const plainEntries = await weir.waitForEntries(2, `${name}.test/round`);
    assert.deepEqual(plainEntries.map(({ failure }) => failure?.code).filter(Boolean), ["LOOP"]);
    assert.equal(plainEntries.length, 2);
    const secured = await client.fetch(`https://secure-${name}.test/round`);
    assert.ok([502, 508].includes(secured.status), "the proxy chooses the status for a refused tunnel");
    const entries = await weir.waitForEntries(2, `secure-${name}.test`);
    assert.ok(entries.some(({ failure }) => failure?.code === "LOOP"));
    assert.equal(entries.length, 2);
  });
}

test("weir upstream test prints each step, up to the first failure", { skip: microsocks.skip }, async () => {
  await using proxy = await startProxyProcess(microsocksCommand());
  const { weir } = await sharedWeir("socks5", proxy.port, NO_LOGIN);
  const run = async (...args: string[]): Promise<Exit> =>
    await runProcess(process.execPath, [MAIN, "upstream", "test", ...args, "--api-url", weir.apiUrl]);
  const good = await run("--target", `https://localhost:${secure.port}/`);
  assert.equal(good.code, 0, good.stderr);
  assert.match(good.stdout, /✓ Open a tunnel: SOCKS5 to localhost:\d+ \([\d.]+ ms\)\n.*✓ TLS with the target: TLSv1.3/);
  assert.match(good.stdout, /✓ Get a response: Status 200/);
  const bad = await run("--target", `localhost:${await freePort()}`);
  assert.match(bad.stdout, /✗ Open a tunnel: The upstream proxy socks5:.* could not connect/);
});
