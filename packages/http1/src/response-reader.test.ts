import assert from "node:assert/strict";
import { test } from "node:test";
import { processorMs } from "@headworks/testkit";
import { bytes, everyCut, readResponse, singleBytes } from "../test/recording.ts";
import { ResponseReader, type Http1ErrorCode, type Oddity, type ResponseHead } from "./index.ts";

interface Expected {
  readonly method?: string;
  readonly status?: number;
  readonly reason?: string;
  readonly version?: string;
  readonly framing?: string;
  readonly keepAlive?: boolean;
  readonly fields?: readonly string[];
  readonly body?: string;
  readonly rest?: string;
  readonly informational?: readonly number[];
  readonly upgrade?: string;
  /** The origin ends the connection behind the input. */
  readonly end?: boolean;
}

/** Read alike by both modes, with nothing to remark unless the row says so. */
const PLAIN: readonly (readonly [string, string, Expected & { oddities?: readonly Oddity[] }])[] = [
  [
    "a blank before a colon, which is removed",
    "HTTP/1.1 200 OK\r\nX-A : a\r\nX-B \t : b\r\nContent-Length: 0\r\n\r\n",
    { fields: ["X-A", "a", "X-B", "b", "Content-Length", "0"], keepAlive: true },
  ],
  [
    "a blank before the colon of Connection",
    "HTTP/1.1 200 OK\r\nConnection : close\r\nContent-Length: 0\r\n\r\n",
    { fields: ["Connection", "close", "Content-Length", "0"], keepAlive: false },
  ],
  [
    "a blank before a length's colon",
    "HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\nokrest",
    { fields: ["Content-Length", "2"], framing: "length", body: "ok", rest: "rest", oddities: ["space-before-colon"] },
  ],
  [
    "a tab before a coding's colon",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding\t: chunked\r\n\r\n2\r\nok\r\n0\r\nX : y\r\n\r\n",
    { framing: "chunked", body: "ok", oddities: ["space-before-colon"] },
  ],
  [
    "a blank before a colon in an informational answer",
    "HTTP/1.1 103 Early Hints\r\nLink : </a>\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
    { informational: [103], keepAlive: true },
  ],
  [
    "no body",
    "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    { status: 200, reason: "OK", framing: "length", keepAlive: true },
  ],
  ["a body", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", { body: "abc" }],
  [
    "surplus behind a body",
    "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcHTTP/1.1 200 OK\r\n",
    { body: "abc", rest: "HTTP/1.1 200 OK\r\n" },
  ],
  [
    "chunked",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
    { framing: "chunked", body: "a", keepAlive: true },
  ],
  ["an empty reason", "HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n", { reason: "" }],
  [
    "a long reason with high bytes",
    "HTTP/1.1 404 Pas trouv\xe9, d\xe9sol\xe9\r\nContent-Length: 0\r\n\r\n",
    { reason: "Pas trouv\xe9, d\xe9sol\xe9" },
  ],
  ["a reason that starts with a blank", "HTTP/1.1 200  OK\r\nContent-Length: 0\r\n\r\n", { reason: " OK" }],
  ["a status beyond 599", "HTTP/1.1 999 Denied\r\nContent-Length: 0\r\n\r\n", { status: 999 }],
  ["HTTP/1.0", "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na", { version: "1.0", keepAlive: false, body: "a" }],
  [
    "HTTP/1.0 that stays",
    "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\na",
    { keepAlive: true, body: "a" },
  ],
  [
    "Connection: close",
    "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\na",
    { keepAlive: false, body: "a" },
  ],
  [
    "neither length nor coding",
    "HTTP/1.1 200 OK\r\n\r\nabc",
    { framing: "until-close", keepAlive: false, body: "abc", end: true },
  ],
  ["neither, and nothing", "HTTP/1.1 200 OK\r\n\r\n", { framing: "until-close", body: "", end: true }],
  ["204", "HTTP/1.1 204 No Content\r\n\r\nX", { framing: "none", keepAlive: true, rest: "X" }],
  ["204 with a length", "HTTP/1.1 204 No Content\r\nContent-Length: 3\r\n\r\nabc", { framing: "none", rest: "abc" }],
  ["304 with a length", "HTTP/1.1 304 Not Modified\r\nContent-Length: 3\r\n\r\n", { framing: "none", keepAlive: true }],
  ["304 with a coding", "HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n", { framing: "none" }],
  [
    "HEAD with a length",
    "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n",
    { method: "HEAD", framing: "none", keepAlive: true },
  ],
  ["HEAD with a coding", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", { method: "HEAD", framing: "none" }],
  ["HEAD with neither", "HTTP/1.1 200 OK\r\n\r\n", { method: "HEAD", framing: "none", keepAlive: true }],
  [
    "2xx to CONNECT",
    "HTTP/1.1 200 Established\r\nContent-Length: 3\r\n\r\n\x16\x03\x01",
    { method: "CONNECT", framing: "none", rest: "\x16\x03\x01" },
  ],
  ["407 to CONNECT", "HTTP/1.1 407 No\r\nContent-Length: 3\r\n\r\nabc", { method: "CONNECT", body: "abc" }],
  [
    "100 before the answer",
    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    { informational: [100], status: 200 },
  ],
  [
    "103 twice, with fields and a length that does not count",
    "HTTP/1.1 103 Early\r\nLink: a\r\n\r\nHTTP/1.1 103 Early\r\nContent-Length: 9\r\n\r\nHTTP/1.1 204 -\r\n\r\n",
    { informational: [103, 103], status: 204 },
  ],
  [
    "101, behind which every byte is the owner's",
    "HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: WebSocket\r\nContent-Length: 9\r\n\r\n\x81\x00",
    { status: 101, framing: "none", upgrade: "websocket", rest: "\x81\x00" },
  ],
];

type Refusal = { readonly refused: Http1ErrorCode };

/** Refused by the strict mode with `code`; the lenient mode refuses too, or reads it with oddities. */
const ODD: readonly (readonly [
  string,
  string,
  Http1ErrorCode,
  Refusal | (Expected & { oddities: readonly Oddity[] }),
])[] = [
  [
    "LF line ends",
    "HTTP/1.1 200 OK\nX: y\nContent-Length: 1\n\na",
    "bad-line-end",
    { fields: ["X", "y", "Content-Length", "1"], body: "a", oddities: ["bare-lf"] },
  ],
  [
    "mixed line ends",
    "HTTP/1.1 200 OK\r\nX: y\nContent-Length: 1\r\n\r\na",
    "bad-line-end",
    { body: "a", oddities: ["bare-lf"] },
  ],
  [
    "LF as empty line",
    "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\na",
    "bad-line-end",
    { body: "a", oddities: ["bare-lf"] },
  ],
  [
    "an empty line of CR LF behind LF lines",
    "HTTP/1.1 200 OK\nContent-Length: 1\n\r\na",
    "bad-line-end",
    { body: "a", oddities: ["bare-lf"] },
  ],
  [
    "an earlier empty line than CR LF CR LF",
    "HTTP/1.1 200 OK\nContent-Length: 9\n\na\r\n\r\nbcde",
    "bad-line-end",
    { body: "a\r\n\r\nbcde", oddities: ["bare-lf"] },
  ],
  [
    "no reason and no blank",
    "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n",
    "bad-status-line",
    { status: 200, reason: "", oddities: ["missing-reason-space"] },
  ],
  [
    "two blanks before the status",
    "HTTP/1.1  200 OK\r\nContent-Length: 0\r\n\r\n",
    "bad-status-line",
    { status: 200, reason: "OK", oddities: ["status-line-spacing"] },
  ],
  [
    "small letters",
    "http/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    "bad-status-line",
    { version: "1.1", oddities: ["odd-version"] },
  ],
  [
    "HTTP/1.2",
    "HTTP/1.2 200 OK\r\nContent-Length: 0\r\n\r\n",
    "bad-status-line",
    { version: "1.1", oddities: ["odd-version"] },
  ],
  [
    "HTTP/2.0 in text",
    "HTTP/2.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "bad-status-line",
    { version: "1.1", framing: "chunked", oddities: ["odd-version"] },
  ],
  [
    "HTTP/2 without a point",
    "HTTP/2 200 OK\r\nContent-Length: 0\r\n\r\n",
    "bad-status-line",
    { version: "1.1", oddities: ["odd-version"] },
  ],
  [
    "a radio station",
    "ICY 200 OK\r\nicy-name: x\r\n\r\nmp3",
    "bad-status-line",
    { version: "1.0", framing: "until-close", body: "mp3", end: true, oddities: ["odd-version"] },
  ],
  [
    "leading empty lines",
    "\r\n\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    "leading-empty-line",
    { status: 200, oddities: ["leading-empty-line"] },
  ],
  [
    "a folded value",
    "HTTP/1.1 200 OK\r\nX: a\r\n\t b\r\nContent-Length: 0\r\n\r\n",
    "line-folding",
    { fields: ["X", "a b", "Content-Length", "0"], oddities: ["line-folding"] },
  ],
  [
    "a fold that names framing fields",
    "HTTP/1.1 200 OK\r\nX: a,\r\n Content-Length\r\nContent-Length: 0\r\n\r\n",
    "line-folding",
    { fields: ["X", "a, Content-Length", "Content-Length", "0"], oddities: ["line-folding"] },
  ],
  [
    "a blank before a colon, and another oddity",
    "HTTP/1.1 200 OK\nX : a\r\nContent-Length : 0\r\n\r\n",
    "bad-line-end",
    { fields: ["X", "a", "Content-Length", "0"], oddities: ["bare-lf", "space-before-colon"] },
  ],
  [
    "a bell in a value",
    "HTTP/1.1 200 OK\r\nX: a\x07\r\nContent-Length: 0\r\n\r\n",
    "control-character",
    { fields: ["X", "a\x07", "Content-Length", "0"], oddities: ["control-character"] },
  ],
  [
    "an escape character in the reason",
    "HTTP/1.1 200 O\x1bK\r\nContent-Length: 0\r\n\r\n",
    "control-character",
    { reason: "O\x1bK", oddities: ["control-character"] },
  ],
  [
    "a line without a colon",
    "HTTP/1.1 200 OK\r\ngarbage\r\nContent-Length: 0\r\n\r\n",
    "bad-field-name",
    { fields: ["Content-Length", "0"], oddities: ["dropped-line"] },
  ],
  [
    "the fold of a dropped line",
    "HTTP/1.1 200 OK\r\nX: y\r\ngarbage\r\n more\r\nContent-Length: 0\r\n\r\n",
    "bad-field-name",
    { fields: ["X", "y", "Content-Length", "0"], oddities: ["dropped-line"] },
  ],
  [
    "a field without a name",
    "HTTP/1.1 200 OK\r\n: x\r\nContent-Length: 0\r\n\r\n",
    "bad-field-name",
    { fields: ["Content-Length", "0"], oddities: ["dropped-line"] },
  ],
  [
    "a name that is no token",
    "HTTP/1.1 200 OK\r\nX Y: x\r\nContent-Length: 0\r\n\r\n",
    "bad-field-name",
    { fields: ["Content-Length", "0"], oddities: ["dropped-line"] },
  ],
  [
    "equal lengths",
    "HTTP/1.1 200 OK\r\nContent-Length: 1\r\ncontent-length: 1\r\n\r\na",
    "repeated-content-length",
    { body: "a", oddities: ["repeated-content-length"] },
  ],
  [
    "a list of equal lengths",
    "HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\n\r\na",
    "bad-content-length",
    { body: "a", oddities: ["repeated-content-length"] },
  ],
  [
    "a length with chunked",
    "HTTP/1.1 200 OK\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "content-length-with-transfer-encoding",
    { framing: "chunked", oddities: ["content-length-with-transfer-encoding"] },
  ],
  [
    "chunked in two fields",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: Chunked\r\n\r\n0\r\n\r\n",
    "repeated-transfer-encoding",
    { framing: "chunked", oddities: ["repeated-transfer-encoding"] },
  ],
  [
    "identity",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\nab",
    "unknown-transfer-coding",
    { framing: "until-close", body: "ab", end: true, oddities: ["identity-transfer-encoding"] },
  ],
  [
    "odd informational and plain final answer",
    "HTTP/1.1 100\r\n\r\nHTTP/1.1 204 -\r\n\r\n",
    "bad-status-line",
    { informational: [100], status: 204, oddities: ["missing-reason-space"] },
  ],

  [
    "different lengths",
    "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
    "repeated-content-length",
    { refused: "repeated-content-length" },
  ],
  [
    "a list of different lengths",
    "HTTP/1.1 200 OK\r\nContent-Length: 1, 2\r\n\r\n",
    "bad-content-length",
    { refused: "repeated-content-length" },
  ],
  [
    "01 and 1",
    "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 01\r\n\r\n",
    "repeated-content-length",
    { refused: "repeated-content-length" },
  ],
  [
    "a signed length",
    "HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\n",
    "bad-content-length",
    { refused: "bad-content-length" },
  ],
  [
    "an empty length",
    "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n",
    "bad-content-length",
    { refused: "bad-content-length" },
  ],
  [
    "a length in words",
    "HTTP/1.1 200 OK\r\nContent-Length: one\r\n\r\n",
    "bad-content-length",
    { refused: "bad-content-length" },
  ],
  [
    "a bad length beside chunked",
    "HTTP/1.1 200 OK\r\nContent-Length: x\r\nTransfer-Encoding: chunked\r\n\r\n",
    "content-length-with-transfer-encoding",
    { refused: "bad-content-length" },
  ],
  [
    "identity with a length",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\nContent-Length: 1\r\n\r\n",
    "content-length-with-transfer-encoding",
    { refused: "ambiguous-framing" },
  ],
  [
    "identity and chunked",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n\r\n",
    "repeated-transfer-encoding",
    { refused: "repeated-transfer-encoding" },
  ],
  [
    "gzip, chunked",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
    "unknown-transfer-coding",
    { refused: "unknown-transfer-coding" },
  ],
  [
    "a tab behind chunked",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\t\r\n\r\n",
    "bad-transfer-encoding",
    { refused: "bad-transfer-encoding" },
  ],
  [
    "a tab behind chunked, in a head that needs tolerance anyway",
    "HTTP/1.1  200 OK\nTransfer-Encoding: chunked\t\n\n",
    "bad-status-line",
    { refused: "bad-transfer-encoding" },
  ],
  [
    "chunked, chunked",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n",
    "bad-transfer-encoding",
    { refused: "bad-transfer-encoding" },
  ],
  [
    "chunked in HTTP/1.0",
    "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
    "transfer-encoding-in-http-1.0",
    { refused: "transfer-encoding-in-http-1.0" },
  ],
  [
    "chunked in an old odd version",
    "HTTP/0.9 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
    "bad-status-line",
    { refused: "transfer-encoding-in-http-1.0" },
  ],
  ["a folded length", "HTTP/1.1 200 OK\r\nContent-Length:\r\n 1\r\n\r\n", "line-folding", { refused: "line-folding" }],
  [
    "a folded coding",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n , x\r\n\r\n",
    "line-folding",
    { refused: "line-folding" },
  ],
  [
    "a fold that reads as a framing field",
    "HTTP/1.1 200 OK\r\nX: y\r\n Transfer-Encoding: chunked\r\n\r\n",
    "line-folding",
    { refused: "ambiguous-framing" },
  ],
  [
    "a blank before a colon, but no name",
    "HTTP/1.1 200 OK\r\n : a\r\n\r\n",
    "space-before-field",
    { refused: "space-before-field" },
  ],
  [
    "a length behind a blank that is not the colon's",
    "HTTP/1.1 200 OK\r\nContent-Length X: 1\r\n\r\n",
    "bad-field-name",
    { refused: "ambiguous-framing" },
  ],
  [
    "two lengths that differ, one with a blank before its colon",
    "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length : 2\r\n\r\n",
    "repeated-content-length",
    { refused: "repeated-content-length" },
  ],
  [
    "an unknown coding with a blank before its colon",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding : gzip\r\n\r\n",
    "unknown-transfer-coding",
    { refused: "unknown-transfer-coding" },
  ],
  [
    "a length's name with a control character",
    "HTTP/1.1 200 OK\r\nContent-Length\x0b: 1\r\n\r\n",
    "control-character",
    { refused: "ambiguous-framing" },
  ],
  [
    "a length's name with a hard blank",
    "HTTP/1.1 200 OK\r\nContent-Length\xa0: 1\r\n\r\n",
    "bad-field-name",
    { refused: "ambiguous-framing" },
  ],
  [
    "a coding without a colon",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding chunked\r\n\r\n",
    "bad-field-name",
    { refused: "ambiguous-framing" },
  ],
  [
    "a vertical tab in a coding",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: \x0bchunked\r\n\r\n",
    "control-character",
    { refused: "bad-transfer-encoding" },
  ],
  [
    "a blank before the first field",
    "HTTP/1.1 200 OK\r\n X: y\r\n\r\n",
    "space-before-field",
    { refused: "space-before-field" },
  ],
  ["NUL in a value", "HTTP/1.1 200 OK\r\nX: a\0\r\n\r\n", "control-character", { refused: "control-character" }],
  ["NUL in the reason", "HTTP/1.1 200 O\0K\r\n\r\n", "control-character", { refused: "control-character" }],
  ["CR in a value", "HTTP/1.1 200 OK\r\nX: a\rb\r\n\r\n", "bad-line-end", { refused: "bad-line-end" }],
  ["CR CR LF", "HTTP/1.1 200 OK\r\nX: a\r\r\n\r\n", "bad-line-end", { refused: "bad-line-end" }],
  ["CR in the reason", "HTTP/1.1 200 O\rK\r\n\r\n", "bad-line-end", { refused: "bad-line-end" }],
  ["CR before the status line", "\rHTTP/1.1 200 OK\r\n\r\n", "leading-empty-line", { refused: "bad-line-end" }],
  [
    "seventeen empty lines",
    `${"\r\n".repeat(17)}HTTP/1.1 200 OK\r\n\r\n`,
    "leading-empty-line",
    { refused: "leading-empty-line" },
  ],
  ["a status of two digits", "HTTP/1.1 20 OK\r\n\r\n", "bad-status-line", { refused: "bad-status-line" }],
  ["a status of four digits", "HTTP/1.1 2000 OK\r\n\r\n", "bad-status-line", { refused: "bad-status-line" }],
  ["a status below 100", "HTTP/1.1 099 OK\r\n\r\n", "bad-status-line", { refused: "bad-status-line" }],
  ["a signed status", "HTTP/1.1 +20 OK\r\n\r\n", "bad-status-line", { refused: "bad-status-line" }],
  ["no status", "HTTP/1.1 OK\r\n\r\n", "bad-status-line", { refused: "bad-status-line" }],
  ["a blank before the status line", " HTTP/1.1 200 OK\r\n\r\n", "bad-status-line", { refused: "bad-status-line" }],
  ["a request", "GET / HTTP/1.1\r\n\r\n", "bad-status-line", { refused: "bad-status-line" }],
  ["HTTP/0.9, which is only a body", "<html>hello", "bad-status-line", { refused: "bad-status-line" }],
  ["the greeting of another protocol", "SSH-2.0-OpenSSH_9.6\r\n", "bad-status-line", { refused: "bad-status-line" }],
  ["a TLS alert", "\x15\x03\x01\0\x02\x02\x28", "bad-status-line", { refused: "bad-status-line" }],
];

function check(
  name: string,
  input: string,
  expected: Expected & { oddities?: readonly Oddity[] },
  lenient: boolean,
): void {
  const { method = "GET", end = false } = expected;
  const options = { method, end, lenient, upgrade: "websocket" };
  const whole = readResponse([bytes(input)], options);
  const [message] = whole.messages;
  assert.equal(whole.error, undefined, name);
  assert(message?.ended === true);
  const head: ResponseHead = message.head;
  for (const key of ["status", "reason", "version", "keepAlive", "fields", "upgrade"] as const) {
    if (expected[key] !== undefined) assert.deepEqual(head[key], expected[key], key);
  }
  if (expected.framing !== undefined) assert.equal(head.framing.kind, expected.framing);
  assert.equal(message.body, expected.body ?? "");
  assert.equal(whole.rest, expected.rest ?? "");
  assert.deepEqual(whole.informational, expected.informational ?? []);
  assert.deepEqual(whole.oddities, [...(expected.oddities ?? [])].toSorted());
  if (head.oddities.length > 0) assert.equal(head.keepAlive, false, "an oddity forbids another exchange");
  for (const pieces of everyCut(bytes(input))) assert.deepEqual(readResponse(pieces, options), whole);
}

for (const [name, input, expected] of PLAIN) {
  test(`a response is read alike by both modes, however it is cut: ${name}`, () => {
    check(name, input, expected, false);
    check(name, input, expected, true);
  });
}

function expectRefusal(input: string, lenient: boolean, code: Http1ErrorCode): void {
  for (const pieces of everyCut(bytes(input))) {
    const { error, status, messages } = readResponse(pieces, { lenient, end: true });
    assert.deepEqual([error, status, messages.length], [code, 502, 0]);
  }
}

for (const [name, input, code, lenient] of ODD) {
  const isRefused = "refused" in lenient;
  test(`an odd response is refused strictly and ${isRefused ? "also leniently" : "read leniently"}: ${name}`, () => {
    expectRefusal(input, false, code);
    if ("refused" in lenient) expectRefusal(input, true, lenient.refused);
    else check(name, input, lenient, true);
  });
}

test("the table of odd responses covers every oddity that a head can have", () => {
  const inBodies: readonly Oddity[] = [
    "chunk-size-padding",
    "dropped-trailer",
    "missing-last-line",
    "odd-chunk-extension",
  ];
  const covered = new Set<Oddity>(ODD.flatMap(([, , , lenient]) => ("refused" in lenient ? [] : lenient.oddities)));
  assert.equal(covered.size, 17 - inBodies.length);
});

test("informational responses are bounded", () => {
  const flood = (count: number): Buffer => bytes(`${"HTTP/1.1 102 P\r\n\r\n".repeat(count)}HTTP/1.1 204 -\r\n\r\n`);
  assert.equal(readResponse([flood(32)]).informational.length, 32);
  for (const pieces of [[flood(33)], singleBytes(flood(33))]) {
    assert.equal(readResponse(pieces).error, "too-many-informational");
  }
});

test("informational responses are counted for each response anew", () => {
  let count = 0;
  const reader = new ResponseReader(
    { onHead() {}, onInformational: () => void count++, onData() {}, onEnd() {}, onError: assert.fail },
    { lenient: false },
  );
  const input = bytes(`${"HTTP/1.1 102 P\r\n\r\n".repeat(20)}HTTP/1.1 204 -\r\n\r\n`);
  for (let response = 0; response < 3; response++) {
    reader.expect("GET");
    assert.equal(reader.read(input), input.length);
  }
  assert.equal(count, 60);
});

test("101 is refused unless the request offered an upgrade", () => {
  const input = bytes("HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\n\r\n");
  assert.equal(readResponse([input]).error, "unexpected-upgrade");
  assert.equal(readResponse([input], { upgrade: "websocket" }).error, undefined);
});

test("bytes that no request asked for are refused, also behind a response", () => {
  const errors: string[] = [];
  const reader = new ResponseReader(
    { onHead() {}, onInformational() {}, onData() {}, onEnd() {}, onError: (error) => void errors.push(error.code) },
    { lenient: true },
  );
  const response = bytes("HTTP/1.1 204 -\r\n\r\n");
  reader.expect("GET");
  assert.equal(reader.read(response), response.length);
  assert.equal(reader.read(response), 0, "an ended reader takes nothing");
  reader.next();
  reader.read(response);
  assert.deepEqual(errors, ["unexpected-answer"]);
});

test("an owner that expects another response inside the present one is stopped", () => {
  const reader = new ResponseReader(
    { onHead() {}, onInformational() {}, onData() {}, onEnd() {}, onError: assert.fail },
    { lenient: false },
  );
  reader.expect("GET");
  reader.read(bytes("HTTP/1.1 200 OK\r\n"));
  assert.throws(() => reader.expect("GET"), /Broken rule/);
  reader.read(bytes("Content-Length: 1\r\n\r\n"));
  assert.throws(() => reader.expect("GET"), /Broken rule/);
  reader.read(bytes("a"));
  reader.expect("GET");
});

test("one reader reads a whole connection, with the oddities of each response alone", () => {
  const seen: unknown[] = [];
  const reader = new ResponseReader(
    {
      onHead: (head) => void seen.push(head.status),
      onInformational() {},
      onData() {},
      onEnd() {},
      onError: assert.fail,
    },
    { lenient: true },
  );
  reader.expect("HEAD");
  reader.read(bytes("HTTP/1.1 200\r\nContent-Length: 5\r\n\r\n"));
  assert.deepEqual(reader.oddities, ["missing-reason-space"]);
  const first = reader.oddities;
  reader.expect("GET");
  reader.read(bytes("HTTP/1.1 201 OK\r\nContent-Length: 1\r\n\r\na"));
  assert.deepEqual(reader.oddities, []);
  assert.deepEqual(first, ["missing-reason-space"], "what was handed out does not change");
  assert.deepEqual(seen, [200, 201]);
});

test("a response cut by the end of the connection is an error unless it is read until the end", () => {
  const input = bytes("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc");
  for (let size = 1; size < input.length; size++) {
    for (const lenient of [false, true]) {
      assert.equal(readResponse([input.subarray(0, size)], { lenient, end: true }).error, "truncated", `${size}`);
    }
  }
});

test("hostile heads cost the lenient mode time in proportion to their length", () => {
  const limits = { headBytes: 10_000_000, fieldCount: 10_000_000 };
  const costMs = (line: string, size: number): number => {
    const input = bytes(`HTTP/1.1 200 OK\nX: a\n${line.repeat(size / line.length)}\n\n`);
    return processorMs(() => readResponse([input], { lenient: true, limits }));
  };
  for (const line of [" a\n", "garbage\n", "a:\n", "x \t", ",", "\t"]) {
    const small = costMs(line, 60_000);
    const large = costMs(line, 600_000);
    // Ten times the length; anything quadratic takes about a hundred times as long.
    assert(large < 40 * small, `${JSON.stringify(line)}: ${large} ms against ${small} ms`);
  }
});
