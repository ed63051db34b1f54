import assert from "node:assert/strict";
import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import type { ClientHttp2Session, ClientHttp2Stream, IncomingHttpHeaders } from "node:http2";
import { connect as connectTls } from "node:tls";
import type { TLSSocket } from "node:tls";
import { test } from "node:test";
import {
  FLAG,
  FRAME,
  frame,
  FrameReader,
  PREFACE,
  rawClient,
  section,
  settings,
  startRawServer,
  u32,
  waitUntil,
} from "@headworks/testkit";
import type { RawConnection, ReadFrame } from "@headworks/testkit";
import { startEngine } from "./engine-harness.ts";
import type { Engine, EngineOptions } from "./engine-harness.ts";
import { http2Engine, startVersioned, valuesOf } from "./http2-rig.ts";

const PROTOCOL_ERROR = 1;
const INTERNAL_ERROR = 2;
/** The index of `:status: 400` in HPACK's static table. */
const STATUS_400 = 0x8c;
const CANCEL = 8;
const CONNECT_ERROR = 10;
const ENHANCE_YOUR_CALM = 11;

/** A client that speaks HTTP/2 to the proxy itself, and knows what that allows. */
async function sessionWith(proxy: Engine): Promise<ClientHttp2Session & AsyncDisposable> {
  const session = connectHttp2(`http://127.0.0.1:${proxy.port}`);
  session.on("error", () => undefined);
  await once(session, "remoteSettings");
  return Object.assign(session, {
    [Symbol.asyncDispose]: (): Promise<void> => {
      session.destroy();
      return Promise.resolve();
    },
  });
}

interface Opened {
  readonly status: number;
  readonly tunnel: ClientHttp2Stream;
}

async function connectTo(session: ClientHttp2Session, authority: string, fields: object = {}): Promise<Opened> {
  const tunnel = session.request({ ":method": "CONNECT", ":authority": authority, ...fields }, { endStream: false });
  tunnel.on("error", () => undefined);
  const [headers] = (await once(tunnel, "response")) as [IncomingHttpHeaders];
  return { status: Number(headers[":status"]), tunnel };
}

async function secured(proxy: Engine, tunnel: ClientHttp2Stream, protocol: string): Promise<TLSSocket> {
  const ca = proxy.ca.certificatePem;
  const secure = connectTls({ socket: tunnel, servername: "localhost", ca, ALPNProtocols: [protocol] });
  secure.on("error", () => undefined);
  await once(secure, "secureConnect");
  return secure;
}

async function textOf(stream: NodeJS.ReadableStream): Promise<string> {
  let text = "";
  for await (const piece of stream.setEncoding("latin1")) text += String(piece);
  return text;
}

const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`;

const LARGE = "0123456789abcdef".repeat(131_072);

test("a tunnel on a stream is intercepted: plain, by prior knowledge, and over TLS with either version inside", async () => {
  await using plain = await startVersioned("1.1", ({ path }) => ({ body: `plain ${path}` }), { isPlain: true });
  await using known = await startVersioned("2", ({ path }) => ({ body: `known ${path}` }), { isPlain: true });
  await using secure = await startVersioned("2", ({ path, body }) => ({ body: `secure ${path} ${body}` }));
  await using proxy = await http2Engine();
  await using session = await sessionWith(proxy);

  const first = await connectTo(session, `localhost:${plain.port}`);
  assert.equal(first.status, 200);
  first.tunnel.write(get("/a"));
  assert.match(await textOf(first.tunnel), /^HTTP\/1\.1 200 [^]*plain \/a\r\n/);

  const second = await connectTo(session, `localhost:${known.port}`);
  const inside = connectHttp2("http://localhost", { createConnection: () => second.tunnel });
  inside.on("error", () => undefined);
  assert.equal(await textOf(inside.request({ ":path": "/b" })), "known /b");
  inside.destroy();

  const third = await connectTo(session, `localhost:${secure.port}`);
  const older = await secured(proxy, third.tunnel, "http/1.1");
  older.write(get("/c"));
  assert.match(await textOf(older), /^HTTP\/1\.1 200 [^]*secure \/c \r\n/);

  const fourth = await connectTo(session, `localhost:${secure.port}`);
  const newer = await secured(proxy, fourth.tunnel, "h2");
  const within = connectHttp2("https://localhost", { createConnection: () => newer });
  within.on("error", () => undefined);
  const posted = within.request({ ":path": "/d", ":method": "POST" });
  posted.end(LARGE);
  assert.equal(await textOf(posted), `secure /d ${LARGE}`);
  within.destroy();

  const finished = await proxy.waitFor(4);
  assert.deepEqual(
    finished.map(({ request, client }) => [request.path, request.version, client.tls === undefined]),
    [
      ["/a", "HTTP/1.1", true],
      ["/b", "HTTP/2", true],
      ["/c", "HTTP/1.1", false],
      ["/d", "HTTP/2", false],
    ],
  );
});

test("what is no HTTP is relayed both ways, each side ended by itself, and the entry says HTTP/2", async () => {
  await using origin = await startRawServer(async (connection) => {
    const line = (await connection.readUntil("\n")).toString();
    await connection.write(`you said ${line}`);
    const rest = (await connection.collect()).toString();
    await connection.write(`and ${rest}`);
  });
  await using proxy = await http2Engine({ policy: { interceptsTls: false } });
  await using session = await sessionWith(proxy);
  const { status, tunnel } = await connectTo(session, `localhost:${origin.port}`, {
    "x-a": "1",
    "proxy-authorization": "x",
  });
  assert.equal(status, 200);
  tunnel.write("hello\n");
  assert.equal(String((await once(tunnel, "data"))[0]), "you said hello\n");
  tunnel.end("goodbye");
  assert.equal(await textOf(tunnel), "and goodbye");
  const [exchange] = await proxy.waitFor(1);
  assert.deepEqual([exchange?.state.step, exchange?.request.method], ["completed", "CONNECT"]);
  assert.deepEqual([exchange?.request.version, exchange?.response?.version], ["HTTP/2", "HTTP/2"]);
  assert.deepEqual(valuesOf(exchange?.request.fields ?? [], "x-a"), ["1"]);
  assert.deepEqual(valuesOf(exchange?.request.fields ?? [], "proxy-authorization"), []);
  assert.equal(exchange?.requestBody.sizeBytes, "hello\ngoodbye".length);
  assert.equal(exchange.responseBody.sizeBytes, "you said hello\nand goodbye".length);
});

test("a large transfer through a stream that its client reads slowly holds the origin back, and arrives whole", async () => {
  await using origin = await startRawServer(async (connection) => {
    await connection.readUntil("\n");
    for (let round = 0; round < 8; round += 1) await connection.write(LARGE);
  });
  await using proxy = await http2Engine({ policy: { interceptsTls: false } });
  await using session = await sessionWith(proxy);
  const { tunnel } = await connectTo(session, `localhost:${origin.port}`);
  tunnel.write("go\n");
  let receivedBytes = 0;
  for await (const piece of tunnel) receivedBytes += (piece as Buffer).length;
  assert.equal(receivedBytes, 8 * LARGE.length);
});

interface RefusedCase {
  readonly what: string;
  readonly authority: string | ((proxy: Engine) => string);
  readonly fields?: object;
  readonly options?: EngineOptions;
  readonly status: number;
  readonly entries: number;
}

const REFUSED: readonly RefusedCase[] = [
  { what: "no port", authority: "localhost", status: 400, entries: 1 },
  { what: "port 0", authority: "localhost:0", status: 400, entries: 1 },
  {
    what: "an origin that is not there",
    authority: "no-such-host.invalid:443",
    options: { policy: { interceptsTls: false } },
    status: 502,
    entries: 1,
  },
  {
    what: "this proxy itself",
    authority: ({ port }) => `localhost:${port}`,
    options: { policy: { interceptsTls: false } },
    status: 508,
    entries: 1,
  },
  {
    what: "a way that was gone before",
    authority: "localhost:443",
    fields: { via: "1.1 PSEUDONYM" },
    status: 508,
    entries: 1,
  },
];

for (const { what, authority, fields = {}, options = {}, status, entries } of REFUSED) {
  test(`CONNECT with ${what} is answered ${status}, and its connection goes on`, async () => {
    await using proxy = await http2Engine(options);
    await using session = await sessionWith(proxy);
    const written = JSON.stringify(fields).replace("PSEUDONYM", proxy.services.dialer.viaPseudonym);
    const target = typeof authority === "string" ? authority : authority(proxy);
    const refused = await connectTo(session, target, JSON.parse(written) as object);
    assert.equal(refused.status, status);
    assert.notEqual(await textOf(refused.tunnel), "");
    assert.equal((await proxy.waitFor(entries)).length, entries);
    const next = await connectTo(session, `localhost:1`, {});
    assert.equal(next.status, options.policy?.interceptsTls === false ? 502 : 200);
  });
}

test("a rule that blocks a target is heard by CONNECT on a stream too", async () => {
  await using proxy = await http2Engine({
    policy: { interceptsTls: false },
    rules: {
      onTarget: ({ host }) =>
        host === "shut.test"
          ? { kind: "abort", reason: "blocked", closes: true }
          : { kind: "respond", response: { status: 403, fields: ["X-Why", "rule"], body: Buffer.from("no") } },
    },
  });
  await using session = await sessionWith(proxy);
  const { status, tunnel } = await connectTo(session, "a.test:443");
  assert.deepEqual([status, await textOf(tunnel)], [403, "no"]);
  const shut = session.request({ ":method": "CONNECT", ":authority": "shut.test:443" }, { endStream: false });
  shut.on("error", () => undefined);
  await new Promise((resolve) => shut.once("close", resolve));
  assert.equal(session.destroyed, false);
  await proxy.waitFor(2);
});

/** The frames of a connection until one is as wanted. */
async function framesUntil(client: RawConnection, isWanted: (one: ReadFrame) => boolean): Promise<ReadFrame[]> {
  const reader = new FrameReader();
  const frames: ReadFrame[] = [];
  while (!frames.some(isWanted)) frames.push(...reader.read(await client.readSome()));
  return frames;
}

const connectSection = (authority: string): Buffer =>
  section([
    [":method", "CONNECT"],
    [":authority", authority],
  ]);

test("RFC 9113, 8.5: HEADERS in a tunnel are an error of its stream, and harm no other tunnel", async () => {
  const began = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<void>();
  await using origin = await startRawServer(async (connection) => {
    if ((await connection.readSome()).toString() !== "x") return;
    began.resolve();
    await connection.closed;
    ended.resolve();
  });
  await using proxy = await http2Engine({ policy: { interceptsTls: false } });
  await using client = await rawClient(proxy.port);
  const asked = connectSection(`localhost:${origin.port}`);
  const connects = [1, 3].map((stream) => frame(FRAME.headers, FLAG.endHeaders, stream, asked));
  await client.write(Buffer.concat([PREFACE, settings(), ...connects, frame(FRAME.data, 0, 1, "x")]));
  await began.promise;
  await client.write(frame(FRAME.headers, FLAG.endHeaders | FLAG.endStream, 1, section([["x", "y"]])));
  const frames = await framesUntil(client, ({ type }) => type === FRAME.reset);
  const resets = frames.filter(({ type }) => type === FRAME.reset);
  assert.deepEqual(
    resets.map(({ stream, payload }) => [stream, payload.readUInt32BE(0)]),
    [[1, PROTOCOL_ERROR]],
  );
  await ended.promise;
  await client.write(frame(FRAME.data, FLAG.endStream, 3, "the other"));
  const [, other] = await proxy.waitFor(2);
  assert.deepEqual([other?.state.step, other?.requestBody.sizeBytes], ["completed", "the other".length]);
});

for (const authority of ["localhost", "localhost:"]) {
  test(`RFC 9113, 8.5: CONNECT of ${authority}, without a port, is answered 400 and its stream reset`, async () => {
    await using proxy = await http2Engine();
    await using client = await rawClient(proxy.port);
    const asked = frame(FRAME.headers, FLAG.endHeaders, 1, connectSection(authority));
    await client.write(Buffer.concat([PREFACE, settings(), asked]));
    const frames = await framesUntil(client, ({ type }) => type === FRAME.reset);
    const ofStream = frames.filter(({ stream }) => stream === 1);
    const [head, reset, last] = [ofStream[0], ofStream.at(-1), ofStream.at(-2)];
    assert.deepEqual([head?.type, head?.payload[0]], [FRAME.headers, STATUS_400]);
    assert.deepEqual([last?.type, last?.flags], [FRAME.data, FLAG.endStream]);
    assert.deepEqual([reset?.type, reset?.payload.readUInt32BE(0)], [FRAME.reset, PROTOCOL_ERROR]);
    if (authority === "localhost") assert.equal((await proxy.waitFor(1))[0]?.response?.status, 400);
  });
}

for (const code of [0, INTERNAL_ERROR, CANCEL]) {
  test(`a client's reset with ${code} of a tunnel is a reset at the origin, and harms no other tunnel`, async () => {
    const broken = Promise.withResolvers<string | undefined>();
    const began = Promise.withResolvers<void>();
    await using origin = await startRawServer(async (connection) => {
      if ((await connection.readSome()).toString() !== "x") return;
      began.resolve();
      const error: NodeJS.ErrnoException | undefined = await connection.closed;
      broken.resolve(error?.code);
    });
    await using proxy = await http2Engine({ policy: { interceptsTls: false } });
    // By frames: node ends a stream before it resets it.
    await using client = await rawClient(proxy.port);
    const asked = section([
      [":method", "CONNECT"],
      [":authority", `localhost:${origin.port}`],
    ]);
    const connects = [1, 3].map((stream) => frame(FRAME.headers, FLAG.endHeaders, stream, asked));
    await client.write(Buffer.concat([PREFACE, settings(), ...connects, frame(FRAME.data, 0, 1, "x")]));
    await began.promise;
    await client.write(frame(FRAME.reset, 0, 1, u32(code)));
    assert.equal(await broken.promise, "ECONNRESET");
    const [exchange] = await proxy.waitFor(1);
    assert.ok(exchange?.state.step === "failed");
    assert.equal(exchange.state.failure.code, "CLIENT_ABORTED");
    await client.write(frame(FRAME.data, FLAG.endStream, 3, "the other"));
    const [, other] = await proxy.waitFor(2);
    assert.deepEqual([other?.state.step, other?.requestBody.sizeBytes], ["completed", "the other".length]);
  });

  test(`a client's reset with ${code} of a tunnel that is intercepted ends what is inside, and nothing else`, async () => {
    await using origin = await startVersioned("1.1", () => ({ body: "here" }));
    await using proxy = await http2Engine();
    await using session = await sessionWith(proxy);
    const { tunnel } = await connectTo(session, `localhost:${origin.port}`);
    const secure = await secured(proxy, tunnel, "http/1.1");
    secure.write(get("/").replace("close", "keep-alive"));
    await once(secure, "data");
    tunnel.close(code);
    await waitUntil(() => proxy.services.gauges.upstreamConnections === 0);
    const next = await connectTo(session, `localhost:${origin.port}`);
    assert.equal(next.status, 200);
    secure.destroy();
  });
}

test("an origin's reset is one of the tunnel's stream, which says that the connection broke", async () => {
  await using origin = await startRawServer(async (connection) => {
    await connection.readSome();
    connection.socket.resetAndDestroy();
  });
  await using proxy = await http2Engine({ policy: { interceptsTls: false } });
  await using session = await sessionWith(proxy);
  const { tunnel } = await connectTo(session, `localhost:${origin.port}`);
  tunnel.write("x");
  await new Promise((resolve) => tunnel.once("close", resolve));
  assert.equal(tunnel.rstCode, CONNECT_ERROR);
  const [exchange] = await proxy.waitFor(1);
  assert.ok(exchange?.state.step === "failed");
  assert.equal(exchange.state.failure.code, "UPSTREAM_RESET");
});

test("a client that opens tunnels and leaves them too fast is let go", async () => {
  await using proxy = await http2Engine();
  await using session = await sessionWith(proxy);
  const said = new Promise<number>((resolve) => session.once("goaway", resolve));
  const ended = new Promise((resolve) => session.once("close", resolve));
  while (!session.destroyed) {
    // Fewer than half of what is allowed at a time, so that none is refused for that.
    const tunnels = Array.from({ length: 60 }, () =>
      session
        .request({ ":method": "CONNECT", ":authority": "localhost:1" }, { endStream: false })
        .on("error", () => undefined),
    );
    await Promise.race([new Promise((resolve) => tunnels.at(-1)?.once("response", resolve)), ended]);
    for (const tunnel of tunnels) tunnel.close(CANCEL);
  }
  assert.equal(await said, ENHANCE_YOUR_CALM);
  await waitUntil(() => proxy.services.gauges.activeConnections === 0);
});

test("a stop lets a tunnel on a stream go on for the grace, and then ends it with an entry", async () => {
  const origin = await startRawServer(async (connection) => void (await connection.closed));
  const proxy = await startEngine({ policy: { interceptsTls: false } });
  const session = await sessionWith(proxy);
  const { tunnel } = await connectTo(session, `localhost:${origin.port}`);
  tunnel.write("used\n");
  const ended = new Promise((resolve) => tunnel.once("close", resolve));
  await proxy.stop(50);
  await ended;
  const [exchange] = await proxy.waitFor(1);
  assert.equal(exchange?.state.step, "failed");
  assert.equal(exchange.state.failure.code, "SHUTDOWN");
  assert.equal(proxy.services.gauges.activeTunnels, 0);
  await session[Symbol.asyncDispose]();
  await origin.close();
});
