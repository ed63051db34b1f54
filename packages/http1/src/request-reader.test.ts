import assert from "node:assert/strict";
import { test } from "node:test";
import { processorMs } from "@headworks/testkit";
import { bytes, everyCut, readRequests, singleBytes } from "../test/recording.ts";
import { type Http1Error, type Http1ErrorCode, readRefusedHead, type RequestHead, RequestReader } from "./index.ts";

type Facts = Partial<Omit<RequestHead, "framing">> & { framing?: string; body?: string; trailers?: string[] };

const HOST = "Host: a.test\r\n";

/** name, input (one whole request), what must be read from it */
const ACCEPTED: readonly (readonly [string, string, Facts])[] = [
  [
    "the smallest request",
    `GET / HTTP/1.1\r\n${HOST}\r\n`,
    { method: "GET", target: "/", framing: "none", keepAlive: true },
  ],
  ["HTTP/1.0 without Host", "GET / HTTP/1.0\r\n\r\n", { version: "1.0", authority: undefined, keepAlive: false }],
  ["HTTP/1.0 that wants to stay", "GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", { keepAlive: true }],
  [
    "HTTP/1.0 with close and keep-alive",
    "GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n",
    { keepAlive: false },
  ],
  ["Connection: close", `GET / HTTP/1.1\r\n${HOST}Connection: close\r\n\r\n`, { keepAlive: false }],
  ["CLOSE among other options", `GET / HTTP/1.1\r\n${HOST}Connection: x , CLOSE,,\r\n\r\n`, { keepAlive: false }],
  [
    "close in a second Connection field",
    `GET / HTTP/1.1\r\n${HOST}Connection: x\r\nconnection: close\r\n\r\n`,
    { keepAlive: false },
  ],
  ["an option that only contains close", `GET / HTTP/1.1\r\n${HOST}Connection: closed\r\n\r\n`, { keepAlive: true }],
  ["an unknown method", `BREW / HTTP/1.1\r\n${HOST}\r\n`, { method: "BREW" }],
  [
    "a method of all token characters",
    `!#$%&'*+-.^_\`|~09azAZ / HTTP/1.1\r\n${HOST}\r\n`,
    { method: "!#$%&'*+-.^_`|~09azAZ" },
  ],
  ["a lower-case method, which is another method", `get / HTTP/1.1\r\n${HOST}\r\n`, { method: "get" }],
  ["a query with loose characters", `GET /a?b=[{|}^\\"<>] HTTP/1.1\r\n${HOST}\r\n`, { target: '/a?b=[{|}^\\"<>]' }],
  [
    "a path that starts with two slashes",
    `GET //evil.test/x HTTP/1.1\r\n${HOST}\r\n`,
    { targetForm: "origin", authority: "a.test" },
  ],
  [
    "octets beyond ASCII in a target",
    `GET /\xc3\xa9?\xff=\x80 HTTP/1.1\r\n${HOST}\r\n`,
    { target: "/\xc3\xa9?\xff=\x80" },
  ],
  [
    "octets beyond ASCII in an absolute target",
    "GET http://b.test/\xe9 HTTP/1.1\r\nHost: b.test\r\n\r\n",
    { target: "http://b.test/\xe9", authority: "b.test" },
  ],
  ["dots and escapes, untouched", `GET /a/../%2e%2E/%00 HTTP/1.1\r\n${HOST}\r\n`, { target: "/a/../%2e%2E/%00" }],
  [
    "an absolute target, whose authority wins",
    "GET http://b.test:81/x?y HTTP/1.1\r\nHost: a.test\r\n\r\n",
    { targetForm: "absolute", authority: "b.test:81", host: "a.test" },
  ],
  ["an absolute target without a path", "GET http://b.test HTTP/1.1\r\nHost: b.test\r\n\r\n", { authority: "b.test" }],
  [
    "an absolute target with a query only",
    "GET http://b.test?q=/ HTTP/1.1\r\nHost: b.test\r\n\r\n",
    { authority: "b.test" },
  ],
  [
    "an absolute target and an empty Host",
    "GET http://b.test/ HTTP/1.1\r\nHost:\r\n\r\n",
    { authority: "b.test", host: "" },
  ],
  ["an absolute target in HTTP/1.0", "GET http://b.test/ HTTP/1.0\r\n\r\n", { authority: "b.test", host: undefined }],
  ["OPTIONS *", `OPTIONS * HTTP/1.1\r\n${HOST}\r\n`, { targetForm: "asterisk", authority: "a.test" }],
  [
    "CONNECT, whose target is the authority",
    "CONNECT b.test:443 HTTP/1.1\r\nHost: other.test\r\n\r\n",
    { targetForm: "authority", authority: "b.test:443", framing: "none" },
  ],
  ["CONNECT to IPv6", "CONNECT [2001:db8::1]:443 HTTP/1.1\r\nHost: x\r\n\r\n", { authority: "[2001:db8::1]:443" }],
  [
    "CONNECT with an empty body",
    "CONNECT b.test:443 HTTP/1.1\r\nHost: b\r\nContent-Length: 0\r\n\r\n",
    { framing: "none" },
  ],
  ["Host with a port", "GET / HTTP/1.1\r\nHost: a.test:8080\r\n\r\n", { host: "a.test:8080" }],
  ["Host as IPv6", "GET / HTTP/1.1\r\nHost: [::1]:3000\r\n\r\n", { host: "[::1]:3000" }],
  ["Host with IPv4 inside IPv6", "GET / HTTP/1.1\r\nHost: [::ffff:10.0.0.1]\r\n\r\n", { host: "[::ffff:10.0.0.1]" }],
  ["Host with underscore and trailing dot", "GET / HTTP/1.1\r\nHost: my_host.test.\r\n\r\n", { host: "my_host.test." }],
  [
    "field name case and order kept",
    "GET / HTTP/1.1\r\nhOsT: a\r\nX-b: 2\r\nx-B: 1\r\n\r\n",
    { fields: ["hOsT", "a", "X-b", "2", "x-B", "1"] },
  ],
  ["blanks around a value dropped", "GET / HTTP/1.1\r\nHost: \t a.test \t \r\n\r\n", { host: "a.test" }],
  ["no blank behind the colon", "GET / HTTP/1.1\r\nHost:a.test\r\n\r\n", { host: "a.test" }],
  ["an empty value", `GET / HTTP/1.1\r\n${HOST}X:\r\nY: \t\r\n\r\n`, { fields: ["Host", "a.test", "X", "", "Y", ""] }],
  [
    "blanks, tabs and colons inside a value",
    `GET / HTTP/1.1\r\n${HOST}X: a \t:b\r\n\r\n`,
    { fields: ["Host", "a.test", "X", "a \t:b"] },
  ],
  [
    "bytes above 0x7f in a value",
    `GET / HTTP/1.1\r\n${HOST}X: \x80\xe9\xff\r\n\r\n`,
    { fields: ["Host", "a.test", "X", "\x80\xe9\xff"] },
  ],
  [
    "a field called __proto__",
    `GET / HTTP/1.1\r\n${HOST}__proto__: x\r\n\r\n`,
    { fields: ["Host", "a.test", "__proto__", "x"] },
  ],
  ["Content-Length", `POST / HTTP/1.1\r\n${HOST}Content-Length: 5\r\n\r\nhello`, { framing: "length", body: "hello" }],
  ["Content-Length 0", `POST / HTTP/1.1\r\n${HOST}Content-Length: 0\r\n\r\n`, { framing: "length", body: "" }],
  [
    "Content-Length with leading zeros",
    `POST / HTTP/1.1\r\n${HOST}Content-Length: 000000000000003\r\n\r\nabc`,
    { body: "abc" },
  ],
  ["a body on GET", `GET / HTTP/1.1\r\n${HOST}Content-Length: 2\r\n\r\nhi`, { body: "hi" }],
  [
    "a body that looks like a request",
    `POST / HTTP/1.1\r\n${HOST}Content-Length: 18\r\n\r\nGET / HTTP/1.1\r\n\r\n`,
    { body: "GET / HTTP/1.1\r\n\r\n" },
  ],
  [
    "chunked",
    `POST / HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n`,
    { framing: "chunked", body: "hello" },
  ],
  [
    "Chunked in capitals",
    `POST / HTTP/1.1\r\n${HOST}TRANSFER-ENCODING: CHUNKED\r\n\r\n0\r\n\r\n`,
    { framing: "chunked", body: "" },
  ],
  ["Expect", `PUT / HTTP/1.1\r\n${HOST}Expect: 100-Continue\r\nContent-Length: 1\r\n\r\nx`, { expectContinue: true }],
  [
    "Expect in HTTP/1.0",
    "PUT / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\nx",
    { expectContinue: false },
  ],
  ["an unknown expectation", `PUT / HTTP/1.1\r\n${HOST}Expect: tea\r\n\r\n`, { expectContinue: false }],
  [
    "Upgrade",
    `GET / HTTP/1.1\r\n${HOST}Connection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n\r\n`,
    { upgrade: "websocket" },
  ],
  [
    "Upgrade that Connection does not name",
    `GET / HTTP/1.1\r\n${HOST}Upgrade: websocket\r\n\r\n`,
    { upgrade: undefined },
  ],
  [
    "Upgrade in HTTP/1.0",
    "GET / HTTP/1.0\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
    { upgrade: undefined },
  ],
  [
    "Upgrade with a body, which is no offer",
    `POST / HTTP/1.1\r\n${HOST}Connection: upgrade\r\nUpgrade: websocket\r\nContent-Length: 1\r\n\r\nx`,
    { upgrade: undefined, body: "x" },
  ],
  [
    "Upgrade to h2c, which is no offer",
    `GET / HTTP/1.1\r\n${HOST}Connection: upgrade, HTTP2-Settings\r\nUpgrade: H2C\r\nHTTP2-Settings: \r\n\r\n`,
    { upgrade: undefined },
  ],
  [
    "Upgrade to h2c among others, which is no offer",
    `GET / HTTP/1.1\r\n${HOST}Connection: upgrade\r\nUpgrade: websocket\r\nUpgrade: x, h2c\r\n\r\n`,
    { upgrade: undefined },
  ],
  [
    "Upgrade to a protocol with h2c in its name",
    `GET / HTTP/1.1\r\n${HOST}Connection: upgrade\r\nUpgrade: x-h2c\r\n\r\n`,
    { upgrade: "x-h2c" },
  ],
];

/** name, input up to and including the byte at which it must be refused, code, status */
const REFUSED: readonly (readonly [string, string, Http1ErrorCode, number?])[] = [
  ["two leading empty lines", "\r\n\r\n", "leading-empty-line"],
  ["a leading empty line and a line of blanks", ` \r\nGET / HTTP/1.1\r\n${HOST}\r\n`, "bad-method"],
  ["a leading empty line and LF", "\r\n\n", "leading-empty-line"],
  ["a leading CR alone", "\rG", "leading-empty-line"],
  ["a leading CR CR LF", "\r\r", "leading-empty-line"],
  ["a leading LF", `\nGET / HTTP/1.1\r\n${HOST}\r\n`, "leading-empty-line"],
  ["a leading blank", ` GET / HTTP/1.1\r\n${HOST}\r\n`, "bad-method"],
  ["a TLS client hello", "\x16\x03\x01\x02\x00", "control-character"],
  ["a SOCKS5 greeting", "\x05\x01\x00", "control-character"],
  ["a method with a comma", `GE,T / HTTP/1.1\r\n${HOST}\r\n`, "bad-method"],
  ["a method with a high byte", `G\xc9T / HTTP/1.1\r\n${HOST}\r\n`, "bad-method"],
  ["a NUL in the method", "G\0T", "control-character"],
  ["HTTP/0.9", `GET /\r\n${HOST}\r\n`, "bad-request-line"],
  ["a method alone", `GET\r\n${HOST}\r\n`, "bad-request-line"],
  ["two blanks before the target", `GET  / HTTP/1.1\r\n${HOST}\r\n`, "bad-request-line"],
  ["two blanks before the version", `GET /  HTTP/1.1\r\n${HOST}\r\n`, "bad-request-line"],
  ["a blank in the target", `GET /a b HTTP/1.1\r\n${HOST}\r\n`, "bad-request-line"],
  ["a blank behind the version", `GET / HTTP/1.1 \r\n${HOST}\r\n`, "bad-request-line"],
  ["a tab as separator", `GET\t/ HTTP/1.1\r\n${HOST}\r\n`, "control-character"],
  ["a tab in the target", `GET /a\tb HTTP/1.1\r\n${HOST}\r\n`, "control-character"],
  ["a high byte in place of the slash", `GET \xe9 HTTP/1.1\r\n${HOST}\r\n`, "bad-target"],
  ["a high byte in the scheme", `GET htt\xf0://b.test/ HTTP/1.1\r\n${HOST}\r\n`, "bad-target"],
  ["a high byte in an absolute target's host", `GET http://b\xe9.test/ HTTP/1.1\r\n${HOST}\r\n`, "bad-target"],
  ["a high byte in the target of CONNECT", `CONNECT b\xe9.test:443 HTTP/1.1\r\n${HOST}\r\n`, "bad-target"],
  ["a high byte in Host", "GET / HTTP/1.1\r\nHost: a\xe9.test\r\n\r\n", "bad-host"],
  ["a no-break space, which is no separator", `GET /\xa0HTTP/1.1\r\n${HOST}\r\n`, "bad-request-line"],
  ["a DEL in the target", "GET /\x7f", "control-character"],
  ["a fragment", `GET /#/../b HTTP/1.1\r\n${HOST}\r\n`, "bad-target"],
  ["a target without a slash", `GET index HTTP/1.1\r\n${HOST}\r\n`, "bad-target"],
  ["* for GET", `GET * HTTP/1.1\r\n${HOST}\r\n`, "bad-target"],
  ["an absolute target without authority", `GET http:///x HTTP/1.1\r\n${HOST}\r\n`, "bad-target"],
  ["a scheme with a digit", `GET h2://a.test/ HTTP/1.1\r\n${HOST}\r\n`, "bad-target"],
  ["user information", `GET http://a.test@b.test/ HTTP/1.1\r\n${HOST}\r\n`, "bad-target"],
  ["a backslash in the authority", `GET http://b.test\\@a.test/ HTTP/1.1\r\n${HOST}\r\n`, "bad-target"],
  ["an empty port in the target", `GET http://b.test:/ HTTP/1.1\r\n${HOST}\r\n`, "bad-target"],
  ["a port out of range in the target", `GET http://b.test:65536/ HTTP/1.1\r\n${HOST}\r\n`, "bad-target"],
  ["CONNECT without a port", `CONNECT b.test HTTP/1.1\r\n${HOST}\r\n`, "bad-target"],
  ["CONNECT with a path", `CONNECT /x HTTP/1.1\r\n${HOST}\r\n`, "bad-target"],
  ["CONNECT with a scheme", `CONNECT https://b.test:443 HTTP/1.1\r\n${HOST}\r\n`, "bad-target"],
  ["CONNECT to IPv6 without a port", `CONNECT [::1] HTTP/1.1\r\n${HOST}\r\n`, "bad-target"],
  ["CONNECT with a body", `CONNECT b.test:443 HTTP/1.1\r\n${HOST}Content-Length: 1\r\n\r\n`, "connect-with-body"],
  [
    "CONNECT with a chunked body",
    `CONNECT b.test:443 HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n`,
    "connect-with-body",
  ],
  ["HTTP/2.0", `GET / HTTP/2.0\r\n${HOST}\r\n`, "unsupported-version", 505],
  ["the HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\n", "unsupported-version", 505],
  ["HTTP/1.2", `GET / HTTP/1.2\r\n${HOST}\r\n`, "unsupported-version", 505],
  ["HTTP/0.9 spelled out", `GET / HTTP/0.9\r\n${HOST}\r\n`, "unsupported-version", 505],
  ["http in small letters", `GET / http/1.1\r\n${HOST}\r\n`, "bad-version"],
  ["HTTP/1.10", `GET / HTTP/1.10\r\n${HOST}\r\n`, "bad-version"],
  ["HTTP/1,1", `GET / HTTP/1,1\r\n${HOST}\r\n`, "bad-version"],
  ["another protocol", `GET / RTSP/1.0\r\n${HOST}\r\n`, "bad-version"],
  ["LF behind the request line", "GET / HTTP/1.1\n", "bad-line-end"],
  ["CR alone behind the request line", "GET / HTTP/1.1\rH", "bad-line-end"],
  ["CR CR LF behind the request line", "GET / HTTP/1.1\r\r", "bad-line-end"],
  ["LF behind a field", `GET / HTTP/1.1\r\n${HOST}X: y\n`, "bad-line-end"],
  ["LF alone as empty line", `GET / HTTP/1.1\r\n${HOST}\n`, "bad-line-end"],
  ["CR inside a value", `GET / HTTP/1.1\r\n${HOST}X: a\rb`, "bad-line-end"],
  ["CR inside a name", `GET / HTTP/1.1\r\n${HOST}X\rY`, "bad-line-end"],
  ["CR instead of the empty line", `GET / HTTP/1.1\r\n${HOST}\rX`, "bad-line-end"],
  ["NUL in a value", `GET / HTTP/1.1\r\n${HOST}X: a\0`, "control-character"],
  ["NUL in a name", `GET / HTTP/1.1\r\n${HOST}X\0`, "control-character"],
  ["a bell in a value", `GET / HTTP/1.1\r\n${HOST}X: \x07`, "control-character"],
  ["a vertical tab in a value", `GET / HTTP/1.1\r\n${HOST}Transfer-Encoding: \x0b`, "control-character"],
  ["DEL in a value", `GET / HTTP/1.1\r\n${HOST}X: \x7f`, "control-character"],
  ["a blank before the first field", `GET / HTTP/1.1\r\n ${HOST}\r\n`, "space-before-field"],
  ["a folded value", `GET / HTTP/1.1\r\n${HOST}X: a\r\n b\r\n\r\n`, "line-folding"],
  ["a folded value with a tab", `GET / HTTP/1.1\r\n${HOST}X: a\r\n\tb\r\n\r\n`, "line-folding"],
  ["a line of blanks", `GET / HTTP/1.1\r\n${HOST} \r\n\r\n`, "line-folding"],
  ["a blank before the colon", "GET / HTTP/1.1\r\nHost : a\r\n\r\n", "space-before-colon"],
  ["a tab before the colon", `GET / HTTP/1.1\r\n${HOST}Content-Length\t: 3\r\n\r\n`, "space-before-colon"],
  ["a blank in a name", `GET / HTTP/1.1\r\n${HOST}X Y: 3\r\n\r\n`, "bad-field-name"],
  ["no name", `GET / HTTP/1.1\r\n${HOST}: x\r\n\r\n`, "bad-field-name"],
  ["no colon", `GET / HTTP/1.1\r\n${HOST}X\r\n\r\n`, "bad-field-name"],
  ["a separator in a name", `GET / HTTP/1.1\r\n${HOST}X(y): z\r\n\r\n`, "bad-field-name"],
  ["a high byte in a name", `GET / HTTP/1.1\r\n${HOST}X\xe9: z\r\n\r\n`, "bad-field-name"],
  ["no Host", "GET / HTTP/1.1\r\nX: y\r\n\r\n", "missing-host"],
  ["no Host with an absolute target", "GET http://a.test/ HTTP/1.1\r\n\r\n", "missing-host"],
  ["two Hosts", `GET / HTTP/1.1\r\n${HOST}Host: b.test\r\n\r\n`, "repeated-host"],
  ["two equal Hosts", `GET / HTTP/1.1\r\n${HOST}host: a.test\r\n\r\n`, "repeated-host"],
  ["two Hosts in HTTP/1.0", `GET / HTTP/1.0\r\n${HOST}host: a.test\r\n\r\n`, "repeated-host"],
  ["an empty Host", "GET / HTTP/1.1\r\nHost:\r\n\r\n", "bad-host"],
  ["a Host with a path", "GET / HTTP/1.1\r\nHost: a.test/x\r\n\r\n", "bad-host"],
  ["a Host with user information", "GET / HTTP/1.1\r\nHost: u@a.test\r\n\r\n", "bad-host"],
  ["a Host list", "GET / HTTP/1.1\r\nHost: a.test, b.test\r\n\r\n", "bad-host"],
  ["a Host with a blank", "GET / HTTP/1.1\r\nHost: a.test b.test\r\n\r\n", "bad-host"],
  ["a Host with an escape", "GET / HTTP/1.1\r\nHost: a%2etest\r\n\r\n", "bad-host"],
  ["a Host with an empty port", "GET / HTTP/1.1\r\nHost: a.test:\r\n\r\n", "bad-host"],
  ["a Host with a named port", "GET / HTTP/1.1\r\nHost: a.test:http\r\n\r\n", "bad-host"],
  ["a Host with an open bracket", "GET / HTTP/1.1\r\nHost: [::1\r\n\r\n", "bad-host"],
  ["a bad Host beside an absolute target", "GET http://a.test/ HTTP/1.1\r\nHost: a@b\r\n\r\n", "bad-host"],
  [
    "two Content-Lengths",
    `POST / HTTP/1.1\r\n${HOST}Content-Length: 1\r\nContent-Length: 2\r\n\r\n`,
    "repeated-content-length",
  ],
  [
    "two equal Content-Lengths",
    `POST / HTTP/1.1\r\n${HOST}Content-Length: 1\r\ncontent-length: 1\r\n\r\n`,
    "repeated-content-length",
  ],
  ["a Content-Length list", `POST / HTTP/1.1\r\n${HOST}Content-Length: 1, 1\r\n\r\n`, "bad-content-length"],
  ["an empty Content-Length", `POST / HTTP/1.1\r\n${HOST}Content-Length:\r\n\r\n`, "bad-content-length"],
  ["a signed Content-Length", `POST / HTTP/1.1\r\n${HOST}Content-Length: +1\r\n\r\n`, "bad-content-length"],
  ["a negative Content-Length", `POST / HTTP/1.1\r\n${HOST}Content-Length: -1\r\n\r\n`, "bad-content-length"],
  ["a hexadecimal Content-Length", `POST / HTTP/1.1\r\n${HOST}Content-Length: 0x1\r\n\r\n`, "bad-content-length"],
  ["a fractional Content-Length", `POST / HTTP/1.1\r\n${HOST}Content-Length: 1.0\r\n\r\n`, "bad-content-length"],
  ["an exponent in Content-Length", `POST / HTTP/1.1\r\n${HOST}Content-Length: 1e3\r\n\r\n`, "bad-content-length"],
  [
    "a Content-Length with a blank inside",
    `POST / HTTP/1.1\r\n${HOST}Content-Length: 1 2\r\n\r\n`,
    "bad-content-length",
  ],
  [
    "a Content-Length of 16 digits",
    `POST / HTTP/1.1\r\n${HOST}Content-Length: 0000000000000001\r\n\r\n`,
    "bad-content-length",
  ],
  ["other digits in Content-Length", `POST / HTTP/1.1\r\n${HOST}Content-Length: \xb9\r\n\r\n`, "bad-content-length"],
  [
    "Content-Length with Transfer-Encoding",
    `POST / HTTP/1.1\r\n${HOST}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n`,
    "content-length-with-transfer-encoding",
  ],
  [
    "Transfer-Encoding with Content-Length",
    `POST / HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n`,
    "content-length-with-transfer-encoding",
  ],
  ["chunked in HTTP/1.0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", "transfer-encoding-in-http-1.0"],
  ["chunked twice", `POST / HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked, chunked\r\n\r\n`, "bad-transfer-encoding"],
  [
    "chunked in two fields",
    `POST / HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n`,
    "repeated-transfer-encoding",
  ],
  ["an empty Transfer-Encoding", `POST / HTTP/1.1\r\n${HOST}Transfer-Encoding:\r\n\r\n`, "bad-transfer-encoding"],
  [
    "a tab behind chunked, which hides it from other parsers",
    `POST / HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked \t\r\n\r\n`,
    "bad-transfer-encoding",
  ],
  ["an empty member", `POST / HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked,\r\n\r\n`, "bad-transfer-encoding"],
  ["a quoted coding", `POST / HTTP/1.1\r\n${HOST}Transfer-Encoding: "chunked"\r\n\r\n`, "bad-transfer-encoding"],
  [
    "a parameter on chunked",
    `POST / HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked;q=1\r\n\r\n`,
    "bad-transfer-encoding",
  ],
  [
    "gzip, chunked",
    `POST / HTTP/1.1\r\n${HOST}Transfer-Encoding: gzip, chunked\r\n\r\n`,
    "unknown-transfer-coding",
    501,
  ],
  [
    "chunked, gzip",
    `POST / HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked, gzip\r\n\r\n`,
    "unknown-transfer-coding",
    501,
  ],
  ["identity", `POST / HTTP/1.1\r\n${HOST}Transfer-Encoding: identity\r\n\r\n`, "unknown-transfer-coding", 501],
  ["xchunked", `POST / HTTP/1.1\r\n${HOST}Transfer-Encoding: xchunked\r\n\r\n`, "unknown-transfer-coding", 501],
];

for (const [name, input, expected] of ACCEPTED) {
  test(`a request is read, however it is cut: ${name}`, () => {
    const whole = readRequests([bytes(input)]);
    assert.equal(whole.error, undefined);
    const [message] = whole.messages;
    assert(message?.ended === true);
    assert.equal(whole.messages.length, 1);
    assert.equal(message.head.headSizeBytes, input.indexOf("\r\n\r\n") + 4);
    const { body, trailers, framing, ...head } = expected;
    for (const [key, value] of Object.entries(head)) {
      assert.deepEqual(message.head[key as keyof RequestHead], value, key);
    }
    if (framing !== undefined) assert.equal(message.head.framing.kind, framing);
    if (body !== undefined) assert.equal(message.body, body);
    assert.deepEqual(message.trailers, trailers);
    for (const pieces of everyCut(bytes(input))) assert.deepEqual(readRequests(pieces, { end: true }), whole);
  });
}

for (const [name, input, code, status = 400] of REFUSED) {
  test(`a request is refused, however it is cut: ${name}`, () => {
    for (const pieces of everyCut(bytes(input))) {
      const { error, status: given, messages } = readRequests(pieces);
      assert.deepEqual([error, given, messages.length], [code, status, 0]);
    }
    // Bytes behind the fault change nothing.
    assert.equal(readRequests([bytes(`${input}GET / HTTP/1.1\r\n${HOST}\r\n`)]).error, code);
  });
}

test("pipelined requests come one by one, and what follows an end stays with the owner", () => {
  const first = `POST /1 HTTP/1.1\r\n${HOST}Content-Length: 2\r\n\r\nab`;
  const second = `POST /2 HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n1\r\nc\r\n0\r\n\r\n`;
  const input = bytes(`${first}${second}GET /3 HTTP/1.1\r\n${HOST}\r\n`);
  const ends: number[] = [];
  const reader = new RequestReader({ onHead() {}, onData() {}, onEnd: () => reader.next(), onError: assert.fail });
  for (let at = 0; at < input.length; ends.push(at)) at = reader.read(input, at);
  assert.deepEqual(ends, [first.length, first.length + second.length, input.length]);
  for (const pieces of everyCut(input)) {
    const { messages, error } = readRequests(pieces);
    assert.equal(error, undefined);
    assert.deepEqual(
      messages.map(({ head, body }) => head.target + body),
      ["/1ab", "/2c", "/3"],
    );
  }
});

test("one empty line before a request line is skipped, also between pipelined requests", () => {
  const first = `\r\nPOST /1 HTTP/1.1\r\n${HOST}Content-Length: 2\r\n\r\nab`;
  const second = `\r\nPOST /2 HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n1\r\nc\r\n0\r\n\r\n`;
  const third = `\r\nGET /3 HTTP/1.1\r\n${HOST}\r\n`;
  for (const pieces of everyCut(bytes(`${first}${second}${third}\r\n`))) {
    const { messages, error, state } = readRequests(pieces, { end: true });
    assert.equal(error, undefined, "an empty line before the end of the connection is no request");
    assert.deepEqual(
      messages.map(({ head, body }) => head.target + body),
      ["/1ab", "/2c", "/3"],
    );
    assert.equal(state, "head");
    assert.equal(messages[2]?.head.headSizeBytes, third.length - 2, "the empty line is no part of the head");
  }
  for (const pieces of everyCut(bytes(`${first}\r\n${second}`))) {
    const { messages, error, status } = readRequests(pieces);
    assert.deepEqual([messages.length, error, status], [1, "leading-empty-line", 400]);
  }
});

test("an ended reader takes nothing until next() is called", () => {
  const reader = new RequestReader({ onHead() {}, onData() {}, onEnd() {}, onError: assert.fail });
  const input = bytes(`GET / HTTP/1.1\r\n${HOST}\r\n`);
  assert.equal(reader.read(input), input.length);
  assert.equal(reader.state, "ended");
  assert.equal(reader.read(input), 0);
  reader.next();
  assert.equal(reader.state, "head");
  assert.equal(reader.read(input), input.length);
});

test("a paused reader stops behind the head and behind each piece of data", () => {
  const seen: string[] = [];
  const reader = new RequestReader({
    onHead: () => (seen.push("head"), reader.pause()),
    onData: (data) => (seen.push(data.toString()), reader.pause()),
    onEnd: () => void seen.push("end"),
    onError: assert.fail,
  });
  const input = bytes(`POST / HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n2\r\nbc\r\n0\r\n\r\n`);
  let at = 0;
  for (const expected of ["head", "a", "bc", "end"]) {
    at = reader.read(input, at);
    assert.equal(reader.read(input, at), at, "nothing is taken while paused");
    assert.equal(seen.at(-1), expected);
    reader.resume();
  }
  assert.equal(at, input.length);
});

test("data is passed on as a view of what was read", () => {
  const input = bytes(`POST / HTTP/1.1\r\n${HOST}Content-Length: 3\r\n\r\nabc`);
  const views: Buffer[] = [];
  const reader = new RequestReader({
    onHead() {},
    onData: (data) => void views.push(data as Buffer),
    onEnd() {},
    onError: assert.fail,
  });
  reader.read(input);
  assert.equal(views[0]?.buffer, input.buffer);
  reader.next();
  reader.read(input.subarray(0, input.length - 3));
  const tail = bytes("abc");
  reader.read(tail);
  assert.equal(views[1], tail, "a chunk that is data only is not even wrapped");
});

test("the end of the connection is an error inside a message only", () => {
  const whole = bytes(`POST / HTTP/1.1\r\n${HOST}Content-Length: 3\r\n\r\nabc`);
  for (let size = 0; size <= whole.length; size++) {
    const { error } = readRequests([whole.subarray(0, size)], { end: true });
    assert.equal(error, size === 0 || size === whole.length ? undefined : "truncated", `${size} bytes`);
  }
});

test("a partial head is visible to the owner's timer", () => {
  const reader = new RequestReader({ onHead() {}, onData() {}, onEnd() {}, onError: assert.fail });
  assert.equal(reader.hasPartialHead, false);
  reader.read(bytes("G"));
  assert.equal(reader.hasPartialHead, true);
  reader.read(bytes(`ET / HTTP/1.1\r\n${HOST}\r\n`));
  assert.equal(reader.hasPartialHead, false);
});

test("limits on the head hold to the byte and to the field, however it is cut", () => {
  const head = (padding: number): Buffer => bytes(`GET / HTTP/1.1\r\n${HOST}X: ${"x".repeat(padding)}\r\n\r\n`);
  const overhead = head(0).length;
  const limits = { headBytes: 200 };
  for (const cut of [(input: Buffer) => [input], singleBytes]) {
    assert.equal(readRequests(cut(head(200 - overhead)), { limits }).error, undefined);
    const { error, status } = readRequests(cut(head(201 - overhead)), { limits });
    assert.deepEqual([error, status], ["head-too-large", 431]);
    const fields = (count: number): Buffer => bytes(`GET / HTTP/1.1\r\n${HOST}${"X: y\r\n".repeat(count - 1)}\r\n`);
    assert.equal(readRequests(cut(fields(100))).error, undefined);
    assert.equal(readRequests(cut(fields(101))).error, "too-many-fields");
  }
});

test("an endless head is refused as soon as it passes the limit", () => {
  const taken: number[] = [];
  const errors: Http1Error[] = [];
  const reader = new RequestReader({
    onHead() {},
    onData() {},
    onEnd() {},
    onError: (error) => void errors.push(error),
  });
  reader.read(bytes("GET /"));
  const piece = Buffer.alloc(1_000, "a");
  while (errors.length === 0) taken.push(reader.read(piece));
  assert.equal(taken.length, 66);
  assert.equal(errors[0]?.code, "head-too-large");
});

test("a head that comes byte by byte costs time in proportion to its length", () => {
  const costMs = (size: number): number => {
    const pieces = singleBytes(bytes(`GET / HTTP/1.1\r\n${HOST}X: ${"x".repeat(size)}\r\n\r\n`));
    return processorMs(() => {
      const { messages } = readRequests(pieces, { limits: { headBytes: 2_000_000 } });
      assert.equal(messages.length, 1);
    });
  };
  // Also what the compiler does for long heads is done before it is measured.
  costMs(400_000);
  // Ten times the length; anything quadratic takes about a hundred times as long.
  const small = costMs(40_000);
  const large = costMs(400_000);
  assert(large < 35 * small, `${large} ms against ${small} ms`);
});

test("an error thrown by the sink itself is the owner's and passes through", () => {
  const reader = new RequestReader({
    onHead: () => {
      throw new RangeError("mine");
    },
    onData() {},
    onEnd() {},
    onError: assert.fail,
  });
  assert.throws(() => reader.read(bytes(`GET / HTTP/1.1\r\n${HOST}\r\n`)), /mine/);
});

const UNTIDY: readonly [string, string, string][] = [
  ["credentials before the host", "GET http://user:p%40ss@a.test:81/x HTTP/1.1\r\nHost: b.test\r\n\r\n", "a.test:81"],
  ["credentials in Host too", "GET http://u@a.test/ HTTP/1.1\r\nHost: u@a.test\r\n\r\n", "a.test"],
  ["an empty port", "GET http://a.test:/ HTTP/1.1\r\nHost: a.test:\r\n\r\n", "a.test"],
  ["two empty ports", "GET http://a.test::/ HTTP/1.1\r\nHost: a.test\r\n\r\n", "bad-target"],
  ["nothing before an empty port", "GET http://:/ HTTP/1.1\r\nHost: a.test\r\n\r\n", "bad-target"],
  ["an empty port in Host of an origin-form request", "GET / HTTP/1.1\r\nHost: a.test:\r\n\r\n", "bad-host"],
  ["two at signs", "GET http://u@v@a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n", "bad-target"],
  ["credentials in Host of an origin-form request", "GET / HTTP/1.1\r\nHost: u@a.test\r\n\r\n", "bad-host"],
  ["nothing behind the at sign", "GET http://u@/ HTTP/1.1\r\nHost: a.test\r\n\r\n", "bad-target"],
];

for (const [name, bytes, expected] of UNTIDY) {
  test(`with tidiesAuthority, ${name}: ${expected}`, () => {
    let outcome: string | undefined;
    const reader = new RequestReader(
      {
        onHead: (head) => (outcome = head.authority),
        onData: () => undefined,
        onEnd: () => undefined,
        onError: (error) => (outcome = error.code),
      },
      {},
      { tidiesAuthority: true },
    );
    reader.read(Buffer.from(bytes, "latin1"));
    assert.equal(outcome, expected);
  });
}

const CASES: readonly (readonly [is: string, text: string, head: ReturnType<typeof readRefusedHead>])[] = [
  [
    "bytes above 127 in the target",
    "GET /caf\xc3\xa9 HTTP/1.1\r\nHost: a\r\nX: voil\xc3\xa0 \r\n\r\n",
    { method: "GET", target: "/caf\xc3\xa9", version: "1.1", fields: ["Host", "a", "X", "voil\xc3\xa0"] },
  ],
  [
    "blanks in the target",
    "GET /a b  c HTTP/1.0\r\n\r\n",
    { method: "GET", target: "/a b  c", version: "1.0", fields: [] },
  ],
  [
    "lines that are no fields",
    "GET / HTTP/1.1\nHost: a \n folded: 1\nno colon\n: 2\nX :3\nY:\n\n",
    { method: "GET", target: "/", version: "1.1", fields: ["Host", "a", "Y", ""] },
  ],
  ["an unknown version", "GET / HTTP/3.0\r\n\r\n", undefined],
  ["the start of a line", "GET /a\t", undefined],
  ["no target", "GET  HTTP/1.1\r\n\r\n", undefined],
  ["nothing", "", undefined],
];

for (const [is, text, head] of CASES) {
  test(`of a refused head with ${is} what can be told is told`, () => {
    assert.deepEqual(readRefusedHead(text), head);
  });
}

test("a refused head that is as long as allowed is read in linear time", () => {
  const texts = [" HTTP/1.1x", "  ", "a: \t ", "\r\n", "a:\r\n"].map(
    (piece) => `GET ${piece.repeat(65_536 / piece.length)}`,
  );
  const spentMs = processorMs(() => texts.forEach((text) => readRefusedHead(text)));
  assert.ok(spentMs < 500, `${spentMs} ms`);
});
