import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import * as der from "./der.ts";

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");

const integers: [magnitude: number[], encoded: string][] = [
  [[], "020100"],
  [[0], "020100"],
  [[0, 0, 1], "020101"],
  [[0x7f], "02017f"],
  [[0x80], "02020080"],
  [[0, 0x80, 0], "0203008000"],
];

for (const [magnitude, encoded] of integers) {
  test(`the magnitude [${magnitude.join()}] is a positive INTEGER in the fewest octets`, () => {
    assert.equal(hex(der.unsignedInteger(Uint8Array.from(magnitude))), encoded);
  });
}

const times: [iso: string, encoded: string][] = [
  ["1949-12-31T23:59:59.999Z", "180f" + hex(Buffer.from("19491231235959Z"))],
  ["1950-01-01T00:00:00Z", "170d" + hex(Buffer.from("500101000000Z"))],
  ["2049-12-31T23:59:59Z", "170d" + hex(Buffer.from("491231235959Z"))],
  ["2050-01-01T00:00:00Z", "180f" + hex(Buffer.from("20500101000000Z"))],
];

for (const [iso, encoded] of times) {
  test(`${iso} is written in the form its year asks for`, () => {
    assert.equal(hex(der.time(new Date(iso))), encoded);
  });
}

test("a date outside four digits of year is refused", () => {
  for (const date of [new Date(NaN), new Date(8.64e15), new Date(-8.64e15)]) {
    assert.throws(() => der.time(date), RangeError);
  }
});

test("object identifiers are in base 128", () => {
  assert.equal(hex(der.objectIdentifier("1.2.840.113549.1.1.11")), "06092a864886f70d01010b");
  assert.equal(hex(der.objectIdentifier("2.5.29.17")), "0603551d11");
});

test("written elements are parsed back, at lengths around every step of the length octets", () => {
  for (const length of [0, 1, 127, 128, 255, 256, 65535, 65536]) {
    const content = new Uint8Array(length).fill(7);
    const element = der.readElement(Buffer.concat([der.octetString(content), Buffer.from("rest")]));
    assert.equal(element.tag, der.Tag.octetString);
    assert.deepEqual(Buffer.from(element.content), Buffer.from(content));
    assert.equal(element.raw.length, der.octetString(content).length);
  }
});

const broken = ["", "30", "3001", "3080", "308500000000010", "30830000", "1f0100", "30820100"];

for (const text of broken) {
  test(`the bytes "${text}" are refused instead of read past their end`, () => {
    assert.throws(() => der.readElement(Buffer.from(text, "hex")), RangeError);
  });
}

test("hostile bytes are read or refused, never past their end", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => {
      try {
        const elements = der.readElements(bytes);
        assert.equal(
          elements.reduce((sum, { raw }) => sum + raw.length, 0),
          bytes.length,
        );
      } catch (error) {
        assert.ok(error instanceof RangeError);
      }
    }),
  );
});
