import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdir } from "node:fs/promises";
import { connect as connectHttp2 } from "node:http2";
import type { ClientHttp2Session, ClientHttp2Stream, IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";
import { after, before, test } from "node:test";
import { peer, proxyClient, runProcess, startHttp2Origin, temporaryDirectory } from "@headworks/testkit";
import type { Exit, Http2Origin } from "@headworks/testkit";
import { chromium } from "playwright-core";
import { Cleanups, LOCAL_NAMES, originAuthority, startWeir } from "./rig.ts";
import type { Entry, Weir } from "./rig.ts";
import { atRest } from "./watch.ts";

const curl = peer("curl");
const browser = peer("chromium");
const certutil = peer("certutil");

const TOTAL_BYTES = 256 * 1024 * 1024;
const PIECE = Buffer.alloc(1024 * 1024, "0123456789abcdef");
const MAX_GROWTH_BYTES = 80e6;

const cleanups = new Cleanups();
let weir: Weir;
let secure: Http2Origin;
let plain: Http2Origin;
before(async () => {
  weir = cleanups.use(await startWeir({ args: ["--max-body-size=1048576"] }));
  const leaf = originAuthority.issueLeaf(LOCAL_NAMES);
  secure = cleanups.use(await startHttp2Origin(serve, { tls: { key: leaf.keyPem, cert: leaf.chainPem } }));
  plain = cleanups.use(await startHttp2Origin(serve));
});
after(() => cleanups.run());

const PAGE = `<!doctype html><title>over HTTP/2</title><p id="out"></p><script type="module">
const responses = await Promise.all(Array.from({ length: 60 }, (_, index) => fetch("/echo?" + index, { method: "POST", body: "n" + index }).then((response) => response.text())));
document.querySelector("#out").textContent = responses.join();
</script>`;

function serve(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
  const path = headers[":path"] ?? "";
  if (path === "/huge") return void sendAll(stream);
  if (path === "/count") {
    let receivedBytes = 0;
    stream.on("data", (piece: Buffer) => (receivedBytes += piece.length));
    return void stream.on("end", () => {
      stream.respond({ ":status": 200 });
      stream.end(String(receivedBytes));
    });
  }
  if (path === "/page") {
    stream.respond({ ":status": 200, "content-type": "text/html" });
    return void stream.end(PAGE);
  }
  stream.on("wantTrailers", () => stream.sendTrailers({ "x-sum": "42" }));
  stream.respond({ ":status": 200, "content-type": "text/plain" }, { waitForTrailers: true });
  if (headers[":method"] === "GET") stream.end(`here is ${path}`);
  else stream.pipe(stream);
}

async function sendAll(stream: ServerHttp2Stream): Promise<void> {
  stream.respond({ ":status": 200, "content-length": TOTAL_BYTES });
  for (let sent = 0; sent < TOTAL_BYTES; sent += PIECE.length) {
    if (!stream.write(PIECE)) await once(stream, "drain");
  }
  stream.end();
}

/** Runs curl through Weir; curl prints its version of HTTP. */
const byCurl = async (url: string, ...args: string[]): Promise<Exit> =>
  await runProcess(curl.path, [
    "-sS",
    "-x",
    weir.proxyUrl,
    "--cacert",
    weir.caFile,
    "-w",
    " over %{http_version}",
    ...args,
    url,
  ]);

const versions = ({ request, response }: Entry): unknown => [request.http_version, response?.http_version];

test(
  "curl --http2 and --http1.1 reach an origin over HTTP/2, and entries have the version of each side",
  { skip: curl.skip },
  async () => {
    const url = `https://localhost:${secure.port}`;
    const modern = await byCurl(`${url}/modern`, "--http2");
    assert.equal(modern.stdout, "here is /modern over 2", modern.stderr);
    const older = await byCurl(`${url}/older`, "--http1.1");
    assert.equal(older.stdout, "here is /older over 1.1", older.stderr);
    const posted = await byCurl(`${url}/posted`, "--http2", "-d", "some text");
    assert.equal(posted.stdout, "some text over 2", posted.stderr);
    const [first] = await weir.waitForEntries(1, "/modern");
    const [second] = await weir.waitForEntries(1, "/older");
    assert.ok(first && second);
    assert.deepEqual(
      [versions(first), versions(second)],
      [
        ["HTTP/2", "HTTP/2"],
        ["HTTP/1.1", "HTTP/2"],
      ],
    );
    assert.deepEqual(first.response?.trailers_list, [["x-sum", "42"]]);
    assert.deepEqual(second.response?.trailers_list, [["x-sum", "42"]]);
  },
);

test("curl --http2-prior-knowledge passes inside a tunnel", { skip: curl.skip }, async () => {
  const { stdout, stderr } = await byCurl(`http://localhost:${plain.port}/known`, "-p", "--http2-prior-knowledge");
  assert.equal(stdout, "here is /known over 2", stderr);
  const [entry] = await weir.waitForEntries(1, "/known");
  assert.ok(entry);
  assert.deepEqual(versions(entry), ["HTTP/2", "HTTP/2"]);
});

test(
  "an HTTP/2 entry is replayed over HTTP/2, exported as HAR, and as an equivalent curl command",
  { skip: curl.skip },
  async () => {
    await byCurl(`https://localhost:${secure.port}/again`, "--http2", "-d", "some text");
    const [entry] = await weir.waitForEntries(1, "/again");
    assert.ok(entry);
    const response = await fetch(`${weir.apiUrl}/api/replay/execute/${entry.id}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: "{}",
    });
    assert.equal(response.status, 200, await response.clone().text());
    const [, replayed] = await weir.waitForEntries(2, "/again");
    assert.ok(replayed);
    assert.equal(replayed.response?.http_version, "HTTP/2");
    assert.equal((await weir.body(replayed, "response")).toString(), "some text");
    const har = await weir.get<{ log: { entries: { request: { url: string; httpVersion: string } }[] } }>(
      "/export/har",
    );
    const found = har.log.entries.find(({ request }) => request.url.endsWith("/again"));
    assert.equal(found?.request.httpVersion, "HTTP/2");
    const command = await fetch(`${weir.apiUrl}/api/export/curl/${entry.id}`).then((got) => got.text());
    assert.match(command, /--http2\b/);
  },
);

/** An HTTP/2 session through CONNECT, over TLS with Weir's certificate. */
async function throughTunnel(): Promise<ClientHttp2Session> {
  const client = proxyClient(weir.proxyPort, { ca: weir.caPem });
  const connection = await client.secureTunnel("localhost", secure.port, { ALPNProtocols: ["h2"] });
  const session = connectHttp2(`https://localhost:${secure.port}`, { createConnection: () => connection.detach() });
  session.on("error", () => undefined);
  return session;
}

async function text(stream: ClientHttp2Stream): Promise<string> {
  let all = "";
  for await (const piece of stream.setEncoding("utf8")) all += String(piece);
  return all;
}

test("a hundred concurrent requests over one connection each get their own response", async () => {
  const session = await throughTunnel();
  const responses = await Promise.all(
    Array.from({ length: 100 }, async (_, at) => await text(session.request({ ":path": `/many?${at}` }))),
  );
  assert.deepEqual(
    responses,
    Array.from({ length: 100 }, (_, at) => `here is /many?${at}`),
  );
  session.destroy();
  await weir.waitForEntries(100, "/many?");
});

/** Samples Weir's memory during `run`. */
async function withFlatMemory(name: string, run: () => Promise<void>): Promise<void> {
  const startBytes = (await atRest(weir)).residentBytes();
  let peakBytes = startBytes;
  const sampler = setInterval(() => (peakBytes = Math.max(peakBytes, weir.residentBytes())), 50);
  const startedMs = performance.now();
  try {
    await run();
  } finally {
    clearInterval(sampler);
  }
  const seconds = (performance.now() - startedMs) / 1000;
  const grownMb = (peakBytes - startBytes) / 1e6;
  process.stdout.write(
    `# ${name}: ${TOTAL_BYTES / 2 ** 20} MiB in ${seconds.toFixed(1)} s, memory grew by ${grownMb.toFixed(0)} MB\n`,
  );
  assert.ok(peakBytes - startBytes < MAX_GROWTH_BYTES, `memory grew by ${peakBytes - startBytes} bytes`);
}

test("memory stays flat for a large body to an HTTP/2 client", async () => {
  const session = await throughTunnel();
  await withFlatMemory("HTTP/2 down", async () => {
    const stream = session.request({ ":path": "/huge" });
    let receivedBytes = 0;
    stream.on("data", (piece: Buffer) => (receivedBytes += piece.length));
    await once(stream, "close");
    assert.deepEqual([receivedBytes, stream.rstCode], [TOTAL_BYTES, 0]);
  });
  session.destroy();
});

test("memory stays flat for a large body from an HTTP/2 client", async () => {
  const session = await throughTunnel();
  await withFlatMemory("HTTP/2 up", async () => {
    const stream = session.request({ ":path": "/count", ":method": "PUT" }, { endStream: false });
    for (let sent = 0; sent < TOTAL_BYTES; sent += PIECE.length) {
      if (!stream.write(PIECE)) await once(stream, "drain");
    }
    stream.end();
    assert.equal(await text(stream), String(TOTAL_BYTES));
  });
  session.destroy();
});

const noBrowser = browser.skip === false ? certutil.skip : browser.skip;
test("Chromium uses HTTP/2 with Weir, and all its requests share a connection", { skip: noBrowser }, async () => {
  await using home = await temporaryDirectory();
  const database = `sql:${home.file(".pki", "nssdb")}`;
  await mkdir(home.file(".pki", "nssdb"), { recursive: true });
  for (const args of [
    ["-N", "-d", database, "--empty-password"],
    ["-A", "-d", database, "-n", "weir", "-t", "C,,", "-i", weir.caFile],
  ]) {
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
      `--proxy-server=${weir.proxyUrl}`,
      "--proxy-bypass-list=<-loopback>",
    ],
    timeout: 60_000,
  });
  try {
    const page = await instance.newPage();
    await page.goto(`https://localhost:${secure.port}/page`);
    await page.waitForFunction("document.querySelector('#out').textContent !== ''");
    assert.equal(await page.textContent("#out"), Array.from({ length: 60 }, (_, index) => `n${index}`).join());
    const protocol = await page.evaluate("performance.getEntriesByType('navigation')[0].nextHopProtocol");
    assert.equal(protocol, "h2");
  } finally {
    await instance.close();
  }
  const echoes = await weir.waitForEntries(60, "/echo?");
  assert.equal(new Set(echoes.map(({ request }) => request.http_version)).size, 1);
  assert.equal(echoes[0]?.request.http_version, "HTTP/2");
});
