import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  decodePercent,
  parseCallForm,
  parseCallPath,
  parseTimeoutMs,
  readStatus,
  readTrailerMessage,
  statusOfHttp,
} from "./index.ts";

const MESSAGES: readonly (readonly [string, string])[] = [
  ["plain", "plain"],
  ["f%C3%BCr 100 %25 %E2%82%AC", "für 100 % €"],
  ["100%", "100%"],
  ["%zz%4", "%zz%4"],
  ["%FF", "\uFFFD"],
  ["%41%", "A%"],
  ["", ""],
];
for (const [encoded, decoded] of MESSAGES) {
  test(`the message ${JSON.stringify(encoded)} reads ${JSON.stringify(decoded)}`, () => {
    assert.equal(decodePercent(encoded), decoded);
  });
}

test("every message that gRPC's rules encode comes back", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), (text) => {
      const encoded = [...Buffer.from(text)]
        .map((octet) => (octet >= 0x20 && octet <= 0x7e && octet !== 0x25 ? String.fromCharCode(octet) : hex(octet)))
        .join("");
      assert.equal(decodePercent(encoded), text);
    }),
  );
});

function hex(octet: number): string {
  return `%${octet.toString(16).padStart(2, "0").toUpperCase()}`;
}

test("a status is read from fields in any case, with its details", () => {
  const fields = ["Grpc-Status", "5", "grpc-message", "not%20here", "grpc-status-details-bin", "CAUSA2Fi"];
  assert.deepEqual(readStatus(fields), { code: 5, message: "not here", details: Buffer.from("CAUSA2Fi", "base64") });
  assert.equal(readStatus(["grpc-message", "alone"]), undefined);
  assert.deepEqual(readStatus(["grpc-status", "five"]), { code: undefined, message: "", details: undefined });
});

test("the trailer message of gRPC-Web is lines of fields", () => {
  assert.deepEqual(readTrailerMessage(Buffer.from("Grpc-Status: 0\r\nx-a:b:c\r\n\r\nno colon\r\n: no name")), [
    "grpc-status",
    "0",
    "x-a",
    "b:c",
  ]);
  fc.assert(
    fc.property(fc.uint8Array(), (bytes) => {
      assert.equal(readTrailerMessage(Buffer.from(bytes)).length % 2, 0);
    }),
  );
});

const FORMS: readonly (readonly [string, ReturnType<typeof parseCallForm>])[] = [
  ["application/grpc", { protocol: "grpc", isText: false, format: "proto" }],
  ["Application/GRPC+Proto; charset=utf-8", { protocol: "grpc", isText: false, format: "proto" }],
  ["application/grpc+json", { protocol: "grpc", isText: false, format: "json" }],
  ["application/grpc-web", { protocol: "web", isText: false, format: "proto" }],
  ["application/grpc-web-text+proto", { protocol: "web", isText: true, format: "proto" }],
  ["application/grpcx", undefined],
  ["application/grpc-webby", undefined],
  ["application/json", undefined],
  ["", undefined],
];
for (const [type, form] of FORMS) {
  test(`the type ${JSON.stringify(type)} is ${form === undefined ? "no call" : "a call"}`, () => {
    assert.deepEqual(parseCallForm(type), form);
  });
}

const PATHS: readonly (readonly [string, ReturnType<typeof parseCallPath>])[] = [
  ["/shop.v1.Orders/Get", { service: "shop.v1.Orders", method: "Get" }],
  ["/api/shop.v1.Orders/Get?x=/y/z", { service: "shop.v1.Orders", method: "Get" }],
  ["/Get", undefined],
  ["/a/", undefined],
  ["*", undefined],
  ["", undefined],
];
for (const [path, expected] of PATHS) {
  test(`the path ${JSON.stringify(path)} ${expected === undefined ? "names no method" : "names a method"}`, () => {
    assert.deepEqual(parseCallPath(path), expected);
  });
}

const TIMEOUTS: readonly (readonly [string, number | undefined])[] = [
  ["100m", 100],
  ["5S", 5000],
  ["2M", 120_000],
  ["1H", 3_600_000],
  ["1500u", 1.5],
  ["2000000n", 2],
  ["123456789S", undefined],
  ["5s", undefined],
  ["-5S", undefined],
  ["", undefined],
];
for (const [text, timeoutMs] of TIMEOUTS) {
  test(`the timeout ${JSON.stringify(text)} is ${String(timeoutMs)} ms`, () => {
    const found = parseTimeoutMs(text);
    if (timeoutMs === undefined) assert.equal(found, undefined);
    else assert.ok(Math.abs((found ?? Number.NaN) - timeoutMs) < 1e-9);
  });
}

test("a status of HTTP has a meaning for a call", () => {
  assert.equal(statusOfHttp(200), 2);
  assert.equal(statusOfHttp(503), 14);
  assert.equal(statusOfHttp(418), 2);
});
