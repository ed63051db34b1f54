import assert from "node:assert/strict";
import type { ServerHttp2Stream } from "node:http2";
import { after, before, test } from "node:test";
import { frameMessage, MessageReader } from "@headworks/grpc-framing";
import type { GrpcSchema } from "@headworks/capture-contract";
import { startHttp2Origin, type Http2Origin } from "@headworks/testkit";
import { CertificateAuthority } from "@headworks/tls-authority";
import { startProxyRig, type ProxyRig } from "../../../test/proxy-rig.ts";

let rig: ProxyRig;
before(async () => {
  rig = await startProxyRig();
});
after(async () => {
  await rig[Symbol.asyncDispose]();
});

/** A field of bytes with a length of up to two octets. */
function field(number: number, value: string | Buffer): Buffer {
  const bytes = Buffer.from(value);
  const length = bytes.length < 128 ? [bytes.length] : [(bytes.length & 0x7f) | 0x80, bytes.length >> 7];
  return Buffer.concat([Buffer.from([number * 8 + 2, ...length]), bytes]);
}

const method = Buffer.concat([field(1, "Get"), field(2, ".t.M"), field(3, ".t.M")]);
const FILES: Readonly<Record<string, Buffer>> = {
  "service.proto": Buffer.concat([
    field(1, "service.proto"),
    field(2, "t"),
    field(3, "types.proto"),
    field(6, Buffer.concat([field(1, "S"), field(2, method)])),
    field(12, "proto3"),
  ]),
  "types.proto": Buffer.concat([field(1, "types.proto"), field(2, "t"), field(4, field(1, "M")), field(12, "proto3")]),
};

/** The reply of a reflection service to one request, which is a field with a text. */
function told(question: Buffer): Buffer {
  const kind = (question[0] ?? 0) >> 3;
  const text = question.subarray(2).toString();
  if (kind === 7) return field(6, field(1, field(1, "t.S")));
  const file = kind === 4 ? FILES["service.proto"] : FILES[text];
  return file === undefined ? field(7, field(2, "not found")) : field(4, field(1, file));
}

type Answering = (stream: ServerHttp2Stream, version: string, questions: readonly Buffer[]) => void;

/** Starts a reflection server with the replies of `answering`. */
async function startServer(answering: Answering, tls?: { cert: string; key: string }): Promise<Http2Origin> {
  return await startHttp2Origin(
    (stream, headers) => {
      const questions: Buffer[] = [];
      const reader = new MessageReader({ maxKeptBytes: 4096, allowsTrailers: false }, ({ bytes }) =>
        questions.push(bytes),
      );
      stream.on("data", (piece: Buffer) => reader.push(piece));
      stream.on("end", () => {
        const version = /^\/grpc\.reflection\.(\w+)\./u.exec(String(headers[":path"]))?.[1] ?? "";
        answering(stream, version, questions);
      });
    },
    tls === undefined ? {} : { tls },
  );
}

/** Ends a call with a status and no messages. */
function refuse(stream: ServerHttp2Stream, code: number, message: string): void {
  const fields = { ":status": 200, "content-type": "application/grpc", "grpc-status": code, "grpc-message": message };
  stream.respond(fields, { endStream: true });
}

function response(stream: ServerHttp2Stream, messages: readonly Buffer[]): void {
  stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
  stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
  stream.end(Buffer.concat(messages.map((message) => frameMessage(message))));
}

const honest: Answering = (stream, version, questions) => {
  if (version === "v1") response(stream, questions.map(told));
  else refuse(stream, 12, "no such service");
};

test("a server is asked for all its files, with those that they import", async () => {
  await using server = await startServer(honest);
  const asked = { url: `http://127.0.0.1:${server.port}`, metadata: { "X-Key": "secret" } };
  const schema = await rig.api<GrpcSchema>("POST", "/grpc/schemas/reflect", asked, 201);
  assert.deepEqual([schema.name, schema.source], [`127.0.0.1:${server.port}`, "reflection"]);
  assert.deepEqual(schema.files, ["service.proto", "types.proto"]);
  assert.deepEqual(
    schema.services[0]?.methods.map(({ path }) => path),
    ["/t.S/Get"],
  );
  assert.ok(server.requests.every((section) => section.includes("x-key")));
});

test("a server that has only the older version is asked by that", async () => {
  await using server = await startServer((stream, version, questions) => {
    if (version === "v1alpha") response(stream, questions.map(told));
    else refuse(stream, 12, "unknown service");
  });
  const schema = await rig.api<GrpcSchema>(
    "POST",
    "/grpc/schemas/reflect",
    { url: `http://127.0.0.1:${server.port}`, name: "Mine" },
    201,
  );
  assert.deepEqual([schema.name, schema.files.length], ["Mine", 2]);
});

const FAILURES: readonly (readonly [what: string, answering: Answering, message: RegExp])[] = [
  ["does not offer it", (stream) => refuse(stream, 12, "unknown"), /UNIMPLEMENTED: unknown/u],
  ["wants credentials", (stream) => refuse(stream, 16, "who%20are%20you"), /UNAUTHENTICATED: who are you/u],
  ["names no services", (stream) => response(stream, [field(6, "")]), /names no services/u],
  ["leaves questions open", (stream) => response(stream, []), /without a response/u],
  ["answers with an error", (stream) => response(stream, [field(7, field(2, "busy"))]), /names no services|busy/u],
  [
    "is no gRPC server",
    (stream) => {
      stream.respond({ ":status": 404, "content-type": "text/html" });
      stream.end("<h1>no</h1>");
    },
    /answered 404 with text\/html/u,
  ],
  ["sends garbage", (stream) => response(stream, [Buffer.from("ffffffff", "hex")]), /names no services/u],
  [
    "gives files that are none",
    (stream, _, questions) =>
      response(
        stream,
        questions.map((one) => ((one[0] ?? 0) >> 3 === 7 ? told(one) : field(4, field(1, "\u0001")))),
      ),
    /without a name/u,
  ],
];
for (const [what, answering, message] of FAILURES) {
  test(`a server that ${what} is reported as such`, async () => {
    await using server = await startServer(answering);
    const asked = { url: `http://127.0.0.1:${server.port}` };
    const { error } = await rig.api<{ error: string }>("POST", "/grpc/schemas/reflect", asked, 503);
    assert.match(error, message);
  });
}

test("a server that does not listen is reported as such without a delay", async () => {
  const server = await startServer(honest);
  await server[Symbol.asyncDispose]();
  const asked = { url: `http://127.0.0.1:${server.port}` };
  const { error } = await rig.api<{ error: string }>("POST", "/grpc/schemas/reflect", asked, 503);
  assert.match(error, /refused/iu);
});

test("a server without HTTP/2 is reported as such", async () => {
  const asked = { url: `http://127.0.0.1:${rig.originPort}` };
  const { error } = await rig.api<{ error: string }>("POST", "/grpc/schemas/reflect", asked, 503);
  assert.doesNotMatch(error, /in time/u);
});

test("an untrusted certificate is refused", async () => {
  const leaf = CertificateAuthority.create({ commonName: "Nobody" }).issueLeaf({ dns: ["localhost"] });
  let asked = 0;
  await using server = await startServer(
    () => {
      asked += 1;
    },
    { cert: leaf.certificatePem, key: leaf.keyPem },
  );
  const body = { url: `https://localhost:${server.port}` };
  const { error } = await rig.api<{ error: string }>("POST", "/grpc/schemas/reflect", body, 503);
  assert.match(error, /certificate|issuer|self/iu);
  assert.equal(asked, 0);
});

for (const url of ["nonsense", "ftp://a", "https://a/path", "https://user@a", "https://a?x=1"]) {
  test(`${url} is no server to ask`, async () => {
    const { error } = await rig.api<{ error: string }>("POST", "/grpc/schemas/reflect", { url }, 400);
    assert.match(error, /^body\/url: /u);
  });
}
