import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { IncomingMessage, RequestListener } from "node:http";
import { createServer as createSecureServer } from "node:https";
import { createServer as createTcpServer } from "node:net";
import type { AddressInfo, Socket } from "node:net";
import { after, test } from "node:test";
import { CertificateAuthority } from "@headworks/tls-authority";
import { Http1Error } from "@headworks/http1";
import { waitUntil } from "@headworks/testkit";
import { InternalClient } from "#connection/internal-client.ts";
import type { OutgoingRequest, SendOutcome } from "#exchange/outgoing.ts";
import { startEngine } from "./engine-harness.ts";
import type { Engine, EngineOptions } from "./engine-harness.ts";

const cleanups: (() => unknown)[] = [];
after(async () => {
  for (const cleanup of cleanups.reverse()) await cleanup();
});

interface Rig {
  readonly engine: Engine;
  readonly client: InternalClient;
}

async function rig(options: EngineOptions = {}): Promise<Rig> {
  const client: InternalClient = new InternalClient(() => engine.services);
  const engine: Engine = await startEngine({ ...options, observers: [client] });
  cleanups.push(() => engine.stop());
  return { engine, client };
}

async function origin(listener: (...exchange: Parameters<RequestListener>) => void | Promise<void>): Promise<number> {
  const server = createServer((incoming, response) => void listener(incoming, response));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  cleanups.push(() => {
    server.close();
    server.closeAllConnections();
  });
  return (server.address() as AddressInfo).port;
}

async function rawOrigin(onConnection: (socket: Socket) => void): Promise<number> {
  const server = createTcpServer(onConnection);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  cleanups.push(() => server.close());
  return (server.address() as AddressInfo).port;
}

async function bodyOf(incoming: IncomingMessage): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for await (const piece of incoming) pieces.push(piece as Buffer);
  return Buffer.concat(pieces);
}

const get = (port: number, more: Partial<OutgoingRequest> = {}): OutgoingRequest => ({
  scheme: "http",
  host: "127.0.0.1",
  port,
  method: "GET",
  path: "/",
  fields: [],
  body: undefined,
  ...more,
});

function answered(outcome: SendOutcome) {
  assert.ok(outcome.kind === "responded", JSON.stringify(outcome));
  return outcome.exchange;
}

function failed(outcome: SendOutcome, code: string) {
  assert.ok(outcome.kind === "failed", JSON.stringify(outcome));
  assert.equal(outcome.failure.code, code);
  return outcome;
}

test("a request of our own is an exchange like a client's, and its facts come with the answer", async () => {
  const { engine, client } = await rig();
  const port = await origin((incoming, response) => {
    response.setHeader("X-Saw", JSON.stringify([incoming.url, incoming.headers["host"], incoming.headers["x-a"]]));
    response.end("hello");
  });
  const pieces: Uint8Array[] = [];
  const request = get(port, { path: "/a?b=1", fields: ["X-A", "1"] });
  const exchange = answered(await client.send(request, { onBody: (piece) => pieces.push(Uint8Array.from(piece)) }));
  const [finished] = await engine.waitFor(1);
  assert.equal(exchange.id, finished?.id);
  assert.equal(exchange.response.status, 200);
  assert.equal(Buffer.concat(pieces).toString(), "hello");
  assert.equal(exchange.responseBytes, 5);
  const saw = exchange.response.fields[exchange.response.fields.indexOf("X-Saw") + 1];
  assert.equal(saw, JSON.stringify(["/a?b=1", `127.0.0.1:${port}`, "1"]));
  assert.deepEqual([finished?.client.address, finished?.client.connection], [undefined, undefined]);
  assert.equal(exchange.isRecorded, true);
  assert.ok(exchange.durationMs > 0);
});

const BODY = Buffer.alloc(3_000_001, "0123456789abcdef");
const BODIES: readonly [string, Partial<OutgoingRequest>, Record<string, string | undefined>][] = [
  ["with its length", { method: "PUT", body: BODY, fields: ["Content-Length", "7"] }, { "content-length": "3000001" }],
  [
    "in chunks",
    { method: "POST", body: BODY, fields: ["transfer-encoding", "chunked"] },
    { "transfer-encoding": "chunked" },
  ],
  ["of no bytes", { method: "POST", body: undefined }, { "content-length": "0" }],
  ["that does not exist", { method: "GET", fields: ["Content-Length", "5"] }, { "content-length": undefined }],
];
for (const [name, more, expected] of BODIES) {
  test(`a body ${name} arrives whole, framed by what it is and not by what its fields said`, async () => {
    const { client } = await rig();
    let sent: Buffer | undefined;
    let headers: IncomingMessage["headers"] = {};
    const port = await origin(async (incoming, response) => {
      headers = incoming.headers;
      sent = await bodyOf(incoming);
      response.end();
    });
    answered(await client.send(get(port, more)));
    assert.equal(Buffer.compare(sent ?? Buffer.alloc(1), Buffer.from(more.body ?? [])), 0);
    for (const [field, value] of Object.entries(expected)) assert.equal(headers[field], value, field);
  });
}

test("origins of HTTPS are proven by their certificate", async () => {
  const authority = CertificateAuthority.create();
  const leaf = authority.issueLeaf({ ip: ["127.0.0.1"] });
  const server = createSecureServer({ key: leaf.keyPem, cert: leaf.chainPem }, (_incoming, response) =>
    response.end("secret"),
  );
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  cleanups.push(() => server.close());
  const { port } = server.address() as AddressInfo;
  const trusting = await rig({ upstreamRoots: authority.certificatePem });
  const exchange = answered(await trusting.client.send(get(port, { scheme: "https" })));
  assert.equal(exchange.response.status, 200);
  assert.equal(exchange.request.scheme, "https");
  const doubting = await rig();
  const failure = failed(await doubting.client.send(get(port, { scheme: "https" })), "UPSTREAM_CERTIFICATE");
  assert.equal(failure.exchange?.response, undefined);
});

test("rules answer, refuse and cut requests of our own as they do a client's", async () => {
  const { client } = await rig({
    interceptors: [
      {
        name: "blocklist",
        onRequestHead: ({ request }) => {
          if (request.path === "/mock") {
            return { kind: "respond", response: { status: 418, fields: ["X-Rule", "1"], body: Buffer.from("tea") } };
          }
          return { kind: "abort", reason: "No", closes: request.path === "/cut" };
        },
      },
    ],
  });
  assert.equal(answered(await client.send(get(1, { path: "/mock" }))).response.status, 418);
  failed(await client.send(get(1, { path: "/no" })), "BLOCKED");
  failed(await client.send(get(1, { path: "/cut" })), "BLOCKED");
});

test("answers without an end, with an early end, of HTTP/1.0 and to HEAD are told apart", async () => {
  const { client } = await rig();
  const responses: Record<string, string> = {
    "/short": "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc",
    "/old": "HTTP/1.0 200 OK\r\n\r\nuntil the end",
    "/head": "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n",
    "/none": "HTTP/1.1 204 No Content\r\n\r\n",
    "/hints": "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    "/bad": "no HTTP at all\r\n\r\n",
  };
  const port = await rawOrigin((socket) => {
    socket.on("error", () => undefined);
    socket.once("data", (data) => socket.end(responses[data.toString().split(" ")[1] ?? ""] ?? ""));
  });
  const text = async (path: string, method = "GET"): Promise<{ outcome: SendOutcome; body: string }> => {
    let body = "";
    const outcome = await client.send(get(port, { path, method }), {
      onBody: (piece) => {
        body += Buffer.from(piece).toString();
      },
    });
    return { outcome, body };
  };
  failed((await text("/short")).outcome, "UPSTREAM_CLOSED");
  failed((await text("/bad")).outcome, "UPSTREAM_PROTOCOL");
  assert.equal((await text("/old")).body, "until the end");
  assert.equal(answered((await text("/head", "HEAD")).outcome).responseBytes, 0);
  assert.equal(answered((await text("/none")).outcome).response.status, 204);
  assert.equal((await text("/hints")).body, "ok");
});

test("an origin that refuses connections gives a failure with the exchange that holds it", async () => {
  const { engine, client } = await rig();
  const port = await rawOrigin(() => undefined);
  const closed = createTcpServer();
  closed.listen(0, "127.0.0.1");
  await once(closed, "listening");
  const { port: free } = closed.address() as AddressInfo;
  closed.close();
  await once(closed, "close");
  assert.notEqual(free, port);
  const { exchange } = failed(await client.send(get(free)), "UPSTREAM_REFUSED");
  assert.equal(exchange?.id, (await engine.waitFor(1))[0]?.id);
});

test("an answer that comes before the body was taken is the answer", async () => {
  const { client } = await rig();
  const port = await rawOrigin((socket) => {
    socket.on("error", () => undefined);
    socket.once("data", () => {
      socket.pause();
      socket.end("HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    });
  });
  const exchange = answered(await client.send(get(port, { method: "POST", body: Buffer.alloc(20_000_000) })));
  assert.equal(exchange.response.status, 413);
});

test("a request that is called off ends its exchange and the connection to the origin", async () => {
  const { engine, client } = await rig();
  const ended: Promise<unknown>[] = [];
  const port = await origin((incoming, response) => {
    ended.push(once(incoming.socket, "close"));
    response.writeHead(200).write("begin");
  });
  const calledOff = new AbortController();
  const sending = client.send(get(port), { signal: calledOff.signal, onBody: () => calledOff.abort() });
  failed(await sending, "CLIENT_ABORTED");
  await Promise.all(ended);
  const [exchange] = await engine.waitFor(1);
  assert.equal(exchange?.state.step, "failed");
  const before = AbortSignal.abort();
  failed(await client.send(get(port), { signal: before }), "CLIENT_ABORTED");
});

test("a large answer streams by without being gathered", async () => {
  const { client } = await rig({ policy: { capturesResponseBodies: false } });
  const total = 64 * 1_048_576;
  const port = await origin((_incoming, response) => {
    const piece = Buffer.alloc(1_048_576);
    let left = total;
    const more = (): void => {
      while (left > 0) {
        left -= piece.length;
        if (!response.write(piece)) return void response.once("drain", more);
      }
      response.end();
    };
    more();
  });
  let received = 0;
  let maxBytes = 0;
  const before = process.memoryUsage();
  const exchange = answered(
    await client.send(get(port), {
      onBody: (piece) => {
        received += piece.length;
        maxBytes = Math.max(maxBytes, process.memoryUsage().arrayBuffers - before.arrayBuffers);
      },
    }),
  );
  assert.deepEqual([received, exchange.responseBytes], [total, total]);
  assert.ok(maxBytes < total / 2, `${maxBytes} bytes were held`);
});

test("what cannot be written is refused before anything is sent", async () => {
  const { engine, client } = await rig();
  for (const more of [{ method: "G T" }, { path: "/a b" }, { path: "" }, { fields: ["A", "b\r\nC: d"] }]) {
    assert.throws(() => void client.send(get(1, more)), Http1Error, JSON.stringify(more));
  }
  assert.equal(engine.finished.length, 0);
  // More fields than any message may have: refused by the reader, and recorded, as a client's would be.
  const fields = Array.from({ length: 4002 }, (_, index) => (index % 2 === 0 ? `X-${index}` : "v"));
  const { exchange } = failed(await client.send(get(1, { fields })), "CLIENT_PROTOCOL");
  const [recorded] = await engine.waitFor(1);
  assert.equal(recorded?.id, exchange?.id);
  assert.deepEqual(
    [recorded?.state.step, exchange?.timings.connect, recorded?.response?.status],
    ["failed", null, 431],
  );
});

test("after the end of the service nothing is sent, and what was under way fails", async () => {
  const { client } = await rig();
  const port = await origin(() => client.close());
  failed(await client.send(get(port)), "SHUTDOWN");
  failed(await client.send(get(port)), "SHUTDOWN");
});

test("requests to the same place share a connection while they follow each other, others do not", async () => {
  const { engine, client } = await rig();
  const sockets = new Set<Socket>();
  const port = await origin(async (incoming, response) => {
    sockets.add(incoming.socket);
    await bodyOf(incoming);
    response.end(incoming.url);
  });
  for (const path of ["/1", "/2", "/3"]) {
    answered(await client.send(get(port, { method: "POST", path, body: Buffer.from("x") })));
  }
  assert.equal(sockets.size, 1);
  await Promise.all([1, 2].map(async () => answered(await client.send(get(port, { method: "POST" })))));
  assert.equal(sockets.size, 2);
  answered(await client.send(get(port, { method: "POST", fields: ["Connection", "close"] })));
  const exchanges = await engine.waitFor(6);
  assert.deepEqual(
    exchanges.slice(0, 3).map(({ request }) => request.path),
    ["/1", "/2", "/3"],
  );
  assert.equal(new Set(exchanges.slice(0, 3).map((exchange) => exchange.client)).size, 1);
  client.close();
});

test("a connection whose origin closes meanwhile is not used again", async () => {
  const { client } = await rig();
  let connections = 0;
  const port = await rawOrigin((socket) => {
    connections += 1;
    socket.on("error", () => undefined);
    socket.on("data", () => {
      socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
      socket.end();
    });
  });
  for (let count = 1; count <= 3; count += 1) {
    answered(await client.send(get(port, { method: "GET" })));
    await waitUntil(() => connections === count);
  }
});
