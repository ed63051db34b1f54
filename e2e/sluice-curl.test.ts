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

/** Text and non-text bytes. */
const RESPONSE = Buffer.concat([Buffer.from("response of the origin: "), Buffer.from([0, 255, 13, 10, 128])]);
const UPLOAD = Buffer.from("field=value&other=%00\r\n".repeat(9000));

interface Seen {
  readonly method: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** Requests at the origin, by path. */
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

/** The protocols of curl towards a gateway, with the version that it prints. */
const PROTOCOLS = [
  { name: "HTTP/1.1", args: ["--http1.1"], listener: "plain", version: "1.1" },
  { name: "HTTP/1.0", args: ["--http1.0"], listener: "plain", version: "1.1" },
  { name: "HTTP/1.1 with an offer of h2c", args: ["--http2"], listener: "plain", version: "1.1" },
  { name: "HTTP/2 by prior knowledge", args: ["--http2-prior-knowledge"], listener: "plain", version: "2" },
  { name: "HTTP/1.1 over TLS", args: ["--http1.1"], listener: "secure", version: "1.1" },
  { name: "HTTP/2 over TLS", args: ["--http2"], listener: "secure", version: "2" },
  { name: "HTTP/2 over TLS 1.2", args: ["--http2", "--tls-max", "1.2"], listener: "secure", version: "2" },
] as const;

type Protocol = (typeof PROTOCOLS)[number];

async function run(protocol: Protocol, path: string, args: readonly string[] = [], input?: Buffer): Promise<Exit> {
  const scheme = protocol.listener === "secure" ? "https" : "http";
  const url = `${scheme}://localhost:${sluice.port(protocol.listener)}${path}`;
  const exit = await runProcess(
    curl.path,
    ["-sS", "--cacert", files.caFile, ...protocol.args, ...args, url],
    input === undefined ? {} : { input },
  );
  assert.equal(exit.code, 0, `${exit.stdout}\n${exit.stderr}`);
  return exit;
}

/** The request at the origin for this path. */
function seen(path: string): Seen {
  const found = arrived.get(path);
  assert.ok(found, `nothing reached the origin on ${path}`);
  return found;
}

for (const [at, protocol] of PROTOCOLS.entries()) {
  const { skip } = curl;
  test(`curl, ${protocol.name}: request and response pass unchanged`, { skip }, async () => {
    const path = `/get-${at}?x=1&y=%2F%2e`;
    const exit = await run(protocol, path, ["-w", "[%{http_code} %{http_version}]"]);
    assert.ok(exit.stdout.startsWith("response of the origin: "), exit.stdout);
    assert.ok(exit.stdout.endsWith(`[200 ${protocol.version}]`), exit.stdout);
    const { headers } = seen(path);
    assert.equal(headers["x-forwarded-proto"], protocol.listener === "secure" ? "https" : "http");
    assert.equal(headers["x-forwarded-for"], "127.0.0.1");
    assert.equal(headers.upgrade, undefined);
    assert.equal(headers["http2-settings"], undefined);
  });

  test(`curl, ${protocol.name}: HEAD, an error, and the gateway's own responses`, { skip }, async () => {
    const head = await run(protocol, `/head-${at}`, ["-I"]);
    assert.match(head.stdout, / 200/);
    assert.match(head.stdout, /x-origin: yes/i);
    assert.match((await run(protocol, `/teapot-${at}?status=418`, ["-w", "[%{http_code}]"])).stdout, /\[418\]$/);
    assert.match((await run(protocol, "/healthz")).stdout, /"code":"ok"/);
  });

  test(`curl, ${protocol.name}: an upload of 200 KB passes, with a length and without`, { skip }, async () => {
    const withLength = `/post-${at}`;
    // curl waits for 100 (Continue) before such a body, which does not exist in HTTP/1.0.
    const expect = protocol.args[0] === "--http1.0" ? ["-H", "Expect:"] : ["-H", "Expect: 100-continue"];
    await run(protocol, withLength, ["--data-binary", "@-", ...expect], UPLOAD);
    assert.deepEqual(seen(withLength).body, UPLOAD);
    const streamed = `/stream-${at}`;
    // HTTP/1.0 has no chunked bodies, and curl sends none there.
    if (protocol.args[0] === "--http1.0") return;
    await run(protocol, streamed, ["-T", "-"], UPLOAD);
    assert.equal(seen(streamed).method, "PUT");
    assert.deepEqual(seen(streamed).body, UPLOAD);
  });

  // curl 7.88 breaks its own second request on a connection with prior knowledge, whatever the server.
  if (protocol.args[0] === "--http2-prior-knowledge") continue;
  test(`curl, ${protocol.name}: three sequential compressed requests are decompressed by curl`, { skip }, async () => {
    const port = sluice.port(protocol.listener);
    const scheme = protocol.listener === "secure" ? "https" : "http";
    const urls = [0, 1, 2].map((n) => `${scheme}://localhost:${port}/packed-${at}-${n}`);
    const options = ["-sS", "--compressed", "--cacert", files.caFile, ...protocol.args, "-w", "[%{num_connects}]"];
    const exit = await runProcess(curl.path, [...options, ...urls]);
    assert.equal(exit.code, 0, exit.stderr);
    assert.equal(exit.stdout.split("response of the origin: ").length - 1, 3, exit.stdout);
    const connects = [...exit.stdout.matchAll(/\[(\d)\]/g)].map(([, count]) => Number(count));
    // Without keep-alive (HTTP/1.0) each request has its own connection.
    assert.deepEqual(connects, protocol.args[0] === "--http1.0" ? [1, 1, 1] : [1, 0, 0]);
  });
}

test("curl refuses the listener's certificate without its CA", { skip: curl.skip }, async () => {
  const exit = await runProcess(curl.path, ["-sS", `https://localhost:${sluice.port("secure")}/untrusted`]);
  assert.equal(exit.code, 60, exit.stderr);
  assert.equal(arrived.has("/untrusted"), false);
});

test(
  "curl: 40 concurrent requests over one HTTP/2 connection each get their response",
  { skip: curl.skip },
  async () => {
    const options = ["-sS", "--cacert", files.caFile, "--http2", "--parallel", "--parallel-max", "40"];
    const urls = `https://localhost:${sluice.port("secure")}/parallel-[1-40]`;
    const exit = await runProcess(curl.path, [...options, "-w", "[%{http_code}]", urls]);
    assert.equal(exit.code, 0, exit.stderr);
    assert.equal(exit.stdout.split("[200]").length - 1, 40);
  },
);
