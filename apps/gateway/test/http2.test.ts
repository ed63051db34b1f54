import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { test } from "node:test";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { setTimeout } from "node:timers/promises";
import {
  collect,
  FLAG,
  FRAME,
  frame,
  FrameReader,
  GET,
  http2Client,
  PREFACE,
  rawClient,
  type ReadFrame,
  request,
  runProcess,
  section,
  settings,
  startOrigin,
  startRawServer,
  waitUntil,
} from "@headworks/testkit";
import { errorCode } from "./error-code.ts";
import { serving, startGateway, type TestGateway } from "./gateway-rig.ts";

const proxied = (name: string) =>
  ({ name, service: name, match: { path: { type: "prefix", value: "/" } }, action: { type: "proxy" } }) as const;

const gatewayFor = async (port: number, environment: Readonly<Record<string, string>> = {}): Promise<TestGateway> =>
  await startGateway({ ...serving("api", [port]), routes: [proxied("api")] }, { environment });

test("HTTP/2 by prior knowledge: curl's requests are proxied to HTTP/1.1 with body and fields", async () => {
  await using origin = await startOrigin();
  await using gateway = await gatewayFor(origin.port);
  const url = `http://127.0.0.1:${gateway.port()}/a//b%2fc?x=%41`;
  const { stdout } = await runProcess("curl", [
    "-sS",
    "--http2-prior-knowledge",
    "-d",
    "body",
    "-w",
    "%{http_version}",
    url,
  ]);
  const response = /^(\{.*\})2$/s.exec(stdout);
  assert.ok(response, stdout);
  const seen = JSON.parse(response[1] ?? "") as { method: string; url: string; body: string };
  assert.deepEqual(
    [seen.method, seen.url, seen.body],
    ["POST", "/a//b%2fc?x=%41", Buffer.from("body").toString("base64")],
  );
});

test("HTTP/2 to HTTP/1.1: pieces of Cookie are joined, repeats kept, Host is the endpoint's", async () => {
  await using origin = await startOrigin();
  await using gateway = await gatewayFor(origin.port);
  await using client = await http2Client(gateway.port());
  await client.fetch({ ":path": "/", cookie: ["a=1", "b=2"], "x-many": ["one", "two"], te: "trailers" });
  const { rawHeaders = [] } = origin.requests[0] ?? {};
  const valuesOf = (name: string): string[] =>
    rawHeaders.filter((_, at) => at % 2 === 1 && rawHeaders[at - 1]?.toLowerCase() === name);
  assert.deepEqual(valuesOf("cookie"), ["a=1; b=2"]);
  assert.deepEqual(valuesOf("x-many"), ["one", "two"]);
  assert.deepEqual(valuesOf("host"), [`127.0.0.1:${origin.port}`]);
  assert.deepEqual(valuesOf("x-forwarded-host"), [`127.0.0.1:${gateway.port()}`]);
  assert.equal(
    rawHeaders.some((text) => text.startsWith(":")),
    false,
  );
});

test("HTTP/2: an answer's fields of connections are left out, repeats kept, and its length is told", async () => {
  const head =
    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nKeep-Alive: timeout=5\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\n\r\nok";
  await using origin = await startRawServer(head);
  await using gateway = await gatewayFor(origin.port);
  await using client = await http2Client(gateway.port());
  const response = await client.fetch({ ":path": "/" });
  assert.deepEqual([response.status, response.body.toString(), response.headers["content-length"]], [200, "ok", "2"]);
  assert.deepEqual(response.headers["set-cookie"], ["a=1", "b=2"]);
  assert.equal(response.headers["keep-alive"], undefined);
});

test("HTTP/2: fields that should be there once and are not do no harm, in answers, trailers and hints", async () => {
  const twice = ["Date", "ETag", "Content-Type", "Age", "Location", "Last-Modified", "Server"].flatMap((name) => [
    `${name}: 1\r\n`,
    `${name}: 2\r\n`,
  ]);
  const hints = `HTTP/1.1 103 Early Hints\r\n${twice.join("")}\r\n`;
  const head = `HTTP/1.1 299 Odd\r\nTransfer-Encoding: chunked\r\n${twice.join("")}Proxy-Status: x\r\nHTTP2-Settings: x\r\nTE: gzip\r\n\r\n`;
  await using origin = await startRawServer(`${hints}${head}2\r\nok\r\n0\r\nETag: 1\r\nETag: 2\r\n\r\n`);
  await using gateway = await gatewayFor(origin.port);
  await using client = await http2Client(gateway.port());
  const response = await client.fetch({ ":path": "/" });
  assert.deepEqual([response.status, response.body.toString(), response.code], [299, "ok", 0]);
});

for (const status of [205, 600, 999]) {
  test(`HTTP/2: the odd status ${status} of an upstream is passed on and does no harm`, async () => {
    await using origin = await startRawServer(`HTTP/1.1 ${status} Odd\r\nContent-Length: 2\r\n\r\nok`);
    await using gateway = await gatewayFor(origin.port);
    await using client = await http2Client(gateway.port());
    const response = await client.fetch({ ":path": "/" });
    assert.equal(response.status, status);
    assert.equal((await client.fetch({ ":path": "/healthz" })).status, 200);
  });
}

test("HTTP/2: trailers pass both ways to and from HTTP/1.1", async () => {
  const seen = Promise.withResolvers<NodeJS.Dict<string>>();
  await using origin = await startOrigin({
    handler: (incoming, response) => {
      incoming.resume();
      incoming.on("end", () => {
        seen.resolve(incoming.trailers);
        response.writeHead(200, { Trailer: "X-Sum" });
        response.write("body");
        response.addTrailers({ "X-Sum": "42" });
        response.end();
      });
    },
  });
  await using gateway = await gatewayFor(origin.port);
  await using client = await http2Client(gateway.port());
  const stream = client.session.request({ ":path": "/", ":method": "POST" }, { waitForTrailers: true });
  stream.on("wantTrailers", () => stream.sendTrailers({ "x-check": "7", "content-type": "text/x" }));
  const response = collect(stream);
  stream.end("data");
  assert.equal((await response).trailers?.["x-sum"], "42");
  const trailers = await seen.promise;
  assert.deepEqual([trailers["x-check"], trailers["content-type"]], ["7", undefined]);
});

test("HTTP/2: informational answers pass, and 100 Continue comes when the body is wanted", async () => {
  await using origin = await startOrigin({
    handler: (incoming, response) => {
      response.writeEarlyHints({ link: "</a.css>; rel=preload" });
      incoming.resume();
      incoming.on("end", () => response.end("done"));
    },
  });
  await using gateway = await gatewayFor(origin.port);
  await using client = await http2Client(gateway.port());
  const stream = client.session.request({ ":path": "/", ":method": "POST", expect: "100-continue" });
  const continued = once(stream, "continue");
  const response = collect(stream);
  await continued;
  stream.end("data");
  const { status, interim } = await response;
  assert.equal(status, 200);
  assert.equal(interim.includes(103), true);
});

for (const [what, method, status, headers] of [
  ["HEAD", "HEAD", 200, { "content-length": "5" }],
  ["204", "GET", 204, {}],
  ["304", "GET", 304, { etag: '"x"' }],
] as const) {
  test(`HTTP/2: an answer without a body (${what}) ends at once and keeps its fields`, async () => {
    await using origin = await startOrigin({
      handler: (_incoming, response) => {
        response.writeHead(status, headers);
        response.end();
      },
    });
    await using gateway = await gatewayFor(origin.port);
    await using client = await http2Client(gateway.port());
    const response = await client.fetch({ ":path": "/", ":method": method });
    assert.deepEqual([response.status, response.body.length, response.code], [status, 0, 0]);
    for (const [name, value] of Object.entries(headers)) assert.equal(response.headers[name], value);
  });
}

test("HTTP/2: the gateway's own answers are in the error envelope", async () => {
  await using gateway = await startGateway({ routes: [] });
  await using client = await http2Client(gateway.port());
  const response = await client.fetch({ ":path": "/nothing", ":method": "POST" }, "some body");
  assert.equal(response.status, 404);
  assert.equal(errorCode(response), "no_route");
  assert.equal((await client.fetch({ ":path": "/healthz" })).status, 200);
});

test("HTTP/2: 64 requests at a time on one connection are each answered with their own body", async () => {
  await using origin = await startOrigin();
  await using gateway = await gatewayFor(origin.port);
  await using client = await http2Client(gateway.port());
  const bodies = Array.from({ length: 64 }, (_, at) => Buffer.alloc(at * 1000 + 1, at));
  const responses = await Promise.all(
    bodies.map(async (body) => await client.fetch({ ":path": "/", ":method": "PUT" }, body)),
  );
  for (const [at, { body }] of responses.entries()) {
    assert.equal((JSON.parse(body.toString()) as { body: string }).body, bodies[at]?.toString("base64"));
  }
});

function* pieces(body: Buffer): Generator<Buffer> {
  for (let at = 0; at < body.length; at += 65_536) yield body.subarray(at, at + 65_536);
}

test("HTTP/2: 20 MB each way pass unchanged", async () => {
  const server = createServer((incoming, response) => void incoming.pipe(response));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  try {
    await using gateway = await gatewayFor((server.address() as AddressInfo).port);
    await using client = await http2Client(gateway.port());
    const body = Buffer.alloc(20_000_000, "0123456789abcdefg");
    const stream = client.session.request({ ":path": "/", ":method": "POST" }, { endStream: false });
    const collected = collect(stream);
    Readable.from(pieces(body)).pipe(stream);
    const response = await collected;

    assert.equal(response.body.equals(body), true);
  } finally {
    server.closeAllConnections();
    server.close();
  }
});

test("HTTP/2: a client that reads nothing holds the upstream back instead of filling memory", async () => {
  let written = 0;
  await using origin = await startOrigin({
    handler: (_incoming, response) => {
      const piece = Buffer.alloc(65_536);
      const more = (): void => {
        while (written < 200_000_000) {
          written += piece.length;
          if (!response.write(piece)) return void response.once("drain", more);
        }
      };
      more();
    },
  });
  await using gateway = await gatewayFor(origin.port);
  await using client = await http2Client(gateway.port());
  const stream = client.session.request({ ":path": "/" });
  stream.on("error", () => undefined);
  await once(stream, "response");
  for (let before = -1; before !== written; await setTimeout(300)) before = written;
  assert.ok(written > 65_536, `only ${written} bytes were taken`);
  assert.ok(written < 30_000_000, `${written} bytes were taken`);
  stream.close(8);
});

test("HTTP/2: an upstream that reads nothing holds the client back instead of filling memory", async () => {
  await using origin = await startRawServer(async (connection) => {
    connection.socket.pause();
    await connection.closed;
  });
  await using gateway = await gatewayFor(origin.port);
  await using client = await http2Client(gateway.port());
  const stream = client.session.request({ ":path": "/", ":method": "POST" }, { endStream: false });
  stream.on("error", () => undefined);
  let written = 0;
  const body = Readable.from(pieces(Buffer.alloc(100_000_000)));
  body.on("data", (piece: Buffer) => (written += piece.length));
  body.pipe(stream);
  for (let before = -1; before !== written; await setTimeout(300)) before = written;
  assert.ok(written > 65_536 && written < 30_000_000, `${written} bytes were taken`);
  body.destroy();
  stream.close(8);
});

test("HTTP/2: a client that resets its request ends it at the upstream", async () => {
  const gone = Promise.withResolvers<undefined>();
  await using origin = await startOrigin({
    handler: (_incoming, response) => {
      response.write("begun");
      response.on("close", () => gone.resolve(undefined));
    },
  });
  await using gateway = await gatewayFor(origin.port);
  await using client = await http2Client(gateway.port());
  const stream = client.session.request({ ":path": "/" });
  stream.on("error", () => undefined);
  await once(stream, "data");
  stream.close(8);
  await gone.promise;
});

test("HTTP/2: a body that the client breaks off, even without an error, never looks whole to the upstream", async () => {
  for (const code of [0, 8]) {
    let sawEnd = false;
    const gone = Promise.withResolvers<undefined>();
    await using origin = await startOrigin({
      handler: (incoming) => {
        incoming.resume();
        incoming.on("end", () => (sawEnd = true));
        incoming.on("close", () => gone.resolve(undefined));
        incoming.on("error", () => undefined);
      },
    });
    await using gateway = await gatewayFor(origin.port);
    await using client = await rawClient(gateway.port());
    const post = section([[":method", "POST"], ...GET.slice(1)]);
    await client.write(
      Buffer.concat([
        PREFACE,
        settings(),
        frame(FRAME.headers, FLAG.endHeaders, 1, post),
        frame(FRAME.data, 0, 1, "half"),
      ]),
    );
    await waitUntil(() => origin.requests.length === 1);
    await client.write(frame(FRAME.reset, 0, 1, Buffer.from([0, 0, 0, code])));
    await gone.promise;
    assert.equal(sawEnd, false, `code ${code}`);
  }
});

test("HTTP/2: an upstream that breaks off resets the stream, and the connection goes on", async () => {
  await using origin = await startRawServer("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
  await using gateway = await gatewayFor(origin.port);
  await using client = await http2Client(gateway.port());
  const response = await client.fetch({ ":path": "/" });
  assert.deepEqual([response.status, response.code], [200, 2]);
  assert.equal((await client.fetch({ ":path": "/healthz" })).status, 200);
});

test("HTTP/2: tunnels are refused with 501 upgrade_not_supported", async () => {
  await using gateway = await startGateway({ routes: [] });
  await using client = await http2Client(gateway.port());
  const stream = client.session.request({ ":method": "CONNECT", ":authority": "a.test:443" }, { endStream: true });
  const refused = await collect(stream);
  assert.deepEqual([refused.status, errorCode(refused)], [501, "upgrade_not_supported"]);
});

test("a WebSocket for an upstream that speaks HTTP/2 is refused with 501 upgrade_not_supported", async () => {
  await using gateway = await startGateway({ ...serving("api", [1], { protocol: "h2c" }), routes: [proxied("api")] });
  const fields = ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: eA=="];
  const response = await gateway.send({ path: "/", fields });
  assert.deepEqual([response.status, errorCode(response)], [501, "upgrade_not_supported"]);
});

test("HTTP/2: a client that ends its side still gets its answers, then the connection ends", async () => {
  await using origin = await startOrigin({ handler: (_incoming, response) => void response.end("late") });
  await using gateway = await gatewayFor(origin.port);
  for (const bytes of [request(1), Buffer.alloc(0)]) {
    await using client = await rawClient(gateway.port());
    await client.write(Buffer.concat([PREFACE, settings(), frame(FRAME.settings, FLAG.ack, 0), bytes]));
    client.end();
    const text = (await client.collect(5000)).toString("latin1");
    assert.equal(text.includes("late"), bytes.length > 0);
  }
});

/** Sends bytes and reads frames until one satisfies `last`, or the connection ends. */
async function exchange(port: number, bytes: Buffer, last: (found: ReadFrame) => boolean): Promise<ReadFrame[]> {
  await using client = await rawClient(port);
  await client.write(Buffer.concat([PREFACE, settings(), bytes]));
  const reader = new FrameReader();
  const frames: ReadFrame[] = [];
  while (!frames.some(last)) {
    const chunk = await client.readSome(5000).catch(() => undefined);
    if (chunk === undefined) break;
    frames.push(...reader.read(chunk));
  }
  return frames;
}

const post = (fields: readonly (readonly [string, string])[]): Buffer =>
  frame(FRAME.headers, FLAG.endHeaders, 1, section([[":method", "POST"], ...GET.slice(1), ...fields]));

test("HTTP/2: a request header beyond the limit is answered 431 with the limit, and the connection goes on", async () => {
  await using origin = await startOrigin();
  await using gateway = await gatewayFor(origin.port, { GATEWAY_HTTP1_MAX_HEADER_BYTES: "8192" });
  await using client = await http2Client(gateway.port());
  const large = { ":path": "/large", "x-large": "y".repeat(9000) };
  for (const [headers, body] of [[large], [{ ...large, ":method": "POST" }, "unread"]] as const) {
    const response = await client.fetch(headers, body);
    assert.deepEqual([response.headers[":status"], response.code], [431, 0]);
    assert.equal(errorCode(response), "request_headers_too_large");
    assert.match(response.body.toString(), /larger than 8192 bytes/u);
  }
  assert.equal((await client.fetch({ ":path": "/" })).headers[":status"], 200);
  assert.equal(origin.requests.length, 1);
});

const HOSTILE: readonly (readonly [string, Buffer])[] = [
  ["a line end in a value", request(1, [["x-a", "1\r\nx-b: 2"]])],
  ["a line end in a name", request(1, [["x\r\na", "1"]])],
  ["NUL in a value", request(1, [["x-a", "1\0"]])],
  ["transfer-encoding", request(1, [["transfer-encoding", "chunked"]])],
  ["connection", request(1, [["connection", "x-real-ip"]])],
  ["upgrade", request(1, [["upgrade", "websocket"]])],
  ["a name in upper case", request(1, [["X-A", "1"]])],
  ["TE with codings", request(1, [["te", "gzip"]])],
  ["two hosts that differ", request(1, [["host", "other.test"]])],
  ["a length and no body", request(1, [["content-length", "5"]])],
  ["a body longer than its length", Buffer.concat([post([["content-length", "2"]]), frame(FRAME.data, 1, 1, "long")])],
  [
    "a body shorter than its length",
    Buffer.concat([post([["content-length", "9"]]), frame(FRAME.data, 1, 1, "short")]),
  ],
  [
    "two lengths",
    Buffer.concat([
      post([
        ["content-length", "4"],
        ["content-length", "5"],
      ]),
      frame(FRAME.data, 1, 1, "long"),
    ]),
  ],
];
for (const [what, bytes] of HOSTILE) {
  test(`HTTP/2 to HTTP/1.1: a request with ${what} leaves nothing odd at the upstream`, async () => {
    const whole: Buffer[] = [];
    await using origin = await startRawServer(async (connection) => {
      for (;;) {
        const bytes = await connection.readSome(60_000).catch(() => undefined);
        if (bytes === undefined) return;
        whole.push(bytes);
        if (bytes.includes("GET ")) await connection.write("HTTP/1.1 204 No Content\r\n\r\n");
      }
    });
    await using gateway = await gatewayFor(origin.port);
    const frames = await exchange(
      gateway.port(),
      bytes,
      ({ type, stream }) => (stream === 1 && (type === FRAME.headers || type === FRAME.reset)) || type === FRAME.goaway,
    );
    const text = Buffer.concat(whole).toString("latin1");
    // Either refused before anything was sent, or broken off before the upstream could take it for a request.
    assert.equal(
      /x-b: 2|transfer-encoding: chunked\r\n.*content-length|upgrade: websocket|other\.test/is.test(text),
      false,
      text,
    );
    assert.equal((text.match(/ HTTP\/1\.1\r\n/g) ?? []).length <= 1, true);
    assert.ok(frames.some(({ type }) => type === FRAME.headers || type === FRAME.reset || type === FRAME.goaway));
  });
}
