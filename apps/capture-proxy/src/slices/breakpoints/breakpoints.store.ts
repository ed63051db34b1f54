import { readJson } from "@headworks/json";
import type { Condition } from "@headworks/capture-contract";
import type { Database } from "#storage/database.ts";
import { RuleTable } from "#rules/rule-table.ts";
import type { StoredBreakpoint } from "./breakpoint-rule.ts";

export type BreakpointsStore = RuleTable<StoredBreakpoint>;

export function createBreakpointsStore(database: Database): BreakpointsStore {
  return new RuleTable(database, {
    table: "breakpoints",
    columns: {
      name: ({ name }) => name,
      condition: ({ condition }) => JSON.stringify(condition),
      direction: ({ direction }) => direction,
      priority: ({ priority }) => priority,
      timeout_secs: ({ timeoutSecs }) => timeoutSecs,
    },
    read: (row) => ({
      name: String(row["name"]),
      condition: readJson(String(row["condition"])) as unknown as Condition,
      direction: String(row["direction"]) as StoredBreakpoint["direction"],
      priority: Number(row["priority"]),
      timeoutSecs: row["timeout_secs"] === null ? null : Number(row["timeout_secs"]),
    }),
  });
}
