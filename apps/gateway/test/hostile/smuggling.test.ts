import assert from "node:assert/strict";
import { test } from "node:test";
import { rawClient } from "@headworks/testkit";
import { serving, startGateway } from "../gateway-rig.ts";
import { proxied } from "../route-documents.ts";
import { startRecordingUpstream } from "./recording-upstream.ts";

const HEAD = "POST /first HTTP/1.1\r\nHost: a.test\r\n";
/** What a smuggler wants the upstream to take for a request of its own. */
const SMUGGLED = "GET /smuggled HTTP/1.1\r\nHost: a.test\r\n\r\n";
const CHUNKED = `${HEAD}Transfer-Encoding: chunked\r\n\r\n`;

/** Refused with this status, and closed; nothing may reach the upstream of what stands behind. */
const REFUSED: readonly (readonly [what: string, bytes: string, status: number])[] = [
  [
    "Content-Length before Transfer-Encoding",
    `${HEAD}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    400,
  ],
  [
    "Transfer-Encoding before Content-Length",
    `${HEAD}Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n`,
    400,
  ],
  [
    "Content-Length: 0 beside Transfer-Encoding",
    `${HEAD}Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    400,
  ],
  ["two Content-Length that differ", `${HEAD}Content-Length: 0\r\nContent-Length: 40\r\n\r\n`, 400],
  ["two Content-Length that agree", `${HEAD}Content-Length: 0\r\nContent-Length: 0\r\n\r\n`, 400],
  ["a list of lengths", `${HEAD}Content-Length: 0, 0\r\n\r\n`, 400],
  ["a signed length", `${HEAD}Content-Length: +0\r\n\r\n`, 400],
  ["a negative length", `${HEAD}Content-Length: -1\r\n\r\n`, 400],
  ["a hexadecimal length", `${HEAD}Content-Length: 0x0\r\n\r\n`, 400],
  ["an empty length", `${HEAD}Content-Length:\r\n\r\n`, 400],
  ["a length beyond all numbers", `${HEAD}Content-Length: 18446744073709551616\r\n\r\n`, 400],
  ["a length with a space inside", `${HEAD}Content-Length: 0 0\r\n\r\n`, 400],
  ["Transfer-Encoding twice", `${HEAD}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`, 400],
  ["chunked twice in one line", `${HEAD}Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n`, 400],
  ["chunked, identity", `${HEAD}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n`, 501],
  ["identity", `${HEAD}Transfer-Encoding: identity\r\n\r\n`, 501],
  ["xchunked", `${HEAD}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n`, 501],
  ["chunked in quotes", `${HEAD}Transfer-Encoding: "chunked"\r\n\r\n0\r\n\r\n`, 400],
  ["chunked behind a vertical tab", `${HEAD}Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n`, 400],
  ["a space before the colon", `${HEAD}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n`, 400],
  ["an empty coding", `${HEAD}Transfer-Encoding:\r\n\r\n0\r\n\r\n`, 400],
  ["chunked in HTTP/1.0", `POST /first HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`, 400],
  ["two empty lines before the request line", `\r\n\r\n${HEAD}\r\n`, 400],
  ["an empty line of LF before the request line", `\n${HEAD}\r\n`, 400],
  ["an octet beyond ASCII in Host", `GET /first HTTP/1.1\r\nHost: a\xe9\r\n\r\n`, 400],
  ["an octet beyond ASCII in the authority", `GET http://a\xe9/first HTTP/1.1\r\nHost: a\r\n\r\n`, 400],
  ["two Host", `GET /first HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n`, 400],
  ["no Host", `GET /first HTTP/1.1\r\n\r\n`, 400],
  ["a Host with a path", `GET /first HTTP/1.1\r\nHost: a/b\r\n\r\n`, 400],
  ["a Host with a user", `GET /first HTTP/1.1\r\nHost: a@b\r\n\r\n`, 400],
  ["a Host of two names", `GET /first HTTP/1.1\r\nHost: a, b\r\n\r\n`, 400],
  ["an absolute target with a user", `GET http://u:p@a/first HTTP/1.1\r\nHost: a\r\n\r\n`, 400],
  ["obs-fold", `GET /first HTTP/1.1\r\nHost: a\r\nX: 1\r\n folded\r\n\r\n`, 400],
  ["a fold before any field", `GET /first HTTP/1.1\r\n X: 1\r\nHost: a\r\n\r\n`, 400],
  ["bare LF at the end of a field", `GET /first HTTP/1.1\r\nHost: a\nX: 1\r\n\r\n`, 400],
  ["bare LF everywhere", `GET /first HTTP/1.1\nHost: a\n\n`, 400],
  ["bare CR in a value", `GET /first HTTP/1.1\r\nHost: a\r\nX: 1\rContent-Length: 5\r\n\r\n`, 400],
  ["NUL in a value", `GET /first HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n`, 400],
  ["an empty field name", `GET /first HTTP/1.1\r\nHost: a\r\n: 1\r\n\r\n`, 400],
  ["a field without a colon", `GET /first HTTP/1.1\r\nHost: a\r\nX\r\n\r\n`, 400],
  ["two spaces in the request line", `GET  /first HTTP/1.1\r\nHost: a\r\n\r\n`, 400],
  ["a tab in the request line", `GET\t/first HTTP/1.1\r\nHost: a\r\n\r\n`, 400],
  ["something behind the version", `GET /first HTTP/1.1 \r\nHost: a\r\n\r\n`, 400],
  ["HTTP/0.9", `GET /first\r\n\r\n`, 400],
  ["HTTP/1.2", `GET /first HTTP/1.2\r\nHost: a\r\n\r\n`, 505],
  ["CONNECT", `CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n`, 400],
  ["a chunk size with a sign", `${CHUNKED}+0\r\n\r\n`, 400],
  ["a chunk size with 0x", `${CHUNKED}0x0\r\n\r\n`, 400],
  ["a chunk size beyond all numbers", `${CHUNKED}ffffffffffffffff1\r\n`, 400],
  ["a space before a chunk size", `${CHUNKED} 0\r\n\r\n`, 400],
  ["bare LF behind a chunk size", `${CHUNKED}5\nhello\r\n0\r\n\r\n`, 400],
  ["bare LF behind chunk data", `${CHUNKED}5\r\nhello\n0\r\n\r\n`, 400],
  ["more data than the chunk says", `${CHUNKED}3\r\nhello\r\n0\r\n\r\n`, 400],
  ["a chunk extension", `${CHUNKED}5;a=b\r\nhello\r\n0\r\n\r\n`, 400],
  ["an extension of the last chunk", `${CHUNKED}0;a\r\n\r\n`, 400],
  ["bare LF in a chunk extension", `${CHUNKED}5;a\nb\r\nhello\r\n0\r\n\r\n`, 400],
  ["an endless chunk extension", `${CHUNKED}5;${"a".repeat(100_000)}\r\nhello\r\n0\r\n\r\n`, 400],
  ["bare LF in a trailer", `${CHUNKED}0\r\nX: 1\n\r\n`, 400],
  ["a length among the trailers", `${CHUNKED}0\r\nContent-Length: 5\r\n\r\n`, 400],
  ["a coding among the trailers", `${CHUNKED}0\r\nTransfer-Encoding: chunked\r\n\r\n`, 400],
];

for (const [what, bytes, status] of REFUSED) {
  test(`U1: ${what} is refused with ${status} and the connection ends, so nothing behind it becomes a request`, async () => {
    await using upstream = await startRecordingUpstream();
    await using gateway = await startGateway({ ...serving("api", [upstream.port]), routes: [proxied("api")] });
    const whole = bytes + SMUGGLED;
    for (const pieces of [[whole], whole.length < 400 ? whole.split("") : [bytes, SMUGGLED]]) {
      await using client = await rawClient(gateway.port());
      // Answered and closed in the middle of it, the rest may not be taken any more.
      for (const piece of pieces) await client.write(piece).catch(() => undefined);
      const text = (await client.collect()).toString("latin1");
      assert.deepEqual(statusesIn(text), [status], text);
      assert.match(text, /^connection: close\r$/im);
    }
    assert.deepEqual(
      upstream.requests.map(({ line }) => line),
      [],
    );
  });
}

function statusesIn(text: string): number[] {
  return [...text.matchAll(/HTTP\/1\.1 (\d{3}) [^"]*?\r\n/g)].map((match) => Number(match[1]));
}

/** Let through: the upstream gets exactly this, and the next request of the connection after it. */
const PASSED: readonly (readonly [what: string, bytes: string, line: string, rawBody: string])[] = [
  [
    "a request in a body with a length",
    `${HEAD}Content-Length: ${SMUGGLED.length}\r\n\r\n${SMUGGLED}`,
    "POST /first HTTP/1.1",
    SMUGGLED,
  ],
  [
    "a request in a chunk",
    `${CHUNKED}${SMUGGLED.length.toString(16)}\r\n${SMUGGLED}\r\n0\r\n\r\n`,
    "POST /first HTTP/1.1",
    `${SMUGGLED.length.toString(16)}\r\n${SMUGGLED}\r\n0\r\n\r\n`,
  ],
  ["a body of a GET", `GET /first HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc`, "GET /first HTTP/1.1", "abc"],
  [
    "CHUNKED in capitals behind a tab",
    `${HEAD}Transfer-Encoding:\tCHUNKED\r\n\r\n5\r\nhello\r\n0\r\n\r\n`,
    "POST /first HTTP/1.1",
    "5\r\nhello\r\n0\r\n\r\n",
  ],
  [
    "zeros before a chunk size",
    `${CHUNKED}0005\r\nhello\r\n000\r\n\r\n`,
    "POST /first HTTP/1.1",
    "5\r\nhello\r\n0\r\n\r\n",
  ],
  [
    "underscores in framing fields",
    `${HEAD}Content_Length: 40\r\nTransfer_Encoding: chunked\r\n\r\n`,
    "POST /first HTTP/1.1",
    "",
  ],
  [
    "framing that Connection names",
    `${HEAD}Connection: content-length, transfer-encoding\r\nContent-Length: 3\r\n\r\nabc`,
    "POST /first HTTP/1.1",
    "abc",
  ],
  ["an absolute target", `GET http://other.test/first HTTP/1.1\r\nHost: a.test\r\n\r\n`, "GET /first HTTP/1.1", ""],
  ["an empty line before the request line", `\r\n${HEAD}Content-Length: 3\r\n\r\nabc`, "POST /first HTTP/1.1", "abc"],
  ["an empty line behind a body", `${HEAD}Content-Length: 3\r\n\r\nabc\r\n`, "POST /first HTTP/1.1", "abc"],
  ["an empty line behind a last chunk", `${CHUNKED}0\r\n\r\n\r\n`, "POST /first HTTP/1.1", "0\r\n\r\n"],
  [
    "octets beyond ASCII in a target",
    "GET /caf\xc3\xa9?q=\xff HTTP/1.1\r\nHost: a.test\r\n\r\n",
    "GET /caf%C3%A9?q=%FF HTTP/1.1",
    "",
  ],
  [
    "an absolute target without a path",
    `OPTIONS http://other.test HTTP/1.1\r\nHost: a.test\r\n\r\n`,
    "OPTIONS / HTTP/1.1",
    "",
  ],
];

for (const [what, bytes, line, rawBody] of PASSED) {
  test(`U1: ${what}: one client request is one upstream request`, async () => {
    await using upstream = await startRecordingUpstream();
    await using gateway = await startGateway({ ...serving("api", [upstream.port]), routes: [proxied("api")] });
    await using client = await rawClient(gateway.port());
    await client.write(`${bytes}GET /next HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n`);
    const text = (await client.collect()).toString("latin1");
    assert.deepEqual(statusesIn(text), [200, 200], text);
    const [first, next] = upstream.requests;
    assert.deepEqual([first?.line, first?.rawBody, next?.line], [line, rawBody, "GET /next HTTP/1.1"]);
    assert.equal(upstream.requests.length, 2);
    for (const request of upstream.requests) {
      assert.deepEqual(request.values("host"), [`127.0.0.1:${upstream.port}`]);
      assert.ok(request.values("content-length").length + request.values("transfer-encoding").length <= 1);
      assert.deepEqual([request.values("content_length"), request.values("transfer_encoding")], [[], []]);
    }
    const authority = what.startsWith("an absolute") ? "other.test" : what === "a body of a GET" ? "a" : "a.test";
    assert.deepEqual(first?.values("x-forwarded-host"), [authority]);
  });
}

test("U1: routing by host follows the authority of an absolute target, never the Host field beside it", async () => {
  await using upstream = await startRecordingUpstream();
  const forHost = (name: string, host: string) =>
    proxied(name, "/", { service: "api", match: { path: { type: "prefix", value: "/" }, host } });
  await using gateway = await startGateway({ ...serving("api", [upstream.port]), routes: [forHost("a", "a.test")] });
  assert.equal((await gateway.send({ path: "http://evil.test/", fields: ["Host: a.test"] })).status, 404);
  assert.equal((await gateway.send({ path: "http://a.test/", fields: ["Host: evil.test"] })).status, 200);
  assert.deepEqual(upstream.requests[0]?.values("x-forwarded-host"), ["a.test"]);
});
