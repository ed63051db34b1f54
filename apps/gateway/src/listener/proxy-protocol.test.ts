import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { ProxyHeaderReader, type ProxyHeader } from "./proxy-protocol.ts";

const SIGNATURE = "0d0a0d0a000d0a515549540a";

/** A version 2 header from hexadecimal digits. */
function v2(command: string, family: string, payload: string): Buffer {
  const lengthBytes = (payload.length / 2).toString(16).padStart(4, "0");
  return Buffer.from(SIGNATURE + command + family + lengthBytes + payload, "hex");
}

/** Reads all bytes, split at these offsets; "more" at the end is an unfinished header. */
function readCut(bytes: Buffer, cuts: readonly number[]): ProxyHeader {
  const reader = new ProxyHeaderReader();
  const places = [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))].toSorted((a, b) => a - b);
  let from = 0;
  for (const to of [...places, bytes.length]) {
    if (to === from) continue;
    const outcome = reader.read(bytes.subarray(from, to));
    if (outcome.state === "more") {
      from = to;
      continue;
    }
    if (outcome.state === "malformed") return outcome;
    const rest = Buffer.concat([outcome.rest ?? Buffer.alloc(0), bytes.subarray(to)]);
    return { ...outcome, rest };
  }
  return { state: "more" };
}

const V4 = "c0000207" + "c0000201" + "d431" + "01bb";
const V6 = "20010db8000000000000000000000001" + "20010db8000000000000000000000002" + "1f90" + "01bb";

const ACCEPTED: readonly (readonly [string, Buffer, string | undefined])[] = [
  ["version 1, IPv4", Buffer.from("PROXY TCP4 192.0.2.7 192.0.2.1 54321 443\r\n"), "192.0.2.7 54321"],
  ["version 1, IPv6 in another spelling", Buffer.from("PROXY TCP6 2001:DB8:0::1 ::1 80 443\r\n"), "2001:db8::1 80"],
  ["version 1, IPv4 in IPv6", Buffer.from("PROXY TCP6 ::ffff:192.0.2.7 ::1 80 443\r\n"), "192.0.2.7 80"],
  ["version 1, IPv6", Buffer.from("PROXY TCP6 2001:db8::1 2001:db8::2 8080 443\r\n"), "2001:db8::1 8080"],
  ["version 1, UNKNOWN", Buffer.from("PROXY UNKNOWN\r\n"), undefined],
  ["version 1, UNKNOWN with words", Buffer.from("PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n"), undefined],
  ["version 2, IPv4", v2("21", "11", V4), "192.0.2.7 54321"],
  ["version 2, IPv6", v2("21", "21", V6), "2001:db8::1 8080"],
  ["version 2, IPv4 in IPv6", v2("21", "21", `00000000000000000000ffffc0000207${V6.slice(32)}`), "192.0.2.7 8080"],
  ["version 2 with records", v2("21", "11", `${V4}0400050102030405`), "192.0.2.7 54321"],
  ["version 2 with 60000 bytes of records", v2("21", "11", V4 + "ab".repeat(60_000)), "192.0.2.7 54321"],
  ["version 2, LOCAL", v2("20", "00", ""), undefined],
  ["version 2, LOCAL with addresses", v2("20", "11", V4), undefined],
  ["version 2, unspecified family", v2("21", "00", "abcd"), undefined],
  ["version 2, Unix socket", v2("21", "31", "00".repeat(216)), undefined],
];
for (const [what, header, source] of ACCEPTED) {
  test(`PROXY header: ${what} is read however it is split, and the following bytes are kept`, () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 40 }), fc.array(fc.nat(70_000), { maxLength: 8 }), (after, cuts) => {
        const outcome = readCut(Buffer.concat([header, after]), cuts);
        assert.ok(outcome.state === "done");
        const found = outcome.source === undefined ? undefined : `${outcome.source.address} ${outcome.source.port}`;
        assert.equal(found, source);
        assert.deepEqual(outcome.rest, Buffer.from(after));
      }),
      { numRuns: 60 },
    );
  });
}

const REFUSED: readonly (readonly [string, Buffer])[] = [
  ["a request", Buffer.from("GET / HTTP/1.1\r\n")],
  ["a TLS hello", Buffer.from("16030100", "hex")],
  ["lower case", Buffer.from("proxy TCP4 192.0.2.7 192.0.2.1 1 2\r\n")],
  ["a family of its own", Buffer.from("PROXY UDP4 192.0.2.7 192.0.2.1 1 2\r\n")],
  ["UNKNOWN run together", Buffer.from("PROXY UNKNOWNX\r\n")],
  ["two spaces", Buffer.from("PROXY TCP4  192.0.2.7 192.0.2.1 1 2\r\n")],
  ["a missing port", Buffer.from("PROXY TCP4 192.0.2.7 192.0.2.1 1\r\n")],
  ["one word too many", Buffer.from("PROXY TCP4 192.0.2.7 192.0.2.1 1 2 3\r\n")],
  ["a port above 65535", Buffer.from("PROXY TCP4 192.0.2.7 192.0.2.1 65536 2\r\n")],
  ["a port with a leading zero", Buffer.from("PROXY TCP4 192.0.2.7 192.0.2.1 01 2\r\n")],
  ["an address with a leading zero", Buffer.from("PROXY TCP4 192.0.2.07 192.0.2.1 1 2\r\n")],
  ["IPv6 as IPv4", Buffer.from("PROXY TCP4 ::1 ::1 1 2\r\n")],
  ["a zone", Buffer.from("PROXY TCP6 fe80::1%lo ::1 1 2\r\n")],
  ["a name", Buffer.from("PROXY TCP4 localhost 192.0.2.1 1 2\r\n")],
  ["a bare line feed", Buffer.from(`PROXY TCP4 192.0.2.7 192.0.2.1 1 2\n${" ".repeat(80)}`)],
  ["a line without end", Buffer.from(`PROXY UNKNOWN ${"x".repeat(93)}`)],
  ["version 3", v2("31", "11", V4)],
  ["command 2", v2("22", "11", V4)],
  ["datagrams", v2("21", "12", V4)],
  ["family 4", v2("21", "41", V4)],
  ["addresses that are cut short", v2("21", "11", V4.slice(2))],
  ["IPv6 with the length of IPv4", v2("21", "21", V4)],
];
for (const [what, header] of REFUSED) {
  test(`PROXY header: ${what} is malformed however it is split`, () => {
    fc.assert(
      fc.property(fc.array(fc.nat(1000), { maxLength: 8 }), (cuts) => {
        assert.equal(readCut(Buffer.concat([header, Buffer.alloc(100, 0x20)]), cuts).state, "malformed");
      }),
      { numRuns: 40 },
    );
  });
}

test("PROXY header: any bytes are read, awaited or refused the same way however they are split", () => {
  const start = fc.constantFrom("", "PROXY ", "PROXY TCP4 1.2.3.4 ", Buffer.from(SIGNATURE, "hex").toString("latin1"));
  fc.assert(
    fc.property(
      start,
      fc.uint8Array({ maxLength: 300 }),
      fc.array(fc.nat(400), { maxLength: 6 }),
      (head, tail, cuts) => {
        const bytes = Buffer.concat([Buffer.from(head, "latin1"), tail]);
        const whole = readCut(bytes, []);
        const cut = readCut(bytes, cuts);
        assert.deepEqual(cut.state, whole.state);
        if (cut.state === "done" && whole.state === "done") assert.deepEqual(cut, whole);
      },
    ),
    { numRuns: 2000 },
  );
});
