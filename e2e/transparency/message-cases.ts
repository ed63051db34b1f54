import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { OK, one, pattern, sized, streamed } from "./script.ts";
import type { Case, Group } from "./script.ts";

const text = "the quick brown fox jumps over the lazy dog; ".repeat(200);

const methods: Case[] = [
  ..."GET POST PUT PATCH DELETE OPTIONS TRACE PROPFIND MKCOL LOCK UNLOCK PURGE M-SEARCH QUERY REPORT BREW X get Post".split(
    " ",
  ),
  "!#$%&'*+-.^_`|~09",
  "A".repeat(200),
].map((method) => one(`method ${method.slice(0, 30)}`, { method, path: "/method" }));
methods.push(
  one("HEAD with a length", { method: "HEAD" }, "HTTP/1.1 200 OK\r\nContent-Length: 12345\r\n\r\n"),
  ...["GET", "DELETE", "OPTIONS", "HEAD", "QUERY"].map((method) =>
    one(
      `${method} with a body`,
      { method, fields: ["Content-Length: 4"], body: "body" },
      method === "HEAD" ? "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n" : OK,
    ),
  ),
  one("POST without a body and without a length", { method: "POST" }),
  one("POST with length 0", { method: "POST", fields: ["Content-Length: 0"] }),
);

const codes = [
  200, 201, 202, 203, 205, 206, 207, 208, 226, 299, 300, 301, 302, 303, 305, 306, 307, 308, 400, 401, 402, 403, 404,
  405, 406, 408, 409, 410, 411, 412, 413, 414, 415, 416, 417, 418, 421, 422, 423, 424, 425, 426, 428, 429, 431, 444,
  451, 499, 500, 501, 502, 503, 504, 505, 506, 507, 508, 510, 511, 520, 599, 600, 999,
];
const statuses = codes.map((code) =>
  one(`status ${code}`, {}, sized(`HTTP/1.1 ${code} Reason of ${code}`, `body of ${code}`)),
);

const reasons = [
  ["empty", ""],
  ["one letter", "K"],
  ["punctuation", 'It\'s "done" (a/b; c=d) <ok> {x} [y] \\ ^ ` | ~'],
  ["8-bit characters", "Gr\xfc\xdfe \xe4\xf6 \xff\x80"],
  ["a tab", "a\tb"],
  ["a thousand characters", "r".repeat(1000)],
  ["digits", "200 200"],
].map(([name, reason]) => one(`reason of ${name}`, {}, `HTTP/1.1 200 ${reason}\r\nContent-Length: 2\r\n\r\nok`));

const responseFieldCases: readonly (readonly [string, readonly string[]])[] = [
  ["order, case and duplicates", ["b: 1", "A: 2", "B: 3", "a: 4", "b: 5"]],
  [
    "several cookies",
    ["Set-Cookie: a=1; Path=/", "set-cookie: b=2; Expires=Wed, 21 Oct 2026 07:28:00 GMT", 'SET-COOKIE: c="x,y"'],
  ],
  ["an empty value", ["X-Empty:", "X-Blank:   "]],
  ["8-bit characters in a value", ["X-Name: J\xfcrgen \xff", 'Content-Disposition: attachment; filename="\xe4.txt"']],
  ["tabs and blanks inside a value", ["X-Tabs: a\tb  c\t d"]],
  ["every token character in a name", ["!#$%&'*+-.^_`|~0Az: v"]],
  ["a name of one letter", ["x: y"]],
  ["a name of 300 letters", [`${"n".repeat(300)}: v`]],
  ["a value of 8,000 characters", [`X-Long: ${"v".repeat(8000)}`]],
  ["a value of 60,000 characters", [`X-Long: ${"v".repeat(60_000)}`]],
  ["a head just below 64 KiB", [`X-Long: ${"v".repeat(65_536 - 80)}`]],
  ["200 fields", Array.from({ length: 200 }, (_, index) => `X-${index}: ${"z".repeat(index)}`)],
  ["no blank behind the colon", ["X-Tight:value", "X-Loose: \t value \t"]],
  ["Connection: close", ["Connection: close"]],
  ["Connection: keep-alive with Keep-Alive", ["Connection: keep-alive", "Keep-Alive: timeout=5, max=100"]],
  ["a field named by Connection", ["Connection: X-Hop", "X-Hop: gone", "X-Stays: here"]],
  [
    "Connection that names framing and cookies",
    ["Connection: content-length, set-cookie, close", "Set-Cookie: kept=1"],
  ],
  [
    "caching fields",
    [
      'ETag: W/"x"',
      "Cache-Control: no-store, max-age=0",
      "Vary: Accept-Encoding",
      "Vary: *",
      "Age: 0",
      'Warning: 199 - "x"',
      "Pragma: no-cache",
    ],
  ],
  [
    "security fields",
    [
      "Strict-Transport-Security: max-age=1",
      "Content-Security-Policy: default-src 'none'",
      'Alt-Svc: h3=":443"; ma=1',
      "X-Frame-Options: DENY",
      "Expect-CT: max-age=0",
    ],
  ],
  [
    "Via, Server, Date and Link",
    ["Via: 1.1 other", "Server: s/1 (x)", "Date: Thu, 01 Jan 1970 00:00:00 GMT", "Link: </a>; rel=preload"],
  ],
  ["no Date at all", []],
  ["authentication", ['WWW-Authenticate: Basic realm="a, b"', "WWW-Authenticate: Negotiate"]],
  ["Trailer announced but not sent", ["Trailer: X-Sum"]],
  [
    "fields that a proxy might add",
    ["X-Weir-Error: not ours", "X-Cache: HIT", "Forwarded: for=x", "X-Forwarded-For: 1.2.3.4"],
  ],
];
const responseFields = responseFieldCases.map(([name, fields]) =>
  one(name, {}, sized(["HTTP/1.1 200 OK", ...fields].join("\r\n"), "ok")),
);

const requestFieldCases: readonly (readonly [string, readonly string[]])[] = [
  ["order, case and duplicates", ["b: 1", "A: 2", "B: 3", "a: 4", "b: 5"]],
  ["several cookie fields", ["Cookie: a=1; b=2", "cookie: c=3", 'COOKIE: d="4;5"']],
  ["an empty value", ["X-Empty:", "X-Blank:   "]],
  ["8-bit characters", ["X-Name: J\xfcrgen \xff\x80"]],
  ["tabs and blanks inside", ["X-Tabs: a\tb  c"]],
  ["every token character in a name", ["!#$%&'*+-.^_`|~0Az: v"]],
  ["90 fields", Array.from({ length: 90 }, (_, index) => `X-${index}: ${"z".repeat(index)}`)],
  ["a cookie of 16 KB", [`Cookie: a=${"c".repeat(16_384)}`]],
  ["a head just below 64 KiB", [`X-Long: ${"v".repeat(65_536 - 400)}`]],
  ["a range", ["Range: bytes=0-499, 600-, -5", 'If-Range: "x"']],
  ["conditions", ['If-None-Match: W/"a", "b"', "If-Modified-Since: Thu, 01 Jan 1970 00:00:00 GMT", "If-Match: *"]],
  ["authorization", ["Authorization: Basic dTpw", "Authorization: Bearer x"]],
  [
    "fields that a proxy might add or remove",
    ["X-Forwarded-For: 1.2.3.4", "Via: 1.0 other", "Forwarded: for=_a", "Max-Forwards: 10", "X-Real-IP: ::1"],
  ],
  ["Accept-Encoding", ["Accept-Encoding: gzip;q=0, br, zstd, *;q=0.1"]],
  ["TE and trailers", ["TE: trailers", "Connection: TE"]],
  ["Connection: close", ["Connection: close"]],
  ["Connection: keep-alive", ["Connection: keep-alive", "Keep-Alive: 300"]],
  ["Proxy-Connection", ["Proxy-Connection: keep-alive"]],
  ["a field named by Connection", ["Connection: X-Hop", "X-Hop: gone", "X-Stays: here"]],
  [
    "Connection that names Cookie and Authorization",
    ["Connection: cookie, authorization", "Cookie: a=1", "Authorization: x"],
  ],
  [
    "Upgrade-Insecure-Requests and client hints",
    [
      "Upgrade-Insecure-Requests: 1",
      'Sec-CH-UA: "Chromium";v="1"',
      "Sec-Fetch-Mode: navigate",
      "DNT: 1",
      "Priority: u=0, i",
    ],
  ],
  [
    "an ignored offer to upgrade",
    ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Key: x", "Sec-WebSocket-Version: 13"],
  ],
];
const requestFields = requestFieldCases.map(([name, fields]) => one(name, { path: "/fields", fields }));

const coded: readonly (readonly [string, Buffer])[] = [
  ["gzip", gzipSync(text)],
  ["br", brotliCompressSync(text)],
  ["zstd", zstdCompressSync(text)],
  ["deflate", deflateSync(text)],
  ["deflate", deflateRawSync(text)],
  ["gzip, br", brotliCompressSync(gzipSync(text))],
  ["identity", Buffer.from(text)],
  ["x-unknown", pattern(3000)],
  ["gzip", Buffer.from("this is no gzip")],
  ["br", brotliCompressSync(text).subarray(0, 20)],
  ["gzip", Buffer.concat([gzipSync("a"), gzipSync("b")])],
];
const encodings = coded.flatMap(([coding, body], index) => [
  one(
    `Content-Encoding ${coding} (${index}) with a length`,
    {},
    sized(`HTTP/1.1 200 OK\r\nContent-Encoding: ${coding}\r\nContent-Type: text/plain`, body),
  ),
  one(
    `Content-Encoding ${coding} (${index}) chunked`,
    {},
    streamed(`HTTP/1.1 200 OK\r\ncontent-encoding: ${coding}`, body, [17, 1, 900]),
  ),
  one(`a request with Content-Encoding ${coding} (${index})`, {
    method: "POST",
    fields: [`Content-Encoding: ${coding}`, `Content-Length: ${body.length}`],
    body,
  }),
]);

const byteRanges =
  "--x\r\nContent-Type: text/plain\r\nContent-Range: bytes 0-1/10\r\n\r\nab\r\n--x\r\nContent-Range: bytes 4-5/10\r\n\r\nef\r\n--x--\r\n";
const variety: Case[] = [
  one(
    "206 with one range",
    { fields: ["Range: bytes=2-3"] },
    sized("HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 2-3/10", "cd"),
  ),
  one(
    "206 multipart",
    { fields: ["Range: bytes=0-1,4-5"] },
    sized("HTTP/1.1 206 Partial Content\r\nContent-Type: multipart/byteranges; boundary=x", byteRanges),
  ),
  one(
    "416",
    { fields: ["Range: bytes=99-"] },
    sized("HTTP/1.1 416 Range Not Satisfiable\r\nContent-Range: bytes */10", ""),
  ),
  one("a relative Location", {}, sized("HTTP/1.1 302 Found\r\nLocation: ../x?y#z", "")),
  one("an absolute Location", {}, sized("HTTP/1.1 301 Moved\r\nLocation: HTTP://Other.Example:80/%7e/a%2Fb", "")),
  one("a Location that goes elsewhere by scheme", {}, sized("HTTP/1.1 307 x\r\nLocation: app://open?x=1", "")),
  one("two Locations", {}, sized("HTTP/1.1 302 Found\r\nLocation: /a\r\nLocation: /b", "")),
  one(
    "a redirect with a body",
    { method: "POST", fields: ["Content-Length: 1"], body: "x" },
    sized("HTTP/1.1 303 See Other\r\nLocation: /done", "<a href=/done>"),
  ),
  one("Refresh", {}, sized("HTTP/1.1 200 OK\r\nRefresh: 0; url=/x", "")),
];

export const messageGroups: readonly Group[] = [
  { name: "methods", cases: methods },
  { name: "status codes", cases: statuses },
  { name: "reason phrases", cases: reasons },
  { name: "fields of responses", cases: responseFields },
  { name: "fields of requests", cases: requestFields },
  { name: "content codings", cases: encodings },
  { name: "ranges and redirects", cases: variety },
];
