// Tested by rewrites.slice.test.ts
import type { Condition, RewriteAction } from "@headworks/capture-contract";
import type { Database, SqlRow } from "#storage/database.ts";
import type { Direction, StoredRewrite } from "./rewrite-rule.ts";

/** Rewrite rules on disk; a call returns when its change is durable. */
export interface RewritesStore {
  /** Oldest first. */
  list(): StoredRewrite[];
  insert(rule: StoredRewrite): void;
  /** Writes everything but hits; false when the rule does not exist. */
  update(rule: StoredRewrite): boolean;
  remove(id: string): boolean;
  /** All or none; gives the ids that do not exist. */
  setEnabled(ids: readonly string[], enabled: boolean, nowMs: number): string[];
  /** Afterwards these rules are stored and no others, in this order, each as it is given. */
  replaceAll(rules: readonly StoredRewrite[]): void;
  /** Adds to the hit counts in one transaction. */
  addHits(hits: ReadonlyMap<string, number>): void;
}

export function createRewritesStore(database: Database): RewritesStore {
  const list = database.prepare("SELECT * FROM rewrite_rules ORDER BY position");
  const insert = database.prepare(
    `INSERT INTO rewrite_rules (id, name, condition, direction, actions, enabled, priority, hit_count, device_id,
       created_at_ms, updated_at_ms, position)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, (SELECT COALESCE(MAX(position), 0) + 1 FROM rewrite_rules))`,
  );
  const update = database.prepare(
    `UPDATE rewrite_rules SET name = ?, condition = ?, direction = ?, actions = ?, enabled = ?, priority = ?,
       device_id = ?, updated_at_ms = ? WHERE id = ?`,
  );
  const remove = database.prepare("DELETE FROM rewrite_rules WHERE id = ?");
  const enable = database.prepare("UPDATE rewrite_rules SET enabled = ?, updated_at_ms = ? WHERE id = ?");
  const addHits = database.prepare("UPDATE rewrite_rules SET hit_count = hit_count + ? WHERE id = ?");
  const values = (rule: StoredRewrite): [string, string, string, string, number, number] => [
    rule.name,
    JSON.stringify(rule.condition),
    rule.direction,
    JSON.stringify(rule.actions),
    Number(rule.enabled),
    rule.priority,
  ];
  const clear = database.prepare("DELETE FROM rewrite_rules");
  const write = (rule: StoredRewrite): void => {
    insert.run(rule.id, ...values(rule), rule.hitCount, rule.deviceId, rule.createdAtMs, rule.updatedAtMs);
  };
  return {
    list: () => list.all().map(toRule),
    insert: write,
    update: (rule) => update.run(...values(rule), rule.deviceId, rule.updatedAtMs, rule.id).changes > 0,
    remove: (id) => remove.run(id).changes > 0,
    setEnabled: (ids, enabled, nowMs) =>
      database.transaction(() => ids.filter((id) => enable.run(Number(enabled), nowMs, id).changes === 0)),
    replaceAll: (rules) =>
      database.transaction(() => {
        clear.run();
        for (const rule of rules) write(rule);
      }),
    addHits: (hits) =>
      database.transaction(() => {
        for (const [id, count] of hits) addHits.run(count, id);
      }),
  };
}

function toRule(row: SqlRow): StoredRewrite {
  return {
    id: String(row["id"]),
    name: String(row["name"]),
    condition: JSON.parse(String(row["condition"])) as Condition,
    direction: String(row["direction"]) as Direction,
    actions: JSON.parse(String(row["actions"])) as RewriteAction[],
    enabled: Number(row["enabled"]) === 1,
    priority: Number(row["priority"]),
    hitCount: Number(row["hit_count"]),
    deviceId: row["device_id"] === null ? null : String(row["device_id"]),
    createdAtMs: Number(row["created_at_ms"]),
    updatedAtMs: Number(row["updated_at_ms"]),
  };
}
