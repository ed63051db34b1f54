import assert from "node:assert/strict";
import { test } from "node:test";
import { isHttp2Connect, readHttp2Connect } from "./http2-connection.ts";

test("CONNECT opens a tunnel, unless it has :protocol", () => {
  assert.equal(isHttp2Connect([":method", "CONNECT", ":authority", "a:1"]), true);
  assert.equal(isHttp2Connect([":method", "CONNECT", ":protocol", "websocket"]), false);
  assert.equal(isHttp2Connect([":method", "GET", "x-method", "CONNECT"]), false);
});

test("CONNECT on a stream yields its target and its fields, Host first, as over HTTP/1.1", () => {
  const section = [":method", "CONNECT", ":authority", "a.test:443", "x-a", ":path", "via", "1.1 b"];
  assert.deepEqual(readHttp2Connect(section, 100), {
    target: "a.test:443",
    fields: ["host", "a.test:443", "x-a", ":path", "via", "1.1 b"],
  });
});

for (const [what, ...more] of [
  ["a scheme", ":authority", "a:1", ":scheme", "http"],
  ["a path", ":authority", "a:1", ":path", "/"],
  ["no authority"],
  ["an empty authority", ":authority", ""],
  ["a path in its authority", ":authority", "a:1/x"],
  ["another Host", ":authority", "a:1", "host", "b:1"],
  ["a field of connections", ":authority", "a:1", "connection", "close"],
  ["a value that ends a line", ":authority", "a:1", "x", "a\r\nb: c"],
  ["a name in capitals", ":authority", "a:1", "X", "a"],
] as const) {
  test(`CONNECT with ${what} is malformed`, () => {
    const read = readHttp2Connect([":method", "CONNECT", ...more], 100);
    assert.ok("problem" in read && read.problem === "malformed", JSON.stringify(read));
  });
}
