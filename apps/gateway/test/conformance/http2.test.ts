import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import {
  FLAG,
  FRAME,
  frame,
  FrameReader,
  GET,
  HPACK_CASES,
  HTTP2_CASES,
  http2CaseTitle,
  type Origin,
  PREFACE,
  rawClient,
  type RawConnection,
  type ReadFrame,
  runHttp2Case,
  section,
  settings,
  startOrigin,
  temporaryDirectory,
  type TemporaryDirectory,
  waitUntil,
} from "@headworks/testkit";
import { CertificateAuthority } from "@headworks/tls-authority";
import { startGateway, type TestGateway } from "../gateway-rig.ts";
import { proxied } from "../route-documents.ts";

let directory: TemporaryDirectory;
let origin: Origin;
let gateway: TestGateway;
before(async () => {
  directory = await temporaryDirectory();
  const leaf = CertificateAuthority.create().issueLeaf({ dns: ["gateway.test"], ip: [] });
  const tls = { cert_file: directory.file("a.pem"), key_file: directory.file("a.key") };
  await writeFile(tls.cert_file, leaf.chainPem);
  await writeFile(tls.key_file, leaf.keyPem);
  origin = await startOrigin({
    handler: (incoming, response) => {
      if (incoming.url !== "/held") incoming.resume().on("end", () => response.end("here"));
    },
  });
  const endpoints = [{ address: "127.0.0.1", port: origin.port }];
  gateway = await startGateway(
    {
      listeners: [
        { name: "public", address: "127.0.0.1", port: 0 },
        { name: "secure", address: "127.0.0.1", port: 0, protocol: "https", tls },
      ],
      upstreams: [
        { name: "api", endpoints },
        { name: "narrow", endpoints, connection_cap: 1, request_buffer_bytes: 0 },
      ],
      services: ["api", "narrow"].map((name) => ({ name, upstream: name })),
      routes: [proxied("api"), { ...proxied("narrow"), match: { path: { type: "exact", value: "/held" } } }],
    },
    {
      environment: {
        GATEWAY_H2_MAX_CONCURRENT_STREAMS: "4",
        GATEWAY_H2_STREAM_WINDOW_KIB: "64",
        GATEWAY_H2_CONNECTION_WINDOW_KIB: "128",
      },
    },
  );
});
after(async () => {
  await gateway[Symbol.asyncDispose]();
  await origin[Symbol.asyncDispose]();
  await directory.remove();
});

type Listener = "public" | "secure";

async function dial(listener: Listener): Promise<RawConnection> {
  const tls = { ALPNProtocols: ["h2"], servername: "gateway.test", rejectUnauthorized: false };
  return await rawClient(gateway.port(listener), listener === "secure" ? { tls } : {});
}

/** A connection that has said its first words. */
async function connectTo(listener: Listener): Promise<RawConnection> {
  const client = await dial(listener);
  client.socket.on("error", () => undefined);
  await client.write(Buffer.concat([PREFACE, settings(), frame(FRAME.settings, FLAG.ack, 0)]));
  return client;
}

/** Answered behind everything that was said before it. */
const FENCE = "the end.";

/** Reads until the fence is answered and every stream of `streams` has ended, or the connection has. */
async function read(client: RawConnection, streams: readonly number[]): Promise<ReadFrame[]> {
  const reader = new FrameReader();
  const frames: ReadFrame[] = [];
  const has = (wanted: (one: ReadFrame) => boolean): boolean => frames.some(wanted);
  for (;;) {
    const isFenced = has(({ type, payload }) => type === FRAME.ping && payload.toString() === FENCE);
    const isFinished = streams.every((number) => has((one) => one.stream === number && endsStream(one)));
    if (isFenced && isFinished) return frames;
    const chunk = await client.readSome(5000).catch((error: unknown) => {
      if (client.ended) return undefined;
      throw new Error(`got only ${JSON.stringify(frames.map(({ type, stream }) => [type, stream]))}`, { cause: error });
    });
    if (chunk === undefined) return frames;
    frames.push(...reader.read(chunk));
  }
}

function endsStream({ type, flags }: ReadFrame): boolean {
  const canEnd = type === FRAME.data || type === FRAME.headers;
  return type === FRAME.reset || (canEnd && (flags & FLAG.endStream) !== 0);
}

for (const listener of ["public", "secure"] as const) {
  for (const each of [...HTTP2_CASES, ...HPACK_CASES]) {
    test(`${http2CaseTitle(each)} (${listener})`, async () => {
      await using client = await dial(listener);
      await runHttp2Case(client, each);
    });
  }

  const held = (number: number): Buffer =>
    frame(
      FRAME.headers,
      FLAG.endHeaders,
      number,
      section(GET.map(([name, value]) => [name, value === "/" ? "/held" : value])),
    );
  const body = (number: number, pieces: number): Buffer[] =>
    Array.from({ length: pieces }, () => frame(FRAME.data, 0, number, Buffer.alloc(16_384)));
  const FLOW_CONTROL_ERROR = 3;
  test(`RFC 9113, 6.9.1: more of an unread body than its window: FLOW_CONTROL_ERROR (${listener})`, async () => {
    await using first = await connectTo(listener);
    // Takes the only connection to its upstream, so that the body behind it waits unread.
    await first.write(held(1));
    await waitUntil(() => origin.requests.some(({ url }) => url === "/held"));
    await using client = await connectTo(listener);
    await client.write(Buffer.concat([held(1), ...body(1, 5), frame(FRAME.ping, 0, 0, FENCE)]));
    const frames = await read(client, []);
    const codes = frames
      .filter(({ type }) => type === FRAME.goaway || type === FRAME.reset)
      .map(({ type, payload }) => payload.readUInt32BE(type === FRAME.goaway ? 4 : 0));
    assert.deepEqual(codes, [FLOW_CONTROL_ERROR]);
  });
}

test("RFC 9113, 3.4: the first frame of the gateway is SETTINGS, also to a client that says nothing yet over TLS", async () => {
  const tls = { ALPNProtocols: ["h2"], servername: "gateway.test", rejectUnauthorized: false };
  await using client = await rawClient(gateway.port("secure"), { tls });
  const [first] = new FrameReader().read(await client.readSome(5000));
  assert.deepEqual([first?.type, first?.flags, first?.stream], [FRAME.settings, 0, 0]);
});

test("RFC 9113, 3.4: another preface over TLS ends the connection", async () => {
  const tls = { ALPNProtocols: ["h2"], servername: "gateway.test", rejectUnauthorized: false };
  await using client = await rawClient(gateway.port("secure"), { tls });
  await client.write("GET / HTTP/1.1\r\nHost: gateway.test\r\n\r\n");
  await read(client, [1]);
  assert.ok(client.ended);
});
