import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import { after, before, test } from "node:test";
import { brotliCompressSync } from "node:zlib";
import { peer, runProcess, temporaryDirectory, waitUntil } from "@headworks/testkit";
import { chromium } from "playwright-core";
import type { Page } from "playwright-core";
import { assertTlsFacts, refusals, startBench } from "./client-rig.ts";
import type { Bench } from "./client-rig.ts";
import { Cleanups } from "./rig.ts";

const browser = peer("chromium");
const certutil = peer("certutil");
const skip = browser.skip === false ? certutil.skip : browser.skip;
const cleanups = new Cleanups();
let bench: Bench;
before(async () => {
  if (skip === false) bench = await startBench(cleanups, site);
});
after(() => cleanups.run());

const PAGE = `<!doctype html><title>through Weir</title><link rel="stylesheet" href="/style.css"><img src="/dot.svg">
<p id="out"></p><script type="module">
const responses = await Promise.all(Array.from({ length: 20 }, (_, index) => fetch("/echo?" + index, { method: "POST", body: "n" + index }).then((response) => response.text())));
document.querySelector("#out").textContent = responses.join();
</script>`;

/** A small page with the resources that a browser requests itself, compressed for browsers. */
function site(request: IncomingMessage, response: ServerResponse): void {
  const path = request.url ?? "";
  if (path.startsWith("/echo")) {
    response.setHeader("content-type", "text/plain");
    request.pipe(response);
    return;
  }
  const files: Record<string, [type: string, text: string]> = {
    "/": ["text/html; charset=utf-8", PAGE],
    "/style.css": ["text/css", "p { color: rgb(1, 2, 3) }"],
    "/dot.svg": ["image/svg+xml", '<svg xmlns="http://www.w3.org/2000/svg" width="7" height="7"/>'],
  };
  const [type, text] = files[path] ?? ["text/plain", "nothing here"];
  const body = brotliCompressSync(text);
  response.writeHead(files[path] ? 200 : 404, {
    "content-type": type,
    "content-encoding": "br",
    "content-length": body.length,
  });
  response.end(body);
}

/** Opens a browser with a profile of its own, which trusts Weir's CA or nothing. */
async function inBrowser(trusts: boolean, use: (page: Page) => Promise<void>): Promise<void> {
  const { weir } = bench;
  await using home = await temporaryDirectory();
  const database = `sql:${home.file(".pki", "nssdb")}`;
  await mkdir(home.file(".pki", "nssdb"), { recursive: true });
  const steps = [
    ["-N", "-d", database, "--empty-password"],
    ...(trusts ? [["-A", "-d", database, "-n", "weir", "-t", "C,,", "-i", weir.caFile]] : []),
  ];
  for (const args of steps) {
    const { code, stderr } = await runProcess(certutil.path, args);
    assert.equal(code, 0, stderr);
  }
  const instance = await chromium.launch({
    executablePath: browser.path,
    env: { PATH: process.env["PATH"] ?? "", HOME: home.path },
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
      `--proxy-server=${weir.proxyUrl}`,
      "--proxy-bypass-list=<-loopback>",
    ],
    timeout: 60_000,
  });
  try {
    await use(await instance.newPage());
  } finally {
    await instance.close();
  }
}

test("Chromium loads a page over HTTPS and every request is an entry", { skip }, async () => {
  const { weir, secure } = bench;
  await inBrowser(true, async (page) => {
    const response = await page.goto(`https://localhost:${secure.port}/`);
    assert.equal(response?.status(), 200);
    await page.waitForFunction("document.querySelector('#out').textContent !== ''");
    assert.equal(await page.textContent("#out"), Array.from({ length: 20 }, (_, index) => `n${index}`).join());
    assert.equal(await page.evaluate("getComputedStyle(document.querySelector('p')).color"), "rgb(1, 2, 3)");
    assert.equal(await page.evaluate("document.querySelector('img').naturalWidth"), 7);
  });
  const entries = await weir.waitForEntries(23, `https://localhost:${secure.port}/`);
  const echoes = entries.filter(({ request }) => request.path.startsWith("/echo"));
  assert.equal(echoes.length, 20);
  for (const entry of echoes) {
    const index = entry.request.path.slice("/echo?".length);
    assert.equal(entry.request.method, "POST");
    assert.equal((await weir.body(entry, "request")).toString(), `n${index}`);
    assert.equal((await weir.body(entry, "response")).toString(), `n${index}`);
  }
  const document = entries.find(({ request }) => request.path === "/");
  assert.ok(document);
  assert.deepEqual(await weir.body(document, "response"), brotliCompressSync(PAGE));
  assert.equal(document.response?.headers["content-encoding"], "br");
  assertTlsFacts(document, false);
});

test("Chromium loads a plain page through the proxy", { skip }, async () => {
  const { weir, plain } = bench;
  await inBrowser(true, async (page) => {
    await page.goto(`http://localhost:${plain.port}/`);
    await page.waitForFunction("document.querySelector('#out').textContent !== ''");
    assert.equal(await page.textContent("#out"), Array.from({ length: 20 }, (_, index) => `n${index}`).join());
  });
  await weir.waitForEntries(23, `http://localhost:${plain.port}/`);
});

test("Chromium without trust shows its warning, and an entry has the reason", { skip }, async () => {
  const { weir, secure } = bench;
  const requested = secure.requests.length;
  await inBrowser(false, async (page) => {
    await assert.rejects(page.goto(`https://localhost:${secure.port}/`), /ERR_CERT_AUTHORITY_INVALID/);
  });
  assert.equal(secure.requests.length, requested);
  const [entry] = await waitUntil(async () => {
    const all = await refusals(weir);
    return all.length > 0 && all;
  });
  assert.equal(entry?.request.method, "CONNECT");
  assert.equal(entry?.response?.status_code, 502);
});
