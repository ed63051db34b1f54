// Tested by ws-traffic.slice.test.ts
import type { WsRuleAction, WsRuleMatch } from "@headworks/capture-contract";
import type { Database, SqlRow } from "#storage/database.ts";
import type { StoredWsRule } from "./ws-rule.ts";

/** Message rules on disk; a call returns when its change is durable. */
export interface WsTrafficStore {
  /** Oldest first. */
  list(): StoredWsRule[];
  insert(rule: StoredWsRule): void;
  /** Writes everything but hits; false when the rule does not exist. */
  update(rule: StoredWsRule): boolean;
  remove(id: string): boolean;
  /** Afterwards exactly these rules are stored, in this order. */
  replaceAll(rules: readonly StoredWsRule[]): void;
  /** Adds to the hit counts in one transaction. */
  addHits(hits: ReadonlyMap<string, number>): void;
}

export function createWsTrafficStore(database: Database): WsTrafficStore {
  const list = database.prepare("SELECT * FROM ws_rules ORDER BY position");
  const insert = database.prepare(
    `INSERT INTO ws_rules (id, name, enabled, match, action, hit_count, created_at_ms, updated_at_ms, position)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, (SELECT COALESCE(MAX(position), 0) + 1 FROM ws_rules))`,
  );
  const update = database.prepare(
    "UPDATE ws_rules SET name = ?, enabled = ?, match = ?, action = ?, updated_at_ms = ? WHERE id = ?",
  );
  const remove = database.prepare("DELETE FROM ws_rules WHERE id = ?");
  const clear = database.prepare("DELETE FROM ws_rules");
  const addHits = database.prepare("UPDATE ws_rules SET hit_count = hit_count + ? WHERE id = ?");
  const values = ({ name, enabled, match, action }: StoredWsRule): [string, number, string, string] => [
    name,
    Number(enabled),
    JSON.stringify(match),
    JSON.stringify(action),
  ];
  const add = (rule: StoredWsRule): void => {
    insert.run(rule.id, ...values(rule), rule.hitCount, rule.createdAtMs, rule.updatedAtMs);
  };
  return {
    list: () => list.all().map(toRule),
    insert: add,
    update: (rule) => update.run(...values(rule), rule.updatedAtMs, rule.id).changes > 0,
    remove: (id) => remove.run(id).changes > 0,
    replaceAll: (rules) =>
      database.transaction(() => {
        clear.run();
        for (const rule of rules) add(rule);
      }),
    addHits: (hits) =>
      database.transaction(() => {
        for (const [id, count] of hits) addHits.run(count, id);
      }),
  };
}

function toRule(row: SqlRow): StoredWsRule {
  return {
    id: String(row["id"]),
    name: String(row["name"]),
    enabled: Number(row["enabled"]) === 1,
    match: JSON.parse(String(row["match"])) as WsRuleMatch,
    action: JSON.parse(String(row["action"])) as WsRuleAction,
    hitCount: Number(row["hit_count"]),
    createdAtMs: Number(row["created_at_ms"]),
    updatedAtMs: Number(row["updated_at_ms"]),
  };
}
