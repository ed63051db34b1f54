// Tested by ../../../apps/gateway/test/conformance/http2.test.ts
import assert from "node:assert/strict";
import type { Http2Case, Outcome } from "./http2-cases.ts";
import { FLAG, FRAME, frame, FrameReader, PREFACE, settings, type ReadFrame } from "./http2-frames.ts";
import type { RawConnection } from "./raw-connection.ts";

/** Answered behind everything that was said before it. */
const FENCE = "the end.";
const PROTOCOL_ERROR = 1;
/** The status by its index in HPACK's static table (RFC 7541, A), which a server's first answers use. */
const STATUS_INDEX = { 200: 0x88, 400: 0x8c } as const;

/** A case's title: the section, the frames, and the required outcome. */
export function http2CaseTitle({ section, what, outcome }: Pick<Http2Case, "section" | "what" | "outcome">): string {
  return `RFC 9113, ${section}: ${what}: ${outcome.kind}`;
}

/** Sends a case's frames to a server over a new connection, and judges the frames that come back. */
export async function runHttp2Case(client: RawConnection, { bytes, later, outcome }: Http2Case): Promise<void> {
  const reader = new FrameReader();
  const frames: ReadFrame[] = [];
  client.socket.on("error", () => undefined);
  await client.write(Buffer.concat([PREFACE, settings(), frame(FRAME.settings, FLAG.ack, 0), ...bytes]));
  if (later !== undefined) await readUntil(client, reader, frames, () => frames.some((one) => endsStream(one, 1)));
  await client.write(Buffer.concat([...(later ?? []), frame(FRAME.ping, 0, 0, FENCE)])).catch(() => undefined);
  const streams = streamsToEnd(outcome);
  await readUntil(client, reader, frames, () => {
    const isFenced = frames.some(({ type, payload }) => type === FRAME.ping && payload.toString() === FENCE);
    return isFenced && streams.every((number) => frames.some((one) => endsStream(one, number)));
  });
  check(frames, client.ended, outcome, later !== undefined);
}

function streamsToEnd(outcome: Outcome): readonly number[] {
  if (outcome.kind === "answered") return outcome.streams;
  return outcome.kind === "malformed" || outcome.kind === "stream error" ? [outcome.stream] : [];
}

async function readUntil(
  client: RawConnection,
  reader: FrameReader,
  frames: ReadFrame[],
  isEnough: () => boolean,
): Promise<void> {
  while (!isEnough()) {
    const chunk = await client.readSome(5000).catch((error: unknown) => {
      if (client.ended) return undefined;
      throw new Error(`got only ${JSON.stringify(frames.map(({ type, stream }) => [type, stream]))}`, { cause: error });
    });
    if (chunk === undefined) return;
    frames.push(...reader.read(chunk));
  }
}

function endsStream({ type, flags, stream }: ReadFrame, number: number): boolean {
  const canEnd = type === FRAME.data || type === FRAME.headers;
  return stream === number && (type === FRAME.reset || (canEnd && (flags & FLAG.endStream) !== 0));
}

function check(frames: readonly ReadFrame[], isEnded: boolean, outcome: Outcome, isAnsweredBefore: boolean): void {
  const goaway = frames.findLast(({ type }) => type === FRAME.goaway);
  if (outcome.kind === "connection error") {
    assert.ok(isEnded, "the connection goes on");
    const code = goaway?.payload.readUInt32BE(4) ?? -1;
    assert.ok(outcome.codes.includes(code), `GOAWAY with ${code} instead of ${outcome.codes.join(" or ")}`);
    return;
  }
  assert.equal(goaway?.payload.readUInt32BE(4) ?? 0, 0, "GOAWAY with an error");
  const resets = frames.filter(({ type }) => type === FRAME.reset);
  const codes = outcome.kind === "stream error" ? outcome.codes : [PROTOCOL_ERROR];
  if (outcome.kind === "stream error" || outcome.kind === "malformed") {
    const [reset, ...more] = resets;
    assert.deepEqual([reset?.stream, more], [outcome.stream, []], "RST_STREAM of that stream, once");
    const code = reset?.payload.readUInt32BE(0) ?? -1;
    assert.ok(codes.includes(code), `RST_STREAM with ${code} instead of ${codes.join(" or ")}`);
    if (outcome.kind === "stream error") return;
    const end = frames.findIndex((one) => one.type !== FRAME.reset && endsStream(one, outcome.stream));
    assert.ok(end !== -1 && end < frames.indexOf(reset as ReadFrame), "the answer ends before its stream is reset");
  } else {
    assert.deepEqual(resets, []);
  }
  if (outcome.kind === "ignored") return;
  const answers = frames.filter(({ type }) => type === FRAME.headers);
  const expected = outcome.kind === "malformed" ? [outcome.stream] : outcome.streams;
  assert.deepEqual(
    answers.map(({ stream }) => stream).toSorted((a, b) => a - b),
    isAnsweredBefore ? [1, ...expected] : expected,
  );
  const index = STATUS_INDEX[outcome.kind === "malformed" ? 400 : 200];
  for (const { payload } of answers) {
    const first = payload.find((byte) => byte >= 0x80);
    assert.equal(first, index);
  }
}
