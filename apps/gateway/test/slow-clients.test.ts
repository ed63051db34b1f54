import assert from "node:assert/strict";
import { once } from "node:events";
import { connect as connectHttp2, type ClientHttp2Session } from "node:http2";
import { connect, type Socket } from "node:net";
import { Readable } from "node:stream";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import {
  collect,
  http2Client,
  rawClient,
  readResponse,
  settings,
  startHttp2Origin,
  startOrigin,
  startRawHttp2Origin,
  startRawServer,
  waitUntil,
  type Origin,
} from "@headworks/testkit";
import { serving, startGateway, type TestGateway } from "./gateway-rig.ts";
import { errorOf, proxied } from "./route-documents.ts";

/** More than the system takes for a client that reads nothing. */
const LARGE = Buffer.alloc(8_388_608, "a");
/** More than a stream's window and what waits here of a response. */
const MEDIUM = Buffer.alloc(1_048_576, "a");
const PROBES = 20;

/** Answers `/large` and `/medium` with as much, everything else when its body is whole. */
async function startSite(): Promise<Origin> {
  return await startOrigin({
    handler: (request, response) => {
      if (request.url === "/large") return void response.end(LARGE);
      if (request.url === "/medium") return void response.end(MEDIUM);
      request.resume().on("end", () => response.end("ok"));
    },
  });
}

/** What a test holds open. */
class Crowd implements AsyncDisposable {
  readonly #sockets: Socket[] = [];
  readonly #sessions: ClientHttp2Session[] = [];
  readonly #timers: NodeJS.Timeout[] = [];

  async http1(port: number, first: string, drip?: string): Promise<void> {
    const socket = connect({ port, host: "127.0.0.1" });
    socket.on("error", () => undefined);
    this.#sockets.push(socket);
    await once(socket, "connect");
    // Nothing of the response is read.
    socket.pause();
    socket.write(first);
    if (drip !== undefined) this.every(500, () => socket.writable && socket.write(drip));
  }

  every(pauseMs: number, act: () => void): void {
    this.#timers.push(setInterval(act, pauseMs));
  }

  async http2(port: number, windowBytes: number): Promise<ClientHttp2Session> {
    const session = connectHttp2(`http://127.0.0.1:${port}`, { settings: { initialWindowSize: windowBytes } });
    session.on("error", () => undefined);
    this.#sessions.push(session);
    await once(session, "connect");
    return session;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    for (const socket of this.#sockets) socket.destroy();
    for (const session of this.#sessions) session.destroy();
    await Promise.resolve();
  }
}

interface Kind {
  readonly name: string;
  readonly count: number;
  /** Lets so many clients of the kind come. */
  readonly come: (crowd: Crowd, port: number, count: number) => Promise<void>;
}

const head = (method: string, path: string, more = ""): string =>
  `${method} ${path} HTTP/1.1\r\nHost: a.test\r\n${more}\r\n`;

const eachHttp1 = (first: string, drip?: string) => async (crowd: Crowd, port: number, count: number) =>
  void (await Promise.all(Array.from({ length: count }, async () => await crowd.http1(port, first, drip))));

/** Of one connection each hundred. */
const eachHttp2 =
  (windowBytes: number, path: string, sendsBody: boolean) => async (crowd: Crowd, port: number, count: number) => {
    for (let from = 0; from < count; from += 100) {
      const session = await crowd.http2(port, windowBytes);
      for (let at = from; at < Math.min(count, from + 100); at += 1) {
        const stream = session.request(
          { ":method": sendsBody ? "POST" : "GET", ":path": path },
          { endStream: !sendsBody },
        );
        stream.on("error", () => undefined);
        if (sendsBody) stream.write("a");
        stream.pause();
      }
    }
  };

const KINDS: readonly Kind[] = [
  {
    count: 100,
    name: "heads that do not come to an end",
    come: eachHttp1("GET / HTTP/1.1\r\nHost: a.test\r\n", "X-A: b\r\n"),
  },
  {
    count: 100,
    name: "bodies of known length that drip",
    come: eachHttp1(`${head("POST", "/", "Content-Length: 1000000\r\n")}a`, "a"),
  },
  {
    count: 100,
    name: "chunked bodies that drip",
    come: eachHttp1(head("POST", "/", "Transfer-Encoding: chunked\r\n"), "1\r\na\r\n"),
  },
  {
    count: 100,
    name: "bodies that stop behind their buffered part",
    come: eachHttp1(head("POST", "/", "Content-Length: 1000000\r\n") + "a".repeat(100_000)),
  },
  { count: 80, name: "responses that are not read", come: eachHttp1(head("GET", "/large")) },
  { count: 100, name: "streams whose bodies drip", come: eachHttp2(65_535, "/", true) },
  { count: 100, name: "streams whose responses are not read", come: eachHttp2(65_535, "/medium", false) },
  { count: 100, name: "streams without a window", come: eachHttp2(0, "/medium", false) },
];

/** Asks again and again, one request after the other; the statuses and the longest time. */
async function probe(gateway: TestGateway): Promise<readonly [statuses: readonly number[], maxMs: number]> {
  const statuses: number[] = [];
  let maxMs = 0;
  for (let at = 0; at < PROBES; at += 1) {
    const sinceMs = performance.now();
    const isPost = at % 2 === 1;
    const { status } = await gateway.send({ method: isPost ? "POST" : "GET", path: "/", body: isPost ? "abc" : "" });
    statuses.push(status);
    maxMs = Math.max(maxMs, performance.now() - sinceMs);
  }
  return [statuses, maxMs];
}

describe("slow clients beside others, with default settings", { concurrency: 1 }, () => {
  for (const { name, count, come } of KINDS) {
    test(`${count} ${name} keep nobody else from the upstream`, { timeout: 60_000 }, async (context) => {
      await using origin = await startSite();
      await using gateway = await startGateway({ ...serving("api", [origin.port]), routes: [proxied("api")] });
      await using crowd = new Crowd();
      await come(crowd, gateway.port(), count);
      const [statuses, maxMs] = await probe(gateway);
      assert.deepEqual(
        statuses,
        Array.from({ length: PROBES }, () => 200),
      );
      context.diagnostic(`the longest of ${PROBES} requests took ${maxMs.toFixed(0)} ms`);
    });
  }

  test("all of them together do not block the upstream for others", { timeout: 120_000 }, async (context) => {
    await using origin = await startSite();
    await using gateway = await startGateway({ ...serving("api", [origin.port]), routes: [proxied("api")] });
    await using crowd = new Crowd();
    for (const { count, come } of KINDS) await come(crowd, gateway.port(), count / 2);
    const [statuses, maxMs] = await probe(gateway);
    assert.deepEqual(
      statuses,
      Array.from({ length: PROBES }, () => 200),
    );
    context.diagnostic(`the longest of ${PROBES} requests took ${maxMs.toFixed(0)} ms`);
  });
});

const listener = (more: object = {}) => ({ name: "public", address: "127.0.0.1", port: 0, ...more });
/** Over half a second at least 2,000 bytes. */
const RATE = { bytes_per_s: 4000, grace_ms: 500 };

describe("bounds for slow clients", { concurrency: 16 }, () => {
  test("a body that is smaller than request_buffer_bytes is whole before a connection is taken for it", async () => {
    await using origin = await startSite();
    await using gateway = await startGateway({ ...serving("api", [origin.port]), routes: [proxied("api")] });
    await using client = await rawClient(gateway.port());
    await client.write(`${head("POST", "/", "Content-Length: 4\r\n")}a`);
    // Whatever was to be done for the first byte is done when another client has its response.
    assert.equal((await gateway.send({ path: "/" })).status, 200);
    assert.equal(origin.requests.length, 1);
    await client.write("bcd");
    assert.equal((await readResponse(client, "POST")).status, 200);
    assert.equal(origin.connectionCount, 1);
  });

  test("a body of unknown length is forwarded after a second at most, and its later parts follow", async () => {
    await using upstream = await startRawServer(async (connection) => {
      await connection.readUntil("1\r\na\r\n");
      connection.socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n");
      await connection.readUntil("1\r\nb\r\n0\r\n\r\n");
      connection.socket.write("3\r\ntwo\r\n0\r\n\r\n");
    });
    await using gateway = await startGateway({ ...serving("api", [upstream.port]), routes: [proxied("api")] });
    await using client = await rawClient(gateway.port());
    await client.write(`${head("POST", "/", "Transfer-Encoding: chunked\r\n")}1\r\na\r\n`);
    await client.readUntil("one");
    await client.write("1\r\nb\r\n0\r\n\r\n");
    await client.readUntil("two");
  });

  test("a call of gRPC whose client waits for a message is passed on at once, before a body that is waited for", async () => {
    await using upstream = await startHttp2Origin((stream, headers) => {
      stream.respond({ ":status": 200 });
      stream.end(headers["content-type"]);
    });
    await using gateway = await startGateway({
      ...serving("api", [upstream.port], { protocol: "h2c" }),
      routes: [proxied("api")],
    });
    await using client = await http2Client(gateway.port());
    const call = async (type: string): Promise<string> => {
      const fields = { ":method": "POST", ":path": "/", "content-type": type };
      const [piece] = (await once(client.session.request(fields, { endStream: false }), "data")) as [Buffer];
      return String(piece);
    };
    assert.equal(
      await Promise.race([call("application/json"), call("application/grpc+proto")]),
      "application/grpc+proto",
    );
  });

  test("a response that fits into response_buffer_bytes frees its connection, though it is not read", async () => {
    await using origin = await startOrigin({
      handler: (_request, response) => void response.end(Buffer.alloc(200_000)),
    });
    await using gateway = await startGateway({
      ...serving("api", [origin.port], { connection_cap: 1, stalled_connection_cap: 0 }),
      routes: [proxied("api")],
    });
    await using crowd = new Crowd();
    await eachHttp2(0, "/", false)(crowd, gateway.port(), 5);
    assert.equal((await gateway.send({ path: "/" })).body.length, 200_000);
    assert.equal(origin.connectionCount, 1);
  });

  test("beyond max_buffered_bytes bodies pass while they come, and all of them are whole", async () => {
    await using origin = await startOrigin();
    await using gateway = await startGateway({
      ...serving("api", [origin.port]),
      routes: [proxied("api")],
      max_buffered_bytes: 1000,
    });
    await using client = await http2Client(gateway.port());
    const body = "x".repeat(50_000);
    const responses = await Promise.all(
      Array.from({ length: 10 }, async () => await client.fetch({ ":method": "POST", ":path": "/" }, body)),
    );
    for (const response of responses) {
      assert.equal(
        Buffer.from((JSON.parse(response.body.toString()) as { body: string }).body, "base64").toString(),
        body,
      );
    }
    const { body: metrics } = await gateway.send({ path: "/metrics" });
    assert.match(metrics.toString(), /^gateway_buffered_bytes 0$/m);
  });

  test("max_pending: who does not fit into the queue is answered 503 with Retry-After, and counted", async () => {
    await using upstream = await startRawServer(async (connection) => void (await connection.closed));
    await using gateway = await startGateway({
      ...serving("api", [upstream.port], { connection_cap: 1, max_pending: 1 }),
      routes: [proxied("api")],
    });
    await using crowd = new Crowd();
    await eachHttp1(head("GET", "/"))(crowd, gateway.port(), 2);
    await waitUntil(
      async () => (await gateway.send({ path: "/healthz" })).status === 200 && upstream.connections.length > 0,
    );
    const response = await gateway.send({ path: "/" });
    assert.deepEqual(
      [response.status, errorOf(response).code, response.header("retry-after")],
      [503, "upstream_saturated", "1"],
    );
    const { body } = await gateway.send({ path: "/metrics" });
    assert.match(body.toString(), /^gateway_upstream_queue_refused_total\{upstream="api",reason="queue_full"\} 1$/m);
  });

  for (const protocol of ["http1", "h2c"] as const) {
    test(`pending_timeout_ms: who waited so long for a connection by ${protocol} is answered 503 with Retry-After`, async () => {
      const begun = Promise.withResolvers<void>();
      await using upstream =
        protocol === "http1"
          ? await startRawServer(async (connection) => {
              await connection.readUntil("\r\n\r\n");
              begun.resolve();
              await connection.closed;
            })
          : await startRawHttp2Origin(() => begun.resolve(), settings([3, 1]));
      await using gateway = await startGateway({
        ...serving("api", [upstream.port], { protocol, connection_cap: 1, pending_timeout_ms: 500 }),
        routes: [proxied("api")],
      });
      await using crowd = new Crowd();
      await eachHttp1(head("GET", "/"))(crowd, gateway.port(), 1);
      await begun.promise;
      const response = await gateway.send({ path: "/" });
      assert.deepEqual(
        [response.status, errorOf(response).code, response.header("retry-after")],
        [503, "upstream_saturated", "1"],
      );
    });
  }

  test("the slowest client loses its connection when others wait and no more may stand still", async () => {
    await using origin = await startSite();
    await using gateway = await startGateway({
      ...serving("api", [origin.port], { connection_cap: 2, stalled_connection_cap: 0, request_buffer_bytes: 0 }),
      routes: [proxied("api")],
    });
    const begin = `${head("POST", "/", "Content-Length: 1000000\r\n")}a`;
    await using crowd = new Crowd();
    await crowd.http1(gateway.port(), begin, "a".repeat(50_000));
    await using slow = await rawClient(gateway.port());
    await slow.write(begin);
    await waitUntil(() => origin.requests.length === 2);
    assert.equal((await gateway.send({ path: "/" })).status, 200);
    const response = await readResponse(slow, "POST");
    assert.deepEqual([response.status, errorOf(response).code], [408, "request_timeout"]);
    assert.equal(gateway.log.filter(({ msg, status }) => msg === "access" && status === 408).length, 1);
  });

  for (const version of ["1.1", "2"] as const) {
    test(`min_request_rate: a body over HTTP/${version} that drips is answered 408, and counted`, async () => {
      await using origin = await startSite();
      await using gateway = await startGateway({
        listeners: [listener({ min_request_rate: RATE, metrics: true })],
        ...serving("api", [origin.port]),
        routes: [proxied("api")],
      });
      await using crowd = new Crowd();
      if (version === "1.1") {
        await crowd.http1(gateway.port(), head("POST", "/", "Content-Length: 1000000\r\n"), "aaaa");
      } else {
        const session = await crowd.http2(gateway.port(), 65_535);
        const stream = session.request({ ":method": "POST", ":path": "/" }, { endStream: false });
        stream.on("error", () => undefined);
        crowd.every(100, () => stream.writable && stream.write("aaaa"));
      }
      await waitUntil(() => gateway.log.some(({ msg }) => msg === "access"));
      assert.deepEqual(
        gateway.log.filter(({ msg }) => msg === "access").map(({ status }) => status),
        [408],
      );
      const { body } = await gateway.send({ path: "/metrics" });
      assert.match(body.toString(), /^gateway_slow_clients_total\{listener="public",body="request"\} 1$/m);
    });

    test(`min_request_rate: a body over HTTP/${version} that comes fast enough passes, however long it takes`, async () => {
      await using origin = await startSite();
      await using gateway = await startGateway({
        listeners: [listener({ min_request_rate: { bytes_per_s: 2000, grace_ms: 200 } })],
        ...serving("api", [origin.port]),
        routes: [proxied("api")],
      });
      const pieces = 15;
      const piece = "a".repeat(4000);
      if (version === "1.1") {
        await using client = await rawClient(gateway.port());
        await client.write(head("POST", "/", `Content-Length: ${pieces * piece.length}\r\n`));
        for (let at = 0; at < pieces; at += 1) {
          await client.write(piece);
          await sleep(100);
        }
        assert.equal((await readResponse(client, "POST")).status, 200);
      } else {
        await using client = await http2Client(gateway.port());
        const stream = client.session.request({ ":method": "POST", ":path": "/" }, { endStream: false });
        const answered = collect(stream);
        for (let at = 0; at < pieces; at += 1) {
          stream.write(piece);
          await sleep(100);
        }
        stream.end();
        assert.equal((await answered).status, 200);
      }
    });

    test(`min_response_rate: a client of HTTP/${version} that takes a response at less is cut, and counted`, async () => {
      await using origin = await startOrigin({ handler: (_request, response) => void response.end(LARGE) });
      await using gateway = await startGateway({
        listeners: [listener({ min_response_rate: RATE, metrics: true })],
        ...serving("api", [origin.port]),
        routes: [proxied("api")],
      });
      await using crowd = new Crowd();
      if (version === "1.1") await crowd.http1(gateway.port(), head("GET", "/"));
      else await eachHttp2(1000, "/", false)(crowd, gateway.port(), 1);
      await waitUntil(() => gateway.log.some(({ msg }) => msg === "access"));
      assert.deepEqual(
        gateway.log.filter(({ msg }) => msg === "access").map(({ status, complete }) => [status, complete]),
        [[200, false]],
      );
      const { body } = await gateway.send({ path: "/metrics" });
      assert.match(body.toString(), /^gateway_slow_clients_total\{listener="public",body="response"\} 1$/m);
    });

    test(`least rates say nothing of a response over HTTP/${version} that has no news, nor of an upstream that does not read`, async () => {
      await using origin = await startOrigin({
        handler: (request, response) => {
          if (request.method === "GET") {
            response.writeHead(200, { "content-type": "text/event-stream" }).write("data: first\n\n");
            setTimeout(() => response.end("data: last\n\n"), 2000);
          } else setTimeout(() => request.resume().on("end", () => response.end("ok")), 2000);
        },
      });
      await using gateway = await startGateway({
        listeners: [listener({ min_request_rate: RATE, min_response_rate: RATE, idle_timeout_ms: 500 })],
        ...serving("api", [origin.port]),
        routes: [proxied("api")],
      });
      if (version === "1.1") {
        const silent = gateway.send({ path: "/" });
        const held = gateway.send({ method: "POST", path: "/", body: "x".repeat(12_000_000) });
        assert.match((await silent).body.toString(), /last/);
        assert.equal((await held).status, 200);
      } else {
        await using client = await http2Client(gateway.port());
        const silent = client.fetch({ ":path": "/" });
        const stream = client.session.request({ ":method": "POST", ":path": "/" }, { endStream: false });
        const held = collect(stream);
        // Piece by piece, since a client of node's counts what it hands over at once against itself.
        Readable.from(Array.from({ length: 750 }, () => Buffer.alloc(16_000))).pipe(stream);
        assert.match((await silent).body.toString(), /last/);
        assert.equal((await held).status, 200);
      }
    });
  }

  test("a client that reads slowly, but fast enough, gets all of a response that its upstream has ended long ago", async () => {
    const size = 12_000_000;
    await using origin = await startOrigin({
      handler: (_request, response) => void response.writeHead(200, { connection: "close" }).end(Buffer.alloc(size)),
    });
    await using gateway = await startGateway({
      listeners: [listener({ idle_timeout_ms: 1000 })],
      ...serving("api", [origin.port], { response_buffer_bytes: 16_000_000 }),
      routes: [proxied("api")],
    });
    for (const more of ["", "Connection: close\r\n"]) {
      const socket = connect({ port: gateway.port(), host: "127.0.0.1" });
      socket.write(head("GET", "/", more));
      let bytes = 0;
      socket.on("data", (piece: Buffer) => {
        bytes += piece.length;
        socket.pause();
        setTimeout(() => socket.resume(), 15);
      });
      await waitUntil(() => bytes > size || socket.readableEnded, { timeoutMs: 30_000 });
      assert.ok(bytes > size, `${bytes} bytes`);
      socket.destroy();
    }
  });
});
