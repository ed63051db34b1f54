import type { WsRuleAction, WsRuleMatch } from "@headworks/capture-contract";
import type { Database } from "#storage/database.ts";
import { RuleTable } from "#rules/rule-table.ts";
import type { StoredWsRule } from "./ws-rule.ts";

export type WsTrafficStore = RuleTable<StoredWsRule>;

export function createWsTrafficStore(database: Database): WsTrafficStore {
  return new RuleTable(database, {
    table: "ws_rules",
    columns: {
      name: ({ name }) => name,
      match: ({ match }) => JSON.stringify(match),
      action: ({ action }) => JSON.stringify(action),
    },
    read: (row) => ({
      name: String(row["name"]),
      match: JSON.parse(String(row["match"])) as WsRuleMatch,
      action: JSON.parse(String(row["action"])) as WsRuleAction,
    }),
  });
}
