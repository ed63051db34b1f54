import assert from "node:assert/strict";
import type { Http2Session, ServerHttp2Stream } from "node:http2";
import { Readable } from "node:stream";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { collect, startHttp2Origin, waitUntil } from "@headworks/testkit";
import type { Http2Origin } from "@headworks/testkit";
import { clientOf, http2Engine, originTls } from "./http2-rig.ts";

const KIB = 1024;
const STREAMS = 100;
/** What may wait unread of the bodies of a connection; a piece more may arrive before that is noticed. */
const UNREAD_BYTES = 1.25 * 4096 * KIB + 128 * 8 * KIB + 32 * KIB;
/** Of each body may be beside that: what the reader's window takes, and what waits for that window. */
const ON_ITS_WAY_BYTES = (64 + 128 + 32) * KIB;
const MAX_BYTES = UNREAD_BYTES + STREAMS * ON_ITS_WAY_BYTES;
/** Of bodies that are larger than what of them may be on its way. */
const BODY = Buffer.alloc(768 * KIB, 1);

/** An origin that reads what comes for `/good` at once, for all others once it is told to; `/large` is answered at length. */
async function startReader(): Promise<Http2Origin & { readonly begin: () => void }> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const count = async (stream: ServerHttp2Stream): Promise<void> => {
    let sizeBytes = 0;
    for await (const piece of stream) sizeBytes += (piece as Buffer).length;
    stream.respond({ ":status": 200 });
    stream.end(String(sizeBytes));
  };
  const origin = await startHttp2Origin(
    (stream, { ":path": path }) => {
      if (path === "/good") return void count(stream);
      if (path !== "/large") return void promise.then(async () => await count(stream));
      stream.respond({ ":status": 200 });
      Readable.from(pieces()).pipe(stream);
    },
    { tls: originTls, maxConcurrentStreams: 1000 },
  );
  return Object.assign(origin, { begin: resolve });
}

/** Piece by piece, since node counts what is handed over at once against the one who does. */
function* pieces(): Generator<Buffer> {
  for (let at = 0; at < BODY.length; at += 16_384) yield BODY.subarray(at, at + 16_384);
}

/** What one side could send until nothing moved any more. */
async function sentUntilStandstill(session: Http2Session | undefined): Promise<number> {
  let before = -1;
  await waitUntil(async () => {
    const sentBytes = session?.socket.bytesWritten ?? 0;
    const isStill = before === sentBytes;
    before = sentBytes;
    await sleep(300);
    return isStill;
  });
  return before;
}

test("HTTP/2: bodies that an origin does not read take the window of their connection, others pass, and all arrive in the end", async () => {
  await using origin = await startReader();
  await using proxy = await http2Engine();
  await using client = await clientOf("2", proxy, origin.port);
  const { session } = client;
  assert.ok(session !== undefined);
  const post = (path: string) => {
    const stream = session.request({ ":method": "POST", ":path": path });
    stream.on("error", () => undefined);
    Readable.from(pieces()).pipe(stream);
    return stream;
  };
  const responses = Promise.all(Array.from({ length: STREAMS }, async () => await collect(post("/later"))));
  const sentBytes = await sentUntilStandstill(session);
  assert.ok(sentBytes <= MAX_BYTES, `${sentBytes} bytes, at most ${MAX_BYTES}`);
  assert.equal((await client.fetch({ path: "/good" })).status, 200, "a request without a body");
  const beside = await collect(post("/good"));
  assert.equal(beside.body.toString(), String(BODY.length), "a body beside them");
  origin.begin();
  const sizes = (await responses).map(({ status, body }) => `${status} ${body.toString()}`);
  assert.deepEqual(new Set(sizes), new Set([`200 ${BODY.length}`]));
});

test("HTTP/2: answers that a client does not read take the window of their connection, others pass, and all arrive in the end", async () => {
  await using origin = await startReader();
  await using proxy = await http2Engine();
  await using client = await clientOf("2", proxy, origin.port);
  const { session } = client;
  assert.ok(session !== undefined);
  const streams = Array.from({ length: STREAMS }, () => session.request({ ":path": "/large" }));
  for (const stream of streams) stream.pause();
  await waitUntil(() => origin.requests.length === STREAMS);
  const sentBytes = await sentUntilStandstill(origin.sessions[0]);
  assert.ok(sentBytes <= MAX_BYTES, `${sentBytes} bytes, at most ${MAX_BYTES}`);
  assert.equal((await client.fetch({ path: "/good" })).body, "0", "a short answer");
  const beside = await client.fetch({ path: "/large" });
  assert.equal(beside.body.length, BODY.length, "a long answer beside them");
  const bodies = await Promise.all(
    streams.map(async (stream) => {
      const whole = collect(stream);
      stream.resume();
      return (await whole).body.length;
    }),
  );
  assert.deepEqual(new Set(bodies), new Set([BODY.length]));
});
