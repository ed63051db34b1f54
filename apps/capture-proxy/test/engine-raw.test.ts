import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer } from "node:net";
import type { AddressInfo, Server, Socket } from "node:net";
import { after, test } from "node:test";
import { exchangeUrl } from "#exchange/exchange.ts";
import { startEngine } from "./engine-harness.ts";
import type { Engine } from "./engine-harness.ts";

const cleanups: (() => unknown)[] = [];
after(async () => {
  for (const cleanup of cleanups.reverse()) await cleanup();
});

/** An origin whose behaviour is a function of the socket. */
async function origin(
  serve: (socket: Socket) => void,
): Promise<{ port: number; server: Server; sockets: Set<Socket> }> {
  const sockets = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    socket.on("close", () => sockets.delete(socket));
    serve(socket);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  cleanups.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, server, sockets };
}

async function engine(options: Parameters<typeof startEngine>[0] = {}): Promise<Engine> {
  const started = await startEngine(options);
  cleanups.push(() => started.stop());
  return started;
}

/** Answers every request head with the next of the given byte strings. */
function scripted(...responses: string[]): (socket: Socket) => void {
  return (socket) => {
    let at = 0;
    let seen = "";
    socket.on("data", (chunk) => {
      seen += chunk.toString("latin1");
      while (seen.includes("\r\n\r\n")) {
        seen = seen.slice(seen.indexOf("\r\n\r\n") + 4);
        const response = responses[Math.min(at, responses.length - 1)] ?? "";
        at += 1;
        socket.write(response, "latin1");
      }
    });
    socket.on("end", () => socket.end());
  };
}

/** Writes bytes to the proxy and collects everything until it closes or `until` matches. */
async function talk(port: number, bytes: string | Buffer, until?: RegExp): Promise<{ text: string; socket: Socket }> {
  const socket = connect(port, "127.0.0.1");
  await once(socket, "connect");
  socket.write(bytes);
  let text = "";
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`no end after: ${text.slice(0, 500)}`)), 10_000);
    const done = (): void => {
      clearTimeout(timer);
      resolve();
    };
    socket.on("data", (chunk) => {
      text += chunk.toString("latin1");
      if (until?.test(text)) done();
    });
    socket.on("close", done);
    socket.on("error", done);
  });
  return { text, socket };
}

const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

test("pipelined requests are answered in their order on one origin connection", async () => {
  const { port, sockets } = await origin(
    scripted(
      OK,
      "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nsecnd",
      "HTTP/1.1 404 No\r\nContent-Length: 3\r\n\r\nend",
    ),
  );
  const proxy = await engine();
  const head = (path: string): string => `GET http://127.0.0.1:${port}${path} HTTP/1.1\r\nHost: x\r\n\r\n`;
  const { text, socket } = await talk(proxy.port, head("/1") + head("/2") + head("/3"), /end$/);
  assert.match(text, /^HTTP\/1\.1 200 OK[^]*okHTTP\/1\.1 200 OK[^]*secndHTTP\/1\.1 404 No[^]*end$/);
  assert.equal(sockets.size, 1);
  socket.destroy();
  const done = await proxy.waitFor(3);
  assert.deepEqual(
    done.map((exchange) => exchange.request.path),
    ["/1", "/2", "/3"],
  );
});

test("an origin that closes between two requests is tried once more on a new connection", async () => {
  let connections = 0;
  const { port } = await origin((socket) => {
    connections += 1;
    let answered = 0;
    socket.on("data", () => {
      answered += 1;
      // The first connection answers once and dies on the second request without a byte.
      if (connections === 1 && answered === 2) socket.destroy();
      else socket.write(OK);
    });
  });
  const proxy = await engine();
  const head = `GET http://127.0.0.1:${port}/ HTTP/1.1\r\nHost: x\r\n\r\n`;
  const { text, socket } = await talk(proxy.port, head + head, /ok[^]*ok$/);
  socket.destroy();
  assert.equal(text.match(/200 OK/g)?.length, 2);
  assert.equal(connections, 2);
});

test("a POST is never sent twice", async () => {
  let connections = 0;
  const { port } = await origin((socket) => {
    connections += 1;
    let answered = 0;
    socket.on("data", () => {
      answered += 1;
      if (answered === 2) socket.destroy();
      else socket.write(OK);
    });
  });
  const proxy = await engine();
  const post = `POST http://127.0.0.1:${port}/ HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\na`;
  const { text } = await talk(proxy.port, post + post, /502 Bad Gateway[^]*<\/html>/);
  assert.match(text, /200 OK[^]*502 Bad Gateway/);
  assert.equal(connections, 1);
});

test("bytes of an origin after its response reach no client", async () => {
  const { port } = await origin(scripted(`${OK}HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nstolen`));
  const proxy = await engine();
  const head = `GET http://127.0.0.1:${port}/ HTTP/1.1\r\nHost: x\r\n\r\n`;
  const { text, socket } = await talk(proxy.port, head + head, /ok[^]*ok$/);
  socket.destroy();
  assert.doesNotMatch(text, /stolen/);
});

const FAILING_ORIGINS: readonly [string, string, string, number][] = [
  ["nothing and a close", "", "UPSTREAM_CLOSED", 502],
  ["garbage", "this is not HTTP at all\r\n\r\n", "UPSTREAM_PROTOCOL", 502],
  [
    "two different lengths",
    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc",
    "UPSTREAM_PROTOCOL",
    502,
  ],
  ["half a head", "HTTP/1.1 200 OK\r\nContent-Le", "UPSTREAM_CLOSED", 502],
  [
    "an unrequested 101",
    "HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
    "UPSTREAM_PROTOCOL",
    502,
  ],
];
for (const [name, bytes, code, status] of FAILING_ORIGINS) {
  test(`an origin that sends ${name} ends in ${status} and ${code}`, async () => {
    const { port } = await origin((socket) => {
      socket.once("data", () => socket.end(bytes));
    });
    const proxy = await engine();
    const { text } = await talk(
      proxy.port,
      `GET http://127.0.0.1:${port}/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`,
    );
    assert.match(text, new RegExp(`^HTTP/1\\.1 ${status} `));
    assert.match(text, new RegExp(`X-Weir-Error: ${code}`));
    const [exchange] = await proxy.waitFor(1);
    assert.equal(exchange?.state.step === "failed" && exchange.state.failure.code, code);
    assert.equal(exchange?.response?.status, status);
  });
}

test("an answer that breaks off is cut for the client too, and its entry keeps what came", async () => {
  const { port } = await origin((socket) => {
    socket.once("data", () => socket.end("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this"));
  });
  const proxy = await engine();
  const { text } = await talk(proxy.port, `GET http://127.0.0.1:${port}/ HTTP/1.1\r\nHost: x\r\n\r\n`);
  assert.match(text, /Content-Length: 100\r\n\r\nonly this$/);
  const [exchange] = await proxy.waitFor(1);
  assert.equal(exchange?.state.step === "failed" && exchange.state.failure.code, "UPSTREAM_CLOSED");
  assert.equal(Buffer.concat([...(exchange?.responseBody.pieces ?? [])]).toString(), "only this");
});

test("a silent origin ends in 504 after the idle time", async () => {
  const { port } = await origin((socket) => socket.resume());
  const proxy = await engine({ policy: { idleTimeoutMs: 200 } });
  const { text } = await talk(
    proxy.port,
    `GET http://127.0.0.1:${port}/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`,
  );
  assert.match(text, /^HTTP\/1\.1 504 .*\r\n[^]*UPSTREAM_TIMEOUT/);
});

test("a client that sends its head byte by byte is ended in time with 408", async () => {
  const proxy = await engine({ policy: { headTimeoutMs: 300 } });
  const socket = connect(proxy.port, "127.0.0.1");
  await once(socket, "connect");
  const bytes = "GET http://x/ HTTP/1.1\r\nHost: x\r\nX-Slow: ".split("");
  const drip = setInterval(() => socket.write(bytes.shift() ?? "a"), 20);
  let text = "";
  socket.on("data", (chunk) => (text += chunk.toString()));
  socket.on("error", () => undefined);
  const startedMs = performance.now();
  await once(socket, "close");
  clearInterval(drip);
  assert.match(text, /^HTTP\/1\.1 408 /);
  assert.ok(performance.now() - startedMs < 8000);
});

test("an answer read until close reaches an HTTP/1.1 client and closes it", async () => {
  const { port } = await origin((socket) => {
    socket.once("data", () => socket.end("HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nold style body"));
  });
  const proxy = await engine();
  const { text } = await talk(proxy.port, `GET http://127.0.0.1:${port}/ HTTP/1.1\r\nHost: x\r\n\r\n`);
  assert.match(text, /Connection: close\r\n\r\nold style body$/);
});

test("a chunked answer becomes plain bytes for an HTTP/1.0 client", async () => {
  const { port } = await origin(
    scripted("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"),
  );
  const proxy = await engine();
  const { text } = await talk(proxy.port, `GET http://127.0.0.1:${port}/ HTTP/1.0\r\nHost: x\r\n\r\n`);
  assert.doesNotMatch(text, /chunked/i);
  assert.match(text, /\r\n\r\nhello world$/);
});

test("trailers pass in both directions", async () => {
  let request = "";
  const { port } = await origin((socket) => {
    socket.on("data", (chunk) => {
      request += chunk.toString("latin1");
      if (request.endsWith("X-Sum: 1\r\n\r\n")) {
        socket.write(
          "HTTP/1.1 200 OK\r\nTrailer: X-End\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-End: yes\r\n\r\n",
        );
      }
    });
  });
  const proxy = await engine();
  const { text, socket } = await talk(
    proxy.port,
    `POST http://127.0.0.1:${port}/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-Sum: 1\r\n\r\n`,
    /X-End: yes\r\n\r\n$/,
  );
  socket.destroy();
  assert.match(text, /Trailer: X-End/);
  const [exchange] = await proxy.waitFor(1);
  assert.deepEqual(exchange?.request.trailers, ["X-Sum", "1"]);
  assert.deepEqual(exchange?.response?.trailers, ["X-End", "yes"]);
});

test("the field order, case and duplicates of both sides survive, and Host follows the target", async () => {
  let request = "";
  const { port } = await origin((socket) => {
    socket.on("data", (chunk) => {
      request += chunk.toString("latin1");
      socket.write(
        "HTTP/1.1 200 Fine\r\nset-cookie: a=1\r\nSet-Cookie: b=2\r\nX-ODD:  v \r\nContent-Length: 0\r\n\r\n",
      );
    });
  });
  const proxy = await engine();
  const { text, socket } = await talk(
    proxy.port,
    `GET http://user:pw@127.0.0.1:${port}/p?q HTTP/1.1\r\nX-b: 1\r\nHOST: other.example\r\nx-A: 2\r\nX-b: 3\r\nProxy-Connection: keep-alive\r\nProxy-Authorization: Basic eA==\r\n\r\n`,
    /Content-Length: 0\r\n\r\n$/,
  );
  socket.destroy();
  assert.equal(request, `GET /p?q HTTP/1.1\r\nX-b: 1\r\nHost: 127.0.0.1:${port}\r\nx-A: 2\r\nX-b: 3\r\n\r\n`);
  assert.equal(
    text,
    "HTTP/1.1 200 Fine\r\nset-cookie: a=1\r\nSet-Cookie: b=2\r\nX-ODD: v\r\nContent-Length: 0\r\n\r\n",
  );
  const [exchange] = await proxy.waitFor(1);
  assert.doesNotMatch(exchange?.request.fields.join() ?? "", /Authorization/i);
});

test("an upgrade hands both connections to the new protocol, bytes untouched in both directions", async () => {
  const { port } = await origin((socket) => {
    socket.once("data", () => {
      socket.write(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: x\r\n\r\n\x81\x02hi",
        "latin1",
      );
      socket.on("data", (chunk) => socket.write(Buffer.concat([Buffer.from("echo:"), chunk])));
      socket.on("end", () => socket.end());
    });
  });
  const proxy = await engine();
  const { text, socket } = await talk(
    proxy.port,
    `GET http://127.0.0.1:${port}/ws HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: k\r\nSec-WebSocket-Version: 13\r\n\r\n`,
    /hi$/,
  );
  assert.match(text, /^HTTP\/1\.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n/);
  socket.write(Buffer.from([0, 255, 13, 10]));
  const [echoed] = (await once(socket, "data")) as [Buffer];
  assert.deepEqual(echoed, Buffer.from([...Buffer.from("echo:"), 0, 255, 13, 10]));
  socket.end();
  const [exchange] = await proxy.waitFor(1);
  assert.equal(exchange?.request.scheme, "ws");
  assert.equal(exchange?.response?.status, 101);
  assert.equal(exchange?.requestBody.sizeBytes, 4);
  assert.equal(exchange?.responseBody.sizeBytes, 13);
});

test("an upgrade to HTTP/2 is offered to no origin, and the request goes on without it", async () => {
  const requests: string[] = [];
  const { port } = await origin((socket) => {
    socket.once("data", (chunk) => {
      requests.push(chunk.toString());
      const isOffered = /^upgrade:/im.test(chunk.toString());
      const switched = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n";
      socket.end(isOffered ? switched : "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    });
  });
  const proxy = await engine();
  const { text } = await talk(
    proxy.port,
    `GET http://127.0.0.1:${port}/ HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n`,
    /\r\n\r\n/,
  );
  assert.match(text, /^HTTP\/1\.1 200 OK\r\n/);
  assert.deepEqual(requests, [`GET / HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`]);
});

test("inside CONNECT, a server that speaks first is relayed", async () => {
  const { port } = await origin((socket) => {
    socket.write("220 mail ready\r\n");
    socket.on("data", (chunk) => socket.write(`got ${chunk.toString()}`));
    socket.on("end", () => socket.end());
  });
  const proxy = await engine();
  const { text, socket } = await talk(
    proxy.port,
    `CONNECT 127.0.0.1:${port} HTTP/1.1\r\nHost: x\r\n\r\n`,
    /220 mail ready/,
  );
  assert.match(text, /^HTTP\/1\.1 200 /);
  socket.end("HELO\r\n");
  await once(socket, "close");
  const [exchange] = await proxy.waitFor(1);
  assert.equal(exchange?.passthrough, true);
  assert.equal(exchange?.requestBody.sizeBytes, 6);
  assert.equal(exchange?.responseBody.sizeBytes, "220 mail ready\r\ngot HELO\r\n".length);
});

test("inside CONNECT, bytes that are neither TLS nor HTTP are relayed as they are", async () => {
  const { port } = await origin((socket) => {
    socket.on("data", (chunk) => socket.write(chunk));
    socket.on("end", () => socket.end());
  });
  const proxy = await engine();
  const { text } = await talk(
    proxy.port,
    `CONNECT 127.0.0.1:${port} HTTP/1.1\r\nHost: x\r\n\r\n\x00\x01binary`,
    /binary$/,
  );
  assert.match(text, /binary$/);
});

const BAD_REQUESTS: readonly [string, string, number][] = [
  ["an origin-form target", "GET / HTTP/1.1\r\nHost: example.com\r\n\r\n", 400],
  ["a strange scheme", "GET ftp://x/ HTTP/1.1\r\nHost: x\r\n\r\n", 400],
  ["a port out of range", "GET http://x:99999/ HTTP/1.1\r\nHost: x\r\n\r\n", 400],
  ["CONNECT without a port", "CONNECT example.com HTTP/1.1\r\nHost: x\r\n\r\n", 400],
  ["two Hosts", "GET http://x/ HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", 400],
  [
    "length and chunked together",
    "POST http://x/ HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
    400,
  ],
  ["a bare LF", "GET http://x/ HTTP/1.1\nHost: x\n\n", 400],
  ["a head beyond 256 KiB", `GET http://x/ HTTP/1.1\r\nHost: x\r\nX: ${"a".repeat(270_000)}\r\n\r\n`, 431],
];
for (const [name, bytes, status] of BAD_REQUESTS) {
  test(`a request with ${name} is answered with ${status} and the connection closes`, async () => {
    const proxy = await engine();
    const { text } = await talk(proxy.port, bytes);
    assert.match(text, new RegExp(`^HTTP/1\\.1 ${status} `));
  });
}

const NAMED: readonly [target: string, method: string, url: string][] = [
  ["nohost", "CONNECT", "tcp://nohost:0/"],
  ["x.test:99999", "CONNECT", "tcp://x.test:0/"],
  ["x.test:0", "CONNECT", "tcp://x.test:0/"],
  ["http://x.test:65536/a", "GET", "http://x.test:0/a"],
  ["ftp://x.test/a", "GET", "tcp://x.test:0/a"],
  ["ws://x.test/a", "GET", "ws://x.test/a"],
];
for (const [target, method, url] of NAMED) {
  test(`${method} ${target} is refused in JSON for who asks for it, and has an entry`, async () => {
    const proxy = await engine();
    const fields = "Host: x\r\nAccept: application/json\r\nProxy-Authorization: Basic dTpw\r\n";
    const { text } = await talk(proxy.port, `${method} ${target} HTTP/1.1\r\n${fields}\r\n`);
    assert.match(text, /^HTTP\/1\.1 400 [^]*Connection: close[^]*\{"error":.*"code":"CLIENT_PROTOCOL"/);
    const [exchange, ...more] = await proxy.waitFor(1);
    assert.ok(exchange?.state.step === "failed" && more.length === 0);
    assert.deepEqual([exchange.request.method, exchangeUrl(exchange.request)], [method, url]);
    assert.deepEqual(exchange.request.fields, ["Host", "x", "Accept", "application/json"]);
  });
}

const REFUSED_ENTRIES: readonly [is: string, bytes: string, status: number, url: string, tells: RegExp][] = [
  [
    "a blank in its target",
    "GET http://x.test:81/a b HTTP/1.1\r\nHost: x.test:81\r\n\r\n",
    400,
    "http://x.test:81/a%20b",
    /request line.*percent-encoded/,
  ],
  [
    "two Hosts",
    "GET http://x.test/ HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
    400,
    "http://x.test/",
    /more than one Host field$/,
  ],
  [
    "a head beyond 256 KiB",
    `GET http://x.test/ HTTP/1.1\r\nHost: x.test\r\nX: ${"a".repeat(270_000)}\r\n\r\n`,
    431,
    "http://x.test/",
    /head is too large$/,
  ],
];
for (const [is, bytes, status, url, tells] of REFUSED_ENTRIES) {
  test(`a request that is refused for ${is} has an entry with stage and cause, and goes nowhere`, async () => {
    const proxy = await engine();
    const { text } = await talk(proxy.port, Buffer.from(bytes, "latin1"));
    assert.match(text, new RegExp(`^HTTP/1\\.1 ${status} [^]*CLIENT_PROTOCOL`));
    const [exchange] = await proxy.waitFor(1);
    assert.ok(exchange?.state.step === "failed");
    const { stage, side, code, message } = exchange.state.failure;
    assert.deepEqual([stage, side, code], ["client-read", "client", "CLIENT_PROTOCOL"]);
    assert.match(message, tells);
    assert.deepEqual([exchangeUrl(exchange.request), exchange.response?.status], [url, status]);
  });
}

test("a refused request inside a tunnel is recorded under the host it names, without credentials for the proxy", async () => {
  const { port } = await origin(() => undefined);
  const proxy = await engine();
  const head = `GET /\xe9 x HTTP/1.1\r\nHost: named.test:${port}\r\nProxy-Authorization: Basic dTpw\r\n\r\n`;
  const { text } = await talk(
    proxy.port,
    Buffer.from(`CONNECT 127.0.0.1:${port} HTTP/1.1\r\nHost: x\r\n\r\n${head}`, "latin1"),
  );
  assert.match(text, / 400 /);
  const exchange = proxy.finished.find(({ request }) => request.method === "GET");
  assert.deepEqual(
    [exchange?.request.host, exchange?.request.path, exchange?.request.fields],
    ["named.test", "/%E9%20x", ["Host", `named.test:${port}`]],
  );
});

test("requests to the proxy's own listener end in 508 within a second, by whatever name", async () => {
  const proxy = await engine();
  for (const host of ["127.0.0.1", "localhost", "127.0.0.1.", "[::ffff:127.0.0.1]", "0.0.0.0", "0x7f.1"]) {
    const startedMs = performance.now();
    const { text } = await talk(
      proxy.port,
      `GET http://${host}:${proxy.port}/x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`,
    );
    assert.match(text, /^HTTP\/1\.1 (508|502|400) /, host);
    assert.ok(performance.now() - startedMs < 1000, host);
  }
  assert.ok(
    proxy.finished.some((exchange) => exchange.state.step === "failed" && exchange.state.failure.code === "LOOP"),
  );
  assert.ok(proxy.finished.every((exchange) => exchange.response?.status !== 200));
});
