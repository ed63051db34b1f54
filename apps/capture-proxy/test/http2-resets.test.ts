import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer as createHttpServer } from "node:http";
import { createSecureServer } from "node:http2";
import type { IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";
import { createServer } from "node:net";
import type { AddressInfo, Socket } from "node:net";
import { test } from "node:test";
import {
  collect,
  FLAG,
  FRAME,
  frame,
  section,
  startHttp2Origin,
  startRawHttp2Origin,
  startRawServer,
  startResettingHttp2Origin,
  u32,
  waitUntil,
} from "@headworks/testkit";
import type { Http2Origin, StreamHandler } from "@headworks/testkit";
import { BandwidthLimiter } from "#exchange/bandwidth-limiter.ts";
import { CONTINUE } from "#exchange/phases.ts";
import { clientOf, http2Engine, originCa, startVersioned } from "./http2-rig.ts";

const leaf = originCa.issueLeaf({ dns: ["localhost"], ip: ["127.0.0.1"] });
const tls = { key: leaf.keyPem, cert: leaf.chainPem };

const REFUSED_STREAM = 7;
const CANCEL = 8;
const ENHANCE_YOUR_CALM = 11;
const HTTP_1_1_REQUIRED = 13;

const origin = (handler: StreamHandler): ReturnType<typeof startHttp2Origin> => startHttp2Origin(handler, { tls });

for (const code of [2, CANCEL, ENHANCE_YOUR_CALM]) {
  test(`an origin's reset with ${code} before its answer is a reset with ${code} over HTTP/2, and a page over HTTP/1.1`, async () => {
    await using server = await origin((stream) => stream.close(code));
    await using proxy = await http2Engine();
    await using modern = await clientOf("2", proxy, server.port);
    assert.deepEqual(await modern.fetch().then(({ status, code: reset }) => [status, reset]), [0, code]);
    await using older = await clientOf("1.1", proxy, server.port);
    const { status } = await older.fetch();
    assert.equal(status, 502);
    const finished = await proxy.waitFor(2);
    for (const { state } of finished) {
      assert.equal(state.step, "failed");
      assert.equal(state.failure.resetCode, code);
    }
  });
}

test("an origin's reset in the middle of its response never looks like the end of it", async () => {
  await using server = await startResettingHttp2Origin({ body: "half", code: ENHANCE_YOUR_CALM });
  await using proxy = await http2Engine();
  await using client = await clientOf("2", proxy, server.port, { isPlain: true });
  const { status, body, code } = await client.fetch();
  assert.deepEqual([status, body, code], [200, "half", ENHANCE_YOUR_CALM]);
});

test("a reset without an error in the middle of an answer does not look like its end either", async () => {
  await using server = await startResettingHttp2Origin({ body: "half", code: 0 });
  await using proxy = await http2Engine();
  await using client = await clientOf("2", proxy, server.port, { isPlain: true });
  const { status, code } = await client.fetch();
  assert.equal(status, 200);
  assert.notEqual(code, 0);
});

for (const [what, code, step] of [
  ["a reset without an error behind all bytes of the announced length is the end of the answer", 0, "completed"],
  ["a reset with an error there stays one", ENHANCE_YOUR_CALM, "failed"],
] as const) {
  test(what, async () => {
    await using server = await startResettingHttp2Origin({ body: "full", lengthBytes: 4, code });
    await using proxy = await http2Engine();
    await using client = await clientOf("2", proxy, server.port, { isPlain: true });
    const response = await client.fetch();
    assert.deepEqual([response.status, response.body, response.code], [200, "full", code]);
    const [exchange] = await proxy.waitFor(1);
    assert.equal(exchange?.state.step, step);
  });
}

test("what came of an answer before its origin reset it reaches a client that reads late, and then the reset", async () => {
  const sent = "x".repeat(40_000);
  await using server = await startResettingHttp2Origin({ body: sent, code: ENHANCE_YOUR_CALM });
  await using proxy = await http2Engine();
  await using client = await clientOf("2", proxy, server.port, { isPlain: true });
  const { session } = client;
  assert.ok(session);
  const narrowed = once(session, "localSettings");
  session.settings({ initialWindowSize: 1000 });
  await narrowed;
  const stream = session.request({ ":path": "/" });
  stream.pause();
  await proxy.waitFor(1);
  const response = collect(stream);
  stream.resume();
  const { status, body, code } = await response;
  assert.deepEqual([status, body.length, code], [200, sent.length, ENHANCE_YOUR_CALM]);
  assert.ok(body.equals(Buffer.from(sent)), "what came is what was sent");
});

test("a client's reset reaches the origin with its code", async () => {
  const codes: number[] = [];
  const arrived = Promise.withResolvers<void>();
  await using server = await origin((stream) => {
    stream.on("close", () => void codes.push(stream.rstCode));
    arrived.resolve();
  });
  await using proxy = await http2Engine();
  await using client = await clientOf("2", proxy, server.port);
  const stream = client.session?.request({ ":path": "/" });
  stream?.on("error", () => undefined);
  await arrived.promise;
  stream?.close(ENHANCE_YOUR_CALM);
  const [exchange] = await proxy.waitFor(1);
  assert.equal(exchange?.state.step, "failed");
  assert.equal(exchange.state.failure.code, "CLIENT_ABORTED");
  await waitUntil(() => codes.length === 1);
  assert.deepEqual(codes, [ENHANCE_YOUR_CALM]);
});

/** Answers with method, body and trailers, after it has refused so many requests unseen, each when it had all of it. */
async function refusing(refusals: number): Promise<Http2Origin & { readonly asked: () => number }> {
  let asked = 0;
  const server = await origin((stream, headers) => {
    const isRefused = asked++ < refusals;
    let body = "";
    let trailers = "";
    stream.setEncoding("latin1").on("data", (piece: string) => (body += piece));
    stream.on("trailers", (found: IncomingHttpHeaders) => (trailers = String(found["x-sum"] ?? "")));
    stream.on("end", () => {
      if (isRefused) return stream.close(REFUSED_STREAM);
      stream.respond({ ":status": 200 });
      stream.end(`${headers[":method"]} ${body} ${trailers}`);
    });
  });
  return Object.assign(server, { asked: () => asked });
}

for (const [what, sent, response] of [
  ["without a body", { method: "LOCK" }, "LOCK  "],
  ["with a small body", { method: "POST", body: "once" }, "POST once "],
  ["with trailers", { method: "PATCH", body: "once", trailers: [["x-sum", "1"]] }, "PATCH once 1"],
  ["with 64 KiB", { method: "POST", body: "x".repeat(65_536) }, `POST ${"x".repeat(65_536)} `],
] as const) {
  for (const version of ["1.1", "2"] as const) {
    test(`a request ${what} that the origin refused unseen goes out once more, from a client over HTTP/${version}`, async () => {
      await using server = await refusing(1);
      await using proxy = await http2Engine();
      await using client = await clientOf(version, proxy, server.port);
      const { body, code } = await client.fetch(sent);
      assert.deepEqual([body, code, server.asked()], [response, 0, 2]);
      const [exchange] = await proxy.waitFor(1);
      assert.equal(exchange?.state.step, "completed");
      assert.equal(exchange.requestBody.sizeBytes, "body" in sent ? sent.body.length : 0, "it is recorded once");
    });
  }
}

test("a request that is refused twice, or whose body is not held any more, fails as refused", async () => {
  for (const [refusals, sent, asked] of [
    [2, { method: "POST", body: "once" }, 2],
    [1, { method: "POST", body: "x".repeat(65_537) }, 1],
  ] as const) {
    await using server = await refusing(refusals);
    await using proxy = await http2Engine();
    await using client = await clientOf("2", proxy, server.port);
    assert.equal((await client.fetch(sent)).code, REFUSED_STREAM);
    assert.equal(server.asked(), asked);
  }
});

test("a request that is refused while its body still comes goes out once more with all of it", async () => {
  const refused = Promise.withResolvers<void>();
  let asked = 0;
  await using server = await origin((stream) => {
    asked += 1;
    if (asked === 1) {
      stream.once("data", () => stream.close(REFUSED_STREAM));
      return void stream.once("close", () => refused.resolve());
    }
    stream.respond({ ":status": 200 });
    stream.pipe(stream);
  });
  await using proxy = await http2Engine();
  await using client = await clientOf("2", proxy, server.port);
  const stream = client.session?.request({ ":path": "/", ":method": "POST" });
  assert.ok(stream);
  let body = "";
  stream.setEncoding("latin1").on("data", (piece: string) => (body += piece));
  stream.write("first ");
  await refused.promise;
  stream.write("second ");
  await once(stream, "response");
  stream.end("third");
  await once(stream, "close");
  assert.deepEqual([body, stream.rstCode, asked], ["first second third", 0, 2]);
});

test("over a limited line, too, a refused request goes out once more with all of its body", async () => {
  await using server = await refusing(1);
  const clock = {
    monotonic: () => performance.now(),
    after: (delayMs: number, callback: () => void) => {
      const timer = setTimeout(callback, delayMs);
      return () => clearTimeout(timer);
    },
  };
  const pace = { up: new BandwidthLimiter(clock), down: new BandwidthLimiter(clock) };
  pace.up.setRate(1_000_000);
  await using proxy = await http2Engine({
    rules: {
      onRequestHead(exchange) {
        exchange.pace = pace;
        return CONTINUE;
      },
    },
  });
  await using client = await clientOf("2", proxy, server.port);
  const body = "0123456789".repeat(5000);
  assert.equal((await client.fetch({ method: "POST", body })).body, `POST ${body} `);
  assert.equal(server.asked(), 2);
});

test("an origin that wants HTTP/1.1 gets it", async () => {
  const server = createSecureServer({ ...tls, allowHTTP1: true }, (request, response) => {
    if (request.httpVersion === "2.0") request.stream.close(HTTP_1_1_REQUIRED);
    else response.end(`over ${request.httpVersion}`);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  await using proxy = await http2Engine();
  await using client = await clientOf("2", proxy, (server.address() as AddressInfo).port);
  assert.equal((await client.fetch()).body, "over 1.1");
  assert.equal((await client.fetch()).body, "over 1.1");
  await client[Symbol.asyncDispose]();
  server.close();
});

test("an origin that wants HTTP/1.1 gets a small body once more", async () => {
  const server = createSecureServer({ ...tls, allowHTTP1: true }, (request, response) => {
    if (request.httpVersion === "2.0") request.stream.close(HTTP_1_1_REQUIRED);
    else request.pipe(response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  await using proxy = await http2Engine();
  await using client = await clientOf("2", proxy, (server.address() as AddressInfo).port);
  assert.equal((await client.fetch({ method: "POST", body: "small" })).body, "small");
  await client[Symbol.asyncDispose]();
  server.close();
});

test("GOAWAY of an origin reaches the client of its tunnel; what was under way is answered, and the next goes elsewhere", async () => {
  const waiting: ServerHttp2Stream[] = [];
  await using server = await origin((stream, headers) => {
    if (headers[":path"] === "/slow") return void waiting.push(stream);
    stream.respond({ ":status": 200 });
    stream.end("quick");
  });
  await using proxy = await http2Engine();
  await using client = await clientOf("2", proxy, server.port);
  const { session } = client;
  assert.ok(session);
  const slow = client.fetch({ path: "/slow" });
  await waitUntil(() => waiting.length === 1);
  const said = once(session, "goaway");
  server.sessions[0]?.close();
  const [code] = (await said) as [number];
  assert.equal(code, 0);
  waiting[0]?.respond({ ":status": 200 });
  waiting[0]?.end("late");
  assert.equal((await slow).body, "late");
  await using another = await clientOf("2", proxy, server.port);
  assert.equal((await another.fetch()).body, "quick");
});

test("an HTTP/1.1 client outlives the connections of its origin: each GOAWAY only means another one", async () => {
  await using server = await origin((stream) => {
    stream.respond({ ":status": 200 });
    stream.end("here");
    stream.session?.close();
  });
  await using proxy = await http2Engine();
  await using client = await clientOf("1.1", proxy, server.port);
  for (let round = 0; round < 5; round += 1) assert.equal((await client.fetch()).body, "here");
  assert.ok(server.sessions.length > 1);
});

test("by prior knowledge, an origin that speaks only HTTP/1.1 is asked so, once it showed that", async () => {
  await using server = await startVersioned("1.1", ({ path }) => ({ body: `old ${path}` }), { isPlain: true });
  await using proxy = await http2Engine();
  await using client = await clientOf("2", proxy, server.port, { isPlain: true });
  const responses = await Promise.all(["/a", "/b", "/c"].map((path) => client.fetch({ path })));
  assert.deepEqual(
    responses.map(({ body }) => body),
    ["old /a", "old /b", "old /c"],
  );
  assert.deepEqual(
    server.seen.map(({ version }) => version),
    ["1.1", "1.1", "1.1"],
  );
});

test("by prior knowledge, HTTP/2 is spoken to the origin, and one connection carries all requests", async () => {
  await using server = await startVersioned("2", ({ path }) => ({ body: path }), { isPlain: true });
  await using proxy = await http2Engine();
  await using client = await clientOf("2", proxy, server.port, { isPlain: true });
  const paths = Array.from({ length: 20 }, (_, at) => `/${at}`);
  const responses = await Promise.all(paths.map((path) => client.fetch({ path })));
  assert.deepEqual(
    responses.map(({ body }) => body),
    paths,
  );
  assert.equal(server.sessions.length, 1);
});

test("over TLS, requests at once share one connection to an origin over HTTP/2, and have one each over HTTP/1.1", async () => {
  for (const version of ["2", "1.1"] as const) {
    await using server = await startVersioned(version, ({ path }) => ({ body: path }));
    await using proxy = await http2Engine();
    await using client = await clientOf("2", proxy, server.port);
    const paths = Array.from({ length: 20 }, (_, at) => `/${at}`);
    const responses = await Promise.all(paths.map((path) => client.fetch({ path })));
    assert.deepEqual(
      responses.map(({ body }) => body),
      paths,
    );
    if (version === "2") assert.equal(server.sessions.length, 1);
    await client[Symbol.asyncDispose]();
    await waitUntil(() => proxy.services.gauges.upstreamConnections === 0);
  }
});

test("requests that are called off while the origin is dialled leave nothing behind", async () => {
  const sockets: Socket[] = [];
  // Accepts, and never says a word of TLS.
  const silent = createServer((socket) => void sockets.push(socket.on("error", () => undefined).resume()));
  silent.listen(0, "127.0.0.1");
  await once(silent, "listening");
  await using proxy = await http2Engine();
  await using client = await clientOf("2", proxy, (silent.address() as AddressInfo).port);
  const { session } = client;
  assert.ok(session);
  const streams = Array.from({ length: 5 }, () => session.request({ ":path": "/" }));
  for (const stream of streams) stream.on("error", () => undefined);
  await waitUntil(() => sockets.length > 0 && proxy.services.gauges.pendingRequests === 5);
  for (const stream of streams) stream.close(CANCEL);
  await proxy.waitFor(5);
  assert.equal(proxy.services.gauges.pendingRequests, 0);
  assert.equal(sockets.length, 1);
  await waitUntil(() => sockets.every(({ destroyed }) => destroyed));
  silent.close();
});

test("an origin that breaks its connection fails all requests on it, and an idempotent one on an old connection goes out again", async () => {
  let count = 0;
  await using server = await origin((stream) => {
    count += 1;
    if (count === 2) return stream.session?.destroy();
    stream.respond({ ":status": 200 });
    stream.end("here");
  });
  await using proxy = await http2Engine();
  await using client = await clientOf("1.1", proxy, server.port);
  assert.equal((await client.fetch()).body, "here");
  assert.equal((await client.fetch()).body, "here");
  assert.equal(count, 3);
  count = 1;
  await using fresh = await clientOf("1.1", proxy, server.port);
  assert.equal((await fresh.fetch({ method: "POST", body: "x" })).status, 502);
});

test("answers that no HTTP/1.1 client may see become errors", async () => {
  const bad: readonly (readonly [string, string])[][] = [
    [
      [":status", "200"],
      ["X-Upper", "1"],
    ],
    [
      [":status", "200"],
      ["x-a", "1\r\nx-b: 2"],
    ],
    [
      [":status", "200"],
      ["x-a", "1\0"],
    ],
    [
      [":status", "200"],
      ["connection", "close"],
    ],
    [
      [":status", "200"],
      ["transfer-encoding", "chunked"],
    ],
    [
      [":status", "200"],
      [":status", "200"],
    ],
    [[":status", "two hundred"]],
    [["x-a", "1"]],
    [
      [":status", "200"],
      ["content-length", "1"],
      ["content-length", "2"],
    ],
    [
      [":status", "200"],
      ["content-length", "-1"],
    ],
    [
      [":status", "200"],
      ["x a", "1"],
    ],
    [
      [":status", "200"],
      [":path", "/"],
    ],
    [[":status", "101"]],
  ];
  let at = 0;
  await using server = await startRawHttp2Origin((stream, write) => {
    write(frame(FRAME.headers, FLAG.endHeaders, stream, section(bad[at] ?? [])), frame(FRAME.data, 1, stream, "body"));
  });
  await using proxy = await http2Engine();
  for (; at < bad.length; at += 1) {
    await using client = await clientOf("2", proxy, server.port, { isPlain: true });
    const { status, code, fields } = await client.fetch();
    const isRefused = status === 502 || (status === 0 && code !== 0);
    assert.ok(isRefused, `${JSON.stringify(bad[at])} gave ${status}, ${code}, ${fields.join()}`);
  }
});

test("a body that differs from its length is cut off on either side", async () => {
  await using server = await startRawHttp2Origin((stream, write) => {
    const head = section([
      [":status", "200"],
      ["content-length", "10"],
    ]);
    write(frame(FRAME.headers, FLAG.endHeaders, stream, head), frame(FRAME.data, 1, stream, "short"));
  });
  await using proxy = await http2Engine();
  await using client = await clientOf("2", proxy, server.port, { isPlain: true });
  assert.notEqual((await client.fetch()).code, 0);
});

test("an answer that ends with its head and announces a body is none, but for HEAD", async () => {
  await using server = await startRawHttp2Origin((stream, write) => {
    const head = section([
      [":status", "200"],
      ["content-length", "10"],
    ]);
    write(frame(FRAME.headers, FLAG.endHeaders | FLAG.endStream, stream, head));
  });
  await using proxy = await http2Engine();
  await using client = await clientOf("2", proxy, server.port, { isPlain: true });
  assert.equal((await client.fetch()).status, 502);
  assert.equal((await client.fetch({ method: "HEAD" })).status, 200);
});

test("one that is no HTTP server at all fails the request and nothing else", async () => {
  const server = createServer((socket) => socket.on("error", () => undefined).end("SSH-2.0-nothing\r\n"));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  await using proxy = await http2Engine();
  await using client = await clientOf("2", proxy, (server.address() as AddressInfo).port, { isPlain: true });
  assert.equal((await client.fetch()).status, 502);
  server.close();
  const closed = createHttpServer();
  closed.listen(0, "127.0.0.1");
  await once(closed, "listening");
  const { port } = closed.address() as AddressInfo;
  closed.close();
  await using none = await clientOf("2", proxy, port, { isPlain: true });
  assert.equal((await none.fetch()).status, 502);
});

test("an answer that is larger than all windows arrives whole, with and without an announced length", async () => {
  const total = 32 * 1024 * 1024;
  const piece = Buffer.alloc(1024 * 1024, "0123456789abcdef");
  for (const fields of [{ "content-length": String(total) }, {}]) {
    await using server = await origin((stream) => {
      stream.respond({ ":status": 200, ...fields });
      let sent = 0;
      const push = (): void => {
        while (sent < total) {
          sent += piece.length;
          if (!stream.write(piece)) return;
        }
        stream.end();
      };
      stream.on("drain", push);
      push();
    });
    await using proxy = await http2Engine({ policy: { maxBodyBytes: 1000 } });
    await using client = await clientOf("2", proxy, server.port);
    const { body, code } = await client.fetch();
    assert.deepEqual([body.length, code], [total, 0]);
  }
});

test("of a large answer that its client does not read, a reset without an error is no end, if the length was announced", async () => {
  const sent = Promise.withResolvers<void>();
  await using server = await startRawHttp2Origin((stream, write) => {
    const head = section([
      [":status", "200"],
      ["content-length", "900000"],
    ]);
    write(frame(FRAME.headers, FLAG.endHeaders, stream, head));
    for (let at = 0; at < 50; at += 1) write(frame(FRAME.data, 0, stream, Buffer.alloc(16_384)));
    write(frame(FRAME.reset, 0, stream, u32(0)));
    sent.resolve();
  });
  await using proxy = await http2Engine();
  await using client = await clientOf("2", proxy, server.port, { isPlain: true });
  const stream = client.session?.request({ ":path": "/" });
  assert.ok(stream);
  stream.on("error", () => undefined).pause();
  await sent.promise;
  await once(stream, "response");
  await new Promise((resolve) => setTimeout(resolve, 100));
  stream.resume();
  await new Promise((resolve) => stream.once("close", resolve));
  assert.notEqual(stream.rstCode, 0);
});

test("RFC 9113, 5.1.2: sixty requests at once respect a limit of streams that the origin has yet to say", async () => {
  const perSession = new Map<unknown, number>();
  let max = 0;
  await using server = await startHttp2Origin(
    (stream) => {
      const { session } = stream;
      const open = (perSession.get(session) ?? 0) + 1;
      perSession.set(session, open);
      max = Math.max(max, open);
      stream.on("close", () => perSession.set(session, (perSession.get(session) ?? 1) - 1));
      setTimeout(() => {
        stream.respond({ ":status": 200 });
        stream.end("here");
      }, 5);
    },
    { tls, maxConcurrentStreams: 5 },
  );
  await using proxy = await http2Engine();
  await using client = await clientOf("2", proxy, server.port);
  const received = await Promise.all(Array.from({ length: 60 }, async () => await client.fetch()));
  assert.deepEqual(new Set(received.map(({ status, body }) => `${status} ${body}`)), new Set(["200 here"]));
  assert.equal(server.requests.length, 60, "none was refused");
  assert.ok(max <= 5, `${max} streams`);
});

for (const version of ["1.1", "2"] as const) {
  test(`RFC 9113, 8.7: a refused POST of a client of HTTP/${version} is sent again whole`, async () => {
    let seen = 0;
    await using server = await origin((stream) => {
      seen += 1;
      if (seen === 1) return stream.close(REFUSED_STREAM);
      const pieces: Buffer[] = [];
      stream.on("data", (piece: Buffer) => pieces.push(piece));
      return void stream.on("end", () => {
        stream.respond({ ":status": 201 });
        stream.end(Buffer.concat(pieces));
      });
    });
    await using proxy = await http2Engine();
    await using client = await clientOf(version, proxy, server.port);
    const { status, body } = await client.fetch({ method: "POST", body: "a body of some length" });
    assert.deepEqual([status, body, seen], [201, "a body of some length", 2]);
  });
}

test("an origin that never sends SETTINGS loses its connection, and its requests fail in words", async () => {
  await using silent = await startRawServer(async (connection) => void (await connection.closed));
  await using proxy = await http2Engine({ connectTimeoutMs: 200, policy: { idleTimeoutMs: 1000 } });
  await using client = await clientOf("2", proxy, silent.port, { isPlain: true });
  const { status } = await client.fetch();
  assert.equal(status, 504);
});
