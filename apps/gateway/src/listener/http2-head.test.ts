import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { anyCharacter } from "@headworks/testkit";
import { fieldValue } from "@headworks/http1";
import { readHttp2Head } from "./http2-connection.ts";

const GET = [":method", "GET", ":scheme", "https", ":authority", "a.test", ":path", "/x?y"];

/** A valid request with one pseudo-field changed or removed. */
const but = (name: string, value?: string): string[] => {
  const section = [...GET];
  const at = section.indexOf(name);
  section.splice(at, 2, ...(value === undefined ? [] : [name, value]));
  return section;
};

test("a request over HTTP/2 is read like one over HTTP/1.1, with Host as the first field", () => {
  const section = [...GET, "x-a", "1", "cookie", "a=1", "cookie", "b=2", "te", "trailers"];
  assert.deepEqual(readHttp2Head(section, true, 100), {
    method: "GET",
    target: "/x?y",
    targetForm: "origin",
    scheme: "https",
    authority: "a.test",
    fields: ["host", "a.test", "x-a", "1", "cookie", "a=1; b=2", "te", "trailers"],
    framing: { kind: "none" },
    upgrade: undefined,
  });
});

const FRAMINGS: readonly (readonly [string, readonly string[], boolean, object])[] = [
  ["no body", [], true, { kind: "none" }],
  ["an empty body", ["content-length", "0"], true, { kind: "length", lengthBytes: 0 }],
  ["a body of known length", ["content-length", "12"], false, { kind: "length", lengthBytes: 12 }],
  ["a body of unknown length", [], false, { kind: "chunked" }],
];
for (const [what, fields, isWhole, framing] of FRAMINGS) {
  test(`a request over HTTP/2 with ${what} gets the matching framing`, () => {
    const head = readHttp2Head([...GET, ...fields], isWhole, 100);
    assert.ok("framing" in head);
    assert.deepEqual(head.framing, framing);
  });
}

const REFUSED: readonly (readonly [string, readonly string[], string?])[] = [
  ["no :method", but(":method")],
  ["a :method with a blank", but(":method", "GET /")],
  ["no :scheme", but(":scheme")],
  ["a :scheme of its own", but(":scheme", "ftp")],
  ["no :path", but(":path")],
  ["an empty :path", but(":path", "")],
  ["a :path without a slash", but(":path", "x")],
  ["a whole URL as :path", but(":path", "http://evil.test/")],
  ["a :path with a blank", but(":path", "/a HTTP/1.1")],
  ["a :path with a line end", but(":path", "/a\r\nX: 1")],
  ["a :path with a fragment", but(":path", "/a#b")],
  ["an asterisk for GET", but(":path", "*")],
  ["no host at all", but(":authority")],
  ["an :authority with user information", but(":authority", "user@a.test")],
  ["an :authority with a path", but(":authority", "a.test/x")],
  ["an :authority with a line end", but(":authority", "a.test\r\nX: 1")],
  ["a list of authorities", but(":authority", "a.test, b.test")],
  ["a second host that differs", [...GET, "host", "b.test"]],
  ["two hosts", [...but(":authority"), "host", "a.test", "host", "a.test"]],
  [":path twice", [...GET, ":path", "/admin"]],
  ["a pseudo-field behind a field", [":method", "GET", "x-a", "1", ...but(":method")]],
  ["a pseudo-field of a response", [...GET, ":status", "200"]],
  ["a name of objects as pseudo-field", [":__proto__", "1", ...GET]],
  ["a field name in upper case", [...GET, "X-A", "1"]],
  ["an empty field name", [...GET, "", "1"]],
  ["a field name with a colon", [...GET, "x:a", "1"]],
  ["a field name with a line end", [...GET, "x\r\na", "1"]],
  ["a value with a line end", [...GET, "x-a", "1\r\nx-b: 2"]],
  ["a value with a bare line feed", [...GET, "x-a", "1\n2"]],
  ["a value with NUL", [...GET, "x-a", "1\0"]],
  ["a value with a blank at its end", [...GET, "x-a", "1 "]],
  ["a value beyond one byte", [...GET, "x-a", "\u0101"]],
  ["connection", [...GET, "connection", "keep-alive"]],
  ["keep-alive", [...GET, "keep-alive", "timeout=5"]],
  ["proxy-connection", [...GET, "proxy-connection", "close"]],
  ["transfer-encoding", [...GET, "transfer-encoding", "chunked"]],
  ["upgrade", [...GET, "upgrade", "websocket"]],
  ["TE with codings", [...GET, "te", "gzip"]],
  ["two lengths", [...GET, "content-length", "1", "content-length", "1"]],
  ["a length that is no number", [...GET, "content-length", "+1"]],
  ["a length without a body", [...GET, "content-length", "5"]],
  ["CONNECT", [":method", "CONNECT", ":authority", "a.test:443"], "upgrade_not_supported"],
  ["a WebSocket that ends with its head", [...but(":method", "CONNECT"), ":protocol", "websocket"]],
  ["another tunnel", [...but(":method", "CONNECT"), ":protocol", "connect-udp"], "upgrade_not_supported"],
  ["CONNECT of a host without a port", [":method", "CONNECT", ":authority", "a.test"]],
  ["a protocol without CONNECT", [...GET, ":protocol", "websocket"]],
  ["too many fields", [...GET, ...Array.from({ length: 202 }, (_, at) => `x-${at}`)], "request_headers_too_large"],
];
for (const [what, section, code = "bad_request"] of REFUSED) {
  test(`a request over HTTP/2 with ${what} is refused with ${code}`, () => {
    // A pseudo-field that is added belongs before the fields.
    const head = readHttp2Head(section, !what.includes("number"), 100);
    assert.equal("code" in head ? head.code : undefined, code);
  });
}

test("a WebSocket over HTTP/2 is a GET with a generated key, and no body (RFC 8441, 5)", () => {
  const keys = new Set<string>();
  for (let round = 0; round < 2; round += 1) {
    const sent = [...but(":method", "CONNECT"), ":protocol", "websocket", "sec-websocket-key", "of the client"];
    const head = readHttp2Head(sent, false, 100);
    assert.ok(!("code" in head));
    assert.deepEqual([head.method, head.upgrade, head.framing.kind], ["GET", "websocket", "none"]);
    const key = fieldValue(head.fields, "sec-websocket-key") ?? "";
    assert.equal(Buffer.from(key, "base64").length, 16);
    keys.add(key);
  }
  assert.equal(keys.size, 2);
});

test("every accepted HTTP/2 request could be written as HTTP/1.1 and read as the same request", () => {
  const name = fc.constantFrom(":method", ":scheme", ":authority", ":path", "host", "x-a", "content-length", "te");
  const value = fc.oneof(
    fc.constantFrom("GET", "http", "a.test", "/", "1"),
    fc.string({ unit: anyCharacter, maxLength: 6 }),
  );
  const section = fc.array(fc.tuple(fc.oneof({ weight: 8, arbitrary: name }, fc.string({ maxLength: 4 })), value), {
    maxLength: 8,
  });
  fc.assert(
    fc.property(section, fc.boolean(), (pairs, isWhole) => {
      const head = readHttp2Head([...GET, ...pairs.flat()], isWhole, 100);
      if ("code" in head) return;
      const lines = [`${head.method} ${head.target} HTTP/1.1`];
      for (let at = 0; at < head.fields.length; at += 2) lines.push(`${head.fields[at]}: ${head.fields[at + 1]}`);
      for (const line of lines) assert.match(line, /^[\t\x20-\x7e\x80-\xff]+$/);
      assert.match(lines[0] ?? "", /^[^ ]+ [^ ]+ HTTP\/1\.1$/);
    }),
    { numRuns: 2000 },
  );
});
