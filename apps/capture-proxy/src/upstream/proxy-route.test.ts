import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { formatAddress, parseAddress } from "@headworks/host-patterns";
import { addressOfOctets, type ConnectFields, type HandshakeStep, HttpConnect, socks5Host } from "./proxy-route.ts";

const PROXY = { protocol: "http", host: "proxy.test", port: 3128 } as const;

const connect = (host = "origin.test", said: Partial<ConnectFields> = {}): HttpConnect =>
  new HttpConnect(PROXY, { host, port: 443 }, { authorization: undefined, via: [], ...said });

test("CONNECT has host and port, IPv6 in brackets, the credentials and Via", () => {
  assert.equal(
    Buffer.from(connect("::1", { authorization: "Basic eA==", via: ["1.0 a, 1.1 b", "1.1 c"] }).start()).toString(),
    "CONNECT [::1]:443 HTTP/1.1\r\nHost: [::1]:443\r\nProxy-Authorization: Basic eA==\r\nVia: 1.0 a, 1.1 b\r\nVia: 1.1 c\r\n\r\n",
  );
});

test("a response is parsed however it is split, and the bytes behind it belong to the tunnel", () => {
  const response = Buffer.from(
    "HTTP/1.1 103 Wait\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 7\r\nVia: x\r\n\r\n\x16\x03\x01",
  );
  for (let pieceBytes = 1; pieceBytes <= response.length; pieceBytes += 1) {
    const handshake = connect();
    let step: HandshakeStep = { kind: "going-on", send: undefined };
    let at = 0;
    while (step.kind === "going-on" && at < response.length) {
      step = handshake.read(response.subarray(at, at + pieceBytes));
      at += pieceBytes;
    }
    assert.ok(step.kind === "open", `${pieceBytes}`);
    assert.equal(Buffer.concat([step.rest, response.subarray(at)]).toString("latin1"), "\x16\x03\x01");
  }
});

test("the proxy's reason is quoted in printable characters and cut", () => {
  const step = connect().read(Buffer.from(`HTTP/1.1 502 \x1b[31m${"bad ".repeat(100)}\r\n\r\n`, "latin1"));
  assert.ok(step.kind === "failed");
  assert.ok(!/[^\x20-\x7e]/.test(step.failure.message), step.failure.message);
  assert.ok(step.failure.message.length < 200, step.failure.message);
});

test("addresses are sent as octets and shown in canonical text; everything else is sent as a name", () => {
  fc.assert(
    fc.property(fc.oneof(fc.ipV4(), fc.ipV6()), (text) => {
      const host = socks5Host(text);
      const address = parseAddress(text);
      assert.ok(host.kind !== "name" && address);
      assert.equal(host.octets.length, host.kind === "ipv4" ? 4 : 16);
      assert.equal(addressOfOctets(host.octets), formatAddress(address));
    }),
  );
  assert.deepEqual(socks5Host("127.0.0.1"), { kind: "ipv4", octets: Uint8Array.of(127, 0, 0, 1) });
  assert.deepEqual(socks5Host("127.1"), { kind: "name", name: "127.1" });
  assert.deepEqual(socks5Host("origin.test"), { kind: "name", name: "origin.test" });
});
