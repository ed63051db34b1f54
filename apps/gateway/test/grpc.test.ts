import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import {
  collect,
  FLAG,
  FRAME,
  frame,
  http2Client,
  section,
  startHttp2Origin,
  startRawHttp2Origin,
  type StreamHandler,
  u32,
  waitUntil,
} from "@headworks/testkit";
import { serving, startGateway } from "./gateway-rig.ts";

const routes = [
  { name: "api", service: "api", match: { path: { type: "prefix", value: "/" } }, action: { type: "proxy" } },
] as const;

/** One length-prefixed message of gRPC. */
function message(text: string): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(Buffer.byteLength(text), 1);
  return Buffer.concat([head, Buffer.from(text)]);
}

const CALL = {
  ":method": "POST",
  ":path": "/echo.Echo/Call",
  "content-type": "application/grpc",
  te: "trailers",
  "grpc-timeout": "5S",
};

/** Answers each message at once, with a status in the trailers at the end. */
const echoing: StreamHandler = (stream) => {
  stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
  stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0", "grpc-message": "fine" }));
  stream.on("data", (piece: Buffer) => stream.write(piece));
  stream.on("end", () => stream.end());
};

test("gRPC: a unary call passes with its metadata, and its status comes in the trailers", async () => {
  await using origin = await startHttp2Origin(echoing);
  await using gateway = await startGateway({
    ...serving("api", [origin.port], { protocol: "h2c" }),
    routes: [...routes],
  });
  await using client = await http2Client(gateway.port());
  const response = await client.fetch({ ...CALL, "x-trace-bin": "AAECAw==" }, message("hello"));
  assert.deepEqual([response.status, response.code], [200, 0]);
  assert.deepEqual(response.body, message("hello"));
  assert.equal(response.trailers?.["grpc-status"], "0");
  assert.equal(response.trailers?.["grpc-message"], "fine");
  const section = origin.requests[0] ?? [];
  const valueOf = (name: string): string | undefined => section[section.indexOf(name) + 1];
  assert.equal(valueOf("te"), "trailers");
  assert.equal(valueOf("x-trace-bin"), "AAECAw==");
  assert.equal(valueOf(":path"), "/echo.Echo/Call");
  assert.equal(valueOf(":authority"), `127.0.0.1:${origin.port}`);
  assert.equal(section.includes("host"), false);
});

test("gRPC: both sides stream at the same time, message by message", async () => {
  await using origin = await startHttp2Origin(echoing);
  await using gateway = await startGateway({
    ...serving("api", [origin.port], { protocol: "h2c" }),
    routes: [...routes],
  });
  await using client = await http2Client(gateway.port());
  const stream = client.session.request(CALL, { endStream: false });
  let arrived = Buffer.alloc(0);
  stream.on("data", (piece: Buffer) => (arrived = Buffer.concat([arrived, piece])));
  let sent = Buffer.alloc(0);
  for (const text of ["one", "two", "three"]) {
    sent = Buffer.concat([sent, message(text)]);
    stream.write(message(text));
    await waitUntil(() => arrived.equals(sent));
  }
  const response = collect(stream);
  stream.end();
  assert.equal((await response).trailers?.["grpc-status"], "0");
});

test("gRPC: an answer of trailers only keeps its status, also before the request ended", async () => {
  await using origin = await startHttp2Origin((stream) => {
    stream.respond({ ":status": 200, "content-type": "application/grpc", "grpc-status": "5" }, { endStream: true });
  });
  await using gateway = await startGateway({
    ...serving("api", [origin.port], { protocol: "h2c" }),
    routes: [...routes],
  });
  await using client = await http2Client(gateway.port());
  const stream = client.session.request(CALL, { endStream: false });
  stream.write(message("begun"));
  const response = await collect(stream);
  assert.deepEqual([response.status, response.headers["grpc-status"], response.body.length], [200, "5", 0]);
});

test("gRPC: a status with data and trailers before the request ended reaches the client whole", async () => {
  await using origin = await startHttp2Origin((stream) => {
    stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
    stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "8" }));
    stream.end(message("enough"));
  });
  await using gateway = await startGateway({
    ...serving("api", [origin.port], { protocol: "h2c" }),
    routes: [...routes],
  });
  await using client = await http2Client(gateway.port());
  const stream = client.session.request(CALL, { endStream: false });
  stream.write(message("begun"));
  const response = await collect(stream);
  assert.deepEqual([response.status, response.trailers?.["grpc-status"]], [200, "8"]);
  assert.deepEqual(response.body, message("enough"));
});

test("gRPC: a client that cancels a call cancels it at the upstream", async () => {
  const closed = Promise.withResolvers<number>();
  await using origin = await startHttp2Origin((stream) => {
    stream.respond({ ":status": 200 });
    stream.write(message("first"));
    stream.on("close", () => closed.resolve(stream.rstCode ?? -1));
  });
  await using gateway = await startGateway({
    ...serving("api", [origin.port], { protocol: "h2c" }),
    routes: [...routes],
  });
  await using client = await http2Client(gateway.port());
  const stream = client.session.request(CALL, { endStream: false });
  stream.on("error", () => undefined);
  await once(stream, "data");
  stream.close(8);
  assert.equal(await closed.promise, 8);
});

const OK = frame(FRAME.headers, FLAG.endHeaders, 1, section([[":status", "200"]]));
const FIRST = frame(FRAME.data, 0, 1, message("first"));

for (const [what, ...frames] of [
  ["a reset for an internal error", OK, FIRST, frame(FRAME.reset, 0, 1, u32(2))],
  ["a reset without an error", OK, FIRST, frame(FRAME.reset, 0, 1, u32(0))],
  ["a reset for a cancelled call", OK, FIRST, frame(FRAME.reset, 0, 1, u32(8))],
  ["the end of the connection", OK, FIRST],
  ["the end of all connections for a fault", OK, FIRST, frame(FRAME.goaway, 0, 0, Buffer.concat([u32(0), u32(2)]))],
] as const) {
  test(`gRPC: a call that the upstream breaks off by ${what} is reset, never ended`, async () => {
    await using origin = await startRawHttp2Origin((_stream, write, connection) => {
      write(...frames);
      if (frames.length === 2) connection.end();
    });
    await using gateway = await startGateway({
      ...serving("api", [origin.port], { protocol: "h2c" }),
      routes: [...routes],
    });
    await using client = await http2Client(gateway.port());
    const response = await client.fetch(CALL, message("hello"));
    assert.deepEqual([response.status, response.code], [200, 2]);
    await waitUntil(() => gateway.log.some(({ msg }) => msg === "access"));
    assert.equal(gateway.log.find(({ msg }) => msg === "access")?.["complete"], false);
  });
}
