import assert from "node:assert/strict";
import type { Http2Case, Outcome } from "./http2-cases.ts";
import { FLAG, FRAME, frame, FrameReader, GET, PREFACE, type ReadFrame, section, settings } from "./http2-peers.ts";
import type { RawConnection } from "./raw-sockets.ts";

/** Answered behind everything that was said before it. */
const FENCE = "the end.";

const PROTOCOL_ERROR = 1;

/** The frame size that every peer accepts (RFC 9113, 4.2). */
const MAX_FRAME_SIZE = 16_384;

/** The status by its index in HPACK's static table (RFC 7541, A), which a server's first answers use. */
const STATUS_INDEX = { 200: 0x88, 400: 0x8c } as const;

/** A case's title: the section, the frames, and the required outcome. */
export function http2CaseTitle({ section, what, outcome }: Pick<Http2Case, "section" | "what" | "outcome">): string {
  return `RFC 9113, ${section}: ${what}: ${outcome.kind}`;
}

/** Sends a case's frames to a server over a new connection, and judges the frames that come back. */
export async function runHttp2Case(client: RawConnection, one: Http2Case): Promise<void> {
  const { bytes, later, outcome } = one;
  const reader = new FrameReader();
  const frames: ReadFrame[] = [];
  client.socket.on("error", () => undefined);
  await client.write(Buffer.concat([PREFACE, settings(), frame(FRAME.settings, FLAG.ack, 0), ...bytes]));
  if (later !== undefined) await readUntil(client, reader, frames, () => frames.some((each) => endsStream(each, 1)));
  await client.write(Buffer.concat([...(later ?? []), frame(FRAME.ping, 0, 0, FENCE)])).catch(() => undefined);
  const streams = streamsToEnd(outcome);
  await readUntil(client, reader, frames, () => {
    const isFenced = frames.some(({ type, payload }) => type === FRAME.ping && payload.toString() === FENCE);
    return isFenced && streams.every((number) => frames.some((each) => endsStream(each, number)));
  });
  check(frames, client.ended, outcome, later !== undefined);
  checkSender(frames);
  if (outcome.kind !== "connection error") checkConfirmations(frames, [settings(), ...bytes, ...(later ?? [])]);
  one.check?.(frames);
}

function streamsToEnd(outcome: Outcome): readonly number[] {
  if (outcome.kind === "answered") return outcome.streams;
  if (outcome.kind === "malformed") return [outcome.stream];
  return outcome.kind === "stream error" ? [outcome.stream, ...(outcome.answered ?? [])] : [];
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
    if (outcome.kind === "stream error") return checkResponses(frames, outcome.answered ?? [], 200);
    const end = frames.findIndex((one) => one.type !== FRAME.reset && endsStream(one, outcome.stream));
    assert.ok(end !== -1 && end < frames.indexOf(reset as ReadFrame), "the answer ends before its stream is reset");
  } else {
    assert.deepEqual(resets, []);
  }
  if (outcome.kind === "ignored") return;
  const expected = outcome.kind === "malformed" ? [outcome.stream] : outcome.streams;
  checkResponses(frames, isAnsweredBefore ? [1, ...expected] : expected, outcome.kind === "malformed" ? 400 : 200);
}

function checkResponses(
  frames: readonly ReadFrame[],
  streams: readonly number[],
  status: keyof typeof STATUS_INDEX,
): void {
  const responses = frames.filter(({ type }) => type === FRAME.headers);
  assert.deepEqual(
    responses.map(({ stream }) => stream).toSorted((a, b) => a - b),
    streams,
  );
  for (const { payload } of responses) {
    const first = payload.find((byte) => byte >= 0x80);
    assert.equal(first, STATUS_INDEX[status]);
  }
}

/** Checks the frames of a server or client from the first one of a connection on. */
export function checkSender(frames: readonly ReadFrame[]): void {
  const [first] = frames;
  assert.deepEqual([first?.type, first?.flags, first?.stream], [FRAME.settings, 0, 0], "SETTINGS come first (3.4)");
  const ended = new Set<number>();
  const reset = new Set<number>();
  for (const one of frames) {
    const { type, stream, payload } = one;
    assert.ok(payload.length <= MAX_FRAME_SIZE, `a frame of ${payload.length} bytes (4.2)`);
    assert.ok(!reset.has(stream), `a frame of type ${type} behind the reset of its stream (5.1)`);
    const isMessage = type === FRAME.headers || type === FRAME.data;
    assert.ok(!isMessage || !ended.has(stream), `a frame of type ${type} behind the end of its stream (5.1)`);
    assert.notEqual(type, FRAME.pushPromise, "PUSH_PROMISE");
    if (type === FRAME.windowUpdate) assert.ok(payload.readUInt32BE(0) > 0, "WINDOW_UPDATE of nothing (6.9)");
    if (endsStream(one, stream)) ended.add(stream);
    if (type === FRAME.reset) reset.add(stream);
  }
}

/** Every SETTINGS is confirmed (6.5.3), and every PING answered with what it carries (6.7), once. */
export function checkConfirmations(frames: readonly ReadFrame[], sent: readonly Buffer[]): void {
  const asked = new FrameReader().read(Buffer.concat(sent)).filter(({ flags }) => (flags & FLAG.ack) === 0);
  const confirmed = frames.filter(({ flags }) => (flags & FLAG.ack) !== 0);
  assert.equal(
    confirmed.filter(({ type }) => type === FRAME.settings).length,
    asked.filter(({ type }) => type === FRAME.settings).length,
    "confirmations of SETTINGS",
  );
  const pings = (some: readonly ReadFrame[]): string[] =>
    some.filter(({ type }) => type === FRAME.ping).map(({ payload }) => payload.toString());
  assert.deepEqual(pings(confirmed), [...pings(asked), FENCE], "answers of PING");
}

const COMPRESSION_ERROR = 9;

const whole = section(GET);

/** A request whose field block begins and ends with more than it should. */
function request(before: readonly number[], behind: readonly number[]): Buffer {
  const block = Buffer.concat([Buffer.from(before), whole, Buffer.from(behind)]);
  return frame(FRAME.headers, FLAG.endHeaders | FLAG.endStream, 1, block);
}

/** Invalid bytes after the fields of a request, by section of RFC 7541. */
const BROKEN: readonly (readonly [section: string, what: string, bytes: readonly number[]])[] = [
  ["2.3.3", "an index beyond the tables", [0xff, 0x00]],
  ["6.1", "the index 0", [0x80]],
  ["4.2", "a table size behind the first field", [0x20]],
  ["5.1", "a number without an end", Array.from({ length: 13 }, () => 0xff)],
  ["5.2", "a text longer than its block", [0, 5, 97]],
  ["5.2", "the end of Huffman's alphabet inside a text", [0, 1, 97, 0x84, 0xff, 0xff, 0xff, 0xff]],
  ["5.2", "padding of Huffman codes with zeros", [0, 1, 97, 0x81, 0x18]],
  ["5.2", "padding of Huffman codes by a byte too many", [0, 1, 97, 0x82, 0x1f, 0xff]],
];

/** Field blocks that cannot be read, which leave the state of the connection unknown (RFC 9113, 4.3). */
export const HPACK_CASES: readonly Http2Case[] = [
  ...BROKEN.map(([number, what, behind]): Http2Case => ({
    section: `4.3 and RFC 7541, ${number}`,
    what,
    bytes: [request([], behind)],
    outcome: { kind: "connection error", codes: [COMPRESSION_ERROR] },
  })),
  {
    section: "4.3 and RFC 7541, 6.3",
    what: "a table size above the limit",
    bytes: [request([0x3f, 0xe1, 0xff, 0x03], [])],
    outcome: { kind: "connection error", codes: [COMPRESSION_ERROR] },
  },
  {
    section: "4.3 and RFC 7541, 6.3",
    what: "a table size below the limit",
    bytes: [request([0x20], [])],
    outcome: { kind: "answered", streams: [1] },
  },
];
