import type { TrafficFilter } from "@headworks/capture-contract";
import {
  allOf,
  compileQuery,
  EVERYTHING,
  fromParameters,
  indexable,
  needs,
  parseQuery,
} from "@headworks/query-language";
import type { Needs, Plan, PlanColumn, Predicate, Query } from "@headworks/query-language";
import type { SqlValue } from "../database.ts";
import { STREAM_COLUMNS } from "../streams/entry-streams.ts";

/** A compiled filter: an SQL condition and a predicate for what SQL cannot decide. */
export interface FilterPlan {
  /** Condition on `entry` under the alias `e`. */
  readonly where: string;
  readonly values: readonly SqlValue[];
  /** Undefined if the condition suffices. */
  readonly predicate: Predicate | undefined;
  readonly needs: Needs;
  readonly query: Query;
  readonly isEverything: boolean;
  /** Depends on the current time: results must not be cached for long. */
  readonly isTimed: boolean;
}

/** Filters are validated by the API; this is for callers that skip it. */
class FilterError extends Error {
  override readonly name = "FilterError";
}

/** Throws {@link FilterError} for an invalid filter. */
export function planFilter(filter: TrafficFilter, nowMs: number): FilterPlan {
  const query = queryOfFilter(filter);
  const { plan, exact } = indexable(query, { nowMs });
  const values: SqlValue[] = [];
  const where = sqlOfPlan(plan, values);
  return {
    where,
    values,
    predicate: exact ? undefined : compileQuery(query, { nowMs }),
    needs: needs(query),
    query,
    isEverything: exact && plan.kind === "any",
    isTimed: isTimed(query),
  };
}

/** The conjunction of all parts of a filter. */
function queryOfFilter(filter: TrafficFilter): Query {
  const { q, session_id: _session, min_size, max_size, min_time, max_time, ...texts } = filter;
  const typed = q === undefined ? { ok: true as const, query: EVERYTHING } : parseQuery(q);
  if (!typed.ok) throw new FilterError(`q: ${typed.error.message} (at character ${typed.error.start + 1})`);
  const parameters = fromParameters({
    ...texts,
    min_size: numberText(min_size),
    max_size: numberText(max_size),
    min_time: numberText(min_time),
    max_time: numberText(max_time),
  });
  if (!parameters.ok) throw new FilterError(`${parameters.error.parameter}: ${parameters.error.message}`);
  return allOf([typed.query, parameters.query]);
}

function numberText(value: number | undefined): string | undefined {
  return value === undefined ? undefined : String(value);
}

function isTimed(query: Query): boolean {
  switch (query.kind) {
    case "and":
    case "or":
      return query.terms.some(isTimed);
    case "not":
      return isTimed(query.term);
    case "preset":
      return isTimed(query.query);
    case "since":
    case "before":
      return query.moment.kind === "ago";
    default:
      return false;
  }
}

const COLUMNS: Readonly<Record<PlanColumn, string>> = {
  id: "id",
  seq: "e.seq",
  method: "method",
  scheme: "scheme",
  host: "host",
  port: "port",
  path: "(CASE instr(path, '?') WHEN 0 THEN path ELSE substr(path, 1, instr(path, '?') - 1) END)",
  status: "status",
  requestType: "request_type",
  responseType: "response_type",
  resourceType: "resource_type",
  requestSizeBytes: "request_size",
  responseSizeBytes: "response_size",
  durationMs: "(duration_us / 1000.0)",
  timestampMs: "started_ms",
  state: "(CASE state WHEN 0 THEN 'pending' WHEN 1 THEN 'complete' WHEN 2 THEN 'failed' ELSE 'closed' END)",
  isPassthrough: "(CASE flags & 2 WHEN 0 THEN 'false' ELSE 'true' END)",
  ...STREAM_COLUMNS,
};

function sqlOfPlan(plan: Plan, values: SqlValue[]): string {
  switch (plan.kind) {
    case "any":
      return "TRUE";
    case "and":
      return `(${plan.terms.map((term) => sqlOfPlan(term, values)).join(" AND ")})`;
    case "or":
      return `(${plan.terms.map((term) => sqlOfPlan(term, values)).join(" OR ")})`;
    case "not":
      return `NOT COALESCE(${sqlOfPlan(plan.term, values)}, FALSE)`;
    case "present":
      return `COALESCE(${COLUMNS[plan.column]} <> '', FALSE)`;
    case "number":
      values.push(plan.value);
      return `COALESCE(${COLUMNS[plan.column]} ${plan.op} ?, FALSE)`;
    case "text":
      return `COALESCE(${textTest(`lower(${COLUMNS[plan.column]})`, plan.op, plan.value, values)}, FALSE)`;
  }
}

function textTest(
  column: string,
  op: "equals" | "contains" | "startsWith" | "endsWith",
  value: string,
  values: SqlValue[],
): string {
  values.push(value);
  switch (op) {
    case "equals":
      return `${column} = ?`;
    case "contains":
      return `instr(${column}, ?) > 0`;
    case "startsWith":
      return `instr(${column}, ?) = 1`;
    case "endsWith":
      values.push(value);
      return value === "" ? `? = ?` : `substr(${column}, -length(?)) = ?`;
  }
}
