import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { connect } from "node:http2";
import { test } from "node:test";
import type { DocumentInput } from "@headworks/gateway-contract";
import { collect, startHttp2Origin, startOrigin, startRawServer, temporaryDirectory } from "@headworks/testkit";
import { serving, startGateway } from "./gateway-rig.ts";

type Extra = Partial<NonNullable<DocumentInput["upstreams"]>[number]>;

/** More than waits for a client in the gateway, so that the rest is held back on its way from the upstream. */
const RESPONSE = Buffer.alloc(1_048_576 + 393_216, "last bytes");

/** An upstream that answers and closes right behind its answer. */
interface Closing extends AsyncDisposable {
  readonly port: number;
  readonly more?: Extra;
  /** It has closed its connection. */
  readonly isGone: Promise<unknown>;
}

async function overHttp1(head: string): Promise<Closing> {
  const gone = Promise.withResolvers<void>();
  const server = await startRawServer(async (connection) => {
    await connection.readUntil("\r\n\r\n");
    connection.socket.once("close", () => gone.resolve());
    connection.socket.write(head);
    connection.socket.write(RESPONSE);
    connection.socket.destroySoon();
    await connection.closed;
  });
  return Object.assign(server, { isGone: gone.promise });
}

async function overTls(): Promise<Closing> {
  const gone = Promise.withResolvers<void>();
  const directory = await temporaryDirectory();
  const caFile = directory.file("ca.pem");
  const origin = await startOrigin({
    tls: true,
    handler: (_request, response) => {
      response.socket?.once("close", () => gone.resolve());
      response.writeHead(200, { Connection: "close", "Content-Length": RESPONSE.length });
      response.end(RESPONSE, () => response.socket?.destroySoon());
    },
  });
  await writeFile(caFile, origin.caPem ?? "");
  return {
    port: origin.port,
    more: { protocol: "https", tls: { trusted_ca_file: caFile } },
    isGone: gone.promise,
    [Symbol.asyncDispose]: async () => {
      await origin[Symbol.asyncDispose]();
      await directory.remove();
    },
  };
}

async function overHttp2(): Promise<Closing> {
  const gone = Promise.withResolvers<void>();
  const origin = await startHttp2Origin((stream) => {
    stream.respond({ ":status": 200 });
    stream.end(RESPONSE);
    // A session that is destroyed takes along what its socket has not written yet: it is to have sent everything.
    const { session } = stream;
    session?.socket.once("finish", () => gone.resolve());
    stream.once("close", () => session?.close());
  });
  return Object.assign(origin, { more: { protocol: "h2c" } as const, isGone: gone.promise });
}

for (const [how, start] of [
  [
    "HTTP/1.1, with a length",
    async () => await overHttp1(`HTTP/1.1 200 OK\r\nContent-Length: ${RESPONSE.length}\r\n\r\n`),
  ],
  ["HTTP/1.1, until the end", async () => await overHttp1("HTTP/1.1 200 OK\r\n\r\n")],
  ["TLS", overTls],
  ["HTTP/2", overHttp2],
] as const) {
  test(`an answer over ${how} arrives whole at a client that takes it after its upstream has closed`, async () => {
    await using upstream = await start();
    await using gateway = await startGateway({
      ...serving("api", [upstream.port], upstream.more),
      routes: [
        { name: "api", service: "api", match: { path: { type: "prefix", value: "/" } }, action: { type: "proxy" } },
      ],
    });
    const session = connect(`http://127.0.0.1:${gateway.port()}`, { settings: { initialWindowSize: 0 } });
    session.on("error", () => undefined);
    await once(session, "connect");
    const response = collect(session.request({ ":path": "/" }));
    await upstream.isGone;
    // The upstream's system may have all of it before the gateway has read what it wants: some turns later it has.
    for (let turn = 0; turn < 50; turn += 1) {
      await new Promise<void>((resolve) => void session.ping(() => resolve()));
    }
    session.setLocalWindowSize(2 ** 31 - 1);
    session.settings({ initialWindowSize: 2 ** 31 - 1 });
    const { status, code, body } = await response;
    session.destroy();
    assert.deepEqual([status, code, body.length], [200, 0, RESPONSE.length]);
    assert.ok(body.equals(RESPONSE));
  });
}
