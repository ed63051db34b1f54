import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  formatAgo,
  formatBytes,
  formatCount,
  formatDateTime,
  formatDuration,
  formatShare,
  formatTimeOfDay,
  isolatedName,
} from "./format.ts";

test("sizes have at most three digits and change the unit before 1024", () => {
  const cases: readonly [number | null | undefined, string][] = [
    [null, "—"],
    [undefined, "—"],
    [Number.NaN, "—"],
    [-5, "0 B"],
    [0, "0 B"],
    [412, "412 B"],
    [1023, "1023 B"],
    [1024, "1.0 KiB"],
    [3277, "3.2 KiB"],
    [102_349, "100 KiB"],
    [1_048_575, "1.0 MiB"],
    [333_447_168, "318 MiB"],
    [5 * 1024 ** 5, "5120 TiB"],
  ];
  for (const [size, text] of cases) assert.equal(formatBytes(size), text);
});

test("durations use the unit that fits their length", () => {
  const cases: readonly [number | null, string][] = [
    [null, "—"],
    [0, "0 ms"],
    [0.04, "0 ms"],
    [0.44, "0.4 ms"],
    [3, "3 ms"],
    [9.96, "10 ms"],
    [184.4, "184 ms"],
    [999.4, "999 ms"],
    [999.6, "1.00 s"],
    [59_990, "59.99 s"],
    [59_999, "1 min 0 s"],
    [125_000, "2 min 5 s"],
    [3_725_000, "1 h 2 min"],
  ];
  for (const [ms, text] of cases) assert.equal(formatDuration(ms), text);
});

test("sizes and durations never print a unit overflow, an exponent or NaN", () => {
  fc.assert(
    fc.property(fc.double({ min: 0, max: 1e15, noNaN: true }), (value) => {
      assert.match(formatBytes(value), /^\d{1,4}(?:\.\d)? (?:B|KiB|MiB|GiB|TiB)$/u);
      assert.doesNotMatch(formatDuration(value), /NaN|e\+|1000 ms|60\.00 s/u);
    }),
  );
});

test("a share of zero is 0 %, and a small share is not shown as 0 %", () => {
  assert.equal(formatShare(0, 0), "0 %");
  assert.equal(formatShare(1, 100_000), "< 0.1 %");
  assert.equal(formatShare(14, 1000), "1.4 %");
  assert.equal(formatShare(50, 100), "50 %");
  assert.equal(formatShare(9999, 10_000), "100 %");
});

test("times have milliseconds, and are in UTC on request", () => {
  const at = Date.UTC(2026, 10, 21, 4, 2, 1, 4);
  assert.equal(formatTimeOfDay(at, true), "04:02:01.004");
  assert.equal(formatDateTime(at, true), "2026-11-21 04:02:01 UTC");
  assert.equal(formatTimeOfDay(Number.NaN), "—");
});

test("an age is never negative", () => {
  const now = 1_000_000_000;
  assert.equal(formatAgo(now + 5000, now), "now");
  assert.equal(formatAgo(now - 12_000, now), "12 s ago");
  assert.equal(formatAgo(now - 200_000, now), "3 min ago");
  assert.equal(formatAgo(now - 8_000_000, now), "2 h ago");
  assert.equal(formatAgo(now - 200_000_000, now), "2 d ago");
});

test("counts have thousands separators", () => {
  assert.equal(formatCount(4212), "4,212");
});

test("a name with right-to-left text does not change the direction of its sentence", () => {
  assert.equal(isolatedName("log\u202efdp.exe"), "\u2068log\u202efdp.exe\u2069");
  assert.equal(isolatedName("שלום"), "\u2068שלום\u2069");
  assert.equal(isolatedName("a\u2069\u202eb\u2067"), "\u2068a\u202eb\u2069");
});

test("other names are unchanged", () => {
  for (const name of ["", "Checkout", "grün 日本 😀", "a (copy)?"]) assert.equal(isolatedName(name), name);
});
