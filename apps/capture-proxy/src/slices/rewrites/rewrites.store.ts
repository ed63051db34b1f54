import { readJson } from "@headworks/json";
import type { Condition, RewriteAction } from "@headworks/capture-contract";
import type { Database } from "#storage/database.ts";
import { RuleTable } from "#rules/rule-table.ts";
import type { Direction, StoredRewrite } from "./rewrite-rule.ts";

export type RewritesStore = RuleTable<StoredRewrite>;

export function createRewritesStore(database: Database): RewritesStore {
  return new RuleTable(database, {
    table: "rewrite_rules",
    columns: {
      name: ({ name }) => name,
      condition: ({ condition }) => JSON.stringify(condition),
      direction: ({ direction }) => direction,
      actions: ({ actions }) => JSON.stringify(actions),
      priority: ({ priority }) => priority,
    },
    read: (row) => ({
      name: String(row["name"]),
      condition: readJson(String(row["condition"])) as unknown as Condition,
      direction: String(row["direction"]) as Direction,
      actions: readJson(String(row["actions"])) as unknown as RewriteAction[],
      priority: Number(row["priority"]),
    }),
  });
}
