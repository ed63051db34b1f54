import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:net";
import type { AddressInfo, Socket } from "node:net";
import { test } from "node:test";
import { connect } from "node:tls";
import fc from "fast-check";
import { detectProtocol, type HelloBeginning, isForeignToHttp1, readClientHello } from "./detect.ts";

/** The first bytes a real TLS client sends. */
async function recordHello(options: { servername?: string; ALPNProtocols?: string[] }): Promise<Buffer> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const client = connect({ host: "127.0.0.1", port: (server.address() as AddressInfo).port, ...options });
  client.on("error", () => undefined);
  const [socket] = (await once(server, "connection")) as [Socket];
  const [bytes] = (await once(socket, "data")) as [Buffer];
  client.destroy();
  socket.destroy();
  server.close();
  return bytes;
}

const hello = await recordHello({ servername: "Shop.Example", ALPNProtocols: ["h2", "http/1.1"] });
const bareHello = await recordHello({});

/** The same handshake bytes in records of one byte each. */
function inTinyRecords(bytes: Buffer): Buffer {
  const body = bytes.subarray(5);
  return Buffer.concat([...body].map((byte) => Buffer.from([0x16, 3, 1, 0, 1, byte])));
}

test("a real ClientHello yields its server name in lower case and its protocols", () => {
  assert.deepEqual(readClientHello(hello), { serverName: "shop.example", protocols: ["h2", "http/1.1"] });
  assert.deepEqual(readClientHello(bareHello), { serverName: undefined, protocols: [] });
});

test("every prefix of a ClientHello needs more bytes, however it is split into records", () => {
  for (const whole of [hello, inTinyRecords(hello)]) {
    for (let end = 0; end < whole.length; end += 1) {
      const { needsBytes } = readClientHello(whole.subarray(0, end)) as HelloBeginning;
      assert.ok(needsBytes > end && needsBytes <= whole.length, `${needsBytes} needed after ${end} of ${whole.length}`);
    }
    assert.deepEqual(readClientHello(whole), { serverName: "shop.example", protocols: ["h2", "http/1.1"] });
  }
});

test("a ClientHello that arrives byte by byte in thousands of records is parsed a few dozen times", () => {
  const whole = inTinyRecords(hello);
  let looks = 0;
  for (let end = 1; ; looks += 1) {
    const result = readClientHello(whole.subarray(0, end));
    if (result === "not-tls" || !("needsBytes" in result)) break;
    end = result.needsBytes;
  }
  assert.ok(looks > 0 && looks < 60, `${looks} looks`);
});

test("damaged ClientHellos never throw and always have one of three results", () => {
  fc.assert(
    fc.property(fc.nat(hello.length - 1), fc.integer({ min: 0, max: 255 }), (at, byte) => {
      const damaged = Buffer.from(hello);
      damaged[at] = byte;
      const result = readClientHello(damaged);
      assert.ok(result === "not-tls" || "needsBytes" in result || "protocols" in result);
    }),
  );
});

test("an invalid host name is ignored", () => {
  for (const name of ["Shop\0Example", "Shop..xample", ".hop.Example", "Shop.Examp..", "*hop.Example"]) {
    const odd = Buffer.from(hello.toString("latin1").replace("Shop.Example", name), "latin1");
    assert.deepEqual(readClientHello(odd), { serverName: undefined, protocols: ["h2", "http/1.1"] }, name);
  }
});

const CASES: readonly [string, string, string][] = [
  ["a request line", "GET / HTTP/1.1\r\n", "http1"],
  ["an unknown method", "M-SEARCH * HTTP/1.1\r\n", "http1"],
  ["an absolute target", "GET http://x/ HTTP/1.1\r\n", "http1"],
  ["a lower-case word", "helo there\r\n", "other"],
  ["binary", "\x00\x01\x02", "other"],
  ["an SSH banner", "SSH-2.0-OpenSSH\r\n", "other"],
  ["a method without an end", "A".repeat(40), "other"],
  ["a target that is no target", "GET ?x HTTP/1.1\r\n", "other"],
  ["the HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "http2"],
  ["something that looks like a TLS record", "\x16\x05\x00\x00\x10abc", "other"],
];
for (const [name, bytes, protocol] of CASES) {
  test(`${name} is ${protocol}`, () => {
    const detected = detectProtocol(Buffer.from(bytes, "latin1"));
    assert.equal(detected.protocol, protocol);
  });
}

test("more bytes do not change a decision", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
      const whole = Buffer.from(bytes);
      let decided: string | undefined;
      for (let end = 1; end <= whole.length; end += 1) {
        const detected = detectProtocol(whole.subarray(0, end));
        if (detected.protocol === "undecided") assert.equal(decided, undefined);
        else decided = detected.protocol;
      }
    }),
  );
});

const FOREIGN: readonly [is: string, bytes: string, isForeign: boolean][] = [
  ["a command of IMAP", "a001 CAPABILITY\r\n", true],
  ["CONNECT of MQTT", "\x10\x0e\x00\x04MQTT\x04\x02\x00\x3c\x00\x02ab", true],
  ["a line of text", "HELLO nonhttp\n", true],
  ["an empty line and a command of IMAP", "\r\na001 CAPABILITY\r\n", true],
  ["an empty line", "\r\n", false],
  ["a request behind an empty line", "\r\npurge /a HTTP/1.1\r\n", false],
  ["a request with a method of its own", "purge /a HTTP/1.1\r\n", false],
  ["a request without a version", "GET /\r\n", false],
  ["a request with an invalid target", "GET ftp://a/ HTTP/1.1\r\nHost: a\r\n", false],
  ["the beginning of a line", "hello", false],
  ["the beginning of a request", "GE", false],
];
for (const [is, bytes, isForeign] of FOREIGN) {
  test(`${is} is ${isForeign ? "" : "not "}taken for another protocol than HTTP/1`, () => {
    assert.equal(isForeignToHttp1(Buffer.from(bytes, "latin1")), isForeign);
  });
}
