import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { proxyClient, rawClient } from "@headworks/testkit";
import { freePort } from "./proxy-processes.ts";
import { Cleanups, startWeir } from "./rig.ts";
import type { Weir } from "./rig.ts";
import { atRest, descriptorsReturn } from "./watch.ts";

const cleanups = new Cleanups();
let weir: Weir;
before(async () => {
  weir = cleanups.use(await startWeir());
});
after(() => cleanups.run());

const SPELLINGS = [
  "127.0.0.1",
  "localhost",
  "LOCALHOST",
  "localhost.",
  "127.1",
  "0x7f.1",
  "0177.0.0.1",
  "2130706433",
  "0.0.0.0",
  "0",
  "[::ffff:127.0.0.1]",
  "[::ffff:7f00:1]",
  "[0:0:0:0:0:ffff:127.0.0.1]",
  "[::1]",
  "[::]",
  "127.0.0.1.",
];

type Send = (host: string, port: number) => Promise<string>;

const ROUTES: readonly [name: string, send: Send][] = [
  [
    "absolute form",
    async (host, port) => {
      await using client = await rawClient(weir.proxyPort);
      await client.write(`GET http://${host}:${port}/api/traffic HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
      return (await client.collect()).toString("latin1");
    },
  ],
  [
    "absolute form with https",
    async (host, port) => {
      await using client = await rawClient(weir.proxyPort);
      await client.write(`GET https://${host}:${port}/api/traffic HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
      return (await client.collect()).toString("latin1");
    },
  ],
  [
    "CONNECT",
    async (host, port) => {
      await using client = await rawClient(weir.proxyPort);
      await client.write(
        `CONNECT ${host}:${port} HTTP/1.1\r\nHost: x\r\n\r\nGET /api/traffic HTTP/1.1\r\nHost: localhost:${port}\r\nConnection: close\r\n\r\n`,
      );
      return (await client.collect()).toString("latin1").replace(/^HTTP\/1\.1 200 Connection established\r\n\r\n/, "");
    },
  ],
  [
    "CONNECT with bytes that are relayed",
    async (host, port) => {
      await using client = await rawClient(weir.proxyPort);
      await client.write(`CONNECT ${host}:${port} HTTP/1.1\r\nHost: x\r\n\r\n\0get / relayed`);
      return (await client.collect()).toString("latin1").replace(/^HTTP\/1\.1 200 Connection established\r\n\r\n/, "");
    },
  ],
];

for (const [route, send] of ROUTES) {
  for (const side of ["proxy", "api"] as const) {
    test(`Weir's own ${side} port cannot be reached by ${route}, in any spelling`, async () => {
      const before = (await atRest(weir)).openFiles();
      for (const host of SPELLINGS) {
        const startedMs = performance.now();
        const response = await send(host, side === "proxy" ? weir.proxyPort : weir.apiPort);
        assert.ok(performance.now() - startedMs < 1000, `${host} took too long`);
        assert.match(response, /^$|^HTTP\/1\.1 (?:400|502|508) /, `${host}: ${response.slice(0, 200)}`);
      }
      await descriptorsReturn(weir, before);
    });
  }
}

test("the plain spellings are detected as a loop, and the entry has the reason", async () => {
  const client = proxyClient(weir.proxyPort);
  for (const host of ["127.0.0.1", "localhost"]) {
    const { status } = await client.fetch(`http://${host}:${weir.proxyPort}/loop`);
    assert.equal(status, 508, host);
  }
  for (const entry of await weir.waitForEntries(2, "/loop")) assert.equal(entry.failure?.code, "LOOP");
});

test("a loop through a second Weir ends, too", async () => {
  await using second = await startWeir();
  const client = proxyClient(weir.proxyPort);
  const { status } = await client.fetch(`http://127.0.0.1:${second.proxyPort}/through`);
  // The other instance treats an origin-form request as one for its own pages.
  assert.ok(status < 500, String(status));
});

test("two Weirs that are each other's upstream proxy detect the loop, plain and over HTTPS, and keep nothing open", async () => {
  const port = await freePort();
  await using second = await startWeir({ args: [`--upstream-proxy=127.0.0.1:${port}`, "--upstream-insecure"] });
  const args = [`--proxy-port=${port}`, `--upstream-proxy=127.0.0.1:${second.proxyPort}`, "--upstream-insecure"];
  await using first = await startWeir({ args });
  const client = proxyClient(first.proxyPort, { ca: first.caPem });
  const before = [(await atRest(first)).openFiles(), (await atRest(second)).openFiles()];
  for (const [url, came] of [
    ["http://origin.test/round", "origin.test/round"],
    ["https://secure.test/round", "secure.test"],
  ] as const) {
    assert.equal((await client.fetch(url)).status, 508, url);
    const [one, other] = await first.waitForEntries(2, came);
    assert.ok([one, other].some((entry) => entry?.failure?.code === "LOOP"));
    assert.equal((await second.waitForEntries(1, came)).length, 1, "it looped once");
  }
  await descriptorsReturn(first, before[0] ?? 0);
  await descriptorsReturn(second, before[1] ?? 0);
});
