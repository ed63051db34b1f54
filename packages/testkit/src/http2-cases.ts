import assert from "node:assert/strict";
import { FLAG, FRAME, frame, GET, type ReadFrame, request, section, settings, u32 } from "./http2-peers.ts";

/** The expected outcome of a case: a GOAWAY with its code, or a connection that still replies to PING. */
export type Outcome =
  | { readonly kind: "connection error"; readonly codes: readonly number[] }
  /** Only this stream is reset. */
  | {
      readonly kind: "stream error";
      readonly stream: number;
      readonly codes: readonly number[];
      /** Other streams go on, and are answered with status 200. */
      readonly answered?: readonly number[];
    }
  /** These streams get an answer of status 200. */
  | { readonly kind: "answered"; readonly streams: readonly number[] }
  /** The stream is answered 400, and reset behind that with PROTOCOL_ERROR (8.1.1). */
  | { readonly kind: "malformed"; readonly stream: number }
  /** Nothing is said to it. */
  | { readonly kind: "ignored" };

/** Bytes of a client behind the preface and its first SETTINGS. */
export interface Http2Case {
  readonly section: string;
  readonly what: string;
  readonly bytes: readonly Buffer[];
  /** Said once stream 1 was answered to its end. */
  readonly later?: readonly Buffer[] | undefined;
  readonly outcome: Outcome;
  /** Asserts more of the frames that came back. */
  readonly check?: ((frames: readonly ReadFrame[]) => void) | undefined;
}

const NO_ERROR = 0;
const PROTOCOL_ERROR = 1;
const FLOW_CONTROL_ERROR = 3;
const STREAM_CLOSED = 5;
const FRAME_SIZE_ERROR = 6;
const REFUSED_STREAM = 7;
const CANCEL = 8;

const { data, headers, priority, reset, pushPromise, ping, goaway, windowUpdate, continuation } = FRAME;
const { endStream, endHeaders, ack } = FLAG;
const PADDED = 8;
const HAS_PRIORITY = 32;

const connection = (...codes: number[]): Outcome => ({ kind: "connection error", codes });
const stream = (number: number, ...codes: number[]): Outcome => ({ kind: "stream error", stream: number, codes });
const answered = (...streams: number[]): Outcome => ({ kind: "answered", streams });
const MALFORMED: Outcome = { kind: "malformed", stream: 1 };
const IGNORED: Outcome = { kind: "ignored" };

const POST = GET.map(([name, value]): readonly [string, string] => [name, value === "GET" ? "POST" : value]);
/** The head of a request whose body is still to come. */
const open = (number: number): Buffer => frame(headers, endHeaders, number, section(POST));
/** Its path is answered only when its body has ended. */
const bytes = (length: number): Buffer => Buffer.alloc(length, "x");
const whole = section(GET);
const half = Math.floor(whole.length / 2);
/** An extended flag set of a type that has none of these. */
const ALL_FLAGS = 0xfe;
const RESERVED = 0x80000000;
const largest = 0x7fffffff;

const TRAILERS = frame(headers, 5, 1, section([["x-a", "b"]]));
/** Every frame but those of its own block. */
const INSIDE_BLOCKS: readonly (readonly [what: string, inside: Buffer])[] = [
  ["PING", frame(ping, 0, 0, bytes(8))],
  ["SETTINGS", settings()],
  ["WINDOW_UPDATE", frame(windowUpdate, 0, 0, u32(1))],
  ["RST_STREAM", frame(reset, 0, 1, u32(CANCEL))],
  ["GOAWAY", frame(goaway, 0, 0, bytes(8))],
  ["HEADERS of its own stream", frame(headers, endHeaders, 1, whole)],
];

const rows: readonly (readonly [section: string, what: string, bytes: readonly Buffer[], outcome: Outcome])[] = [
  // Frames
  ["4.1", "a frame of an unknown type is ignored", [frame(0x16, 0, 0, bytes(8))], IGNORED],
  ["4.1", "flags that do not exist are ignored", [frame(ping, ALL_FLAGS, 0, bytes(8))], IGNORED],
  ["4.1", "the reserved bit is ignored", [frame(ping, 0, RESERVED, bytes(8)), request(1)], answered(1)],
  ["4.2", "a frame of the largest size is taken", [open(1), frame(data, endStream, 1, bytes(16_384))], answered(1)],
  [
    "4.2",
    "DATA above the largest size",
    [open(1), frame(data, endStream, 1, bytes(16_385))],
    connection(FRAME_SIZE_ERROR),
  ],
  ["4.2", "HEADERS above the largest size", [frame(headers, 5, 1, bytes(16_385))], connection(FRAME_SIZE_ERROR)],
  [
    "4.2",
    "SETTINGS above the largest size",
    [frame(FRAME.settings, 0, 0, bytes(16_386))],
    connection(FRAME_SIZE_ERROR),
  ],
  [
    "4.3",
    "PRIORITY inside a field block",
    [frame(headers, 1, 1, whole), frame(priority, 0, 1, bytes(5))],
    connection(PROTOCOL_ERROR),
  ],
  [
    "4.3",
    "HEADERS of another stream inside a field block",
    [frame(headers, 1, 1, whole), request(3)],
    connection(PROTOCOL_ERROR),
  ],
  [
    "4.3",
    "DATA inside a field block",
    [frame(headers, 1, 1, whole), frame(data, 0, 1, "x")],
    connection(PROTOCOL_ERROR),
  ],
  ...INSIDE_BLOCKS.map(
    ([what, inside]) =>
      [
        "4.3",
        `${what} inside a field block`,
        [frame(headers, 1, 1, whole), inside],
        connection(PROTOCOL_ERROR),
      ] as const,
  ),
  [
    "5.5",
    "an unknown frame inside a field block",
    [frame(headers, 1, 1, whole), frame(0x16, 0, 1)],
    connection(PROTOCOL_ERROR),
  ],
  [
    "5.5",
    "an unknown frame of a stream is ignored",
    [open(1), frame(0x16, 0, 1, bytes(9)), frame(data, 1, 1)],
    answered(1),
  ],
  // States of streams
  ["5.1", "DATA on an idle stream", [frame(data, endStream, 1, "x")], connection(PROTOCOL_ERROR)],
  ["5.1", "RST_STREAM on an idle stream", [frame(reset, 0, 1, u32(CANCEL))], connection(PROTOCOL_ERROR)],
  ["5.1", "WINDOW_UPDATE on an idle stream", [frame(windowUpdate, 0, 1, u32(100))], connection(PROTOCOL_ERROR)],
  ["5.1", "CONTINUATION on an idle stream", [frame(continuation, endHeaders, 1, whole)], connection(PROTOCOL_ERROR)],
  ["5.1", "DATA behind the end of a request", [request(1), frame(data, endStream, 1, "x")], stream(1, STREAM_CLOSED)],
  ["5.1", "HEADERS behind the end of a request", [request(1), request(1)], stream(1, STREAM_CLOSED)],
  [
    "5.1",
    "CONTINUATION behind the end of a request",
    [request(1), frame(continuation, endHeaders, 1, whole)],
    connection(PROTOCOL_ERROR, STREAM_CLOSED),
  ],
  [
    "5.1",
    "HEADERS behind a reset of the client",
    [open(1), frame(reset, 0, 1, u32(CANCEL)), request(1)],
    stream(1, STREAM_CLOSED),
  ],
  [
    "5.1",
    "DATA behind a reset of the client",
    [open(1), frame(reset, 0, 1, u32(CANCEL)), frame(data, 0, 1, "x")],
    stream(1, STREAM_CLOSED),
  ],
  [
    "5.1",
    "WINDOW_UPDATE, RST_STREAM and PRIORITY behind a reset of the client",
    [
      open(1),
      frame(reset, 0, 1, u32(CANCEL)),
      frame(windowUpdate, 0, 1, u32(9)),
      frame(reset, 0, 1, u32(CANCEL)),
      frame(priority, 0, 1, Buffer.from([0, 0, 0, 0, 1])),
    ],
    IGNORED,
  ],
  [
    "5.1",
    "WINDOW_UPDATE and RST_STREAM behind the end of a request",
    [request(1), frame(windowUpdate, 0, 1, u32(9)), request(3)],
    answered(1, 3),
  ],
  [
    "5.1",
    "PRIORITY behind the end of a request",
    [request(1), frame(priority, 0, 1, Buffer.from([0, 0, 0, 0, 1]))],
    answered(1),
  ],
  ["5.1", "RST_STREAM behind the end of a request", [request(1), frame(reset, 0, 1, u32(CANCEL))], IGNORED],
  [
    "5.1",
    "frames of a stream that the server has reset are ignored",
    [
      open(1),
      frame(windowUpdate, 0, 1, u32(0)),
      frame(data, 0, 1, "x"),
      frame(windowUpdate, 0, 1, u32(0)),
      frame(headers, 5, 1, section([["X-A", "b"]])),
    ],
    stream(1, PROTOCOL_ERROR),
  ],
  ["5.1.1", "a stream with an even number", [request(2)], connection(PROTOCOL_ERROR)],
  ["5.1.1", "a stream with a number below the last", [request(5), request(3)], connection(PROTOCOL_ERROR)],
  ["5.1.1", "DATA of a number that was left out", [request(5), frame(data, 0, 3, "x")], connection(PROTOCOL_ERROR)],
  ["5.1.1", "a stream 0", [frame(headers, 5, 0, whole)], connection(PROTOCOL_ERROR)],
  [
    "5.1.2",
    "a stream more than announced",
    [open(1), open(3), open(5), open(7), open(9)],
    stream(9, PROTOCOL_ERROR, REFUSED_STREAM),
  ],
  [
    "5.3.1",
    "a stream that depends on itself",
    [frame(headers, 37, 1, Buffer.concat([u32(1), Buffer.from([0]), whole])), request(3)],
    stream(1, PROTOCOL_ERROR),
  ],
  [
    "5.3.1",
    "a stream that depends on itself behind padding",
    [frame(headers, 45, 1, Buffer.concat([Buffer.from([1]), u32(1), Buffer.from([0]), whole, Buffer.from([0])]))],
    stream(1, PROTOCOL_ERROR),
  ],
  [
    "5.3.1",
    "PRIORITY by which an open stream depends on itself",
    [open(1), frame(priority, 0, 1, Buffer.concat([u32(1), Buffer.from([0])]))],
    stream(1, PROTOCOL_ERROR),
  ],
  [
    "5.3.1",
    "PRIORITY by which an idle stream depends on itself: it cannot be reset (6.4)",
    [frame(priority, 0, 1, Buffer.concat([u32(1), Buffer.from([0])]))],
    connection(PROTOCOL_ERROR),
  ],
  // DATA
  ["6.1", "DATA of the connection", [open(1), frame(data, endStream, 0, "x")], connection(PROTOCOL_ERROR)],
  [
    "6.1",
    "padding as long as its frame",
    [open(1), frame(data, PADDED, 1, Buffer.from([5, 1, 2, 3]))],
    connection(PROTOCOL_ERROR),
  ],
  [
    "6.1",
    "padding of as many bytes as its frame",
    [open(1), frame(data, PADDED, 1, Buffer.from([4, 1, 2, 3]))],
    connection(PROTOCOL_ERROR),
  ],
  [
    "6.1",
    "padding with nothing beside it",
    [open(1), frame(data, PADDED | endStream, 1, Buffer.from([3, 0, 0, 0]))],
    answered(1),
  ],
  [
    "6.1",
    "PADDED without a length of it",
    [open(1), frame(data, PADDED, 1)],
    connection(FRAME_SIZE_ERROR, PROTOCOL_ERROR),
  ],
  // HEADERS and CONTINUATION
  ["6.2", "HEADERS of the connection", [frame(headers, 5, 0, whole)], connection(PROTOCOL_ERROR)],
  [
    "6.2",
    "padding longer than its frame",
    [frame(headers, 5 | PADDED, 1, Buffer.concat([Buffer.from([255]), whole]))],
    connection(PROTOCOL_ERROR),
  ],
  [
    "6.2",
    "padding and a priority",
    [
      frame(
        headers,
        5 | PADDED | HAS_PRIORITY,
        1,
        Buffer.concat([Buffer.from([2]), u32(0), Buffer.from([7]), whole, bytes(2)]),
      ),
    ],
    answered(1),
  ],
  [
    "6.2",
    "padding of as many bytes as its frame",
    [frame(headers, 5 | PADDED, 1, Buffer.from([3, 0, 0]))],
    connection(PROTOCOL_ERROR),
  ],
  [
    "6.2",
    "padding that overlaps the priority",
    [frame(headers, 5 | PADDED | HAS_PRIORITY, 1, Buffer.from([1, 0, 0, 0, 0, 7]))],
    connection(PROTOCOL_ERROR),
  ],
  [
    "6.2",
    "PADDED without a length of it",
    [frame(headers, 5 | PADDED, 1)],
    connection(FRAME_SIZE_ERROR, PROTOCOL_ERROR),
  ],
  ["6.2", "padding and no field", [frame(headers, 5 | PADDED, 1, Buffer.from([2, 0, 0]))], MALFORMED],
  [
    "6.2",
    "an exclusive dependency",
    [frame(headers, 5 | HAS_PRIORITY, 1, Buffer.concat([u32(RESERVED), Buffer.from([7]), whole]))],
    answered(1),
  ],
  [
    "6.2",
    "a priority that is cut off",
    [frame(headers, 5 | HAS_PRIORITY, 1, bytes(3))],
    connection(FRAME_SIZE_ERROR, PROTOCOL_ERROR),
  ],
  [
    "6.10",
    "a block in three frames",
    [
      frame(headers, 1, 1, whole.subarray(0, 3)),
      frame(continuation, 0, 1, whole.subarray(3, half)),
      frame(continuation, endHeaders, 1, whole.subarray(half)),
    ],
    answered(1),
  ],
  [
    "6.10",
    "a block whose first frame is empty",
    [frame(headers, 1, 1), frame(continuation, endHeaders, 1, whole)],
    answered(1),
  ],
  [
    "6.10",
    "trailers in two frames",
    [
      open(1),
      frame(data, 0, 1, "x"),
      frame(headers, endStream, 1, section([["x-a", "b"]])),
      frame(continuation, endHeaders, 1, section([["x-c", "d"]])),
    ],
    answered(1),
  ],
  [
    "6.10",
    "CONTINUATION of another stream",
    [frame(headers, 1, 1, whole), frame(continuation, endHeaders, 3)],
    connection(PROTOCOL_ERROR),
  ],
  [
    "6.10",
    "CONTINUATION of the connection",
    [frame(headers, 1, 1, whole), frame(continuation, endHeaders, 0)],
    connection(PROTOCOL_ERROR),
  ],
  [
    "6.10",
    "CONTINUATION behind the end of its block",
    [open(1), frame(continuation, endHeaders, 1, whole)],
    connection(PROTOCOL_ERROR),
  ],
  [
    "6.10",
    "CONTINUATION behind DATA",
    [open(1), frame(data, 0, 1, "x"), frame(continuation, endHeaders, 1, whole)],
    connection(PROTOCOL_ERROR),
  ],
  // PRIORITY, RST_STREAM
  ["6.3", "PRIORITY of the connection", [frame(priority, 0, 0, bytes(5))], connection(PROTOCOL_ERROR)],
  ["6.3", "PRIORITY of another size", [open(1), frame(priority, 0, 1, bytes(4))], stream(1, FRAME_SIZE_ERROR)],
  [
    "6.3",
    "PRIORITY of another size for an idle stream, which cannot be reset (6.4)",
    [request(1), frame(priority, 0, 3, bytes(6))],
    connection(FRAME_SIZE_ERROR),
  ],
  [
    "6.3",
    "PRIORITY of a stream that never was",
    [frame(priority, 0, 9, Buffer.from([0, 0, 0, 0, 1])), request(11)],
    answered(11),
  ],
  ["6.4", "RST_STREAM of the connection", [frame(reset, 0, 0, u32(CANCEL))], connection(PROTOCOL_ERROR)],
  ["6.4", "RST_STREAM of another size", [open(1), frame(reset, 0, 1, bytes(3))], connection(FRAME_SIZE_ERROR)],
  [
    "6.4",
    "RST_STREAM with a code that does not exist",
    [open(1), frame(reset, 0, 1, u32(0xffff)), request(3)],
    answered(3),
  ],
  // SETTINGS
  ["6.5", "SETTINGS with ACK and a content", [frame(FRAME.settings, ack, 0, bytes(6))], connection(FRAME_SIZE_ERROR)],
  ["6.5", "SETTINGS of a stream", [frame(FRAME.settings, 0, 1)], connection(PROTOCOL_ERROR)],
  ["6.5", "SETTINGS of another size", [frame(FRAME.settings, 0, 0, bytes(7))], connection(FRAME_SIZE_ERROR)],
  ["6.5.2", "ENABLE_PUSH that is neither 0 nor 1", [settings([2, 2])], connection(PROTOCOL_ERROR)],
  [
    "6.5.2",
    "INITIAL_WINDOW_SIZE above the largest window",
    [settings([4, 0x80000000])],
    connection(FLOW_CONTROL_ERROR),
  ],
  ["6.5.2", "MAX_FRAME_SIZE below 16,384", [settings([5, 16_383])], connection(PROTOCOL_ERROR)],
  ["6.5.2", "MAX_FRAME_SIZE above 16,777,215", [settings([5, 16_777_216])], connection(PROTOCOL_ERROR)],
  [
    "6.5.2",
    "the least and the most that settings may be",
    [
      settings([2, 0], [3, 0], [4, 0], [5, 16_384]),
      settings([2, 1], [3, 0xffffffff], [4, largest], [5, 16_777_215]),
      request(1),
    ],
    answered(1),
  ],
  ["6.5.2", "a setting that does not exist", [settings([0xff, 1]), request(1)], answered(1)],
  [
    "6.5.3",
    "settings twice in one frame: the last one holds",
    [settings([4, 0], [4, 65_535]), request(1)],
    answered(1),
  ],
  [
    "6.5.3",
    "ACK of what was never said",
    [frame(FRAME.settings, ack, 0), frame(FRAME.settings, ack, 0)],
    connection(PROTOCOL_ERROR),
  ],
  // PUSH_PROMISE, PING, GOAWAY
  [
    "8.4",
    "PUSH_PROMISE of a client",
    [open(1), frame(pushPromise, endHeaders, 1, Buffer.concat([u32(2), whole]))],
    connection(PROTOCOL_ERROR),
  ],
  [
    "8.4",
    "PUSH_PROMISE of the connection",
    [frame(pushPromise, endHeaders, 0, Buffer.concat([u32(2), whole]))],
    connection(PROTOCOL_ERROR),
  ],
  ["6.7", "PING with ACK of another size", [frame(ping, ack, 0, bytes(9))], connection(FRAME_SIZE_ERROR)],
  ["6.7", "PING with ACK that answers none", [frame(ping, ack, 0, "unasked."), request(1)], answered(1)],
  ["6.7", "PING of a stream", [frame(ping, 0, 1, bytes(8))], connection(PROTOCOL_ERROR)],
  ["6.7", "PING of another size", [frame(ping, 0, 0, bytes(6))], connection(FRAME_SIZE_ERROR)],
  ["6.8", "GOAWAY of a stream", [frame(goaway, 0, 1, bytes(8))], connection(PROTOCOL_ERROR)],
  ["6.8", "GOAWAY of another size", [frame(goaway, 0, 0, bytes(7))], connection(FRAME_SIZE_ERROR)],
  [
    "6.8",
    "GOAWAY lets the requests before it be answered",
    [request(1), frame(goaway, 0, 0, Buffer.concat([u32(0), u32(NO_ERROR)]))],
    answered(1),
  ],
  [
    "6.8",
    "GOAWAY with a text, a code that does not exist (7), and the reserved bit",
    [request(1), frame(goaway, 0, 0, Buffer.concat([u32(RESERVED), u32(0xfefe), bytes(9)]))],
    answered(1),
  ],
  // WINDOW_UPDATE
  [
    "6.9",
    "WINDOW_UPDATE of nothing for the connection",
    [frame(windowUpdate, 0, 0, u32(0))],
    connection(PROTOCOL_ERROR),
  ],
  [
    "6.9",
    "WINDOW_UPDATE of nothing for a stream",
    [open(1), frame(windowUpdate, 0, 1, u32(0))],
    stream(1, PROTOCOL_ERROR),
  ],
  ["6.9", "WINDOW_UPDATE of another size", [frame(windowUpdate, 0, 0, bytes(3))], connection(FRAME_SIZE_ERROR)],
  [
    "6.9",
    "WINDOW_UPDATE of nothing but the reserved bit",
    [frame(windowUpdate, 0, 0, u32(RESERVED))],
    connection(PROTOCOL_ERROR),
  ],
  [
    "6.9",
    "the reserved bit of WINDOW_UPDATE is ignored",
    [open(1), frame(windowUpdate, 0, 1, u32(RESERVED + 1)), frame(data, endStream, 1)],
    answered(1),
  ],
  [
    "6.9.1",
    "windows of the connection above the largest",
    [frame(windowUpdate, 0, 0, u32(largest)), frame(windowUpdate, 0, 0, u32(largest))],
    connection(FLOW_CONTROL_ERROR),
  ],
  [
    "6.9.1",
    "windows of a stream above the largest",
    [open(1), frame(windowUpdate, 0, 1, u32(largest))],
    stream(1, FLOW_CONTROL_ERROR),
  ],
  [
    "6.9.2",
    "a first window that grows lets waiting answers go",
    [settings([4, 0]), request(1), settings([4, 100])],
    answered(1),
  ],
  [
    "6.9.2",
    "a first window of 0 and one of the stream behind it",
    [settings([4, 0]), request(1), frame(windowUpdate, 0, 1, u32(1000))],
    answered(1),
  ],
  [
    "6.9.2",
    "a first window above the largest for a stream with more",
    [open(1), frame(windowUpdate, 0, 1, u32(70_000)), settings([4, largest])],
    connection(FLOW_CONTROL_ERROR),
  ],
  // Requests
  ["8.1", "a request whose body ends without a byte", [open(1), frame(data, endStream, 1)], answered(1)],
  [
    "8.1",
    "HEADERS in the middle that do not end the request",
    [open(1), frame(data, 0, 1, "x"), frame(headers, endHeaders, 1, section([["x-a", "b"]]))],
    stream(1, PROTOCOL_ERROR),
  ],
  ["8.1", "trailers", [open(1), frame(data, 0, 1, "x"), TRAILERS], answered(1)],
  ["8.1", "DATA behind trailers", [open(1), TRAILERS, frame(data, 0, 1, "x")], stream(1, STREAM_CLOSED)],
  ["8.1", "HEADERS behind trailers", [open(1), TRAILERS, TRAILERS], stream(1, STREAM_CLOSED)],
  [
    "8.1",
    "pseudo-fields in trailers",
    [open(1), frame(headers, 5, 1, section([[":path", "/other"]]))],
    stream(1, PROTOCOL_ERROR),
  ],
  [
    "8.2.1",
    "capital letters in the name of a trailer",
    [open(1), frame(headers, 5, 1, section([["X-A", "b"]]))],
    stream(1, PROTOCOL_ERROR),
  ],
  [
    "8.2.1",
    "a blank before the value of a trailer",
    [open(1), frame(headers, 5, 1, section([["x-a", " b"]]))],
    stream(1, PROTOCOL_ERROR),
  ],
  ...(
    [
      ["8.2.1", "an empty name in trailers", "", "b"],
      ["8.2.1", "a colon in the name of a trailer", "x:a", "b"],
      ["8.2.1", "NUL in the value of a trailer", "x-a", "a\0b"],
      ["8.2.1", "CR in the value of a trailer", "x-a", "a\rb"],
      ["8.2.1", "LF in the value of a trailer", "x-a", "a\nb"],
      ["8.2.2", "TE with more than trailers in trailers", "te", "gzip"],
    ] as const
  ).map(
    ([number, what, name, value]) =>
      [number, what, [open(1), frame(headers, 5, 1, section([[name, value]]))], stream(1, PROTOCOL_ERROR)] as const,
  ),
  [
    "8.2.2",
    "fields of connections in trailers",
    [open(1), frame(headers, 5, 1, section([["connection", "close"]]))],
    stream(1, PROTOCOL_ERROR),
  ],
  [
    "8.3.1",
    "a :scheme that has no meaning here",
    [frame(headers, 5, 1, section(GET.map(([name, value]) => [name, value === "http" ? "ftp" : value])))],
    MALFORMED,
  ],
  [
    "8.1.1",
    "less content than content-length says",
    [withFields(4, [["content-length", "4"]]), frame(data, endStream, 1, "abc")],
    stream(1, PROTOCOL_ERROR),
  ],
  [
    "8.1.1",
    "more content than content-length says",
    [withFields(4, [["content-length", "2"]]), frame(data, endStream, 1, "abc")],
    stream(1, PROTOCOL_ERROR),
  ],
  [
    "8.1.1",
    "no content in two frames where content-length says some",
    [withFields(4, [["content-length", "2"]]), frame(data, 0, 1, "a"), frame(data, endStream, 1)],
    stream(1, PROTOCOL_ERROR),
  ],
  [
    "8.1.1",
    "less content than content-length says, and trailers",
    [withFields(4, [["content-length", "4"]]), frame(data, 0, 1, "abc"), TRAILERS],
    stream(1, PROTOCOL_ERROR),
  ],
  [
    "8.1.1",
    "padding is no content",
    [withFields(4, [["content-length", "1"]]), frame(data, PADDED | endStream, 1, Buffer.from([2, 120, 0, 0]))],
    answered(1),
  ],
  [
    "8.1.1",
    "as much content as content-length says",
    [withFields(4, [["content-length", "3"]]), frame(data, 0, 1, "ab"), frame(data, endStream, 1, "c")],
    answered(1),
  ],
];

type Pairs = readonly (readonly [name: string, value: string])[];

/** A request of stream 1 with more fields. */
function withFields(flags: number, more: readonly (readonly [string, string])[]): Buffer {
  return frame(headers, flags, 1, section([...POST, ...more]));
}

/** Malformed requests: sections, the fault, the fields. */
const MALFORMED_REQUESTS: readonly (readonly [section: string, what: string, fields: Pairs])[] = [
  ["8.1.1", "a content-length and no content", [...GET, ["content-length", "1"]]],
  ["8.1.1", "a content-length that is no number", [...GET, ["content-length", "+0"]]],
  ["8.1.1", "two values of content-length", [...GET, ["content-length", "0"], ["content-length", "1"]]],
  ["8.2.1", "capital letters in a name", [...GET, ["X-A", "b"]]],
  ["8.2.1", "an empty name", [...GET, ["", "b"]]],
  ["8.2.1", "a blank in a name", [...GET, ["x a", "b"]]],
  ["8.2.1", "a colon in a name", [...GET, ["x:a", "b"]]],
  ["8.2.1", "a byte beyond ASCII in a name", [...GET, ["x\xe9", "b"]]],
  ["8.2.1", "DEL in a name", [...GET, ["x\x7f", "b"]]],
  ["8.2.1", "NUL in a value", [...GET, ["x", "a\0b"]]],
  ["8.2.1", "CR in a value", [...GET, ["x", "a\rb"]]],
  ["8.2.1", "LF in a value", [...GET, ["x", "a\nb: c"]]],
  ["8.2.1", "a blank before a value", [...GET, ["x", " a"]]],
  ["8.2.1", "a tab behind a value", [...GET, ["x", "a\t"]]],
  ["8.2.2", "the field connection", [...GET, ["connection", "keep-alive"]]],
  ["8.2.2", "the field proxy-connection", [...GET, ["proxy-connection", "keep-alive"]]],
  ["8.2.2", "the field keep-alive", [...GET, ["keep-alive", "timeout=5"]]],
  ["8.2.2", "the field transfer-encoding", [...GET, ["transfer-encoding", "chunked"]]],
  ["8.2.2", "the field upgrade", [...GET, ["upgrade", "websocket"]]],
  ["8.2.2", "TE with more than trailers", [...GET, ["te", "trailers, deflate"]]],
  ["8.3", "a pseudo-field that does not exist", [[":test", "x"], ...GET]],
  ["8.3", "a pseudo-field of responses", [...GET, [":status", "200"]]],
  ["8.3", "a pseudo-field behind a field", [...GET.slice(0, 3), ["x", "a"], ...GET.slice(3)]],
  ["8.3", "a pseudo-field twice", [...GET, [":path", "/"]]],
  ...GET.filter(([name]) => name !== ":authority").map(
    ([name]) => ["8.3.1", `no ${name}`, GET.filter(([other]) => other !== name)] as const,
  ),
  ["8.3.1", ":method twice", [[":method", "GET"], ...GET]],
  ["8.3.1", "an empty :path", changed(":path", "")],
  ["8.3.1", "a :path that does not begin with a slash", changed(":path", "a")],
  ["8.3.1", "* for another method than OPTIONS", changed(":path", "*")],
  ["8.3.1", "a fragment in :path", changed(":path", "/a#b")],
  ["8.3.1", "user information in :authority", changed(":authority", "u@gateway.test")],
  ["8.3.1", "an empty :authority", changed(":authority", "")],
  ["8.3.1", "neither :authority nor host", GET.filter(([name]) => name !== ":authority")],
  ["8.3.1", "a host that is not :authority", [...GET, ["host", "other.test"]]],
  ["8.3.1", "two hosts", [...GET, ["host", "gateway.test"], ["host", "gateway.test"]]],
  ["8.3.1", "a :method that is no token", changed(":method", "GE T")],
  ["8.3.1", "a blank in :path", changed(":path", "/a b")],
  ["8.5", "CONNECT with :scheme and :path", changed(":method", "CONNECT")],
  ["8.5", "CONNECT with :path", connect("gateway.test:443", [[":path", "/"]])],
  ["8.5", "CONNECT with :scheme", connect("gateway.test:443", [[":scheme", "http"]])],
  ["8.5", "CONNECT without :authority", [[":method", "CONNECT"]]],
  ["8.5", "CONNECT with a host and no port", connect("gateway.test")],
  ["8.5", "CONNECT with a host and an empty port", connect("gateway.test:")],
  ["8.5 and RFC 8441, 4", ":protocol for another method than CONNECT", [...GET, [":protocol", "websocket"]]],
  [
    "8.5 and RFC 8441, 4",
    "CONNECT with :protocol, without :scheme and :path",
    connect("gateway.test:443", [[":protocol", "other"]]),
  ],
];

/** The fields of a CONNECT. */
function connect(authority: string, more: Pairs = []): Pairs {
  return [[":method", "CONNECT"], [":authority", authority], ...more];
}

function changed(name: string, value: string): (readonly [string, string])[] {
  return GET.map(([other, kept]) => [other, other === name ? value : kept]);
}

/** Unusual requests that are well-formed. */
const WELL_FORMED: readonly (readonly [section: string, what: string, fields: Pairs])[] = [
  ["8.2.2", "TE with trailers", [...GET, ["te", "trailers"]]],
  ["8.2.2", "TE with trailers in capital letters", [...GET, ["te", "Trailers"]]],
  ["8.2.3", "a cookie in several fields", [...GET, ["cookie", "a=b"], ["cookie", "c=d"]]],
  [
    "8.3.1",
    "host in place of :authority",
    [...GET.filter(([name]) => name !== ":authority"), ["host", "gateway.test"]],
  ],
  ["8.3.1", "host that is :authority", [...GET, ["host", "gateway.test"]]],
  ["8.1.1", "a content-length of 0 and no content", [...GET, ["content-length", "0"]]],
];

/** Frames of stream 1 behind its answer, when both sides have ended it (5.1, closed; RFC 7540 says what with). */
const BEHIND_RESPONSES: readonly (readonly [what: string, later: readonly Buffer[], outcome: Outcome])[] = [
  ["DATA", [frame(data, 0, 1, "x")], connection(STREAM_CLOSED)],
  ["HEADERS", [request(1)], connection(STREAM_CLOSED)],
  ["HEADERS of trailers", [frame(headers, 5, 1, section([["x", "y"]]))], connection(STREAM_CLOSED)],
  ["CONTINUATION", [frame(continuation, endHeaders, 1, whole)], connection(PROTOCOL_ERROR, STREAM_CLOSED)],
  ["WINDOW_UPDATE", [frame(windowUpdate, 0, 1, u32(9))], IGNORED],
  ["RST_STREAM", [frame(reset, 0, 1, u32(CANCEL))], IGNORED],
  ["PRIORITY", [frame(priority, 0, 1, Buffer.from([0, 0, 0, 0, 1]))], IGNORED],
  ["PRIORITY of another size", [frame(priority, 0, 1, bytes(4))], IGNORED],
  ["an unknown frame", [frame(0x16, 0, 1, bytes(4))], IGNORED],
];

/** A field that enters the table (RFC 7541, 6.2.1), and the index that it has there. */
const kept = (name: string, value: string): Buffer => {
  const literal = section([[name, value]]);
  literal[0] = 0x40;
  return literal;
};
const FIRST_KEPT = Buffer.from([0xbe]);
const WITHOUT_PATH = section(GET.filter(([name]) => name !== ":path"));
/** A request whose path is the field that entered the table last. */
const fromTable = (number: number): Buffer => frame(headers, 5, number, Buffer.concat([WITHOUT_PATH, FIRST_KEPT]));

/** How the first field block of a server's begins. */
function assertBlockBegins(frames: readonly ReadFrame[], start: readonly number[]): void {
  const block = frames.find(({ type }) => type === FRAME.headers)?.payload ?? Buffer.alloc(0);
  assert.deepEqual([...block.subarray(0, start.length)], start);
}

/** Cases of which more than the outcome is asserted, or with two outcomes. */
const MORE_CASES: readonly Http2Case[] = [
  {
    section: "4.3",
    what: "fields that were kept mean the same in the next block",
    bytes: [frame(headers, 5, 1, Buffer.concat([WITHOUT_PATH, kept(":path", "/")])), fromTable(3)],
    outcome: answered(1, 3),
  },
  {
    section: "4.3",
    what: "a block behind the end of its stream is read for the sake of the next ones",
    bytes: [
      open(1),
      frame(reset, 0, 1, u32(CANCEL)),
      frame(headers, 5, 1, Buffer.concat([WITHOUT_PATH, kept(":path", "/")])),
      fromTable(3),
    ],
    outcome: { kind: "stream error", stream: 1, codes: [STREAM_CLOSED], answered: [3] },
  },
  {
    section: "4.3",
    what: "trailers that are malformed are read to their end for the sake of the next blocks",
    bytes: [open(1), frame(headers, 5, 1, Buffer.concat([section([["X-A", "b"]]), kept(":path", "/")])), fromTable(3)],
    outcome: { kind: "stream error", stream: 1, codes: [PROTOCOL_ERROR], answered: [3] },
  },
  {
    section: "4.3.1",
    what: "a smaller table is confirmed at the begin of the next block",
    bytes: [settings([1, 0]), request(1)],
    outcome: answered(1),
    check: (frames) => assertBlockBegins(frames, [0x20]),
  },
  {
    section: "4.3.1",
    what: "of several sizes of the table the smallest and the last are confirmed",
    bytes: [settings([1, 100]), settings([1, 0]), settings([1, 10]), request(1)],
    outcome: answered(1),
    check: (frames) => assertBlockBegins(frames, [0x20, 0x2a]),
  },
  {
    section: "5.4.2",
    what: "an error of one stream leaves the others as they are",
    bytes: [open(1), open(3), frame(windowUpdate, 0, 1, u32(0)), frame(data, endStream, 3)],
    outcome: { kind: "stream error", stream: 1, codes: [PROTOCOL_ERROR], answered: [3] },
  },
  {
    section: "6.8",
    what: "GOAWAY names the last stream that was looked at",
    bytes: [open(1), open(5), frame(data, 0, 0, "x")],
    outcome: connection(PROTOCOL_ERROR),
    check: (frames) => assert.equal(frames.at(-1)?.payload.readUInt32BE(0), 5),
  },
];

/**
 * What a server has to do with the frames of a client, by the sections of RFC 9113; where those leave the choice, of RFC
 * 7540. An error of a stream is taken for one of the connection only where the stream cannot be reset, or the frame cannot be
 * read (4.2).
 */
export const HTTP2_CASES: readonly Http2Case[] = [
  ...rows.map(([number, what, sent, outcome]) => ({ section: number, what, bytes: sent, outcome })),
  ...MORE_CASES,
  ...MALFORMED_REQUESTS.map(([number, what, fields]) => ({
    section: number,
    what,
    bytes: [frame(headers, 5, 1, section(fields))],
    outcome: MALFORMED,
  })),
  {
    section: "8.1.1",
    what: "a malformed request whose body is still to come",
    bytes: [withFields(4, [["connection", "close"]])],
    outcome: MALFORMED,
  },
  ...WELL_FORMED.map(([number, what, fields]) => ({
    section: number,
    what,
    bytes: [frame(headers, 5, 1, section(fields))],
    outcome: answered(1),
  })),
  ...BEHIND_RESPONSES.map(([what, later, outcome]) => ({
    section: "5.1",
    what: `${what} behind the end of request and answer`,
    bytes: [request(1)],
    later,
    outcome,
  })),
];
