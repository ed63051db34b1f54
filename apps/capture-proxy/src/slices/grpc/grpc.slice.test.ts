import assert from "node:assert/strict";
import { request } from "node:http";
import { after, before, beforeEach, test } from "node:test";
import { gzipSync } from "node:zlib";
import { frameMessage } from "@headworks/grpc-framing";
import type { GrpcConnection, GrpcFrame, GrpcSchema, GrpcStats, GrpcStream } from "@headworks/capture-contract";
import { waitUntil } from "@headworks/testkit";
import { startProxyRig, type ProxyRig, type Respond } from "../../../test/proxy-rig.ts";

let rig: ProxyRig;
before(async () => {
  rig = await startProxyRig({ "max-body-size": "100000" });
});
after(async () => {
  await rig[Symbol.asyncDispose]();
});
beforeEach(async () => {
  await rig.api("POST", "/traffic/clear", undefined, 204);
  for (const { id } of await rig.api<GrpcSchema[]>("GET", "/grpc/schemas")) {
    await rig.api("DELETE", `/grpc/schemas/${id}`, undefined, 204);
  }
});

const WEB = "application/grpc-web+proto";
/** `{ 1: 150, 2: "testing" }` */
const MESSAGE = Buffer.from("089601120774657374696e67", "hex");
const TRAILERS = frameMessage(Buffer.from("grpc-status:0\r\ngrpc-message:\r\n"), 0x80);
const PROTO = `syntax = "proto3"; package shop.v1;
  message Ask { int32 id = 1; string text = 2; } message Told { int64 big = 1; string name = 2; }
  service Orders { rpc Get(Ask) returns (Told); rpc Watch(Ask) returns (stream Told); }`;

/** Responds to a gRPC-Web call with these bytes. */
function response(body: Buffer | string, headers: Readonly<Record<string, string>> = {}): Respond {
  return (_, response) => void response.writeHead(200, { "content-type": WEB, ...headers }).end(body);
}

async function call(
  body: Buffer | string,
  headers: Readonly<Record<string, string>> = {},
  path = "/shop.v1.Orders/Get",
) {
  return await rig.send({ method: "POST", path, headers: { "content-type": WEB, ...headers }, body });
}

const theCall = async (
  isReady: (one: GrpcStream) => boolean = ({ state }) => state === "closed",
): Promise<GrpcStream> =>
  await waitUntil(async () => {
    const [found] = await rig.api<GrpcStream[]>("GET", "/grpc/streams");
    return found !== undefined && isReady(found) ? found : undefined;
  });

const framesOf = async (query: string): Promise<GrpcFrame[]> =>
  await rig.api<GrpcFrame[]>("GET", `/grpc/frames?${query}`);

test("a call of gRPC-Web has its messages, metadata, trailers and status", async () => {
  rig.respond = response(Buffer.concat([frameMessage(MESSAGE), TRAILERS]), { "x-from": "origin" });
  const got = await call(frameMessage(MESSAGE), { "x-user-id": "7", "grpc-timeout": "1500m" });
  assert.deepEqual(got.body, Buffer.concat([frameMessage(MESSAGE), TRAILERS]));
  const found = await theCall();
  assert.deepEqual(
    [found.service, found.method, found.path, found.protocol, found.message_type, found.compression],
    ["shop.v1.Orders", "Get", "/shop.v1.Orders/Get", "grpc-web", "unary", "none"],
  );
  assert.deepEqual([found.status_code, found.status_name, found.deadline_ms, found.issues], [0, "OK", 1500, []]);
  assert.deepEqual([found.frames_sent, found.frames_received, found.bytes_sent], [1, 1, MESSAGE.length]);
  assert.equal(found.request_metadata["x-user-id"], "7");
  assert.equal(found.response_metadata["x-from"], "origin");
  assert.deepEqual(found.response_trailers, { "grpc-status": "0", "grpc-message": "" });
  const frames = await framesOf(`stream_id=${found.id}&order=asc`);
  assert.deepEqual(
    frames.map(({ direction, is_trailer: isTrailer, size, compressed }) => [direction, isTrailer, size, compressed]),
    [
      ["request", false, MESSAGE.length, false],
      ["response", false, MESSAGE.length, false],
      ["response", true, 30, false],
    ],
  );
  assert.deepEqual(frames[0]?.decoded, {
    message_type: null,
    fields: [
      { number: 1, wire_type: 0, name: null, value: { type: "varint", value: "150" } },
      { number: 2, wire_type: 2, name: null, value: { type: "string", value: "testing" } },
    ],
    json: null,
    unknown_fields: [],
    issues: [],
  });
  assert.deepEqual(frames[2]?.trailers, { "grpc-status": "0", "grpc-message": "" });
  assert.deepEqual(await rig.api("GET", `/grpc/streams/${found.id}`), found);
  for (const q of ["grpc.service:orders grpc.method:Get", "grpc.status:OK dir:in", "grpc.status:<1"]) {
    const entries = await rig.api<{ id: string }[]>("GET", `/traffic?q=${encodeURIComponent(q)}`);
    assert.deepEqual(
      entries.map(({ id }) => id),
      [found.id],
      q,
    );
  }
  assert.deepEqual(await rig.api("GET", "/traffic?q=grpc.status:!=0"), []);
});

test("a schema that comes later decodes what was recorded before, and one that goes takes its names along", async () => {
  rig.respond = response(Buffer.concat([frameMessage(MESSAGE), TRAILERS]));
  await call(frameMessage(MESSAGE));
  const { id, schema_id: none } = await theCall();
  assert.equal(none, null);
  const added = await rig.api<GrpcSchema>("POST", "/grpc/schemas", { files: [{ name: "o.proto", text: PROTO }] }, 201);
  const [first, second] = await framesOf(`stream_id=${id}&order=asc`);
  assert.deepEqual([first?.decoded?.message_type, first?.decoded?.json], ["shop.v1.Ask", { id: 150, text: "testing" }]);
  assert.deepEqual(second?.decoded?.json, { big: "150", name: "testing" });
  assert.deepEqual(
    first?.decoded?.fields.map(({ name }) => name),
    ["id", "text"],
  );
  const known = await theCall();
  assert.deepEqual(
    [known.schema_id, known.request_type, known.response_type],
    [added.id, "shop.v1.Ask", "shop.v1.Told"],
  );
  await rig.api("DELETE", `/grpc/schemas/${added.id}`, undefined, 204);
  assert.equal((await framesOf(`stream_id=${id}`))[2]?.decoded?.json, null);
});

test("the kind of a call comes from the schema, or from what was seen", async () => {
  rig.respond = response(Buffer.concat([frameMessage(MESSAGE), frameMessage(MESSAGE), TRAILERS]));
  await call(frameMessage(MESSAGE));
  assert.equal((await theCall()).message_type, "serverstream");
  await rig.api("POST", "/traffic/clear", undefined, 204);
  rig.respond = response(TRAILERS);
  await call(frameMessage(MESSAGE), {}, "/shop.v1.Orders/Watch");
  assert.equal((await theCall()).message_type, "unary");
  await rig.api("POST", "/grpc/schemas", { files: [{ name: "o.proto", text: PROTO }] }, 201);
  assert.equal((await theCall()).message_type, "serverstream");
});

test("compressed messages are stored and decoded without compression, small and large ones in their order", async () => {
  const large = Buffer.concat([Buffer.from([0x12, 0xf0, 0xa2, 0x04]), Buffer.alloc(70_000, "a")]);
  const body = [frameMessage(gzipSync(large), 1), frameMessage(MESSAGE), frameMessage(gzipSync(MESSAGE), 1), TRAILERS];
  rig.respond = response(Buffer.concat(body), { "grpc-encoding": "gzip" });
  await call(frameMessage(gzipSync(MESSAGE), 1), { "grpc-encoding": "gzip" });
  const found = await theCall();
  assert.equal(found.compression, "gzip");
  const frames = await framesOf(`stream_id=${found.id}&order=asc`);
  assert.deepEqual(
    frames.map(({ size, compressed, truncated, issues }) => [size, compressed, truncated, issues.length]),
    [
      [MESSAGE.length, true, false, 0],
      [large.length, true, true, 0],
      [MESSAGE.length, false, false, 0],
      [MESSAGE.length, true, false, 0],
      [30, false, false, 0],
    ],
  );
  assert.equal(frames[3]?.data, MESSAGE.toString("base64"));
});

test("the text form of gRPC-Web is read through its base64", async () => {
  const pieces = [frameMessage(MESSAGE), TRAILERS].map((piece) => piece.toString("base64"));
  rig.respond = response(pieces.join(""), { "content-type": "application/grpc-web-text" });
  await call(frameMessage(MESSAGE).toString("base64"), { "content-type": "application/grpc-web-text+proto" });
  const found = await theCall();
  assert.deepEqual(
    [found.protocol, found.status_code, found.frames_sent, found.frames_received],
    ["grpc-web-text", 0, 1, 1],
  );
});

test("a body that HTTP has coded as a whole is read too", async () => {
  rig.respond = response(gzipSync(Buffer.concat([frameMessage(MESSAGE), TRAILERS])), { "content-encoding": "gzip" });
  await call(frameMessage(MESSAGE));
  const found = await theCall();
  assert.deepEqual([found.status_code, found.frames_received, found.issues], [0, 1, []]);
});

const ENDS: readonly (readonly [what: string, respond: Respond, expected: Partial<GrpcStream>])[] = [
  [
    "only trailers, with percent encoding and details",
    response("", {
      "grpc-status": "5",
      "grpc-message": "no%20order f%C3%BCr 7",
      // google.rpc.Status with an ErrorInfo
      "grpc-status-details-bin": "CAUSBG5vcGUaMgoodHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBjLkVycm9ySW5mbxIGCgRHT05F",
    }),
    {
      status_code: 5,
      status_name: "NOT_FOUND",
      status_message: "no order für 7",
      status_details: [{ "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason: "GONE" }],
    },
  ],
  [
    "a page instead of a call",
    (_, response) => void response.writeHead(503, { "content-type": "text/html" }).end("<h1>busy</h1>"),
    { status_code: 14, status_name: "UNAVAILABLE", issues: ["response: HTTP 503 with text/html is no gRPC"] },
  ],
  [
    "a page that went well",
    (_, response) => void response.writeHead(200, { "content-type": "text/html; charset=utf-8" }).end("<h1>hi</h1>"),
    { status_code: 2, status_name: "UNKNOWN", failure: null, issues: ["response: HTTP 200 with text/html is no gRPC"] },
  ],
  [
    "no media type",
    (_, response) => void response.writeHead(200).end(),
    { status_code: 2, issues: ["response: HTTP 200 with no media type is no gRPC"] },
  ],
  [
    "no status at all",
    response(frameMessage(MESSAGE)),
    { status_code: null, failure: null, issues: ["response: ended without trailers, so without a status"] },
  ],
  [
    "a message that is cut",
    response(frameMessage(MESSAGE).subarray(0, 9)),
    { status_code: null, issues: ["response: ended after 4 bytes of a message of 12 bytes"] },
  ],
  [
    "something else behind a message",
    response(Buffer.concat([frameMessage(MESSAGE), Buffer.from("oops!")])),
    { issues: ["response: 0x6f at byte 17 is no flag of a gRPC message"] },
  ],
];
for (const [what, respond, expected] of ENDS) {
  test(`a response with ${what} is reported as such`, async () => {
    rig.respond = respond;
    await call(frameMessage(MESSAGE));
    const found = await theCall();
    assert.deepEqual(
      Object.fromEntries(Object.keys(expected).map((key) => [key, found[key as keyof GrpcStream]])),
      expected,
    );
  });
}

test("damaged and unknown compression is named at its message", async () => {
  rig.respond = response(Buffer.concat([frameMessage(Buffer.from("no gzip"), 1), TRAILERS]), {
    "grpc-encoding": "gzip",
  });
  await call(frameMessage(Buffer.from("unknown"), 1), { "grpc-encoding": "zstd" });
  const { id, compression } = await theCall();
  assert.equal(compression, "zstd");
  const frames = await framesOf(`stream_id=${id}&order=asc`);
  assert.deepEqual(
    frames.map(({ issues, decoded }) => [issues.length, decoded]),
    [
      [1, null],
      [1, null],
      [0, null],
    ],
  );
});

test("a message in snappy is decompressed", async () => {
  // A Snappy block: its length and one literal.
  const packed = Buffer.concat([Buffer.from([MESSAGE.length, (MESSAGE.length - 1) << 2]), MESSAGE]);
  rig.respond = response(TRAILERS);
  await call(frameMessage(packed, 1), { "grpc-encoding": "snappy" });
  const { id, compression } = await theCall();
  const [frame] = await framesOf(`stream_id=${id}&order=asc`);
  assert.equal(compression, "snappy");
  assert.deepEqual(
    [frame?.compressed, frame?.size, frame?.wire_size, frame?.data, frame?.issues],
    [true, MESSAGE.length, packed.length + 5, MESSAGE.toString("base64"), []],
  );
});

test("a message that grows beyond what is kept gives its beginning", async () => {
  rig.respond = response(Buffer.concat([frameMessage(gzipSync(Buffer.alloc(5_000_000)), 1), TRAILERS]), {
    "grpc-encoding": "gzip",
  });
  await call(frameMessage(MESSAGE));
  const { id } = await theCall();
  const [, frame] = await framesOf(`stream_id=${id}&order=asc`);
  assert.deepEqual([frame?.stored_size, frame?.issues], [100_000, ["is larger than what is kept of a message"]]);
});

test("a call is listed with its first message before its response, and a client that disconnects is named", async () => {
  const asked = Promise.withResolvers<undefined>();
  rig.respond = () => asked.resolve(undefined);
  const { hostname, port } = new URL(rig.proxy.addresses.proxy);
  const outgoing = request({
    host: hostname,
    port,
    method: "POST",
    path: `http://127.0.0.1:${rig.originPort}/shop.v1.Orders/Watch`,
    headers: { host: `127.0.0.1:${rig.originPort}`, "content-type": WEB },
    agent: false,
  });
  outgoing.on("error", () => undefined);
  outgoing.write(frameMessage(MESSAGE));
  const open = await theCall(({ frames_sent: sent }) => sent === 1);
  assert.deepEqual([open.state, open.status_code, open.closed_at], ["open", null, null]);
  const [connection] = await rig.api<GrpcConnection[]>("GET", "/grpc/connections");
  assert.deepEqual([connection?.id, connection?.state, connection?.active_streams], [open.connection_id, "active", 1]);
  outgoing.end();
  await asked.promise;
  await theCall(({ state }) => state === "halfclosedlocal");
  outgoing.socket?.resetAndDestroy();
  const closed = await theCall();
  assert.equal(closed.status_code, null);
  assert.match(closed.failure ?? "", /client/iu);
});

test("frames and calls go by service, method, path, direction, status, connection and text", async () => {
  rig.respond = response(Buffer.concat([frameMessage(MESSAGE), TRAILERS]));
  await call(frameMessage(Buffer.from("0a056170706c65", "hex")));
  await theCall();
  rig.respond = response("", { "grpc-status": "7" });
  await call(frameMessage(Buffer.from("0a0470656172", "hex")), {}, "/prefix/shop.v1.Basket/Put?x=1");
  const [put] = await waitUntil(async () => {
    const found = await rig.api<GrpcStream[]>("GET", "/grpc/streams?service=Basket&status_code=PERMISSION_DENIED");
    return found.length === 1 ? found : undefined;
  });
  const counts: readonly (readonly [query: string, count: number])[] = [
    ["", 4],
    ["service=Orders", 3],
    ["service=shop.v1.Basket", 1],
    ["method=Put", 1],
    ["method=put", 0],
    ["path=/SHOP.v1.b", 1],
    ["direction=request", 2],
    ["direction=response", 2],
    ["status_code=7", 1],
    ["status_code=OK", 3],
    [`connection_id=${put?.connection_id ?? ""}`, 1],
    [`stream_id=${put?.id ?? ""}`, 1],
    ["search=APPLE", 1],
    ["search=nothing", 0],
    ["limit=2", 2],
    ["limit=10&offset=3", 1],
  ];
  for (const [query, count] of counts) assert.equal((await framesOf(query)).length, count, query);
  await rig.api("GET", "/grpc/frames?status_code=nonsense", undefined, 400);
  await rig.api("GET", "/grpc/frames?color=red", undefined, 400);
  const stats = await rig.api<GrpcStats>("GET", "/grpc/stats");
  assert.deepEqual(stats, {
    connections: 2,
    active_streams: 0,
    total_streams: 2,
    total_frames: 4,
    total_bytes: 7 + 12 + 30 + 6,
    frames_not_stored: 0,
    by_status: { 0: 1, 7: 1 },
    by_method: { "/shop.v1.Orders/Get": 1, "/shop.v1.Basket/Put": 1 },
  });
  await rig.api("POST", "/grpc/clear", undefined, 204);
  await waitUntil(async () => (await framesOf("")).length === 0);
  assert.equal((await rig.api<GrpcStream[]>("GET", "/grpc/streams")).length, 0);
  assert.equal((await rig.api<{ rows: unknown[] }>("GET", "/traffic/rows")).rows.length, 2);
});

test("what is no gRPC is not followed, and hostile names do no harm", async () => {
  rig.respond = (_, response) => void response.end("ok");
  await rig.send({ method: "POST", path: "/a.B/C", headers: { "content-type": "application/grpcx" }, body: "x" });
  await call("", {}, "/__proto__/constructor");
  const found = await theCall();
  assert.deepEqual([found.service, found.method], ["__proto__", "constructor"]);
  assert.equal((await rig.api<GrpcStream[]>("GET", "/grpc/streams")).length, 1);
  assert.equal((await rig.api<GrpcStats>("GET", "/grpc/stats")).by_method["/__proto__/constructor"], 1);
});
