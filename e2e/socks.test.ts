import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { after, before, test } from "node:test";
import { peer, runProcess, startOrigin, temporaryDirectory, waitForEvent, waitUntil } from "@headworks/testkit";
import type { Exit, Origin } from "@headworks/testkit";
import { chromium } from "playwright-core";
import { freePort } from "./proxy-processes.ts";
import { Cleanups, LOCAL_NAMES, originAuthority, startWeir } from "./rig.ts";
import type { Entry, Weir } from "./rig.ts";
import { atRest } from "./watch.ts";

const curl = peer("curl");
const ncat = peer("ncat");
const proxychains = peer("proxychains4");
const browser = peer("chromium");
const pySocks = pySocksSkip();

const cleanups = new Cleanups();
let weir: Weir;
let socksPort: number;
let plain: Origin;
let plain6: Origin;
let secure: Origin;
let authorityFile: string;

before(async () => {
  socksPort = await freePort();
  weir = cleanups.use(await startWeir({ args: ["--enable-socks", `--socks-port=${socksPort}`] }));
  const handler = (_request: unknown, response: { end(text: string): void }): void => response.end("from the origin\n");
  plain = cleanups.use(await startOrigin({ handler }));
  plain6 = cleanups.use(await startOrigin({ handler, host: "::1" }));
  secure = cleanups.use(await startOrigin({ handler, tls: { authority: originAuthority, names: LOCAL_NAMES } }));
  const directory = cleanups.use(await temporaryDirectory());
  authorityFile = directory.file("origins.pem");
  await writeFile(authorityFile, originAuthority.certificatePem);
});
after(() => cleanups.run());

/** The module of the distribution's own Python. */
function pySocksSkip(): { readonly path: string; readonly skip: string | false } {
  const path = "/usr/bin/python3";
  if (spawnSync(path, ["-c", "import socks"]).status === 0) return { path, skip: false };
  const skip = "the system's python3 has no module socks";
  if (process.env["CI"] === "true") throw new Error(`${skip}, and with CI=true nothing may be skipped`);
  process.stdout.write(`# skipping: ${skip}\n`);
  return { path, skip };
}

/** The newest finished tunnel entry for the target, once there are more than `before` of them. */
async function entryAfter(earlier: number, target: string): Promise<Entry> {
  const entry = (await weir.waitForEntries(earlier + 1, target)).at(-1);
  assert.ok(entry);
  return entry;
}

async function count(target: string): Promise<number> {
  return (await weir.entries(target)).filter(({ state }) => state !== "pending").length;
}

const PYSOCKS = `
import socks, sys
s = socks.socksocket()
s.set_proxy(socks.SOCKS5, "127.0.0.1", int(sys.argv[1]), rdns=True)
s.connect(("localhost", int(sys.argv[2])))
s.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n")
data = b""
while True:
    piece = s.recv(65536)
    if not piece: break
    data += piece
sys.stdout.buffer.write(data)
`;

type Client = readonly [
  name: string,
  skip: string | false,
  host: string,
  origin: () => Origin,
  run: (url: string, port: number) => Promise<Exit>,
];

const byCurl =
  (...args: string[]) =>
  async (url: string): Promise<Exit> =>
    await runProcess(curl.path, ["-sS", "--cacert", authorityFile, ...args, url]);

const clients: readonly Client[] = [
  [
    "curl --socks5, which resolves by itself",
    curl.skip,
    "127.0.0.1",
    () => plain,
    (url) => byCurl("--socks5", `127.0.0.1:${socksPort}`)(url),
  ],
  [
    "curl --socks5-hostname",
    curl.skip,
    "localhost",
    () => plain,
    (url) => byCurl("--socks5-hostname", `127.0.0.1:${socksPort}`)(url),
  ],
  [
    "curl -x socks5h and IPv6",
    curl.skip,
    "[::1]",
    () => plain6,
    (url) => byCurl("-x", `socks5h://127.0.0.1:${socksPort}`)(url),
  ],
  [
    "curl with ALL_PROXY and HTTPS",
    curl.skip,
    "localhost",
    () => secure,
    async (url) =>
      await runProcess(curl.path, ["-sS", "--cacert", authorityFile, url], {
        env: { ALL_PROXY: `socks5h://127.0.0.1:${socksPort}` },
      }),
  ],
  [
    "ncat --proxy-type socks5",
    ncat.skip,
    "127.0.0.1",
    () => plain,
    async (_, port) =>
      await runProcess(
        ncat.path,
        ["--proxy", `127.0.0.1:${socksPort}`, "--proxy-type", "socks5", "127.0.0.1", String(port)],
        { input: "GET / HTTP/1.0\r\n\r\n" },
      ),
  ],
  [
    "proxychains4",
    proxychains.skip || curl.skip,
    "127.0.0.1",
    () => plain,
    async (url) => {
      await using directory = await temporaryDirectory();
      await writeFile(
        directory.file("chains.conf"),
        `strict_chain\nproxy_dns\n[ProxyList]\nsocks5 127.0.0.1 ${socksPort}\n`,
      );
      return await runProcess(proxychains.path, ["-q", "-f", directory.file("chains.conf"), curl.path, "-sS", url]);
    },
  ],
  [
    "Python with PySocks",
    pySocks.skip,
    "localhost",
    () => plain,
    async (_, port) => await runProcess(pySocks.path, ["-c", PYSOCKS, String(socksPort), String(port)]),
  ],
];

for (const [name, skip, host, origin, run] of clients) {
  test(`${name}: the bytes pass, and the entry has the target and nothing more`, { skip }, async () => {
    const { port, caPem } = origin();
    const target = `${host}:${port}`;
    const earlier = await count(target);
    const exit = await run(`${caPem === undefined ? "http" : "https"}://${target}/secret-path`, port);
    assert.equal(exit.code, 0, exit.stdout + exit.stderr);
    assert.match(exit.stdout, /from the origin/);
    const entry = await entryAfter(earlier, target);
    assert.equal(entry.request.method, "CONNECT");
    assert.equal(entry.request.url, `tcp://${target}/`);
    assert.equal(entry.request.host.replace(/^\[|\]$/g, ""), host.replace(/^\[|\]$/g, ""));
    assert.equal(entry.request.http_version, "SOCKS5");
    assert.deepEqual(entry.request.headers, {});
    assert.equal(entry.response?.status_code, 200);
    assert.equal(entry.is_passthrough, true);
    assert.equal(entry.failure, null);
    assert.ok(!JSON.stringify(entry).includes("secret-path"));
    assert.equal((await weir.body(entry, "response")).length, 0);
  });
}

test("Chromium through socks5 loads a page", { skip: browser.skip }, async () => {
  const earlier = await count(`localhost:${plain.port}`);
  await using home = await temporaryDirectory();
  const instance = await chromium.launch({
    executablePath: browser.path,
    env: { PATH: process.env["PATH"] ?? "", HOME: home.path },
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
      `--proxy-server=socks5://127.0.0.1:${socksPort}`,
      "--proxy-bypass-list=<-loopback>",
    ],
    timeout: 60_000,
  });
  try {
    const page = await instance.newPage();
    await page.goto(`http://localhost:${plain.port}/`);
    assert.match(await page.content(), /from the origin/);
  } finally {
    await instance.close();
  }
  const entry = await entryAfter(earlier, `localhost:${plain.port}`);
  assert.equal(entry.request.http_version, "SOCKS5");
});

test(
  "an unreachable target gives a reply code, and an entry with 502, code and error",
  { skip: curl.skip },
  async () => {
    const port = await freePort();
    for (const [host, reply, failure] of [
      ["127.0.0.1", 5, "UPSTREAM_REFUSED"],
      ["no-such-name.invalid", 4, "DNS_NOT_FOUND"],
    ] as const) {
      const exit = await runProcess(curl.path, [
        "-sS",
        "--socks5-hostname",
        `127.0.0.1:${socksPort}`,
        `http://${host}:${port}/`,
      ]);
      assert.equal(exit.code, 97, exit.stderr);
      const entry = await entryAfter(0, `${host}:${port}`);
      assert.equal(entry.response?.status_code, 502);
      assert.equal(entry.failure?.code, failure);
      assert.match(
        (await weir.body(entry, "response")).toString(),
        new RegExp(`^SOCKS5 reply ${reply} \\(.*\\)\\n${failure}: `),
      );
    }
  },
);

test("Weir's own listeners cannot be reached by SOCKS5", { skip: curl.skip }, async () => {
  for (const port of [weir.apiPort, weir.proxyPort, socksPort]) {
    const exit = await runProcess(curl.path, [
      "-sS",
      "--socks5-hostname",
      `127.0.0.1:${socksPort}`,
      `http://localhost:${port}/api/traffic`,
    ]);
    assert.equal(exit.code, 97, exit.stdout);
    const entry = await entryAfter(0, `localhost:${port}`);
    assert.equal(entry.failure?.code, "LOOP");
  }
});

test("the block list applies to SOCKS5", { skip: curl.skip }, async () => {
  const created = await fetch(`${weir.apiUrl}/api/blocklist`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ pattern: "blocked.test" }),
  });
  assert.equal(created.status, 201);
  const exit = await runProcess(curl.path, [
    "-sS",
    "--socks5-hostname",
    `127.0.0.1:${socksPort}`,
    "http://blocked.test/",
  ]);
  assert.equal(exit.code, 97);
  assert.equal((await entryAfter(0, "blocked.test")).failure?.code, "BLOCKED");
});

test("SOCKS5 entries are marked as such in HAR files, lists and searches", { skip: curl.skip }, async () => {
  const earlier = await count(`localhost:${plain.port}`);
  await byCurl("--socks5-hostname", `127.0.0.1:${socksPort}`)(`http://localhost:${plain.port}/`);
  const entry = await entryAfter(earlier, `localhost:${plain.port}`);
  interface Har {
    readonly log: {
      readonly entries: readonly { readonly request: { method: string; url: string; httpVersion: string } }[];
    };
  }
  const har = await weir.get<Har>("/export/har");
  const exported = har.log.entries.find(({ request }) => request.url === entry.request.url.replace(/^tcp:/, "https:"));
  assert.deepEqual([exported?.request.method, exported?.request.httpVersion], ["CONNECT", "SOCKS5"]);
  const { rows } = await weir.get<{ rows: { id: string; http_version: string; is_passthrough: boolean }[] }>(
    "/traffic/rows",
  );
  const row = rows.find(({ id }) => id === entry.id);
  assert.deepEqual([row?.http_version, row?.is_passthrough], ["SOCKS5", true]);
});

test("with a user name configured, clients need it and the password", { skip: curl.skip }, async () => {
  const port = await freePort();
  await using guarded = await startWeir({
    args: ["--enable-socks", `--socks-port=${port}`, "--socks-username=user", "--socks-password=päss:word"],
  });
  const send = async (login: string[]): Promise<Exit> =>
    await runProcess(curl.path, [
      "-sS",
      "-x",
      `socks5h://127.0.0.1:${port}`,
      ...login,
      `http://localhost:${plain.port}/`,
    ]);
  for (const login of [[], ["-U", "user:wrong"], ["-U", "other:päss:word"], ["-U", "user:"]]) {
    assert.equal((await send(login)).code, 97, login.join(" "));
  }
  assert.deepEqual(await guarded.entries(), []);
  assert.equal((await send(["-U", "user:päss:word"])).code, 0);
  assert.equal((await guarded.waitForEntries(1)).length, 1);
});

test("in Passthrough mode SOCKS5 works and nothing is recorded", { skip: curl.skip }, async () => {
  const toggle = async (enabled: boolean): Promise<void> => {
    const response = await fetch(`${weir.apiUrl}/api/capture/toggle`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ enabled }),
    });
    assert.equal(response.status, 200);
  };
  const earlier = (await weir.entries()).length;
  await toggle(false);
  try {
    const exit = await byCurl("--socks5-hostname", `127.0.0.1:${socksPort}`)(`http://localhost:${plain.port}/`);
    assert.equal(exit.code, 0);
  } finally {
    await toggle(true);
  }
  assert.equal((await weir.entries()).length, earlier);
});

test("the listener is off by default, and a change applies after a restart", async () => {
  const port = await freePort();
  await using data = await temporaryDirectory();
  const dataDir = data.file("data");
  const isOpen = async (): Promise<boolean> => {
    const probe = createServer();
    const { promise, resolve } = Promise.withResolvers<boolean>();
    probe.once("error", () => resolve(true)).listen(port, "127.0.0.1", () => resolve(false));
    return await promise.finally(() => probe.close());
  };
  {
    await using first = await startWeir({ dataDir });
    const changed = await fetch(`${first.apiUrl}/api/config`, {
      method: "PATCH",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ enable_socks: true, socks_port: port }),
    });
    assert.equal(changed.status, 200);
    const fields = await first.get<{ name: string; restart_pending: boolean }[]>("/config/fields");
    assert.equal(fields.find(({ name }) => name === "enable_socks")?.restart_pending, true);
    assert.equal(await isOpen(), false);
  }
  await using second = await startWeir({ dataDir });
  assert.equal(await isOpen(), true);
  assert.equal(second.process.stdout().includes(`"socks":"socks5://127.0.0.1:${port}"`), true);
});

test("a port in use gives one message and its exit code", async () => {
  const taken = createServer().listen(0, "127.0.0.1");
  await waitForEvent(taken, "listening");
  const { port } = taken.address() as { port: number };
  try {
    await assert.rejects(startWeir({ args: ["--enable-socks", `--socks-port=${port}`] }), (error: Error) => {
      assert.match(error.message, new RegExp(`Port ${port} on 127\\.0\\.0\\.1 is in use.* port with --socks-port\n`));
      assert.match(error.message, /ended \(3\)/);
      return true;
    });
  } finally {
    taken.close();
  }
});

test("tunnels release their descriptors when they end", { skip: curl.skip }, async () => {
  const before = (await atRest(weir)).openFiles();
  for (let round = 0; round < 20; round += 1) {
    await byCurl("--socks5-hostname", `127.0.0.1:${socksPort}`)(`http://localhost:${plain.port}/`);
  }
  await waitUntil(() => weir.openFiles() <= before + 2, { what: "descriptors returned" });
});
