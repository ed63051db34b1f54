import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { dayOf, monthOf, secondsUntil } from "./calendar-window.ts";

const iso = (text: string): number => Date.parse(text);
const shown = ({ startMs, endMs }: { startMs: number; endMs: number }): [string, string] => [
  new Date(startMs).toISOString(),
  new Date(endMs).toISOString(),
];

const CASES: readonly (readonly [name: string, now: string, month: readonly [string, string]])[] = [
  ["the first instant of a month", "2026-03-01T00:00:00.000Z", ["2026-03-01", "2026-04-01"]],
  ["the last instant of a month", "2026-03-31T23:59:59.999Z", ["2026-03-01", "2026-04-01"]],
  ["the 31st before a shorter month", "2026-01-31T12:00:00.000Z", ["2026-01-01", "2026-02-01"]],
  ["a leap day", "2028-02-29T23:59:59.999Z", ["2028-02-01", "2028-03-01"]],
  ["February of a common year", "2027-02-28T23:59:59.999Z", ["2027-02-01", "2027-03-01"]],
  ["February of 2100, which is no leap year", "2100-02-28T00:00:00.000Z", ["2100-02-01", "2100-03-01"]],
  ["February of 2000, which is one", "2000-02-29T00:00:00.000Z", ["2000-02-01", "2000-03-01"]],
  ["the end of a year", "2026-12-31T23:59:59.999Z", ["2026-12-01", "2027-01-01"]],
  ["before 1970", "1969-12-31T23:59:59.999Z", ["1969-12-01", "1970-01-01"]],
  ["the year 50, which some functions take for 1950", "0050-06-15T00:00:00.000Z", ["0050-06-01", "0050-07-01"]],
  ["the year -1", "-000001-03-10T00:00:00.000Z", ["-000001-03-01", "-000001-04-01"]],
  ["the year 275760", "+275760-08-31T23:59:59.999Z", ["+275760-08-01", "+275760-09-01"]],
];

for (const [name, now, month] of CASES) {
  test(`quota windows: ${name} lies in its UTC month and day`, () => {
    assert.deepEqual(
      shown(monthOf(iso(now))),
      month.map((day) => `${day}T00:00:00.000Z`),
    );
    const day = now.slice(0, now.indexOf("T"));
    const { startMs, endMs } = dayOf(iso(now));
    assert.equal(new Date(startMs).toISOString(), `${day}T00:00:00.000Z`);
    assert.equal(endMs - startMs, 86_400_000);
  });
}

test("quota windows: every moment lies in exactly one day and one month, and the next begins where one ends", () => {
  const moment = fc
    .double({ min: -8_639_999_000_000_000, max: 8_637_000_000_000_000, noNaN: true })
    .map((ms) => ms + 0);
  fc.assert(
    fc.property(moment, (nowMs) => {
      for (const windowOf of [dayOf, monthOf]) {
        const { startMs, endMs } = windowOf(nowMs);
        assert.ok(startMs <= nowMs && nowMs < endMs);
        assert.ok(Number.isSafeInteger(startMs / 1000) && Number.isSafeInteger(endMs / 1000));
        assert.deepEqual(windowOf(startMs), { startMs, endMs });
        assert.deepEqual(windowOf(endMs - 1), { startMs, endMs });
        assert.equal(windowOf(endMs).startMs, endMs);
      }
      const month = monthOf(nowMs);
      assert.ok([28, 29, 30, 31].includes((month.endMs - month.startMs) / 86_400_000));
      assert.equal(new Date(month.startMs).getUTCDate(), 1);
    }),
  );
});

test("Retry-After is rounded up and at least one second", () => {
  for (const [endMs, nowMs, seconds] of [
    [10_000, 0, 10],
    [10_000, 1, 10],
    [10_000, 9_001, 1],
    [10_000, 9_999.9, 1],
    [10_000, 10_000, 1],
    [10_000, 99_000, 1],
    [2_678_400_000, 0, 2_678_400],
  ] as const) {
    assert.equal(secondsUntil(endMs, nowMs), seconds);
  }
});
