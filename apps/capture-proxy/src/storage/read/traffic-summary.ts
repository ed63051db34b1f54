import type { TrafficSummary } from "@headworks/capture-contract";
import type { Database, SqlValue } from "../database.ts";

const SLICES = 60;
const IS_ERROR = "(state = 2 OR COALESCE(status >= 400, FALSE))";

/** Totals of the entries that a condition on `entry` holds for; `total` is the session's count. */
export function summarize(
  database: Database,
  total: number,
  where: string,
  values: readonly SqlValue[],
): TrafficSummary {
  const groups = database
    .prepare(
      `SELECT resource_type AS type, COALESCE(status / 100, 0) AS class, COUNT(*) AS count, SUM(state = 0) AS pending,
         SUM(request_size) AS request_bytes, SUM(response_size) AS response_bytes, SUM(${IS_ERROR}) AS errors,
         MIN(started_ms) AS first, MAX(started_ms) AS last
       FROM entry e WHERE ${where} GROUP BY 1, 2`,
    )
    .all(...values);
  const byType: Record<string, number> = {};
  const byClass: Record<string, number> = {};
  const sum = { matched: 0, pending: 0, request: 0, response: 0, errors: 0, first: Number.MAX_SAFE_INTEGER, last: 0 };
  for (const group of groups) {
    const count = Number(group["count"]);
    const type = String(group["type"]);
    const statusClass = Number(group["class"]);
    byType[type] = (byType[type] ?? 0) + count;
    if (statusClass > 0) byClass[`${statusClass}xx`] = (byClass[`${statusClass}xx`] ?? 0) + count;
    sum.matched += count;
    sum.pending += Number(group["pending"]);
    sum.request += Number(group["request_bytes"]);
    sum.response += Number(group["response_bytes"] ?? 0);
    sum.errors += Number(group["errors"]);
    sum.first = Math.min(sum.first, Number(group["first"]));
    sum.last = Math.max(sum.last, Number(group["last"]));
  }
  const durations = durationsUs(database, where, values);
  return {
    total,
    matched: sum.matched,
    pending: sum.pending,
    request_bytes: sum.request,
    response_bytes: sum.response,
    duration_p50_ms: percentileMs(durations, 0.5),
    duration_p95_ms: percentileMs(durations, 0.95),
    errors: sum.errors,
    by_type: byType,
    by_status_class: byClass,
    first_timestamp: sum.matched === 0 ? null : new Date(sum.first).toISOString(),
    last_timestamp: sum.matched === 0 ? null : new Date(sum.last).toISOString(),
    histogram: sum.matched === 0 ? [] : histogram(database, where, values, sum.first, sum.last),
  };
}

/** Ascending. One text of all numbers costs a tenth of as many rows. */
function durationsUs(database: Database, where: string, values: readonly SqlValue[]): Float64Array {
  const row = database.prepare(`SELECT group_concat(duration_us) AS all_us FROM entry e WHERE ${where}`).get(...values);
  const text = row?.["all_us"];
  return typeof text === "string" ? Float64Array.from(JSON.parse(`[${text}]`) as number[]).sort() : new Float64Array(0);
}

/** Nearest rank. */
function percentileMs(sortedUs: Float64Array, share: number): number | null {
  const us = sortedUs[Math.max(0, Math.ceil(sortedUs.length * share) - 1)];
  return us === undefined ? null : us / 1000;
}

function histogram(
  database: Database,
  where: string,
  values: readonly SqlValue[],
  firstMs: number,
  lastMs: number,
): TrafficSummary["histogram"] {
  const sliceMs = Math.max(1, Math.ceil((lastMs - firstMs + 1) / SLICES));
  const slices = Math.floor((lastMs - firstMs) / sliceMs) + 1;
  const buckets = Array.from({ length: slices }, (_, index) => ({
    start: new Date(firstMs + index * sliceMs).toISOString(),
    count: 0,
    errors: 0,
  }));
  // Numbers are bound as REAL, so the division has to be cut to whole slices.
  const rows = database
    .prepare(
      `SELECT CAST((started_ms - ?) / ? AS INTEGER) AS slice, COUNT(*) AS count, SUM(${IS_ERROR}) AS errors FROM entry e WHERE ${where} GROUP BY 1`,
    )
    .all(firstMs, sliceMs, ...values);
  for (const row of rows) {
    const bucket = buckets[Number(row["slice"])];
    if (bucket === undefined) continue;
    bucket.count = Number(row["count"]);
    bucket.errors = Number(row["errors"]);
  }
  return buckets;
}
