import assert from "node:assert/strict";
import { test } from "node:test";
import { hexRows, offsetDigits } from "./hex-rows.ts";

test("a hex row has an offset, sixteen bytes and their characters", () => {
  const rows = hexRows(new TextEncoder().encode("GET / HTTP/1.1\r\n\0é"), 32, 16);
  assert.deepEqual(rows, [
    { offset: 32, hex: "47 45 54 20 2f 20 48 54  54 50 2f 31 2e 31 0d 0a", ascii: "GET / HTTP/1.1··" },
    { offset: 48, hex: "00 c3 a9", ascii: "···" },
  ]);
  assert.deepEqual(hexRows(new Uint8Array(0), 0, 16), []);
});

test("a narrow hex row has eight bytes", () => {
  assert.deepEqual(hexRows(new TextEncoder().encode("GET / HTTP"), 8, 8), [
    { offset: 8, hex: "47 45 54 20 2f 20 48 54", ascii: "GET / HT" },
    { offset: 16, hex: "54 50", ascii: "TP" },
  ]);
});

test("all offsets have as many digits as the last one", () => {
  assert.equal(offsetDigits(0), 6);
  assert.equal(offsetDigits(0x100_0000), 6);
  assert.equal(offsetDigits(0x100_0001), 7);
});
