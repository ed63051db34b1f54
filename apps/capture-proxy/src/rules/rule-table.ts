import type { Database, SqlRow, SqlValue } from "#storage/database.ts";

/** Columns common to all kinds of rules. Times are milliseconds since 1970. */
export interface StoredRule {
  readonly id: string;
  readonly enabled: boolean;
  readonly hitCount: number;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

/** Columns of one kind of rule, besides those of {@link StoredRule} and `position`. */
interface RuleTableShape<R extends StoredRule> {
  readonly table: string;
  readonly columns: Readonly<Record<string, (rule: R) => SqlValue>>;
  read(row: SqlRow): Omit<R, keyof StoredRule>;
}

/**
 * The rules of one kind, in SQLite with a copy in memory. A change is durable when its call returns. An unchanged rule
 * stays the same object, and so do its unchanged parts, so compiled forms can be cached by identity.
 */
export class RuleTable<R extends StoredRule> {
  readonly #database: Database;
  readonly #shape: RuleTableShape<R>;
  readonly #sql: ReturnType<typeof statements>;
  #known: Map<string, R> | undefined;

  constructor(database: Database, shape: RuleTableShape<R>) {
    this.#database = database;
    this.#shape = shape;
    this.#sql = statements(database, shape.table, Object.keys(shape.columns));
  }

  list(): R[] {
    return [...this.#rules().values()];
  }

  find(id: string): R | undefined {
    return this.#rules().get(id);
  }

  insert(rule: R): void {
    const rules = this.#rules();
    this.#write(rule);
    rules.set(rule.id, this.#stored(rule.id));
  }

  /** Writes everything except hits and the creation time; false when the rule does not exist. */
  update(rule: R): boolean {
    if (!this.#rules().has(rule.id)) return false;
    this.updateAll([rule]);
    return true;
  }

  /** Updates existing rules, all or none. */
  updateAll(changed: readonly R[]): void {
    const rules = this.#rules();
    this.#database.transaction(() => {
      for (const rule of changed) {
        this.#sql.update.run(...this.#values(rule), Number(rule.enabled), rule.updatedAtMs, rule.id);
      }
    });
    for (const { id } of changed) rules.set(id, this.#stored(id));
  }

  remove(id: string): boolean {
    const rules = this.#rules();
    if (!rules.has(id)) return false;
    this.#sql.remove.run(id);
    return rules.delete(id);
  }

  /** Replaces the table's content. The copy in memory stays, for rollbacks: see {@link reload}. */
  replaceAll(rules: readonly R[]): void {
    this.#database.transaction(() => {
      this.#sql.clear.run();
      for (const rule of rules) this.#write(rule);
    });
  }

  /** Drops the copy in memory after the table was rewritten. */
  reload(): void {
    this.#known = undefined;
  }

  /** Adds to the hit counts in one transaction; hits of deleted rules are dropped. */
  addHits(hits: ReadonlyMap<string, number>): void {
    const rules = this.#rules();
    this.#database.transaction(() => {
      for (const [id, count] of hits) this.#sql.addHits.run(count, id);
    });
    for (const [id, count] of hits) {
      const rule = rules.get(id);
      if (rule !== undefined) rules.set(id, { ...rule, hitCount: rule.hitCount + count });
    }
  }

  #rules(): Map<string, R> {
    this.#known ??= new Map(
      this.#sql.list.all().map((row) => {
        const rule = this.#read(row);
        return [rule.id, rule];
      }),
    );
    return this.#known;
  }

  #stored(id: string): R {
    return this.#read(this.#sql.one.get(id) ?? {});
  }

  #read(row: SqlRow): R {
    const own: StoredRule = {
      id: String(row["id"]),
      enabled: Number(row["enabled"]) === 1,
      hitCount: Number(row["hit_count"]),
      createdAtMs: Number(row["created_at_ms"]),
      updatedAtMs: Number(row["updated_at_ms"]),
    };
    return { ...this.#shape.read(row), ...own } as R;
  }

  #write(rule: R): void {
    const { id, enabled, hitCount, createdAtMs, updatedAtMs } = rule;
    this.#sql.insert.run(...this.#values(rule), Number(enabled), updatedAtMs, id, hitCount, createdAtMs);
  }

  #values(rule: R): SqlValue[] {
    return Object.values(this.#shape.columns).map((value) => value(rule));
  }
}

function statements(database: Database, table: string, ownColumns: readonly string[]) {
  const written = [...ownColumns, "enabled", "updated_at_ms"];
  const inserted = [...written, "id", "hit_count", "created_at_ms"];
  return {
    list: database.prepare(`SELECT * FROM ${table} ORDER BY position`),
    one: database.prepare(`SELECT * FROM ${table} WHERE id = ?`),
    insert: database.prepare(
      `INSERT INTO ${table} (${inserted.join(", ")}, position)
       VALUES (${inserted.map(() => "?").join(", ")}, (SELECT COALESCE(MAX(position), 0) + 1 FROM ${table}))`,
    ),
    update: database.prepare(`UPDATE ${table} SET ${written.map((name) => `${name} = ?`).join(", ")} WHERE id = ?`),
    remove: database.prepare(`DELETE FROM ${table} WHERE id = ?`),
    clear: database.prepare(`DELETE FROM ${table}`),
    addHits: database.prepare(`UPDATE ${table} SET hit_count = hit_count + ? WHERE id = ?`),
  };
}

/** Hits are written in batches, one transaction each; a crash loses at most this interval of counts. */
const PERSIST_EVERY_MS = 2000;

export interface HitCounter {
  /** Writes counts periodically, and a last time when the signal aborts. */
  start(signal: AbortSignal): void;
  hit(ruleId: string): void;
  pending(ruleId: string): number;
  forget(ruleId: string): void;
  forgetAll(): void;
}

/** Counts in memory and passes batches to `addHits`; a batch that fails is reported and retried. */
export function createHitCounter(parts: {
  readonly addHits: (hits: ReadonlyMap<string, number>) => void;
  readonly every: (intervalMs: number, callback: () => void) => () => void;
  readonly onFailure: (error: unknown) => void;
}): HitCounter {
  let hits = new Map<string, number>();
  const persist = (): void => {
    if (hits.size === 0) return;
    const batch = hits;
    hits = new Map();
    try {
      parts.addHits(batch);
    } catch (error) {
      for (const [id, count] of batch) hits.set(id, (hits.get(id) ?? 0) + count);
      parts.onFailure(error);
    }
  };
  return {
    start: (signal) => {
      const stop = parts.every(PERSIST_EVERY_MS, persist);
      signal.addEventListener("abort", () => {
        stop();
        persist();
      });
    },
    hit: (ruleId) => {
      hits.set(ruleId, (hits.get(ruleId) ?? 0) + 1);
    },
    pending: (ruleId) => hits.get(ruleId) ?? 0,
    forget: (ruleId) => {
      hits.delete(ruleId);
    },
    forgetAll: () => {
      hits.clear();
    },
  };
}
