import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, test } from "node:test";
import {
  collect,
  http2Client,
  settings,
  startHttp2Origin,
  startOrigin,
  startRawHttp2Origin,
  waitUntil,
  type Http2Client,
} from "@headworks/testkit";
import type { DocumentInput } from "@headworks/gateway-contract";
import { serving, startGateway, type TestGateway } from "./gateway-rig.ts";

type UpstreamInput = Partial<NonNullable<DocumentInput["upstreams"]>[number]>;

const KIB = 1024;
/** What of each body may be on its way to the upstream, its beginning included that is read before, beside what waits unread. */
const ON_ITS_WAY_BYTES = 144 * KIB;
/** Frames around the bodies. */
const HEADS_BYTES = 64 * KIB;

/** What may wait unread of so many bodies of a connection: the first window of each, and what all of them share. */
function maxUnreadBytes(bodies: number, windowKib: number): number {
  return (bodies * 64 + windowKib) * KIB;
}

/** Two upstreams: `/stuck` and `/good`. */
async function gatewayFor(
  stuck: { readonly port: number; readonly more?: UpstreamInput },
  good: { readonly port: number },
  environment: Readonly<Record<string, string>> = {},
): Promise<TestGateway> {
  const first = serving("stuck", [stuck.port], { max_pending: 1000, ...stuck.more });
  const second = serving("good", [good.port]);
  const route = (name: string) =>
    ({
      name,
      service: name,
      match: { path: { type: "prefix", value: `/${name}` } },
      action: { type: "proxy" },
    }) as const;
  return await startGateway(
    {
      upstreams: [...first.upstreams, ...second.upstreams],
      services: [...first.services, ...second.services],
      routes: [route("stuck"), route("good")],
    },
    { environment },
  );
}

/** Piece by piece, since a client of node's counts what it hands over at once against itself. */
function post(client: Http2Client, path: string, body: Buffer) {
  const stream = client.session.request({ ":method": "POST", ":path": path });
  stream.on("error", () => undefined);
  Readable.from(pieces(body)).pipe(stream);
  return stream;
}

function* pieces(body: Buffer): Generator<Buffer> {
  for (let at = 0; at < body.length; at += 16_384) yield body.subarray(at, at + 16_384);
}

/** What the client could send until nothing moved any more. */
async function sentUntilStandstill({ session }: Http2Client): Promise<number> {
  let before = -1;
  await waitUntil(async () => {
    const isStill = before === session.socket.bytesWritten;
    before = session.socket.bytesWritten;
    await sleep(200);
    return isStill;
  });
  return before;
}

describe("bodies that are not read", { concurrency: 12 }, () => {
  test("HTTP/2: a hundred bodies that an upstream never reads take no more than their windows, and others are served", async () => {
    await using stuck = await startRawHttp2Origin(() => undefined, settings([4, 0], [3, 1000]));
    await using good = await startOrigin();
    await using gateway = await gatewayFor({ port: stuck.port, more: { protocol: "h2c" } }, good);
    await using client = await http2Client(gateway.port());
    const body = Buffer.alloc(1024 * KIB);
    for (let at = 0; at < 100; at += 1) post(client, "/stuck", body);
    const sentBytes = await sentUntilStandstill(client);
    const maxBytes = maxUnreadBytes(100, 4096) + 100 * ON_ITS_WAY_BYTES + HEADS_BYTES;
    assert.ok(sentBytes <= maxBytes, `${sentBytes} bytes, at most ${maxBytes}`);
    assert.equal(
      (await client.fetch({ ":path": "/good" })).status,
      200,
      "its other requests without a body are answered",
    );
    await using other = await http2Client(gateway.port());
    assert.equal((await other.fetch({ ":path": "/good", ":method": "POST" }, body)).status, 200);
    assert.equal((await gateway.send({ path: "/good", method: "POST", body: "x".repeat(100_000) })).status, 200);
  });

  for (const [windowKib, bodyKib] of [
    [4096, 256],
    [64, 128],
  ] as const) {
    test(`HTTP/2: bodies that waited in a window of ${windowKib} KiB arrive whole when the upstream reads at last`, async () => {
      const open = Promise.withResolvers<void>();
      const sizes: number[] = [];
      await using slow = await startOrigin({
        handler: (request, response) => {
          void open.promise.then(async () => {
            let sizeBytes = 0;
            for await (const piece of request) sizeBytes += (piece as Buffer).length;
            sizes.push(sizeBytes);
            response.end();
          });
        },
      });
      // One after the other, so that the bodies behind the first wait in the gateway and nowhere else.
      const more = { connection_cap: 1, stalled_connection_cap: 0, request_buffer_bytes: 0 };
      await using gateway = await gatewayFor({ port: slow.port, more }, slow, {
        GATEWAY_H2_CONNECTION_WINDOW_KIB: String(windowKib),
      });
      await using client = await http2Client(gateway.port());
      const body = Buffer.alloc(bodyKib * KIB, 1);
      const responses = Promise.all(
        Array.from({ length: 100 }, async () => await collect(post(client, "/stuck", body))),
      );
      const sentBytes = await sentUntilStandstill(client);
      const maxBytes = maxUnreadBytes(100, windowKib) + bodyKib * KIB + ON_ITS_WAY_BYTES + HEADS_BYTES;
      assert.ok(sentBytes <= maxBytes, `${sentBytes} bytes, at most ${maxBytes}`);
      open.resolve();
      assert.deepEqual(new Set((await responses).map(({ status }) => status)), new Set([200]));
      assert.deepEqual(new Set(sizes), new Set([body.length]));
      assert.equal(sizes.length, 100);
    });
  }

  test("HTTP/2: unread bodies do not block another body of their connection", async () => {
    await using stuck = await startRawHttp2Origin(() => undefined, settings([4, 0], [3, 1000]));
    await using good = await startOrigin();
    await using gateway = await gatewayFor({ port: stuck.port, more: { protocol: "h2c" } }, good);
    await using client = await http2Client(gateway.port());
    for (let at = 0; at < 20; at += 1) post(client, "/stuck", Buffer.alloc(1024 * KIB));
    await sentUntilStandstill(client);
    const response = await collect(post(client, "/good", Buffer.alloc(3000 * KIB)));
    assert.deepEqual([response.status, response.code], [200, 0]);
    const { body } = JSON.parse(response.body.toString()) as { body: string };
    assert.equal(Buffer.from(body, "base64").length, 3000 * KIB);
  });

  test("HTTP/2: bodies that an upstream reads a part of, and then no more, do not keep others from theirs", async () => {
    await using stuck = await startHttp2Origin(() => undefined, { maxConcurrentStreams: 1000 });
    await using good = await startOrigin();
    await using gateway = await gatewayFor({ port: stuck.port, more: { protocol: "h2c" } }, good);
    await using client = await http2Client(gateway.port());
    for (let at = 0; at < 120; at += 1) post(client, "/stuck", Buffer.alloc(768 * KIB));
    await sentUntilStandstill(client);
    const response = await collect(post(client, "/good", Buffer.alloc(768 * KIB)));
    assert.deepEqual([response.status, response.code], [200, 0]);
  });
});
