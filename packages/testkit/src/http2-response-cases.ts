import assert from "node:assert/strict";
import type { Outcome } from "./http2-cases.ts";
import { checkConfirmations, checkSender } from "./http2-conformance.ts";
import { FLAG, FRAME, frame, FrameReader, PREFACE, type ReadFrame, section, settings, u32 } from "./http2-peers.ts";
import { type RawServer, startRawServer } from "./raw-sockets.ts";

/** Frames of a server to a GET of its client on stream 1, which is whole, and what the client has to do. */
export interface Http2ResponseCase {
  readonly section: string;
  readonly what: string;
  readonly bytes: readonly Buffer[];
  readonly outcome: Outcome;
  /** Of the response that is whole; 200 unless said. */
  readonly status?: number;
  /** The reader of the response finds its fault, not the connection. */
  readonly isOfMessage?: boolean;
}

const PROTOCOL_ERROR = 1;
const FLOW_CONTROL_ERROR = 3;
const STREAM_CLOSED = 5;
const FRAME_SIZE_ERROR = 6;
const CANCEL = 8;
const COMPRESSION_ERROR = 9;

const { data, headers, priority, reset, pushPromise, ping, goaway, windowUpdate, continuation } = FRAME;
const { endStream, endHeaders, ack } = FLAG;
const BOTH = endStream | endHeaders;
const PADDED = 8;
const ENABLE_PUSH = 2;
const largest = 0x7fffffff;

type Pairs = readonly (readonly [string, string])[];

const connection = (...codes: number[]): Outcome => ({ kind: "connection error", codes });
const stream = (...codes: number[]): Outcome => ({ kind: "stream error", stream: 1, codes });
const ANSWERED: Outcome = { kind: "answered", streams: [1] };

const STATUS: Pairs = [[":status", "200"]];
const bytes = (length: number): Buffer => Buffer.alloc(length, "x");
const whole = section(STATUS);
const head = (fields: Pairs = STATUS, flags: number = endHeaders): Buffer => frame(headers, flags, 1, section(fields));
/** A whole response. */
const ok: readonly Buffer[] = [head(), frame(data, endStream, 1, "ok")];
const TRAILERS = head([["x", "y"]], BOTH);
const RESERVED = 0x80000000;
const HAS_PRIORITY = 32;
const onItself = Buffer.concat([u32(1), Buffer.from([0])]);

const rows: readonly (readonly [section: string, what: string, bytes: readonly Buffer[], outcome: Outcome])[] = [
  ["4.1", "frames of unknown types are ignored", [frame(0x16, 0, 1, bytes(8)), frame(0x16, 0, 0), ...ok], ANSWERED],
  [
    "4.1",
    "flags that do not exist, and the reserved bit, are ignored",
    [
      frame(ping, 0xfe, RESERVED, bytes(8)),
      frame(headers, endHeaders, RESERVED + 1, whole),
      frame(data, 0xf6 | endStream, RESERVED + 1, "ok"),
    ],
    ANSWERED,
  ],
  ["4.2", "a frame of the largest size is taken", [head(), frame(data, endStream, 1, bytes(16_384))], ANSWERED],
  [
    "4.2",
    "SETTINGS above the largest size",
    [frame(FRAME.settings, 0, 0, bytes(16_386))],
    connection(FRAME_SIZE_ERROR),
  ],
  ["4.2", "DATA above the largest size", [head(), frame(data, 0, 1, bytes(16_385))], connection(FRAME_SIZE_ERROR)],
  ["4.2", "HEADERS above the largest size", [frame(headers, BOTH, 1, bytes(16_385))], connection(FRAME_SIZE_ERROR)],
  ["4.3", "DATA inside a field block", [head(STATUS, 0), frame(data, 0, 1, "x")], connection(PROTOCOL_ERROR)],
  ["4.3", "PING inside a field block", [head(STATUS, 0), frame(ping, 0, 0, bytes(8))], connection(PROTOCOL_ERROR)],
  ...(
    [
      ["SETTINGS", settings()],
      ["PRIORITY", frame(priority, 0, 1, bytes(5))],
      ["HEADERS of its own stream", head()],
      ["HEADERS of another stream", frame(headers, BOTH, 3, whole)],
      ["WINDOW_UPDATE", frame(windowUpdate, 0, 0, u32(1))],
      ["RST_STREAM", frame(reset, 0, 1, u32(CANCEL))],
      ["GOAWAY", frame(goaway, 0, 0, bytes(8))],
      ["an unknown frame (5.5)", frame(0x16, 0, 1)],
    ] as const
  ).map(
    ([what, inside]) =>
      ["4.3", `${what} inside a field block`, [head(STATUS, 0), inside], connection(PROTOCOL_ERROR)] as const,
  ),
  ["4.3", "a block that cannot be read", [frame(headers, BOTH, 1, Buffer.from([0x80]))], connection(COMPRESSION_ERROR)],
  ["5.1", "HEADERS of a stream that was not opened", [frame(headers, BOTH, 5, whole)], connection(PROTOCOL_ERROR)],
  ["5.1", "DATA of a stream that was not opened", [frame(data, 0, 5, "x")], connection(PROTOCOL_ERROR)],
  ["5.1", "RST_STREAM of a stream that was not opened", [frame(reset, 0, 5, u32(CANCEL))], connection(PROTOCOL_ERROR)],
  [
    "5.1",
    "WINDOW_UPDATE of a stream that was not opened",
    [frame(windowUpdate, 0, 5, u32(1))],
    connection(PROTOCOL_ERROR),
  ],
  ["5.1.1", "HEADERS of a stream of the server's own", [frame(headers, BOTH, 2, whole)], connection(PROTOCOL_ERROR)],
  ["5.1.1", "DATA of a stream of the server's own", [frame(data, 0, 2, "x")], connection(PROTOCOL_ERROR)],
  [
    "5.1.1",
    "RST_STREAM of a stream of the server's own",
    [frame(reset, 0, 2, u32(CANCEL))],
    connection(PROTOCOL_ERROR),
  ],
  [
    "5.1.1",
    "WINDOW_UPDATE of a stream of the server's own",
    [frame(windowUpdate, 0, 2, u32(1))],
    connection(PROTOCOL_ERROR),
  ],
  [
    "5.1",
    "frames of a stream that the client has reset are ignored",
    [frame(windowUpdate, 0, 1, u32(0)), ...ok, frame(windowUpdate, 0, 1, u32(0)), frame(reset, 0, 1, u32(CANCEL))],
    stream(PROTOCOL_ERROR),
  ],
  ["5.1", "DATA behind the end", [...ok, frame(data, 0, 1, "x")], connection(STREAM_CLOSED)],
  ["5.1", "HEADERS behind the end", [...ok, head()], connection(STREAM_CLOSED)],
  [
    "5.1",
    "WINDOW_UPDATE and RST_STREAM behind the end",
    [...ok, frame(windowUpdate, 0, 1, u32(1)), frame(reset, 0, 1, u32(0))],
    ANSWERED,
  ],
  ["5.1", "DATA behind a reset", [frame(reset, 0, 1, u32(CANCEL)), frame(data, 0, 1, "x")], stream(STREAM_CLOSED)],
  ["5.1", "HEADERS behind a reset", [frame(reset, 0, 1, u32(CANCEL)), head()], stream(STREAM_CLOSED)],
  [
    "5.3.1",
    "HEADERS by which it depends on itself",
    [frame(headers, BOTH | 32, 1, Buffer.concat([onItself, whole]))],
    stream(PROTOCOL_ERROR),
  ],
  ["5.3.1", "PRIORITY by which it depends on itself", [frame(priority, 0, 1, onItself)], stream(PROTOCOL_ERROR)],
  ["6.1", "DATA of the connection", [head(), frame(data, 0, 0, "x")], connection(PROTOCOL_ERROR)],
  [
    "6.1",
    "padding longer than its frame",
    [head(), frame(data, PADDED, 1, Buffer.from([5, 1]))],
    connection(PROTOCOL_ERROR),
  ],
  [
    "6.1",
    "padding of as many bytes as its frame",
    [head(), frame(data, PADDED, 1, Buffer.from([2, 0]))],
    connection(PROTOCOL_ERROR),
  ],
  [
    "6.1",
    "PADDED without a length of it",
    [head(), frame(data, PADDED, 1)],
    connection(FRAME_SIZE_ERROR, PROTOCOL_ERROR),
  ],
  ["6.1", "padded DATA", [head(), frame(data, PADDED | endStream, 1, Buffer.from([1, 111, 0]))], ANSWERED],
  ["6.2", "HEADERS of the connection", [frame(headers, BOTH, 0, whole)], connection(PROTOCOL_ERROR)],
  [
    "6.2",
    "padding longer than its frame",
    [frame(headers, BOTH | PADDED, 1, Buffer.concat([Buffer.from([255]), whole]))],
    connection(PROTOCOL_ERROR),
  ],
  [
    "6.2",
    "padding of as many bytes as its frame",
    [frame(headers, BOTH | PADDED, 1, Buffer.from([2, 0]))],
    connection(PROTOCOL_ERROR),
  ],
  [
    "6.2",
    "a priority that is cut off",
    [frame(headers, BOTH | HAS_PRIORITY, 1, bytes(3))],
    connection(FRAME_SIZE_ERROR, PROTOCOL_ERROR),
  ],
  [
    "6.2",
    "padding and a priority",
    [
      frame(
        headers,
        endHeaders | PADDED | HAS_PRIORITY,
        1,
        Buffer.concat([Buffer.from([2]), u32(0), Buffer.from([7]), whole, bytes(2)]),
      ),
      frame(data, endStream, 1, "ok"),
    ],
    ANSWERED,
  ],
  ["6.3", "PRIORITY of the connection", [frame(priority, 0, 0, bytes(5))], connection(PROTOCOL_ERROR)],
  ["6.3", "PRIORITY of another size", [frame(priority, 0, 1, bytes(4))], stream(FRAME_SIZE_ERROR)],
  [
    "6.3",
    "PRIORITY of another size for an idle stream, which cannot be reset (6.4)",
    [frame(priority, 0, 4, bytes(6))],
    connection(FRAME_SIZE_ERROR),
  ],
  [
    "6.3",
    "PRIORITY in any state",
    [1, 4, 99].map((number) => frame(priority, 0, number, Buffer.from([0, 0, 0, 0, 1]))).concat(ok),
    ANSWERED,
  ],
  ["6.4", "RST_STREAM of the connection", [frame(reset, 0, 0, u32(CANCEL))], connection(PROTOCOL_ERROR)],
  ["6.4", "RST_STREAM of another size", [frame(reset, 0, 1, bytes(3))], connection(FRAME_SIZE_ERROR)],
  ["6.5", "SETTINGS of a stream", [frame(FRAME.settings, 0, 1)], connection(PROTOCOL_ERROR)],
  ["6.5", "SETTINGS of another size", [frame(FRAME.settings, 0, 0, bytes(7))], connection(FRAME_SIZE_ERROR)],
  ["6.5", "SETTINGS with ACK and a content", [frame(FRAME.settings, ack, 0, bytes(6))], connection(FRAME_SIZE_ERROR)],
  [
    "6.5",
    "ACK of what was never said",
    [frame(FRAME.settings, ack, 0), frame(FRAME.settings, ack, 0)],
    connection(PROTOCOL_ERROR),
  ],
  [
    "6.5.2",
    "the least and the most that settings may be",
    [
      settings([1, 0], [2, 0], [3, 0], [4, 0], [5, 16_384], [6, 0]),
      settings([1, 0xffffffff], [3, 0xffffffff], [4, largest], [5, 16_777_215], [6, 0xffffffff]),
      ...ok,
    ],
    ANSWERED,
  ],
  ["6.5.2", "ENABLE_PUSH that is neither 0 nor 1", [settings([2, 2])], connection(PROTOCOL_ERROR)],
  ["6.5.2", "MAX_FRAME_SIZE above 16,777,215", [settings([5, 16_777_216])], connection(PROTOCOL_ERROR)],
  ["6.5.2 and RFC 8441, 3", "ENABLE_CONNECT_PROTOCOL above 1", [settings([8, 2])], connection(PROTOCOL_ERROR)],
  [
    "6.5.2 and RFC 8441, 3",
    "ENABLE_CONNECT_PROTOCOL that is taken back",
    [settings([8, 1]), settings([8, 0])],
    connection(PROTOCOL_ERROR),
  ],
  ["6.5.2", "ENABLE_PUSH of a server", [settings([2, 1])], connection(PROTOCOL_ERROR)],
  ["6.5.2", "INITIAL_WINDOW_SIZE above the largest", [settings([4, 0x80000000])], connection(FLOW_CONTROL_ERROR)],
  ["6.5.2", "MAX_FRAME_SIZE below 16,384", [settings([5, 16_383])], connection(PROTOCOL_ERROR)],
  ["6.5.2", "a setting that does not exist", [settings([0xff, 1]), ...ok], ANSWERED],
  [
    "6.6",
    "PUSH_PROMISE, which was not allowed",
    [frame(pushPromise, endHeaders, 1, Buffer.concat([u32(2), whole]))],
    connection(PROTOCOL_ERROR),
  ],
  [
    "6.6",
    "PUSH_PROMISE of the connection",
    [frame(pushPromise, endHeaders, 0, Buffer.concat([u32(2), whole]))],
    connection(PROTOCOL_ERROR),
  ],
  ["6.7", "PING with ACK of another size", [frame(ping, ack, 0, bytes(9))], connection(FRAME_SIZE_ERROR)],
  ["6.7", "PING of a stream", [frame(ping, 0, 1, bytes(8))], connection(PROTOCOL_ERROR)],
  ["6.7", "PING of another size", [frame(ping, 0, 0, bytes(7))], connection(FRAME_SIZE_ERROR)],
  ["6.7", "PING with ACK that answers none", [frame(ping, ack, 0, "unasked."), ...ok], ANSWERED],
  ["6.8", "GOAWAY of a stream", [frame(goaway, 0, 1, bytes(8))], connection(PROTOCOL_ERROR)],
  ["6.8", "GOAWAY of another size", [frame(goaway, 0, 0, bytes(7))], connection(FRAME_SIZE_ERROR)],
  [
    "6.8",
    "GOAWAY lets what it names be answered",
    [frame(goaway, 0, 0, Buffer.concat([u32(1), u32(0)])), ...ok],
    ANSWERED,
  ],
  [
    "6.8",
    "GOAWAY with a text, a code that does not exist (7), and the reserved bit",
    [frame(goaway, 0, 0, Buffer.concat([u32(RESERVED + 1), u32(0xfefe), bytes(9)])), ...ok],
    ANSWERED,
  ],
  ["6.9", "WINDOW_UPDATE by nothing for a stream", [frame(windowUpdate, 0, 1, u32(0))], stream(PROTOCOL_ERROR)],
  [
    "6.9",
    "WINDOW_UPDATE by nothing for the connection",
    [frame(windowUpdate, 0, 0, u32(0))],
    connection(PROTOCOL_ERROR),
  ],
  [
    "6.9",
    "WINDOW_UPDATE of nothing but the reserved bit",
    [frame(windowUpdate, 0, 0, u32(RESERVED))],
    connection(PROTOCOL_ERROR),
  ],
  [
    "6.9",
    "the reserved bit of WINDOW_UPDATE is ignored",
    [frame(windowUpdate, 0, 0, u32(RESERVED + 1)), frame(windowUpdate, 0, 1, u32(RESERVED + 1)), ...ok],
    ANSWERED,
  ],
  ["6.9", "WINDOW_UPDATE of another size", [frame(windowUpdate, 0, 0, bytes(5))], connection(FRAME_SIZE_ERROR)],
  [
    "6.9.1",
    "a window of a stream above the largest",
    [frame(windowUpdate, 0, 1, u32(largest))],
    stream(FLOW_CONTROL_ERROR),
  ],
  [
    "6.9.1",
    "a window of the connection above the largest",
    [frame(windowUpdate, 0, 0, u32(largest))],
    connection(FLOW_CONTROL_ERROR),
  ],
  [
    "6.9.2",
    "a first window by which a stream's is above the largest",
    [frame(windowUpdate, 0, 1, u32(70_000)), settings([4, largest])],
    connection(FLOW_CONTROL_ERROR),
  ],
  ["6.10", "CONTINUATION behind no block", [frame(continuation, endHeaders, 1, whole)], connection(PROTOCOL_ERROR)],
  [
    "6.10",
    "CONTINUATION behind the end of its block",
    [head(), frame(continuation, endHeaders, 1, section([["x", "y"]]))],
    connection(PROTOCOL_ERROR),
  ],
  [
    "6.10",
    "CONTINUATION behind DATA",
    [head(), frame(data, 0, 1, "x"), frame(continuation, endHeaders, 1, whole)],
    connection(PROTOCOL_ERROR),
  ],
  [
    "6.10",
    "CONTINUATION of the connection",
    [head(STATUS, 0), frame(continuation, endHeaders, 0)],
    connection(PROTOCOL_ERROR),
  ],
  [
    "6.10",
    "CONTINUATION of another stream",
    [head(STATUS, 0), frame(continuation, endHeaders, 3)],
    connection(PROTOCOL_ERROR),
  ],
  [
    "6.10",
    "a block in three frames",
    [
      frame(headers, 0, 1),
      frame(continuation, 0, 1, whole),
      frame(continuation, endHeaders, 1),
      frame(data, endStream, 1, "ok"),
    ],
    ANSWERED,
  ],
  [
    "7",
    "a code that does not exist",
    [head(), frame(data, 0, 1, "x"), frame(reset, 0, 1, u32(0xfefe)), frame(ping, 0, 0, bytes(8))],
    { kind: "ignored" },
  ],
  ["8.1", "DATA before HEADERS", [frame(data, 0, 1, "x")], stream(PROTOCOL_ERROR)],
  ["8.1", "an end before HEADERS", [frame(data, endStream, 1)], stream(PROTOCOL_ERROR)],
  ["8.1", "an informational response that ends", [head([[":status", "103"]], BOTH)], stream(PROTOCOL_ERROR)],
  [
    "8.1",
    "DATA behind an informational response",
    [head([[":status", "103"]]), frame(data, 0, 1, "x")],
    stream(PROTOCOL_ERROR),
  ],
  [
    "8.1",
    "informational responses before the one that counts",
    [head([[":status", "103"]]), head([[":status", "100"]]), ...ok],
    ANSWERED,
  ],
  ["8.1", "trailers that do not end", [head(), head([["x", "y"]])], stream(PROTOCOL_ERROR)],
  ["8.1", "trailers", [head(), frame(data, 0, 1, "ok"), head([["x", "y"]], BOTH)], ANSWERED],
  ["8.1", "DATA behind trailers", [head(), TRAILERS, frame(data, 0, 1, "x")], connection(STREAM_CLOSED)],
  ["8.1", "HEADERS behind trailers", [head(), TRAILERS, TRAILERS], connection(STREAM_CLOSED)],
  ["8.1", "a second response", [head(), frame(data, 0, 1, "x"), head()], stream(PROTOCOL_ERROR)],
  [
    "8.1",
    "a reset without an error behind the response does not take it away",
    [...ok, frame(reset, 0, 1, u32(0))],
    ANSWERED,
  ],
  [
    "8.1.1",
    "less content than content-length says, and trailers",
    [head([...STATUS, ["content-length", "3"]]), frame(data, 0, 1, "ab"), TRAILERS],
    stream(PROTOCOL_ERROR),
  ],
  [
    "8.1.1",
    "padding is no content",
    [head([...STATUS, ["content-length", "1"]]), frame(data, PADDED | endStream, 1, Buffer.from([2, 120, 0, 0]))],
    ANSWERED,
  ],
  [
    "8.1.1",
    "a content-length that is no number",
    [head([...STATUS, ["content-length", "+2"]]), frame(data, endStream, 1, "ab")],
    stream(PROTOCOL_ERROR),
  ],
  [
    "8.1.1",
    "content of a response without one",
    [head([[":status", "204"]]), frame(data, 0, 1, "x")],
    stream(PROTOCOL_ERROR),
  ],
  [
    "8.1.1",
    "less content than content-length says",
    [head([...STATUS, ["content-length", "3"]]), frame(data, endStream, 1, "ab")],
    stream(PROTOCOL_ERROR),
  ],
  [
    "8.1.1",
    "more content than content-length says",
    [head([...STATUS, ["content-length", "1"]]), frame(data, endStream, 1, "ab")],
    stream(PROTOCOL_ERROR),
  ],
  [
    "8.1.1",
    "a content-length and no content",
    [head([...STATUS, ["content-length", "3"]], BOTH)],
    stream(PROTOCOL_ERROR),
  ],
  [
    "8.1.1",
    "two values of content-length",
    [head([...STATUS, ["content-length", "1"], ["content-length", "2"]]), frame(data, endStream, 1, "a")],
    stream(PROTOCOL_ERROR),
  ],
  [
    "8.2.1",
    "blanks around a value, which are removed",
    [head([...STATUS, ["x", " a\t"]]), frame(data, endStream, 1, "ok")],
    ANSWERED,
  ],
  ...["", "abc", "20", "099", "2000", "+200", " 200", "200 ", "2e2", "200.0", "0xc8"].map(
    (status) =>
      ["8.3.2", `the :status "${status}"`, [head([[":status", status]], BOTH)], stream(PROTOCOL_ERROR)] as const,
  ),
  ["8.6", "the status 101, which HTTP/2 does not have", [head([[":status", "101"]]), ...ok], stream(PROTOCOL_ERROR)],
];

/** Heads of responses that make them malformed (8.2 and 8.3). */
const MALFORMED: readonly (readonly [section: string, what: string, fields: Pairs])[] = [
  ["8.2.1", "capital letters in a name", [...STATUS, ["X-A", "b"]]],
  ["8.2.1", "an empty name", [...STATUS, ["", "b"]]],
  ["8.2.1", "a blank in a name", [...STATUS, ["x a", "b"]]],
  ["8.2.1", "a colon in a name", [...STATUS, ["x:a", "b"]]],
  ["8.2.1", "DEL in a name", [...STATUS, ["x\x7f", "b"]]],
  ["8.2.1", "a byte beyond ASCII in a name", [...STATUS, ["x\xe9", "b"]]],
  ["8.2.1", "NUL in a value", [...STATUS, ["x", "a\0b"]]],
  ["8.2.1", "CR in a value", [...STATUS, ["x", "a\rb"]]],
  ["8.2.1", "LF in a value", [...STATUS, ["x", "a\nb: c"]]],
  ["8.2.2", "the field connection", [...STATUS, ["connection", "close"]]],
  ["8.2.2", "the field keep-alive", [...STATUS, ["keep-alive", "timeout=5"]]],
  ["8.2.2", "the field proxy-connection", [...STATUS, ["proxy-connection", "close"]]],
  ["8.2.2", "the field transfer-encoding", [...STATUS, ["transfer-encoding", "chunked"]]],
  ["8.2.2", "the field upgrade", [...STATUS, ["upgrade", "websocket"]]],
  ["8.2.2", "TE with more than trailers", [...STATUS, ["te", "gzip"]]],
  ["8.3", "a pseudo-field of requests", [...STATUS, [":path", "/"]]],
  ["8.3", "a pseudo-field that does not exist", [...STATUS, [":test", "x"]]],
  ["8.3", "a pseudo-field behind a field", [["x", "y"], ...STATUS]],
  ["8.3.2", "no :status", [["x", "y"]]],
  ["8.3.2", ":status twice", [...STATUS, ...STATUS]],
];

/** Judged by the reader of the response. */
const OF_MESSAGES = new Set([
  "a content-length and no content",
  "two values of content-length",
  "a content-length that is no number",
  "content of a response without one",
]);
/** Judged against a length that the reader of the response announces to its stream. */
const OF_LENGTHS = /content than content-length/;

/**
 * What a client has to do with the frames of a server, by the sections of RFC 9113; where those leave the choice, of RFC
 * 7540.
 */
export const HTTP2_RESPONSE_CASES: readonly Http2ResponseCase[] = [
  ...rows.map(([number, what, said, outcome]) => ({
    section: number,
    what,
    bytes: said,
    outcome,
    isOfMessage: OF_MESSAGES.has(what) || OF_LENGTHS.test(what),
  })),
  ...MALFORMED.map(([number, what, fields]) => ({
    section: number,
    what,
    bytes: [head(fields, BOTH)],
    outcome: stream(PROTOCOL_ERROR),
  })),
  {
    section: "8.1.1",
    what: "a content-length of a response without content",
    bytes: [
      head(
        [
          [":status", "304"],
          ["content-length", "5"],
        ],
        BOTH,
      ),
    ],
    outcome: ANSWERED,
    status: 304,
  },
  ...(
    [
      ["8.1", ":status", "103"],
      ["8.1", ":path", "/"],
      ["8.2.1", "X-A", "b"],
      ["8.2.1", "", "b"],
      ["8.2.1", "x:a", "b"],
      ["8.2.1", "x", "a\0b"],
      ["8.2.1", "x", "a\r\nb"],
      ["8.2.2", "connection", "close"],
      ["8.2.2", "te", "gzip"],
    ] as const
  ).map(([number, name, value]) => ({
    section: number,
    what: `${JSON.stringify([name, value])} in trailers`,
    bytes: [head(), head([[name, value]], BOTH)],
    outcome: stream(PROTOCOL_ERROR),
  })),
];

const FENCE = "the end.";

interface JudgeState {
  current: Http2ResponseCase | undefined;
  /** Frames of the client on the connection of its request. */
  frames: ReadFrame[];
  /** The client has worked off all that was said, or is gone. */
  fenced: () => void;
}

/** A server that says each case in turn to the clients that connect, and judges what they say. */
export class Http2ResponseJudge implements AsyncDisposable {
  readonly #server: RawServer;
  readonly #state: JudgeState;

  private constructor(server: RawServer, state: JudgeState) {
    this.#server = server;
    this.#state = state;
  }

  static async start(): Promise<Http2ResponseJudge> {
    const state: JudgeState = { current: undefined, frames: [], fenced: () => undefined };
    const server = await startRawServer(async (connection) => {
      connection.socket.on("error", () => undefined);
      await connection.read(PREFACE.length);
      connection.socket.write(settings());
      const reader = new FrameReader();
      let isAsked = false;
      while (!connection.ended) {
        const chunk = await connection.readSome(60_000).catch(() => undefined);
        if (chunk === undefined) break;
        for (const one of reader.read(chunk)) {
          state.frames.push(one);
          if (one.type === FRAME.settings && (one.flags & FLAG.ack) === 0) {
            connection.socket.write(frame(FRAME.settings, FLAG.ack, 0));
          }
          if (one.type === FRAME.headers && !isAsked) {
            isAsked = true;
            const said = state.current?.bytes ?? [];
            connection.socket.write(Buffer.concat([...said, frame(FRAME.ping, 0, 0, FENCE)]));
          }
          const isFence = one.type === FRAME.ping && one.payload.toString() === FENCE;
          if (isFence || one.type === FRAME.goaway) state.fenced();
        }
      }
      state.fenced();
    });
    return new Http2ResponseJudge(server, state);
  }

  get port(): number {
    return this.#server.port;
  }

  /** `ask` gives the status of a response that came over whole, and undefined for one that did not. */
  async judge(each: Http2ResponseCase, ask: () => Promise<number | undefined>): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<undefined>();
    Object.assign(this.#state, { current: each, frames: [], fenced: () => resolve(undefined) });
    const status = await ask();
    await promise;
    for (const connection of this.#server.connections) connection.destroy();
    check(this.#state.frames, each, status);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.close();
  }
}

function check(frames: readonly ReadFrame[], each: Http2ResponseCase, status: number | undefined): void {
  const { outcome } = each;
  const goaway = frames.findLast(({ type }) => type === FRAME.goaway)?.payload.readUInt32BE(4) ?? 0;
  const resets = frames.filter(({ type }) => type === FRAME.reset);
  const codes = resets.map(({ payload }) => payload.readUInt32BE(0));
  if (outcome.kind === "connection error") {
    return assert.ok(outcome.codes.includes(goaway), `GOAWAY with ${goaway} instead of ${outcome.codes.join(" or ")}`);
  }
  assert.equal(goaway, 0, "GOAWAY with an error");
  checkConfirmations(frames, [settings(), ...each.bytes]);
  checkClient(frames);
  if (outcome.kind === "stream error") {
    assert.equal(resets.length, 1, `${resets.length} RST_STREAM`);
    assert.ok(
      outcome.codes.includes(codes[0] ?? -1),
      `RST_STREAM with ${codes[0]} instead of ${outcome.codes.join(" or ")}`,
    );
    assert.notEqual(status, 200, "a broken response does not look whole");
  } else {
    assert.deepEqual(codes, []);
    const expected = each.status ?? 200;
    if (outcome.kind === "answered") assert.equal(status, expected);
    else assert.notEqual(status, expected);
  }
}

/** Checks the frames of a client from the first one of a connection on. */
function checkClient(frames: readonly ReadFrame[]): void {
  checkSender(frames);
  const [first] = frames;
  const pairs = Array.from({ length: (first?.payload.length ?? 0) / 6 }, (_, at) => first?.payload.subarray(6 * at));
  const pushes = pairs.filter((pair) => pair?.readUInt16BE(0) === ENABLE_PUSH).map((pair) => pair?.readUInt32BE(2));
  assert.deepEqual(pushes, [0], "ENABLE_PUSH is 0, as PUSH_PROMISE is not taken (6.5.2)");
  const opened = frames.filter(({ type }) => type === FRAME.headers).map(({ stream: number }) => number);
  assert.ok(opened.length > 0, "a request");
  assert.deepEqual(
    opened,
    [...new Set(opened)].toSorted((a, b) => a - b),
    "stream numbers grow (5.1.1)",
  );
  assert.ok(
    opened.every((number) => number % 2 === 1),
    "streams of clients have odd numbers (5.1.1)",
  );
}
