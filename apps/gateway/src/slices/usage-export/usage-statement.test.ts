import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { windowAt } from "./export-windows.ts";
import { statementCsv, statementJson } from "./usage-statement.ts";
import type { StatedConsumer, UsageStatement } from "./usage-statement.ts";

const line = (consumer: string, more: Partial<StatedConsumer> = {}): StatedConsumer => ({
  consumer,
  requests: 0,
  errors: 0,
  rateLimited: 0,
  shed: 0,
  totalMs: 0,
  daily: undefined,
  monthly: undefined,
  ...more,
});

const statement = (...consumers: StatedConsumer[]): UsageStatement => ({
  window: windowAt("daily", Date.UTC(2026, 2, 1)),
  generatedAtMs: Date.UTC(2026, 2, 2, 0, 5) + 0.25,
  isPartial: false,
  rollups: 3,
  consumers,
});

const MOST = 2n ** 64n - 1n;
const daily = { used: 7n, limit: 2n ** 53n + 1n, windowStartS: 1_772_323_200, resetS: 1_772_409_600 };
const monthly = { used: MOST, limit: MOST, windowStartS: 1_772_323_200, resetS: 1_775_001_600 };

test("CSV: columns in the contract's order, CRLF, budgets empty when absent and exact when large", () => {
  const text = statementCsv(
    statement(
      line("acme", { requests: 3, errors: 1, rateLimited: 2, shed: 1, totalMs: 10, daily, monthly }),
      line("idle"),
    ),
  );
  assert.equal(
    text,
    "consumer,requests,errors,error_rate,rate_limited,shed,avg_ms,quota_daily_used,quota_daily_limit,quota_monthly_used,quota_monthly_limit\r\n" +
      "acme,3,1,0.333333,2,1,3.333,7,9007199254740993,18446744073709551615,18446744073709551615\r\n" +
      "idle,0,0,0,0,0,0,,,,\r\n",
  );
});

test("CSV: any consumer's name comes back from a reader of RFC 4180 as it was", () => {
  const name = fc.string({ unit: fc.constantFrom("a", ",", '"', "\r", "\n", " ", "=", "é"), minLength: 1 });
  fc.assert(
    fc.property(fc.array(name, { minLength: 1, maxLength: 5 }), (names) => {
      const rows = readCsv(statementCsv(statement(...names.map((consumer) => line(consumer)))));
      assert.deepEqual(
        rows.slice(1).map((row) => row[0]),
        names,
      );
      assert.ok(rows.every((row) => row.length === 11));
    }),
  );
});

/** RFC 4180 as it is written, nothing forgiven. */
function readCsv(text: string): string[][] {
  const rows: string[][] = [[]];
  let rest = text;
  while (rest !== "") {
    const cell = /^(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/u.exec(rest);
    assert.ok(cell, `no cell at ${JSON.stringify(rest)}`);
    rows.at(-1)?.push((cell[1] ?? cell[2] ?? "").replaceAll('""', '"'));
    rest = rest.slice(cell[0].length);
    if (cell[3] === "\r\n" && rest !== "") rows.push([]);
  }
  return rows;
}

test("JSON: the usage statement with totals, exact integers, and budgets only where there are any", () => {
  const text = statementJson(
    statement(line('a"b', { requests: 4, errors: 1, totalMs: 6, daily, monthly }), line("c", { requests: 1 })),
  );
  assert.ok(text.includes('"quota_daily_limit":9007199254740993,'));
  assert.ok(text.includes('"quota_monthly_used":18446744073709551615,'));
  assert.deepEqual(JSON.parse(text), {
    kind: "usage_statement",
    window: "daily",
    from_ms: Date.UTC(2026, 2, 1),
    to_ms: Date.UTC(2026, 2, 2),
    generated_at_ms: Date.UTC(2026, 2, 2, 0, 5),
    partial: false,
    windows_nonempty: 3,
    totals: { requests: 5, errors: 1, error_rate: 0.2, rate_limited: 0, shed: 0, avg_ms: 1.2 },
    consumers: [
      {
        consumer: 'a"b',
        requests: 4,
        errors: 1,
        error_rate: 0.25,
        rate_limited: 0,
        shed: 0,
        avg_ms: 1.5,
        quota_daily_used: 7,
        quota_daily_limit: Number(2n ** 53n + 1n),
        quota_daily_window_start_epoch_s: 1_772_323_200,
        quota_daily_reset_epoch_s: 1_772_409_600,
        quota_monthly_used: Number(MOST),
        quota_monthly_limit: Number(MOST),
        quota_monthly_window_start_epoch_s: 1_772_323_200,
        quota_monthly_reset_epoch_s: 1_775_001_600,
      },
      { consumer: "c", requests: 1, errors: 0, error_rate: 0, rate_limited: 0, shed: 0, avg_ms: 0 },
    ],
  });
});

test("JSON: no consumers is an empty list", () => {
  assert.deepEqual((JSON.parse(statementJson(statement())) as { consumers: unknown }).consumers, []);
});
