import assert from "node:assert/strict";
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import { after, before, test } from "node:test";
import { gzipSync } from "node:zlib";
import { peer, runProcess, startOrigin } from "@headworks/testkit";
import type { Exit, Origin } from "@headworks/testkit";
import { certificates, Cleanups, servingAll, startSluice, type Certificates, type Sluice } from "./sluice-rig.ts";

const curl = peer("curl");
const cleanups = new Cleanups();
let sluice: Sluice;
let origin: Origin;
let files: Certificates;

/** Text and bytes that no text has. */
const RESPONSE = Buffer.concat([Buffer.from("answer of the origin: "), Buffer.from([0, 255, 13, 10, 128])]);
const UPLOAD = Buffer.from("field=value&other=%00\r\n".repeat(9000));

interface Seen {
  readonly method: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** What reached the origin, by path. */
const arrived = new Map<string, Seen>();

function response(request: IncomingMessage, response: ServerResponse): void {
  const status = Number(/[?&]status=(\d+)/.exec(request.url ?? "")?.[1] ?? 200);
  const pieces: Buffer[] = [];
  request.on("data", (piece: Buffer) => pieces.push(piece));
  request.on("end", () => {
    const { method, headers, url = "" } = request;
    arrived.set(url, { method, headers, body: Buffer.concat(pieces) });
    const packed = request.headers["accept-encoding"]?.includes("gzip") === true;
    const body = packed ? gzipSync(RESPONSE) : RESPONSE;
    response.writeHead(status, {
      "content-type": "application/octet-stream",
      "x-origin": "yes",
      ...(packed ? { "content-encoding": "gzip" } : {}),
    });
    response.end(request.method === "HEAD" ? undefined : body);
  });
}

before(async () => {
  files = cleanups.use(await certificates());
  origin = cleanups.use(await startOrigin({ handler: response }));
  const tls = await files.issue("server", ["localhost"]);
  sluice = cleanups.use(
    await startSluice(
      servingAll(origin.port, {
        listeners: [
          { name: "plain", address: "127.0.0.1", port: 0 },
          { name: "secure", address: "127.0.0.1", port: 0, protocol: "https", tls },
        ],
      }),
    ),
  );
});
after(() => cleanups.run());

/** The ways in which curl speaks to a gateway, and the version it says that the answer had. */
const WAYS = [
  { name: "HTTP/1.1", args: ["--http1.1"], listener: "plain", version: "1.1" },
  { name: "HTTP/1.0", args: ["--http1.0"], listener: "plain", version: "1.1" },
  { name: "HTTP/1.1 with an offer of h2c", args: ["--http2"], listener: "plain", version: "1.1" },
  { name: "HTTP/2 by prior knowledge", args: ["--http2-prior-knowledge"], listener: "plain", version: "2" },
  { name: "HTTP/1.1 over TLS", args: ["--http1.1"], listener: "secure", version: "1.1" },
  { name: "HTTP/2 over TLS", args: ["--http2"], listener: "secure", version: "2" },
  { name: "HTTP/2 over TLS 1.2", args: ["--http2", "--tls-max", "1.2"], listener: "secure", version: "2" },
] as const;

type Way = (typeof WAYS)[number];

async function run(way: Way, path: string, args: readonly string[] = [], input?: Buffer): Promise<Exit> {
  const scheme = way.listener === "secure" ? "https" : "http";
  const url = `${scheme}://localhost:${sluice.port(way.listener)}${path}`;
  const exit = await runProcess(
    curl.path,
    ["-sS", "--cacert", files.caFile, ...way.args, ...args, url],
    input === undefined ? {} : { input },
  );
  assert.equal(exit.code, 0, `${exit.stdout}\n${exit.stderr}`);
  return exit;
}

/** What reached the origin on this path. */
function seen(path: string): Seen {
  const found = arrived.get(path);
  assert.ok(found, `nothing reached the origin on ${path}`);
  return found;
}

for (const [at, way] of WAYS.entries()) {
  const { skip } = curl;
  test(`curl, ${way.name}: a request and its answer pass whole`, { skip }, async () => {
    const path = `/get-${at}?x=1&y=%2F%2e`;
    const exit = await run(way, path, ["-w", "[%{http_code} %{http_version}]"]);
    assert.ok(exit.stdout.startsWith("answer of the origin: "), exit.stdout);
    assert.ok(exit.stdout.endsWith(`[200 ${way.version}]`), exit.stdout);
    const { headers } = seen(path);
    assert.equal(headers["x-forwarded-proto"], way.listener === "secure" ? "https" : "http");
    assert.equal(headers["x-forwarded-for"], "127.0.0.1");
    assert.equal(headers.upgrade, undefined);
    assert.equal(headers["http2-settings"], undefined);
  });

  test(`curl, ${way.name}: HEAD, an error, and the gateway's own answers`, { skip }, async () => {
    const head = await run(way, `/head-${at}`, ["-I"]);
    assert.match(head.stdout, / 200/);
    assert.match(head.stdout, /x-origin: yes/i);
    assert.match((await run(way, `/teapot-${at}?status=418`, ["-w", "[%{http_code}]"])).stdout, /\[418\]$/);
    assert.match((await run(way, "/healthz")).stdout, /"code":"ok"/);
  });

  test(`curl, ${way.name}: an upload of 200 KB passes, with a length and without`, { skip }, async () => {
    const withLength = `/post-${at}`;
    // curl asks whether it may send such a body first (Expect), which does not exist in HTTP/1.0.
    const expect = way.args[0] === "--http1.0" ? ["-H", "Expect:"] : ["-H", "Expect: 100-continue"];
    await run(way, withLength, ["--data-binary", "@-", ...expect], UPLOAD);
    assert.deepEqual(seen(withLength).body, UPLOAD);
    const streamed = `/stream-${at}`;
    // Chunked bodies do not exist in HTTP/1.0, and curl does not send them there.
    if (way.args[0] === "--http1.0") return;
    await run(way, streamed, ["-T", "-"], UPLOAD);
    assert.equal(seen(streamed).method, "PUT");
    assert.deepEqual(seen(streamed).body, UPLOAD);
  });

  // curl 7.88 breaks its own second request on a connection of prior knowledge, whatever the server.
  if (way.args[0] === "--http2-prior-knowledge") continue;
  test(`curl, ${way.name}: three requests in a row, packed, are unpacked by curl`, { skip }, async () => {
    const port = sluice.port(way.listener);
    const scheme = way.listener === "secure" ? "https" : "http";
    const urls = [0, 1, 2].map((n) => `${scheme}://localhost:${port}/packed-${at}-${n}`);
    const options = ["-sS", "--compressed", "--cacert", files.caFile, ...way.args, "-w", "[%{num_connects}]"];
    const exit = await runProcess(curl.path, [...options, ...urls]);
    assert.equal(exit.code, 0, exit.stderr);
    assert.equal(exit.stdout.split("answer of the origin: ").length - 1, 3, exit.stdout);
    const connects = [...exit.stdout.matchAll(/\[(\d)\]/g)].map(([, count]) => Number(count));
    // Without keep-alive (HTTP/1.0) each has a connection of its own.
    assert.deepEqual(connects, way.args[0] === "--http1.0" ? [1, 1, 1] : [1, 0, 0]);
  });
}

test("curl does not accept the listener's certificate without its authority", { skip: curl.skip }, async () => {
  const exit = await runProcess(curl.path, ["-sS", `https://localhost:${sluice.port("secure")}/untrusted`]);
  assert.equal(exit.code, 60, exit.stderr);
  assert.equal(arrived.has("/untrusted"), false);
});

test("curl: 40 requests at a time over one HTTP/2 connection all get their answer", { skip: curl.skip }, async () => {
  const options = ["-sS", "--cacert", files.caFile, "--http2", "--parallel", "--parallel-max", "40"];
  const urls = `https://localhost:${sluice.port("secure")}/parallel-[1-40]`;
  const exit = await runProcess(curl.path, [...options, "-w", "[%{http_code}]", urls]);
  assert.equal(exit.code, 0, exit.stderr);
  assert.equal(exit.stdout.split("[200]").length - 1, 40);
});
