import { bytesOf, chunked, OK, one, pattern, sized, streamed } from "./script.ts";
import type { Case, Group, Step } from "./script.ts";

const head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

const chunkShapes: Case[] = [
  one("chunks of one byte", {}, streamed("HTTP/1.1 200 OK", pattern(300), [1])),
  one("one large chunk", {}, streamed("HTTP/1.1 200 OK", pattern(300_000), [300_000])),
  one(
    "chunks around buffer sizes",
    {},
    streamed("HTTP/1.1 200 OK", pattern(400_000), [16_383, 16_384, 16_385, 65_535, 65_536, 65_537, 1]),
  ),
  one("capital hexadecimal digits", {}, `${head}A\r\n0123456789\r\n1F\r\n${"x".repeat(31)}\r\n0\r\n\r\n`),
  one("leading zeros in a size", {}, `${head}0005\r\nhello\r\n00000000\r\n\r\n`),
  one("extensions of chunks", {}, `${head}5;a\r\nhello\r\n1;b=c;d="e;\\"f"\r\n!\r\n0;last\r\n\r\n`),
  one("an empty body", {}, `${head}0\r\n\r\n`),
  one("TRANSFER-ENCODING: Chunked", {}, "HTTP/1.1 200 OK\r\nTRANSFER-ENCODING: Chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"),
  one(
    "a body that looks like chunk framing",
    {},
    streamed("HTTP/1.1 200 OK", "0\r\n\r\n5\r\nhello\r\n0\r\n\r\n", [3, 7]),
  ),
  one(
    "chunks that arrive byte by byte",
    {},
    { bytes: streamed("HTTP/1.1 200 OK", pattern(50), [7, 1]), pieceBytes: 1 },
  ),
  one(
    "chunk framing cut at every third byte",
    {},
    { bytes: streamed("HTTP/1.1 200 OK", pattern(200), [10, 16]), pieceBytes: 3 },
  ),
  one("an empty chunked request", { method: "POST", fields: ["Transfer-Encoding: chunked"], body: chunked("") }),
  one("a request in chunks of one byte", {
    method: "POST",
    fields: ["Transfer-Encoding: chunked"],
    body: chunked(pattern(300), [1]),
  }),
  one("a request in odd chunks", {
    method: "PUT",
    fields: ["transfer-encoding: CHUNKED"],
    body: chunked(pattern(200_000), [1, 16_384, 65_537, 3]),
  }),
  one("a request with leading zeros in sizes", {
    method: "PUT",
    fields: ["Transfer-Encoding: chunked"],
    body: "0002\r\nhi\r\n000\r\n\r\n",
  }),
  one("a chunked request byte by byte", {
    method: "PUT",
    fields: ["Transfer-Encoding: chunked"],
    body: chunked(pattern(40), [7, 2]),
    pieceBytes: 1,
  }),
];

const trailers: Case[] = [
  one(
    "trailers of a response",
    {},
    streamed("HTTP/1.1 200 OK\r\nTrailer: X-Sum", "body", [2], "X-Sum: 1\r\nx-other:  v \r\n"),
  ),
  one("unannounced trailers", {}, streamed("HTTP/1.1 200 OK", "body", [2], "X-Sum: 1\r\n")),
  one("repeated trailers", {}, streamed("HTTP/1.1 200 OK", "body", [4], "A: 1\r\na: 2\r\nA:\r\n")),
  one("trailers behind an empty body", {}, streamed("HTTP/1.1 200 OK", "", [1], "X-Sum: 0\r\n")),
  one("a trailer of 10 KB", {}, streamed("HTTP/1.1 200 OK", "x", [1], `X-Sum: ${"s".repeat(10_000)}\r\n`)),
  one(
    "trailers cut at every byte",
    {},
    { bytes: streamed("HTTP/1.1 200 OK", "body", [4], "X-Sum: 1\r\nY: 2\r\n"), pieceBytes: 1 },
  ),
  one(
    "gRPC-like trailers",
    {},
    streamed(
      "HTTP/1.1 200 OK\r\nContent-Type: application/grpc",
      "\0\0\0\0\0",
      [5],
      "grpc-status: 0\r\ngrpc-message: \r\n",
    ),
  ),
  one("trailers of a request", {
    method: "POST",
    fields: ["TE: trailers", "Trailer: X-Sum", "Transfer-Encoding: chunked"],
    body: chunked("body", [2], "X-Sum: 1\r\nX-B: 2\r\n"),
  }),
];

const withoutBody: Case[] = [
  one("HEAD of a chunked resource", { method: "HEAD" }, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
  one("HEAD without framing fields", { method: "HEAD" }, "HTTP/1.1 200 OK\r\nX: y\r\n\r\n"),
  one("HEAD of an error", { method: "HEAD" }, "HTTP/1.1 404 Not Found\r\nContent-Length: 999\r\n\r\n"),
  one("204", {}, "HTTP/1.1 204 No Content\r\nX: y\r\n\r\n"),
  one("204 to POST", { method: "POST", fields: ["Content-Length: 1"], body: "x" }, "HTTP/1.1 204 No Content\r\n\r\n"),
  one(
    "304 with a length",
    { fields: ['If-None-Match: "a"'] },
    'HTTP/1.1 304 Not Modified\r\nETag: "a"\r\nContent-Length: 5000\r\n\r\n',
  ),
  one("304 without a length", {}, "HTTP/1.1 304 Not Modified\r\n\r\n"),
  one("205 with length 0", {}, "HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n\r\n"),
  one("200 with length 0", {}, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
  one("an error with length 0", {}, "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n"),
];

const early = "HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\nlink: </b.js>\r\n\r\n";
const posted = { method: "POST", fields: ["Expect: 100-continue", "Content-Length: 4"], body: "body" } as const;
const interim: Case[] = [
  one("103 with fields", {}, early + OK),
  one("103 twice", {}, early + early + OK),
  one("102 and 103", {}, `HTTP/1.1 102 Processing\r\n\r\n${early}${OK}`),
  one("a 1xx of its own", {}, `HTTP/1.1 199 Odd One\r\nX: y\r\n\r\n${OK}`),
  one("103 before 304", {}, `${early}HTTP/1.1 304 Not Modified\r\nETag: "a"\r\n\r\n`),
  one("103 to HEAD", { method: "HEAD" }, `${early}HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n`),
  one("20 of them", {}, early.repeat(20) + OK),
  one("103 byte by byte", {}, { bytes: early + OK, pieceBytes: 1 }),
  one(
    "103 before the body was read",
    { method: "POST", fields: ["Content-Length: 4"], body: "body" },
    { early, bytes: OK },
  ),
  one("100 to a client that waits", { ...posted, waits: true }, { early: "HTTP/1.1 100 Continue\r\n\r\n", bytes: OK }),
  one(
    "100 with a reason and fields of its own",
    { ...posted, waits: true },
    { early: "HTTP/1.1 100 Go on\r\nX: y\r\n\r\n", bytes: OK },
  ),
  one(
    "417 to a client that waits",
    { ...posted, waits: true },
    { bytes: sized("HTTP/1.1 417 Expectation Failed", "no"), ignoresBody: true, closes: true },
  ),
  one(
    "401 to a client that waits",
    { ...posted, waits: true },
    { bytes: sized("HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic", ""), ignoresBody: true, closes: true },
  ),
];

const untilClose: Case[] = [
  ...[0, 1, 16_384, 65_536, 1_000_000].map((size) =>
    one(
      `${size} bytes until the connection ends`,
      {},
      { bytes: Buffer.concat([bytesOf("HTTP/1.1 200 OK\r\n\r\n"), pattern(size)]), closes: true },
    ),
  ),
  one("with Connection: close", {}, { bytes: "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nbody", closes: true }),
  one("an origin of HTTP/1.0", {}, { bytes: "HTTP/1.0 200 OK\r\nServer: old\r\n\r\nbody", closes: true }),
  one(
    "an origin of HTTP/1.0 with a length",
    {},
    { bytes: "HTTP/1.0 200 OK\r\nContent-Length: 4\r\n\r\nbody", closes: true },
  ),
  one(
    "an origin of HTTP/1.0 that keeps the connection",
    {},
    { bytes: "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 4\r\n\r\nbody" },
  ),
  one("an error without framing", {}, { bytes: "HTTP/1.1 503 Busy\r\n\r\nlater", closes: true }),
  one("byte by byte", {}, { bytes: "HTTP/1.1 200 OK\r\nX: y\r\n\r\nbody", closes: true, pieceBytes: 1 }),
];

const old: Case[] = [
  one("HTTP/1.0 with a length", { version: "HTTP/1.0" }, OK),
  one(
    "HTTP/1.0 with keep-alive",
    { version: "HTTP/1.0", fields: ["Connection: keep-alive"] },
    "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok",
  ),
  one("HTTP/1.0 with a body", { version: "HTTP/1.0", method: "POST", fields: ["Content-Length: 4"], body: "body" }),
  one(
    "HTTP/1.0 until the connection ends",
    { version: "HTTP/1.0" },
    { bytes: "HTTP/1.1 200 OK\r\n\r\nbody", closes: true },
  ),
  one("HTTP/1.0 and HEAD", { version: "HTTP/1.0", method: "HEAD" }, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"),
];

const SIZES = [
  1, 2, 1023, 4095, 4096, 4097, 8191, 8192, 8193, 16_383, 16_384, 16_385, 32_768, 65_535, 65_536, 65_537, 131_071,
  131_072, 131_073, 262_143, 262_144, 262_145, 1_048_576, 3_000_001,
];
const sizes = SIZES.flatMap((size) => {
  const body = pattern(size);
  const lengthField = `Content-Length: ${size}`;
  return [
    one(`a response of ${size} bytes`, {}, sized("HTTP/1.1 200 OK", body)),
    one(`a chunked response of ${size} bytes`, {}, streamed("HTTP/1.1 200 OK", body, [size < 5000 ? size : 8192])),
    one(`a request of ${size} bytes`, { method: "POST", fields: [lengthField], body }),
    one(`a chunked request of ${size} bytes`, {
      method: "POST",
      fields: ["Transfer-Encoding: chunked"],
      body: chunked(body, [size]),
    }),
  ];
});

const trickles: Case[] = [
  one("a request head byte by byte", { path: "/slow?x=y", fields: ["X-A: b"], pieceBytes: 1 }),
  one("a request with a body byte by byte", {
    method: "POST",
    fields: ["Content-Length: 20"],
    body: pattern(20),
    pieceBytes: 1,
  }),
  one("a response byte by byte", {}, { bytes: sized("HTTP/1.1 200 OK\r\nX-A: b", pattern(60)), pieceBytes: 1 }),
  one(
    "a response in pieces of 1,000 bytes",
    {},
    { bytes: sized("HTTP/1.1 200 OK", pattern(100_000)), pieceBytes: 1000 },
  ),
  one("a request in pieces of 1,000 bytes", {
    method: "PUT",
    fields: ["Content-Length: 100000"],
    body: pattern(100_000),
    pieceBytes: 1000,
  }),
];

const get = (path: string, bytes: Buffer | string = OK, closes?: true): Step => ({
  request: { path },
  response: { bytes, ...(closes ? { closes } : {}) },
});
const post = (path: string, body: Buffer): Step => ({
  request: { path, method: "POST", fields: [`Content-Length: ${body.length}`], body },
  response: { bytes: sized("HTTP/1.1 200 OK", body) },
});
const headStep: Step = {
  request: { method: "HEAD", path: "/head" },
  response: { bytes: "HTTP/1.1 200 OK\r\nContent-Length: 77\r\n\r\n" },
};
const chunkedStep: Step = {
  request: {
    method: "PUT",
    path: "/chunked",
    fields: ["Transfer-Encoding: chunked"],
    body: chunked(pattern(5000), [999]),
  },
  response: { bytes: streamed("HTTP/1.1 201 Created", pattern(5000), [1234], "T: 1\r\n") },
};
const mixed = [
  get("/1"),
  headStep,
  post("/2", pattern(70_000)),
  get("/3", "HTTP/1.1 204 No Content\r\n\r\n"),
  chunkedStep,
  get("/4", early + OK),
  get("/5", "HTTP/1.1 304 Not Modified\r\n\r\n"),
  get("/6", sized("HTTP/1.1 200 OK", pattern(300_000))),
];

const sequences: Case[] = [
  { name: "eight different exchanges", steps: mixed },
  {
    name: "thirty small exchanges",
    steps: Array.from({ length: 30 }, (_, index) => get(`/${index}`, sized("HTTP/1.1 200 OK", `n${index}`))),
  },
  {
    name: "a last response that ends with the connection",
    steps: [get("/1"), get("/2"), get("/3", "HTTP/1.1 200 OK\r\n\r\nlast", true)],
  },
  {
    name: "a last response with Connection: close",
    steps: [get("/1"), get("/2", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", true)],
  },
];
const pipelined: Case[] = [
  {
    name: "ten small exchanges",
    pipelined: true,
    steps: Array.from({ length: 10 }, (_, index) => get(`/${index}`, sized("HTTP/1.1 200 OK", `n${index}`))),
  },
  {
    name: "bodies in both directions",
    pipelined: true,
    steps: [post("/1", pattern(10)), post("/2", pattern(100_000)), get("/3"), post("/4", pattern(1))],
  },
  { name: "eight different exchanges", pipelined: true, steps: mixed },
  {
    name: "large responses",
    pipelined: true,
    steps: [1, 2, 3].map((index) => get(`/${index}`, sized("HTTP/1.1 200 OK", pattern(700_000 + index)))),
  },
];

export const framingGroups: readonly Group[] = [
  { name: "chunk shapes", cases: chunkShapes },
  { name: "trailers", cases: trailers },
  { name: "responses without a body", cases: withoutBody },
  { name: "informational responses and Expect", cases: interim },
  { name: "responses until the connection ends", cases: untilClose },
  { name: "clients of HTTP/1.0", cases: old },
  { name: "body sizes", cases: sizes },
  { name: "slow bodies", cases: trickles },
  { name: "sequences on one connection", cases: sequences },
  { name: "pipelining", cases: pipelined },
];
