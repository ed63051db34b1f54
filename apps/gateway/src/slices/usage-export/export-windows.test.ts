import assert from "node:assert/strict";
import { test } from "node:test";
import { lastClosed, statementFileName, windowAt } from "./export-windows.ts";
import type { ExportKind } from "./export-windows.ts";

const CASES: readonly (readonly [ExportKind, string, string, string, string])[] = [
  [
    "hourly",
    "2026-08-29T14:59:59.999Z",
    "2026-08-29T14:00",
    "2026-08-29T15:00",
    "gateway-usage-hourly-2026-08-29T14Z.csv",
  ],
  [
    "hourly",
    "2026-12-31T23:00:00.000Z",
    "2026-12-31T23:00",
    "2027-01-01T00:00",
    "gateway-usage-hourly-2026-12-31T23Z.csv",
  ],
  ["daily", "2028-02-29T00:00:00.000Z", "2028-02-29T00:00", "2028-03-01T00:00", "gateway-usage-daily-2028-02-29.csv"],
  ["daily", "1969-12-31T23:59:59.999Z", "1969-12-31T00:00", "1970-01-01T00:00", "gateway-usage-daily-1969-12-31.csv"],
  ["monthly", "2026-08-31T23:59:59.999Z", "2026-08-01T00:00", "2026-09-01T00:00", "gateway-usage-monthly-2026-08.csv"],
  ["monthly", "2026-12-01T00:00:00.000Z", "2026-12-01T00:00", "2027-01-01T00:00", "gateway-usage-monthly-2026-12.csv"],
];

for (const [kind, time, start, end, name] of CASES) {
  test(`the ${kind} window of ${time} and the name of its file`, () => {
    const window = windowAt(kind, Date.parse(time));
    assert.deepEqual(
      [new Date(window.startMs).toISOString(), new Date(window.endMs).toISOString()],
      [`${start}:00.000Z`, `${end}:00.000Z`],
    );
    assert.equal(statementFileName(window, "csv"), name);
  });
}

test("the last closed window ended at the moment or before", () => {
  const noon = Date.UTC(2026, 2, 1, 12);
  assert.equal(lastClosed("hourly", noon).endMs, noon);
  assert.equal(lastClosed("hourly", noon - 1).endMs, noon - 3_600_000);
  assert.equal(lastClosed("daily", noon).startMs, Date.UTC(2026, 1, 28));
  assert.equal(lastClosed("monthly", noon).startMs, Date.UTC(2026, 1, 1));
});
