import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import { once } from "node:events";
import { Readable } from "node:stream";
import { after, before, describe, test } from "node:test";
import {
  collect,
  credentials,
  FLAG,
  FRAME,
  frame,
  http2Client,
  rawClient,
  readResponse,
  type RawConnection,
  section,
  startRawHttp2Origin,
  startRawServer,
  temporaryDirectory,
  u32,
  type TemporaryDirectory,
} from "@headworks/testkit";
import type { DocumentInput } from "@headworks/gateway-contract";
import { CertificateAuthority } from "@headworks/tls-authority";
import { Http1Exchange } from "#upstream/http1-pool.ts";
import type { ResponseHandler } from "#upstream/upstream-exchange.ts";
import { startGateway, type TestGateway } from "./gateway-rig.ts";

type UpstreamInput = NonNullable<DocumentInput["upstreams"]>[number];

/** How an endpoint refuses an upload that it does not read. */
interface Refusal {
  readonly name: string;
  readonly upstream: Partial<UpstreamInput>;
  /** What it says on a connection of HTTP/1.1 before it closes. */
  readonly bytes?: string;
  readonly isSecure?: boolean;
  /** Of HTTP/2: whether it closes the connection behind the response. */
  readonly closes?: boolean;
}

const NO_BLAME = {
  breaker: { consecutive_failures: 1, open_ms: 600_000 },
  health: { consecutive_failures: 1, eject_ms: 600_000 },
} as const;
const HEAD = "HTTP/1.1 413 Content Too Large\r\nConnection: close\r\n";
const WITH_LENGTH = `${HEAD}Content-Length: 7\r\n\r\ntoo big`;

const REFUSALS: readonly Refusal[] = [
  { name: "length", upstream: {}, bytes: WITH_LENGTH },
  { name: "chunks", upstream: {}, bytes: `${HEAD}Transfer-Encoding: chunked\r\n\r\n7\r\ntoo big\r\n0\r\n\r\n` },
  { name: "until-close", upstream: {}, bytes: `${HEAD}\r\ntoo big` },
  { name: "tls", upstream: { protocol: "https" }, bytes: WITH_LENGTH, isSecure: true },
  { name: "h2-reset", upstream: { protocol: "h2c" } },
  { name: "h2-close", upstream: { protocol: "h2c" }, closes: true },
];

/** Answers without reading more than the first bytes of the request, and closes, which resets the connection. */
function closeUnread(bytes: string): (socket: Socket) => void {
  return (socket) => {
    socket.on("error", () => undefined);
    socket.once("data", () => {
      socket.pause();
      socket.write(bytes, () => socket.destroy());
    });
  };
}

async function startHttp1(bytes: string, isSecure: boolean, authority: CertificateAuthority): Promise<Server> {
  const server = isSecure
    ? createTlsServer(credentials(authority), closeUnread(bytes))
    : createServer(closeUnread(bytes));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return server;
}

async function startHttp2(closes: boolean): ReturnType<typeof startRawHttp2Origin> {
  return await startRawHttp2Origin((stream, write, connection) => {
    const fields: [string, string][] = [[":status", "413"]];
    write(
      frame(FRAME.headers, FLAG.endHeaders, stream, section(fields)),
      frame(FRAME.data, FLAG.endStream, stream, "too big"),
      closes ? frame(FRAME.goaway, 0, 0, Buffer.concat([u32(stream), u32(0)])) : frame(FRAME.reset, 0, stream, u32(0)),
    );
    if (!closes) return;
    connection.socket.pause();
    connection.socket.write("", () => connection.socket.destroy());
  });
}

describe("a response that comes before its request was read", { concurrency: 4 }, () => {
  let gateway: TestGateway;
  let directory: TemporaryDirectory;
  const ends: (() => Promise<unknown>)[] = [];

  before(async () => {
    directory = await temporaryDirectory();
    const authority = CertificateAuthority.create();
    const caFile = directory.file("ca.pem");
    await writeFile(caFile, authority.certificatePem);
    const upstreams: UpstreamInput[] = [];
    for (const { name, upstream, bytes, isSecure = false, closes = false } of REFUSALS) {
      let port: number;
      if (bytes === undefined) {
        const origin = await startHttp2(closes);
        ends.push(async () => await origin.close().catch(() => undefined));
        port = origin.port;
      } else {
        const server = await startHttp1(bytes, isSecure, authority);
        ends.push(async () => await new Promise((resolve) => server.close(resolve)));
        port = (server.address() as AddressInfo).port;
      }
      upstreams.push({
        name,
        endpoints: [{ address: "127.0.0.1", port }],
        ...NO_BLAME,
        ...upstream,
        ...(isSecure ? { tls: { trusted_ca_file: caFile } } : {}),
      });
    }
    gateway = await startGateway({
      upstreams,
      services: upstreams.map(({ name }) => ({ name, upstream: name })),
      routes: upstreams.map(({ name }) => ({
        name,
        service: name,
        match: { path: { type: "prefix", value: `/${name}` } },
        action: { type: "proxy" },
      })),
    });
  });

  after(async () => {
    await gateway[Symbol.asyncDispose]();
    for (const end of ends) await end();
    await directory.remove();
  });

  async function isBlamed(name: string): Promise<boolean> {
    const metrics = (await gateway.send({ path: "/metrics" })).body.toString();
    const value = (start: string): string | undefined =>
      metrics
        .split("\n")
        .find((line) => line.startsWith(start))
        ?.split(" ")
        .at(-1);
    return value(`breaker_state{upstream="${name}"}`) !== "0" || value(`endpoint_health{upstream="${name}"`) !== "1";
  }

  for (const { name } of REFUSALS) {
    // One after the other: a connection of HTTP/2 that the endpoint closes takes all its streams along.
    describe(name, { concurrency: 1 }, () => {
      for (const sizeBytes of [262_144, 8_388_608]) {
        const body = Buffer.alloc(sizeBytes, "x");

        test(`a POST of ${sizeBytes} bytes gets it over HTTP/1.1`, async () => {
          for (let at = 0; at < 2; at++) {
            await using client = await rawClient(gateway.port());
            const upload = client.write(`POST /${name} HTTP/1.1\r\nHost: a\r\nContent-Length: ${sizeBytes}\r\n\r\n`);
            await Promise.all([upload, client.write(body).catch(() => undefined)]);
            await assertRefused(client, "POST");
          }
          assert.equal(await isBlamed(name), false);
        });

        test(`a PUT in chunks of ${sizeBytes} bytes gets it over HTTP/1.1`, async () => {
          await using client = await rawClient(gateway.port());
          await client.write(`PUT /${name} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n`);
          for (const piece of piecesOf(body)) {
            void client.write(`10000\r\n${piece.toString("latin1")}\r\n`).catch(() => undefined);
          }
          void client.write("0\r\n\r\n").catch(() => undefined);
          await assertRefused(client, "PUT");
          assert.equal(await isBlamed(name), false);
        });

        test(`a POST of ${sizeBytes} bytes gets it over HTTP/2, and the connection serves the next`, async () => {
          await using client = await http2Client(gateway.port());
          for (let at = 0; at < 2; at++) {
            const stream = client.session.request({ ":path": `/${name}`, ":method": "POST" });
            const collected = collect(stream);
            // In pieces, as node's client counts what waits of all streams and refuses more.
            Readable.from(piecesOf(body)).pipe(stream);
            const response = await collected;
            assert.deepEqual([response.status, response.body.toString(), response.code], [413, "too big", 0]);
          }
          assert.equal((await client.fetch({ ":path": "/nowhere" })).status, 404);
          assert.equal(await isBlamed(name), false);
        });
      }
    });
  }
});

function piecesOf(body: Buffer): Buffer[] {
  return Array.from({ length: body.length / 65_536 }, (_, at) => body.subarray(at * 65_536, (at + 1) * 65_536));
}

/** The refusal came whole; the connection ends behind it, or takes another request. */
async function assertRefused(client: RawConnection, method: string): Promise<void> {
  const response = await readResponse(client, method);
  assert.deepEqual([response.status, response.body.toString()], [413, "too big"]);
  if (response.header("connection") === "close") return;
  await client.write("GET /nowhere HTTP/1.1\r\nHost: a\r\n\r\n");
  assert.equal((await readResponse(client)).status, 404);
}

test("what arrived of a response that is held is passed on before the reset behind it is told", async () => {
  await using server = await startRawServer(async (connection) => {
    await connection.readUntil("\r\n\r\n");
    await connection.write(`${HEAD}Content-Length: 14\r\n\r\ntoo big`);
    await connection.readUntil("more");
    await connection.write("too big");
    connection.reset();
  });
  const socket = connect(server.port, "127.0.0.1");
  const told: string[] = [];
  const owner = {
    freed: () => void told.push("freed"),
    stalled: () => undefined,
    wentStale: () => undefined,
    failed: assert.fail,
  };
  const exchange = new Http1Exchange(socket, "a", { ...owner, gone: () => void told.push("gone") });
  socket.on("data", (bytes: Buffer) => exchange.receive(bytes));
  const head = Promise.withResolvers<void>();
  const handler: ResponseHandler = {
    onInformational: () => undefined,
    onResponseHead: ({ status }) => {
      told.push(String(status));
      exchange.hold();
      head.resolve();
    },
    onResponseData: (piece) => void told.push(piece.toString()),
    onResponseTrailers: () => undefined,
    onResponseBatch: () => undefined,
    onResponseEnd: () => void told.push("end"),
    onUpstreamLost: (_failure, _stale, detail) => void told.push(detail),
    onEvicted: () => undefined,
    onUpstreamDrain: () => undefined,
    onSwitched: () => undefined,
  };
  const framing = { kind: "length", lengthBytes: 4 } as const;
  exchange.send({ method: "PUT", target: "/", fields: [], framing, upgrade: undefined, handler });
  exchange.flush();
  await head.promise;
  const closed = new Promise((resolve) => socket.once("close", resolve));
  exchange.sendData(Buffer.from("more"));
  exchange.sendEnd(undefined);
  await closed;
  assert.deepEqual(told, ["413", "gone"]);
  exchange.release();
  assert.deepEqual(told, ["413", "gone", "too bigtoo big", "end"]);
});
