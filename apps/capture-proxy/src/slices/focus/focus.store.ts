import type { Database, SqlRow } from "#storage/database.ts";

export interface StoredFocusHost {
  readonly id: string;
  readonly pattern: string;
  readonly createdAtMs: number;
}

/** Stored focus patterns; changes are durable when a call returns. */
export interface FocusStore {
  list(): StoredFocusHost[];
  /** Returns the existing entry of the same pattern, or undefined after storing the new one. */
  add(host: StoredFocusHost): StoredFocusHost | undefined;
  remove(id: string): boolean;
  /** Returns the number of removed patterns. */
  clear(): number;
  replaceAll(hosts: readonly StoredFocusHost[]): void;
}

export function createFocusStore(database: Database): FocusStore {
  const list = database.prepare("SELECT * FROM focus_hosts ORDER BY position");
  const find = database.prepare("SELECT * FROM focus_hosts WHERE pattern = ?");
  const insert = database.prepare(
    "INSERT INTO focus_hosts (id, pattern, created_at_ms, position) VALUES (?, ?, ?, (SELECT COALESCE(MAX(position), 0) + 1 FROM focus_hosts))",
  );
  const remove = database.prepare("DELETE FROM focus_hosts WHERE id = ?");
  const clear = database.prepare("DELETE FROM focus_hosts");
  return {
    list: () => list.all().map(toHost),
    add: (host) =>
      database.transaction(() => {
        const existing = find.get(host.pattern);
        if (existing) return toHost(existing);
        insert.run(host.id, host.pattern, host.createdAtMs);
        return undefined;
      }),
    remove: (id) => remove.run(id).changes > 0,
    clear: () => clear.run().changes,
    replaceAll: (hosts) =>
      database.transaction(() => {
        clear.run();
        for (const { id, pattern, createdAtMs } of hosts) insert.run(id, pattern, createdAtMs);
      }),
  };
}

function toHost(row: SqlRow): StoredFocusHost {
  return { id: String(row["id"]), pattern: String(row["pattern"]), createdAtMs: Number(row["created_at_ms"]) };
}
