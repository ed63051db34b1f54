// Tested by breakpoints.slice.test.ts
import type { Condition } from "@headworks/capture-contract";
import type { Database, SqlRow } from "#storage/database.ts";
import type { StoredBreakpoint } from "./breakpoint-rule.ts";

/** Breakpoint rules on disk; a call returns when its change is durable. */
export interface BreakpointsStore {
  /** Oldest first. */
  list(): StoredBreakpoint[];
  insert(rule: StoredBreakpoint): void;
  /** Writes everything but hits; false when the rule does not exist. */
  update(rule: StoredBreakpoint): boolean;
  remove(id: string): boolean;
  /** Afterwards exactly these rules are stored, in this order. */
  replaceAll(rules: readonly StoredBreakpoint[]): void;
  /** Disables every rule in one transaction. */
  disableAll(nowMs: number): void;
  /** Adds to the hit counts in one transaction. */
  addHits(hits: ReadonlyMap<string, number>): void;
}

export function createBreakpointsStore(database: Database): BreakpointsStore {
  const list = database.prepare("SELECT * FROM breakpoints ORDER BY position");
  const insert = database.prepare(
    `INSERT INTO breakpoints (id, name, condition, direction, enabled, priority, timeout_secs, hit_count, created_at_ms,
       updated_at_ms, position)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, (SELECT COALESCE(MAX(position), 0) + 1 FROM breakpoints))`,
  );
  const update = database.prepare(
    `UPDATE breakpoints SET name = ?, condition = ?, direction = ?, enabled = ?, priority = ?, timeout_secs = ?,
       updated_at_ms = ? WHERE id = ?`,
  );
  const remove = database.prepare("DELETE FROM breakpoints WHERE id = ?");
  const disableAll = database.prepare("UPDATE breakpoints SET enabled = 0, updated_at_ms = ? WHERE enabled = 1");
  const addHits = database.prepare("UPDATE breakpoints SET hit_count = hit_count + ? WHERE id = ?");
  const clear = database.prepare("DELETE FROM breakpoints");
  const add = (rule: StoredBreakpoint): void => {
    insert.run(
      rule.id,
      rule.name,
      JSON.stringify(rule.condition),
      rule.direction,
      Number(rule.enabled),
      rule.priority,
      rule.timeoutSecs,
      rule.hitCount,
      rule.createdAtMs,
      rule.updatedAtMs,
    );
  };
  return {
    list: () => list.all().map(toRule),
    insert: add,
    update: (rule) =>
      update.run(
        rule.name,
        JSON.stringify(rule.condition),
        rule.direction,
        Number(rule.enabled),
        rule.priority,
        rule.timeoutSecs,
        rule.updatedAtMs,
        rule.id,
      ).changes > 0,
    remove: (id) => remove.run(id).changes > 0,
    replaceAll: (rules) =>
      database.transaction(() => {
        clear.run();
        for (const rule of rules) add(rule);
      }),
    disableAll: (nowMs) => {
      disableAll.run(nowMs);
    },
    addHits: (hits) =>
      database.transaction(() => {
        for (const [id, count] of hits) addHits.run(count, id);
      }),
  };
}

function toRule(row: SqlRow): StoredBreakpoint {
  return {
    id: String(row["id"]),
    name: String(row["name"]),
    condition: JSON.parse(String(row["condition"])) as Condition,
    direction: String(row["direction"]) as StoredBreakpoint["direction"],
    enabled: Number(row["enabled"]) === 1,
    priority: Number(row["priority"]),
    timeoutSecs: row["timeout_secs"] === null ? null : Number(row["timeout_secs"]),
    hitCount: Number(row["hit_count"]),
    createdAtMs: Number(row["created_at_ms"]),
    updatedAtMs: Number(row["updated_at_ms"]),
  };
}
