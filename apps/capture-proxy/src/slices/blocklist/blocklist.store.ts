// Tested by blocklist.slice.test.ts
import type { Database, SqlRow } from "#storage/database.ts";
import type { StoredBlockEntry } from "./block-entry.ts";

/** Block entries on disk; a call returns when its change is durable. */
export interface BlocklistStore {
  /** Oldest first. */
  list(): StoredBlockEntry[];
  insert(entry: StoredBlockEntry): void;
  /** Writes everything but hits; false when the entry does not exist. */
  update(entry: StoredBlockEntry): boolean;
  remove(id: string): boolean;
  /** Afterwards exactly these entries are stored, in this order. */
  replaceAll(entries: readonly StoredBlockEntry[]): void;
  /** Adds to the hit counts in one transaction. */
  addHits(hits: ReadonlyMap<string, number>): void;
}

export function createBlocklistStore(database: Database): BlocklistStore {
  const list = database.prepare("SELECT * FROM block_entries ORDER BY position");
  const insert = database.prepare(
    `INSERT INTO block_entries (id, pattern, note, enabled, hit_count, status_code, response_body, content_type,
       device_id, created_at_ms, updated_at_ms, position)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, (SELECT COALESCE(MAX(position), 0) + 1 FROM block_entries))`,
  );
  const update = database.prepare(
    `UPDATE block_entries SET pattern = ?, note = ?, enabled = ?, status_code = ?, response_body = ?, content_type = ?,
       device_id = ?, updated_at_ms = ? WHERE id = ?`,
  );
  const remove = database.prepare("DELETE FROM block_entries WHERE id = ?");
  const clear = database.prepare("DELETE FROM block_entries");
  const addHits = database.prepare("UPDATE block_entries SET hit_count = hit_count + ? WHERE id = ?");
  const add = (entry: StoredBlockEntry): void => {
    const { id, pattern, note, enabled, hitCount, statusCode, responseBody, contentType, deviceId } = entry;
    insert.run(
      id,
      pattern,
      note,
      Number(enabled),
      hitCount,
      statusCode,
      responseBody,
      contentType,
      deviceId,
      entry.createdAtMs,
      entry.updatedAtMs,
    );
  };
  return {
    list: () => list.all().map(toEntry),
    insert: add,
    update: (entry) => {
      const { id, pattern, note, enabled, statusCode, responseBody, contentType, deviceId, updatedAtMs } = entry;
      return (
        update.run(pattern, note, Number(enabled), statusCode, responseBody, contentType, deviceId, updatedAtMs, id)
          .changes > 0
      );
    },
    remove: (id) => remove.run(id).changes > 0,
    replaceAll: (entries) =>
      database.transaction(() => {
        clear.run();
        for (const entry of entries) add(entry);
      }),
    addHits: (hits) =>
      database.transaction(() => {
        for (const [id, count] of hits) addHits.run(count, id);
      }),
  };
}

function toEntry(row: SqlRow): StoredBlockEntry {
  return {
    id: String(row["id"]),
    pattern: String(row["pattern"]),
    note: textOrNull(row["note"]),
    enabled: Number(row["enabled"]) === 1,
    hitCount: Number(row["hit_count"]),
    statusCode: Number(row["status_code"]),
    responseBody: String(row["response_body"]),
    contentType: String(row["content_type"]),
    deviceId: textOrNull(row["device_id"]),
    createdAtMs: Number(row["created_at_ms"]),
    updatedAtMs: Number(row["updated_at_ms"]),
  };
}

function textOrNull(value: SqlRow[string] | undefined): string | null {
  return value === null || value === undefined ? null : String(value);
}
