import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import {
  FLAG,
  FRAME,
  frame,
  FrameReader,
  GET,
  HPACK_CASES,
  HTTP2_CASES,
  PREFACE,
  RawConnection,
  section,
  settings,
} from "@headworks/testkit";
import type { Http2Outcome, ReadFrame } from "@headworks/testkit";
import { MOST_STREAMS } from "#connection/http2-limits.ts";
import type { Engine } from "./engine-harness.ts";
import { http2Engine, secureTunnelTo, startVersioned, tunnelTo } from "./http2-rig.ts";
import type { VersionedOrigin } from "./http2-rig.ts";

let secure: VersionedOrigin;
let plain: VersionedOrigin;
let proxy: Engine & AsyncDisposable;
before(async () => {
  secure = await startVersioned("2", () => ({ body: "here" }));
  plain = await startVersioned("2", () => ({ body: "here" }), { isPlain: true });
  proxy = await http2Engine();
});
after(async () => {
  await proxy[Symbol.asyncDispose]();
  await secure[Symbol.asyncDispose]();
  await plain[Symbol.asyncDispose]();
});

type Way = "by prior knowledge" | "over TLS";

/** A connection inside a tunnel that has said its first words. */
async function connectTo(way: Way): Promise<RawConnection> {
  const socket =
    way === "over TLS"
      ? await secureTunnelTo(proxy, secure.port, ["h2"])
      : await tunnelTo(proxy, `localhost:${plain.port}`);
  const client = new RawConnection(socket);
  client.socket.on("error", () => undefined);
  await client.write(Buffer.concat([PREFACE, settings(), frame(FRAME.settings, FLAG.ack, 0)]));
  return client;
}

const REFUSED_STREAM = 7;

/** Answered behind everything that was said before it. */
const FENCE = "the end.";

/** Reads until the fence is answered and every stream of `streams` has ended, or the connection has. */
async function read(client: RawConnection, streams: readonly number[]): Promise<ReadFrame[]> {
  const reader = new FrameReader();
  const frames: ReadFrame[] = [];
  const has = (wanted: (one: ReadFrame) => boolean): boolean => frames.some(wanted);
  for (;;) {
    const isFenced = has(({ type, payload }) => type === FRAME.ping && payload.toString() === FENCE);
    const isOver = streams.every((number) => has((one) => one.stream === number && endsStream(one)));
    if (isFenced && isOver) return frames;
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

/** The status by its index in HPACK's static table (RFC 7541, A), which a server's first answers use. */
const STATUS_INDEX: Readonly<Record<number, number>> = { 200: 0x88, 400: 0x8c };

function check(frames: readonly ReadFrame[], isEnded: boolean, outcome: Http2Outcome): void {
  const goaway = frames.findLast(({ type }) => type === FRAME.goaway);
  const resets = frames.filter(({ type }) => type === FRAME.reset);
  if (outcome.kind === "connection error") {
    assert.ok(isEnded);
    const code = goaway?.payload.readUInt32BE(4) ?? -1;
    assert.ok(outcome.codes.includes(code), `GOAWAY with ${code} instead of ${outcome.codes.join(" or ")}`);
    return;
  }
  assert.equal(goaway?.payload.readUInt32BE(4) ?? 0, 0, "GOAWAY with an error");
  if (outcome.kind === "stream error") {
    assert.deepEqual(
      resets.map((one) => one.stream),
      [outcome.stream],
    );
    const code = resets[0]?.payload.readUInt32BE(0) ?? 0;
    assert.ok(outcome.codes.includes(code), `RST_STREAM with ${code} instead of ${outcome.codes.join(" or ")}`);
    return;
  }
  assert.deepEqual(resets, []);
  if (outcome.kind === "ignored") return;
  const answers = frames.filter(({ type }) => type === FRAME.headers);
  assert.deepEqual(
    answers.map((one) => one.stream).toSorted((a, b) => a - b),
    outcome.streams,
  );
  for (const { payload } of answers) {
    const status = payload.find((byte) => byte >= 0x80);
    assert.equal(status, STATUS_INDEX[outcome.status ?? 200]);
  }
}

/** The table counts on a service that announces four streams. */
const CASES = [...HTTP2_CASES, ...HPACK_CASES].filter(({ section: where }) => where !== "5.1.2");

for (const way of ["by prior knowledge", "over TLS"] as const) {
  for (const { section: where, what, bytes, outcome } of CASES) {
    const expected = outcome.kind === "answered" ? `answered ${outcome.status ?? 200}` : outcome.kind;
    test(`RFC 9113, ${where}: ${what}: ${expected} (inside CONNECT, ${way})`, async () => {
      await using client = await connectTo(way);
      await client.write(Buffer.concat([...bytes, frame(FRAME.ping, 0, 0, FENCE)]));
      const streams = outcome.kind === "answered" ? outcome.streams : [];
      check(await read(client, streams), client.ended, outcome);
    });
  }

  test(`RFC 9113, 5.1.2: a stream more than announced: stream error (inside CONNECT, ${way})`, async () => {
    await using client = await connectTo(way);
    const open = (at: number): Buffer => frame(FRAME.headers, FLAG.endHeaders, 2 * at + 1, section(GET));
    await client.write(Buffer.concat(Array.from({ length: MOST_STREAMS + 1 }, (_, at) => open(at))));
    await client.write(frame(FRAME.ping, 0, 0, FENCE));
    const stream = 2 * MOST_STREAMS + 1;
    check(await read(client, []), client.ended, { kind: "stream error", stream, codes: [REFUSED_STREAM] });
  });
}
