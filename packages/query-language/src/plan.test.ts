import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import fc from "fast-check";
import { compileQuery } from "./compile.ts";
import type { PlanColumn } from "./fields.ts";
import { indexable, type Plan } from "./plan.ts";
import { queries, records } from "../test/random-queries.ts";

const COLUMNS: readonly PlanColumn[] = [
  "id",
  "seq",
  "method",
  "scheme",
  "host",
  "port",
  "path",
  "status",
  "requestType",
  "responseType",
  "resourceType",
  "requestSizeBytes",
  "responseSizeBytes",
  "durationMs",
  "timestampMs",
  "state",
  "isPassthrough",
  "grpcStatus",
  "incoming",
  "outgoing",
  "webSocketMessages",
];

/** The translation that a store would make; every condition is 0 or 1, never NULL. */
function where(plan: Plan, values: (string | number)[]): string {
  if (plan.kind === "any") return "1";
  if (plan.kind === "and" || plan.kind === "or") {
    return `(${plan.terms.map((term) => where(term, values)).join(` ${plan.kind} `)})`;
  }
  if (plan.kind === "not") return `(NOT ${where(plan.term, values)})`;
  if (plan.kind === "present") return `(${plan.column} IS NOT NULL AND ${plan.column} <> '')`;
  if (plan.kind === "number") {
    values.push(plan.value);
    return `coalesce(${plan.column} ${plan.op} ?, 0)`;
  }
  const column = `lower(${plan.column})`;
  const length = Array.from(plan.value).length;
  values.push(plan.value);
  if (plan.op === "equals") return `coalesce(${column} = ?, 0)`;
  if (plan.op === "contains") return `coalesce(instr(${column}, ?) > 0, 0)`;
  if (plan.op === "startsWith") return `coalesce(substr(${column}, 1, ${length}) = ?, 0)`;
  return `coalesce(length(${column}) >= ${length} AND substr(${column}, -${length}) = ?, 0)`;
}

test("a database finds by the plan what the predicate accepts", () => {
  const database = new DatabaseSync(":memory:");
  database.exec(`CREATE TABLE entries (${COLUMNS.join(", ")})`);
  const insert = database.prepare(`INSERT INTO entries VALUES (${COLUMNS.map(() => "?").join(", ")})`);
  let exact = 0;
  fc.assert(
    fc.property(queries, records, (query, record) => {
      const approximation = indexable(query, { nowMs: 1_000_010 });
      const wanted = compileQuery(query, { nowMs: 1_000_010 })(record);
      if (approximation.exact) exact += 1;
      insert.run(
        ...COLUMNS.map((column) => {
          const cell = record[column];
          return cell === undefined ? null : typeof cell === "boolean" ? String(cell) : cell;
        }),
      );
      const values: (string | number)[] = [];
      const condition = where(approximation.plan, values);
      const found = database.prepare(`SELECT 1 FROM entries WHERE ${condition}`).all(...values).length === 1;
      database.exec("DELETE FROM entries");
      if (wanted || approximation.exact) assert.equal(found, wanted, `${condition} ${JSON.stringify(values)}`);
    }),
    { numRuns: 3000 },
  );
  database.close();
  assert.ok(exact > 300, `only ${exact} exact plans`);
});
