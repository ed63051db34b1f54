import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  credentialsBytes,
  credentialsReplyBytes,
  greetingBytes,
  methodChoiceBytes,
  readCredentials,
  readCredentialsReply,
  readGreeting,
  readMethodChoice,
  readReply,
  readRequest,
  REPLY,
  replyBytes,
  replyText,
  requestBytes,
} from "./messages.ts";
import type { Reading, Socks5Address } from "./messages.ts";

type Read = (bytes: Buffer) => Reading<unknown>;

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(" ", ""), "hex");

/** The examples of RFC 1928 and 1929, byte by byte, and malformed ones. */
const cases: readonly [name: string, read: Read, bytes: string, expected: unknown][] = [
  ["a greeting without authentication", readGreeting, "05 01 00", hex("00")],
  ["a greeting with two methods", readGreeting, "05 02 00 02", hex("00 02")],
  ["SOCKS4", readGreeting, "04 01 00 50", "version"],
  ["HTTP", readGreeting, "47 45 54 20", "version"],
  ["a greeting without a method", readGreeting, "05 00", "no-methods"],
  ["a choice", readMethodChoice, "05 02", 2],
  ["a choice of nothing", readMethodChoice, "05 ff", 255],
  ["an HTTP answer instead of a choice", readMethodChoice, "48 54", "version"],
  ["credentials", readCredentials, "01 02 75 73 01 70", { username: hex("7573"), password: hex("70") }],
  ["empty credentials", readCredentials, "01 00 00", { username: hex(""), password: hex("") }],
  ["credentials of another version", readCredentials, "05 01 75 01 70", "version"],
  ["a reply to credentials", readCredentialsReply, "01 00", true],
  ["a reply to credentials with the wrong version", readCredentialsReply, "05 00", true],
  ["a refusal of credentials", readCredentialsReply, "01 01", false],
  [
    "a request for IPv4",
    readRequest,
    "05 01 00 01 7f 00 00 01 00 50",
    { command: 1, host: { kind: "ipv4", octets: hex("7f000001") }, port: 80 },
  ],
  [
    "a request for a name",
    readRequest,
    "05 01 00 03 03 61 2e 62 01 bb",
    { command: 1, host: { kind: "name", name: "a.b" }, port: 443 },
  ],
  [
    "a request for IPv6",
    readRequest,
    "05 03 00 04 00000000000000000000000000000001 ffff",
    { command: 3, host: { kind: "ipv6", octets: hex("00000000000000000000000000000001") }, port: 65535 },
  ],
  [
    "a name with a NUL",
    readRequest,
    "05 01 00 03 03 61 00 62 00 01",
    { command: 1, host: { kind: "name", name: "a\0b" }, port: 1 },
  ],
  ["an unknown command", readRequest, "05 09 00 01 01020304 0001", undefined],
  ["a request of version 4", readRequest, "04 01 00 50 7f000001", "version"],
  ["a request with a reserved byte that is not zero", readRequest, "05 01 01 01", "reserved"],
  ["a request for an unknown kind of address", readRequest, "05 01 00 02", "address-type"],
  ["a request for a name without a character", readRequest, "05 01 00 03 00", "empty-name"],
  [
    "a reply",
    readReply,
    "05 00 00 01 00000000 0000",
    { code: 0, host: { kind: "ipv4", octets: hex("00000000") }, port: 0 },
  ],
];

for (const [name, read, text, expected] of cases) {
  test(`${name} is parsed, and awaited if it is incomplete`, () => {
    const bytes = hex(text);
    const reading = read(bytes);
    if (typeof expected === "string") return assert.deepEqual(reading, { kind: "invalid", problem: expected });
    assert.ok(reading.kind === "whole");
    if (expected !== undefined) assert.deepEqual(plain(reading.value), plain(expected));
    assert.equal(reading.lengthBytes, bytes.length);
    assert.deepEqual(
      plain(read(Buffer.concat([bytes, hex("00ff05")]))),
      plain(reading),
      "what follows does not matter",
    );
    for (let length = 0; length < bytes.length; length += 1) {
      const early = read(bytes.subarray(0, length));
      assert.ok(early.kind === "partial", `${length} bytes`);
      assert.ok(early.needsBytes > length && early.needsBytes <= bytes.length, `${length} bytes need more`);
    }
  });
}

/** Makes Buffers and Uint8Arrays with the same bytes equal. */
function plain(value: unknown): unknown {
  if (ArrayBuffer.isView(value)) return [...(value as Uint8Array)];
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, plain(part)]));
}

const octets = (length: number): fc.Arbitrary<Uint8Array> => fc.uint8Array({ minLength: length, maxLength: length });
const latin1Name = fc
  .uint8Array({ minLength: 1, maxLength: 255 })
  .map((bytes) => Buffer.from(bytes).toString("latin1"));
const place: fc.Arbitrary<Socks5Address> = fc.record({
  host: fc.oneof(
    octets(4).map((bytes) => ({ kind: "ipv4" as const, octets: bytes })),
    octets(16).map((bytes) => ({ kind: "ipv6" as const, octets: bytes })),
    latin1Name.map((name) => ({ kind: "name" as const, name })),
  ),
  port: fc.nat(65535),
});

test("every request and reply is parsed back unchanged", () => {
  fc.assert(
    fc.property(place, fc.constantFrom(...Object.values(REPLY)), (where, code) => {
      const request = readRequest(Buffer.from(requestBytes(1, where)));
      assert.ok(request.kind === "whole");
      assert.deepEqual(plain(request.value), plain({ command: 1, ...where }));
      const reply = readReply(Buffer.from(replyBytes(code, where)));
      assert.ok(reply.kind === "whole");
      assert.deepEqual(plain(reply.value), plain({ code, ...where }));
    }),
  );
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 255 }), fc.uint8Array({ maxLength: 255 }), (username, password) => {
      const reading = readCredentials(Buffer.from(credentialsBytes({ username, password })));
      assert.ok(reading.kind === "whole");
      assert.deepEqual(plain(reading.value), plain({ username, password }));
    }),
  );
});

test("hostile bytes end in one of three ways, never in an exception and never in waiting for more than a message", () => {
  const readers: readonly Read[] = [
    readGreeting,
    readMethodChoice,
    readCredentials,
    readCredentialsReply,
    readRequest,
    readReply,
  ];
  const bytes = fc.oneof(
    fc.uint8Array({ maxLength: 600 }),
    fc.uint8Array({ maxLength: 600 }).map((rest) => Uint8Array.of(5, 1, 0, 3, ...rest)),
    fc.uint8Array({ maxLength: 600 }).map((rest) => Uint8Array.of(1, ...rest)),
  );
  fc.assert(
    fc.property(fc.constantFrom(...readers), bytes, (read, given) => {
      const reading = read(Buffer.from(given));
      if (reading.kind === "partial") assert.ok(reading.needsBytes > given.length && reading.needsBytes <= 513);
      if (reading.kind === "whole") assert.ok(reading.lengthBytes <= given.length);
    }),
    { numRuns: 2000 },
  );
});

test("values that SOCKS5 cannot carry are refused", () => {
  const named = (name: string): Socks5Address => ({ host: { kind: "name", name }, port: 1 });
  assert.throws(() => requestBytes(1, named("")), RangeError);
  assert.throws(() => requestBytes(1, named("x".repeat(256))), RangeError);
  const long = new Uint8Array(256);
  assert.throws(() => credentialsBytes({ username: long, password: Buffer.from("x") }), RangeError);
  assert.throws(() => credentialsBytes({ username: Buffer.from("x"), password: long }), RangeError);
});

test("short messages have the bytes of the standard", () => {
  assert.deepEqual(plain(greetingBytes([0, 2])), [5, 2, 0, 2]);
  assert.deepEqual(plain(methodChoiceBytes(255)), [5, 255]);
  assert.deepEqual(plain(credentialsReplyBytes(true)), [1, 0]);
  assert.deepEqual(plain(credentialsReplyBytes(false)), [1, 1]);
  assert.deepEqual(plain(replyBytes(REPLY.refused)), [5, 5, 0, 1, 0, 0, 0, 0, 0, 0]);
  assert.equal(replyText(5), "connection refused");
  assert.equal(replyText(77), "unassigned");
});
