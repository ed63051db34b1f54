import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { test } from "node:test";
import { setTimeout as later } from "node:timers";
import { setTimeout } from "node:timers/promises";
import { NO_BODY } from "@headworks/http1";
import { DeadlineSweep } from "@headworks/sockets";
import {
  credentials,
  FLAG,
  FRAME,
  frame,
  http2Client,
  rawClient,
  readResponse,
  section,
  settings,
  startHttp2Origin,
  startRawHttp2Origin,
  startRawServer,
  type StreamHandler,
  temporaryDirectory,
  u32,
  waitUntil,
} from "@headworks/testkit";
import { CertificateAuthority } from "@headworks/tls-authority";
import type { DocumentInput } from "@headworks/gateway-contract";
import { Http2Pool } from "#upstream/http2-pool.ts";
import { errorCode } from "./error-code.ts";
import { serving, startGateway, type TestGateway } from "./gateway-rig.ts";

type UpstreamInput = NonNullable<DocumentInput["upstreams"]>[number];

const routes = [
  { name: "api", service: "api", match: { path: { type: "prefix", value: "/" } }, action: { type: "proxy" } },
] as const;

const gatewayFor = async (port: number, more: Partial<UpstreamInput> = {}): Promise<TestGateway> =>
  await startGateway({ ...serving("api", [port], { protocol: "h2c", ...more }), routes: [...routes] });

const text =
  (body: string): StreamHandler =>
  (stream) => {
    stream.respond({ ":status": 200 });
    stream.end(body);
  };

const echo: StreamHandler = (stream, headers) => {
  const pieces: Buffer[] = [];
  stream.on("data", (piece: Buffer) => pieces.push(piece));
  stream.on("end", () => {
    stream.respond({ ":status": 201, "x-method": headers[":method"] ?? "" });
    stream.end(Buffer.concat(pieces));
  });
};

test("HTTP/1.1 to HTTP/2: method, path, fields and body arrive, and the answer comes back with its length or chunks", async () => {
  await using origin = await startHttp2Origin(echo);
  await using gateway = await gatewayFor(origin.port);
  const fields = [
    "X-Custom: One",
    "x-custom: two",
    "Connection: close, X-Drop",
    "X-Drop: gone",
    "TE: trailers",
    "Cookie: a=1; b=2",
  ];
  const response = await gateway.send({ method: "POST", path: "/a//b%2fc?x=%41", fields, body: "the body" });
  assert.deepEqual([response.status, response.body.toString(), response.header("x-method")], [201, "the body", "POST"]);
  const sent = origin.requests[0] ?? [];
  const valuesOf = (name: string): string[] => sent.filter((_, at) => at % 2 === 1 && sent[at - 1] === name);
  assert.deepEqual(valuesOf(":path"), ["/a//b%2fc?x=%41"]);
  assert.deepEqual(valuesOf(":authority"), [`127.0.0.1:${origin.port}`]);
  assert.deepEqual(valuesOf(":scheme"), ["http"]);
  assert.deepEqual(valuesOf("x-custom"), ["One", "two"]);
  assert.deepEqual(valuesOf("te"), ["trailers"]);
  assert.deepEqual(valuesOf("content-length"), ["8"]);
  assert.deepEqual(valuesOf("x-forwarded-for"), ["127.0.0.1"]);
  for (const name of ["host", "connection", "x-drop", "transfer-encoding"]) assert.deepEqual(valuesOf(name), [], name);
});

test("HTTP/1.1 to HTTP/2: a chunked body with trailers, and trailers of the answer", async () => {
  const seen = Promise.withResolvers<unknown>();
  await using origin = await startHttp2Origin((stream) => {
    stream.on("trailers", (trailers) => seen.resolve(trailers["x-check"]));
    stream.resume();
    stream.on("end", () => {
      stream.respond({ ":status": 200 }, { waitForTrailers: true });
      stream.on("wantTrailers", () => stream.sendTrailers({ "x-sum": "42" }));
      stream.end("answer");
    });
  });
  await using gateway = await gatewayFor(origin.port);
  await using client = await rawClient(gateway.port());
  await client.write(
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\ndata\r\n0\r\nX-Check: 7\r\n\r\n",
  );
  const response = await readResponse(client, "POST");
  assert.equal(response.body.toString(), "answer");
  assert.deepEqual(response.trailers, [["x-sum", "42"]]);
  assert.equal(await seen.promise, "7");
});

test("HTTP/1.1 to HTTP/2: fields that should be there once and are not do no harm, in requests and trailers", async () => {
  await using origin = await startHttp2Origin(echo);
  await using gateway = await gatewayFor(origin.port);
  await using client = await rawClient(gateway.port());
  const twice = ["User-Agent", "Content-Type", "Authorization", "Referer", "If-Modified-Since", "Max-Forwards", "From"];
  const fields = twice.flatMap((name) => [`${name}: 1\r\n`, `${name}: 2\r\n`]).join("");
  await client.write(
    `POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n${fields}\r\n2\r\nok\r\n0\r\nETag: 1\r\nETag: 2\r\n\r\n`,
  );
  const response = await readResponse(client, "POST");
  assert.deepEqual([response.status, response.body.toString()], [201, "ok"]);
});

for (const [method, status, headers] of [
  ["HEAD", 200, { "content-length": "5" }],
  ["GET", 204, {}],
  ["GET", 304, { etag: '"x"' }],
] as const) {
  test(`HTTP/1.1 to HTTP/2: ${method} answered ${status} has no body, and the connection goes on`, async () => {
    await using origin = await startHttp2Origin((stream) =>
      stream.respond({ ":status": status, ...headers }, { endStream: true }),
    );
    await using gateway = await gatewayFor(origin.port);
    await using client = await rawClient(gateway.port());
    for (let round = 0; round < 2; round++) {
      await client.write(`${method} / HTTP/1.1\r\nHost: a\r\n\r\n`);
      const response = await readResponse(client, method);
      assert.equal(response.status, status);
      for (const [name, value] of Object.entries(headers)) assert.equal(response.header(name), value);
    }
  });
}

test("HTTP/2 upstream: informational answers pass to clients of HTTP/1.1", async () => {
  await using origin = await startHttp2Origin((stream) => {
    stream.additionalHeaders({ ":status": 103, link: "</a.css>" });
    stream.respond({ ":status": 200 });
    stream.end("done");
  });
  await using gateway = await gatewayFor(origin.port);
  const response = await gateway.send({ path: "/" });
  assert.deepEqual([response.interim, response.status], [[103], 200]);
});

test("HTTP/2 upstream: a hundred requests at a time share one connection", async () => {
  let max = 0;
  let open = 0;
  await using origin = await startHttp2Origin((stream) => {
    open += 1;
    max = Math.max(max, open);
    stream.on("close", () => (open -= 1));
    later(() => text("here")(stream, {}, []), 20);
  });
  await using gateway = await gatewayFor(origin.port);
  await using client = await http2Client(gateway.port());
  const responses = await Promise.all(Array.from({ length: 100 }, async () => await client.fetch({ ":path": "/" })));
  assert.deepEqual(new Set(responses.map(({ status }) => status)), new Set([200]));
  assert.equal(origin.sessions.length, 1);
  assert.ok(max > 50, String(max));
});

test("HTTP/2 upstream: what the endpoint's limit of streams leaves over goes over more connections, up to the cap", async () => {
  const perSession = new Map<unknown, number>();
  let max = 0;
  await using origin = await startHttp2Origin(
    (stream) => {
      const { session } = stream;
      perSession.set(session, (perSession.get(session) ?? 0) + 1);
      max = Math.max(max, perSession.get(session) ?? 0);
      stream.on("close", () => perSession.set(session, (perSession.get(session) ?? 1) - 1));
      later(() => text("here")(stream, {}, []), 30);
    },
    { maxConcurrentStreams: 3 },
  );
  await using gateway = await gatewayFor(origin.port, { connection_cap: 2 });
  await gateway.send({ path: "/" });
  await using client = await http2Client(gateway.port());
  const responses = await Promise.all(Array.from({ length: 20 }, async () => await client.fetch({ ":path": "/" })));
  assert.deepEqual(new Set(responses.map(({ status }) => status)), new Set([200]));
  assert.ok(origin.sessions.length <= 2, String(origin.sessions.length));
  assert.ok(max <= 3, String(max));
});

test("HTTP/2 upstream: more waiting requests than max_pending are refused with 503 upstream_saturated", async () => {
  const held: (() => void)[] = [];
  await using origin = await startHttp2Origin((stream) => void held.push(() => text("here")(stream, {}, [])), {
    maxConcurrentStreams: 1,
  });
  await using gateway = await gatewayFor(origin.port, { connection_cap: 1, max_pending: 1 });
  const first = gateway.send({ path: "/" });
  await waitUntil(() => held.length === 1);
  const others = [gateway.send({ path: "/" }), gateway.send({ path: "/" })];
  const refused = await Promise.race(others);
  assert.deepEqual([refused.status, errorCode(refused)], [503, "upstream_saturated"]);
  held[0]?.();
  assert.equal((await first).status, 200);
  await waitUntil(() => held.length === 2);
  held[1]?.();
  const statuses = await Promise.all(others.map(async (other) => (await other).status));
  assert.deepEqual(
    statuses.toSorted((a, b) => a - b),
    [200, 503],
  );
});

test("HTTP/2 upstream: after GOAWAY the requests under way are answered, and new ones take a new connection", async () => {
  const held: (() => void)[] = [];
  await using origin = await startHttp2Origin((stream, headers) => {
    if (headers[":path"] === "/slow") held.push(() => text("slow")(stream, {}, []));
    else text("quick")(stream, {}, []);
  });
  await using gateway = await gatewayFor(origin.port);
  const slow = gateway.send({ path: "/slow" });
  await waitUntil(() => held.length === 1);
  origin.sessions[0]?.goaway(0);
  await waitUntil(async () => {
    assert.equal((await gateway.send({ path: "/" })).body.toString(), "quick");
    return origin.sessions.length === 2;
  });
  held[0]?.();
  assert.equal((await slow).body.toString(), "slow");
});

const ok = (stream: number): Buffer =>
  frame(FRAME.headers, FLAG.endHeaders | FLAG.endStream, stream, section([[":status", "204"]]));

for (const [what, refuse] of [
  ["REFUSED_STREAM", (stream: number) => frame(FRAME.reset, 0, stream, u32(7))],
  ["GOAWAY with an earlier stream", () => frame(FRAME.goaway, 0, 0, Buffer.concat([u32(0), u32(0)]))],
] as const) {
  test(`HTTP/2 upstream: a request that was not looked at (${what}) is sent again without counting as a failure`, async () => {
    let seen = 0;
    await using origin = await startRawHttp2Origin((stream, write) => {
      seen += 1;
      write(seen === 1 ? refuse(stream) : ok(stream));
    });
    await using gateway = await gatewayFor(origin.port);
    assert.equal((await gateway.send({ method: "POST", path: "/", fields: ["Content-Length: 0"] })).status, 204);
    assert.equal(seen, 2);
    const metrics = (await gateway.send({ path: "/metrics" })).body.toString();
    assert.doesNotMatch(metrics, /status_class="error"/);
  });
}

/** An origin that refuses streams beyond `limit`, and sends its SETTINGS after `settingsMs`. */
async function startLimitedOrigin(limit: number, first: Buffer, settingsMs = 0) {
  let open = 0;
  const counts = { answered: 0, refused: 0 };
  const server = await startRawHttp2Origin(
    (stream, write) => {
      if (open >= limit) {
        counts.refused += 1;
        return write(frame(FRAME.reset, 0, stream, u32(7)));
      }
      open += 1;
      return void later(() => {
        open -= 1;
        counts.answered += 1;
        write(ok(stream));
      }, 5);
    },
    first,
    settingsMs,
  );
  return { port: server.port, counts, [Symbol.asyncDispose]: async () => await server.close() };
}

test("RFC 9113, 5.1.2: sixty requests at once respect a limit of streams that comes late, and none is lost", async () => {
  await using origin = await startLimitedOrigin(5, settings([3, 5]), 50);
  await using gateway = await gatewayFor(origin.port, { connection_cap: 1 });
  await using client = await http2Client(gateway.port());
  const responses = await Promise.all(Array.from({ length: 60 }, async () => await client.fetch({ ":path": "/" })));
  assert.deepEqual(new Set(responses.map(({ status }) => status)), new Set([204]));
  assert.deepEqual(origin.counts, { answered: 60, refused: 0 });
});

test("RFC 9113, 8.7: an endpoint that refuses streams below the limit it says gets fewer, and no request is lost", async () => {
  await using origin = await startLimitedOrigin(5, settings());
  await using gateway = await gatewayFor(origin.port, { connection_cap: 1 });
  await using client = await http2Client(gateway.port());
  const responses = await Promise.all(Array.from({ length: 60 }, async () => await client.fetch({ ":path": "/" })));
  assert.deepEqual(new Set(responses.map(({ status }) => status)), new Set([204]));
  assert.equal(origin.counts.answered, 60);
});

for (const framing of ["Content-Length", "Transfer-Encoding"]) {
  test(`RFC 9113, 8.7: a refused POST with a body by ${framing} is sent again whole`, async () => {
    let seen = 0;
    await using origin = await startHttp2Origin((stream, headers, fields) => {
      seen += 1;
      if (seen <= 2) stream.close(7);
      else echo(stream, headers, fields);
    });
    await using gateway = await gatewayFor(origin.port);
    const body = "a body of some length";
    const chunks = `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
    const isChunked = framing === "Transfer-Encoding";
    await using client = await rawClient(gateway.port());
    const field = isChunked ? "Transfer-Encoding: chunked" : `Content-Length: ${body.length}`;
    await client.write(`POST / HTTP/1.1\r\nHost: a\r\n${field}\r\n\r\n${isChunked ? chunks : body}`);
    const response = await readResponse(client, "POST");
    assert.deepEqual([response.status, response.body.toString(), seen], [201, body, 3]);
  });
}

test("an endpoint that refuses every stream is asked four times, then the client gets 502", async () => {
  let seen = 0;
  await using origin = await startHttp2Origin((stream) => {
    seen += 1;
    stream.close(7);
  });
  await using gateway = await gatewayFor(origin.port);
  const response = await gateway.send({ method: "POST", path: "/", body: "x" });
  assert.deepEqual([response.status, errorCode(response), seen], [502, "upstream_unavailable", 4]);
});

test("an endpoint that never sends SETTINGS loses its connection after connect_ms, and each request has a response", async () => {
  await using silent = await startRawServer(async (connection) => void (await connection.closed));
  await using gateway = await gatewayFor(silent.port, { pending_timeout_ms: 400, timeouts: { connect_ms: 150 } });
  await using client = await http2Client(gateway.port());
  const responses = await Promise.all(Array.from({ length: 3 }, async () => await client.fetch({ ":path": "/" })));
  assert.ok(responses.every(({ status }) => status === 502 || status === 503));
  assert.ok(silent.connections.length > 1, `${silent.connections.length} connections`);
});

test("HTTP/2 upstream: a request that waits for a place gets one when the endpoint allows more", async () => {
  let allowMore = (): void => undefined;
  const seen: number[] = [];
  await using origin = await startRawHttp2Origin(
    (stream, write) => {
      seen.push(stream);
      if (stream === 1) allowMore = () => write(settings([3, 2]));
      else write(ok(stream));
    },
    settings([3, 1]),
  );
  await using gateway = await gatewayFor(origin.port, { connection_cap: 1 });
  await using first = await http2Client(gateway.port());
  first.session.request({ ":path": "/" }).on("error", () => undefined);
  await waitUntil(() => seen.length === 1);
  const second = gateway.send({ path: "/" });
  await setTimeout(100);
  assert.deepEqual(seen, [1]);
  allowMore();
  assert.equal((await second).status, 204);
});

test("HTTP/2 upstream: the head of an answer is passed on before its body begins", async () => {
  await using origin = await startRawHttp2Origin((stream, write) =>
    write(frame(FRAME.headers, FLAG.endHeaders, stream, section([[":status", "200"]]))),
  );
  await using gateway = await gatewayFor(origin.port);
  await using client = await rawClient(gateway.port());
  await client.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  assert.match((await client.readUntil("\r\n\r\n")).toString("latin1"), /^HTTP\/1\.1 200 /);
});

test("HTTP/2 upstream: a connection that ended while idle is replaced, and no request notices", async () => {
  await using origin = await startHttp2Origin(text("here"));
  await using gateway = await gatewayFor(origin.port);
  for (let round = 0; round < 3; round++) {
    assert.equal((await gateway.send({ path: "/" })).status, 200);
    origin.sessions[round]?.destroy();
  }
});

test(
  "HTTP/2 upstream: the system watches connections that are silent",
  { skip: process.platform !== "linux" },
  async () => {
    await using origin = await startHttp2Origin(text("here"));
    await using gateway = await gatewayFor(origin.port);
    assert.equal((await gateway.send({ path: "/" })).status, 200);
    const peer = `0100007F:${origin.port.toString(16).toUpperCase().padStart(4, "0")}`;
    const timers = (): (string | undefined)[] =>
      readFileSync("/proc/net/tcp", "utf8")
        .split("\n")
        .map((line) => line.trim().split(/\s+/))
        .filter(([, , remote, state]) => remote === peer && state === "01")
        .map(([, , , , , timer]) => timer?.slice(0, 2));
    // 02: the timer that is running is that of keep-alive; another one runs until everything sent is acknowledged.
    await waitUntil(() => timers().length === 1 && timers()[0] === "02", { what: "the keep-alive timer" });
  },
);

test("HTTP/2 upstream over TLS: ALPN says h2, the certificate is verified, :scheme is https", async () => {
  await using directory = await temporaryDirectory();
  const authority = CertificateAuthority.create();
  await writeFile(directory.file("ca.pem"), authority.certificatePem);
  await using origin = await startHttp2Origin(text("secure"), { tls: credentials(authority) });
  const trusted_ca_file = directory.file("ca.pem");
  await using gateway = await gatewayFor(origin.port, {
    protocol: "http2",
    tls: { trusted_ca_file, server_name: "localhost" },
  });
  assert.equal((await gateway.send({ path: "/" })).body.toString(), "secure");
  const sent = origin.requests[0] ?? [];
  assert.equal(sent[sent.indexOf(":scheme") + 1], "https");
  await using distrusting = await gatewayFor(origin.port, { protocol: "http2", tls: { server_name: "localhost" } });
  const refused = await distrusting.send({ path: "/" });
  assert.deepEqual([refused.status, errorCode(refused)], [502, "upstream_unavailable"]);
});

test("HTTP/2 upstream over TLS: an endpoint that only speaks HTTP/1.1 is unavailable, not spoken to by guess", async () => {
  await using directory = await temporaryDirectory();
  const authority = CertificateAuthority.create();
  await writeFile(directory.file("ca.pem"), authority.certificatePem);
  let received = 0;
  await using origin = await startRawServer(
    async (connection) => {
      received += (await connection.collect(60_000).catch(() => Buffer.alloc(0))).length;
    },
    { tls: { ...credentials(authority) } },
  );
  const trusted_ca_file = directory.file("ca.pem");
  await using gateway = await gatewayFor(origin.port, {
    protocol: "http2",
    tls: { trusted_ca_file, server_name: "localhost" },
  });
  assert.equal((await gateway.send({ path: "/" })).status, 502);
  assert.equal(received, 0);
});

test("HTTP/2 upstream: refused and unresponsive endpoints are 502 and 504, for all who wait", async () => {
  await using refusing = await gatewayFor(1);
  const responses = await Promise.all([1, 2, 3].map(async () => await refusing.send({ path: "/" })));
  assert.deepEqual(
    responses.map(({ status }) => status),
    [502, 502, 502],
  );
});

test("HTTP/2 upstream: a reload that changes the endpoint's ways lets requests under way end", async () => {
  const held: (() => void)[] = [];
  await using origin = await startHttp2Origin((stream, headers) => {
    if (headers[":path"] === "/slow") held.push(() => text("slow")(stream, {}, []));
    else text("quick")(stream, {}, []);
  });
  await using gateway = await gatewayFor(origin.port);
  const slow = gateway.send({ path: "/slow" });
  await waitUntil(() => held.length === 1);
  const changed = serving("api", [origin.port], { protocol: "h2c", connection_cap: 5 });
  await gateway.reload({ ...changed, routes: [...routes] });
  assert.equal((await gateway.send({ path: "/" })).body.toString(), "quick");
  assert.equal(origin.sessions.length, 2);
  held[0]?.();
  assert.equal((await slow).body.toString(), "slow");
  const [first] = origin.sessions;
  if (first !== undefined && !first.destroyed) await once(first, "close");
});

test("HTTP/1.1 to HTTP/2: an answer that ends with its head has the length 0, and the connection goes on", async () => {
  await using origin = await startHttp2Origin((stream) => stream.respond({ ":status": 200 }, { endStream: true }));
  await using gateway = await gatewayFor(origin.port);
  await using client = await rawClient(gateway.port());
  for (let round = 0; round < 2; round++) {
    await client.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    const response = await readResponse(client);
    assert.deepEqual([response.status, response.header("content-length")], [200, "0"]);
  }
});

function poolFor(port: number, deadlines: DeadlineSweep, maxRequests?: number): Http2Pool {
  const settings = {
    address: "127.0.0.1",
    port,
    authority: `127.0.0.1:${port}`,
    tls: undefined,
    connectMs: 1000,
    connectionCap: 1,
    stalledCap: 0,
    pendingMs: 60_000,
    counts: { saturated: 0, timedOut: 0, evicted: 0 },
    maxPending: 1,
    happyEyeballsMs: 0,
    maxAgeMs: Number.POSITIVE_INFINITY,
    idleMs: 200,
    deadlines,
    onDefect: assert.ifError,
  };
  return new Http2Pool(settings, maxRequests);
}

/** One request over a pool; resolves with its answer's end. */
async function through(pool: Http2Pool): Promise<void> {
  const answered = Promise.withResolvers<undefined>();
  const ignore = (): void => undefined;
  pool.acquire({
    onUnavailable: (_failure, detail) => answered.reject(new Error(detail)),
    onExchange: (exchange) =>
      exchange.send({
        method: "GET",
        target: "/",
        host: undefined,
        fields: [],
        framing: NO_BODY,
        upgrade: undefined,
        handler: {
          onInformational: ignore,
          onResponseHead: ignore,
          onResponseData: ignore,
          onResponseTrailers: ignore,
          onResponseBatch: ignore,
          onResponseEnd: () => answered.resolve(undefined),
          onUpstreamLost: (_failure, _stale, detail) => answered.reject(new Error(detail)),
          onEvicted: () => undefined,
          onUpstreamDrain: ignore,
          onSwitched: ignore,
        },
      }),
  });
  await answered.promise;
}

test("HTTP/2 upstream: a connection that was idle for its time is closed, one with a request is not", async () => {
  const held: (() => void)[] = [];
  await using origin = await startHttp2Origin((stream) => void held.push(() => text("here")(stream, {}, [])));
  const deadlines = new DeadlineSweep(20);
  const pool = poolFor(origin.port, deadlines);
  try {
    const answered = through(pool);
    await waitUntil(() => held.length === 1);
    await setTimeout(500);
    assert.equal(pool.openConnections, 1);
    held[0]?.();
    await answered;
    await waitUntil(() => pool.openConnections === 0);
  } finally {
    pool.retire();
    deadlines.stop();
  }
});

test("HTTP/2 upstream: a connection whose numbers of streams come to an end makes room for another in time", async () => {
  await using origin = await startHttp2Origin(text("here"));
  const deadlines = new DeadlineSweep(1000);
  const pool = poolFor(origin.port, deadlines, 3);
  try {
    for (let request = 0; request < 7; request += 1) await through(pool);
    assert.deepEqual([origin.requests.length, origin.sessions.length], [7, 3]);
  } finally {
    pool.retire();
    deadlines.stop();
  }
});

test("HTTP/2: a trailer called __proto__ is a trailer like any other, either way", async () => {
  const trailers = Object.assign(Object.create(null) as Record<string, string>, { ["__proto__"]: "a name" });
  const sections: (readonly string[])[] = [];
  await using origin = await startHttp2Origin((stream) => {
    stream.on("trailers", (_headers: unknown, _flags: unknown, section: string[]) => void sections.push(section));
    stream.on("wantTrailers", () => stream.sendTrailers(trailers));
    stream.resume().on("end", () => {
      stream.respond({ ":status": 200 }, { waitForTrailers: true });
      stream.end("here");
    });
  });
  await using gateway = await gatewayFor(origin.port);
  await using client = await http2Client(gateway.port());
  const stream = client.session.request({ ":path": "/", ":method": "POST" }, { waitForTrailers: true });
  stream.on("wantTrailers", () => stream.sendTrailers(trailers));
  stream.on("trailers", (_headers: unknown, _flags: unknown, section: string[]) => void sections.push(section));
  stream.end("body");
  stream.resume();
  await new Promise((resolve) => stream.once("close", resolve));
  assert.deepEqual(sections, [
    ["__proto__", "a name"],
    ["__proto__", "a name"],
  ]);
});

test("HTTP/2 upstream: max_pending bounds who waits for a connection that is being made, beyond what it will carry", async () => {
  await using origin = await startHttp2Origin(text("here"));
  const deadlines = new DeadlineSweep(1000);
  const pool = poolFor(origin.port, deadlines);
  try {
    const outcomes = await Promise.allSettled(Array.from({ length: 150 }, async () => await through(pool)));
    const refused = outcomes.filter((outcome) => outcome.status === "rejected");
    assert.equal(refused.length, 150 - 100 - 1);
    assert.match(String(refused[0]?.reason), /101 requests are queued already/);
  } finally {
    pool.retire();
    deadlines.stop();
  }
});
