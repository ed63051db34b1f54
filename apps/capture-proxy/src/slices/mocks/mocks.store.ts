import { readJson } from "@headworks/json";
import { type Condition, MOCK_LIMITS, type MockExpiration, type MockResponseConfig } from "@headworks/capture-contract";
import type { Database, SqlRow, Statement } from "#storage/database.ts";
import type { MockProgress, StoredCollection, StoredMock, StoredVersion } from "./mock-rule.ts";

/** Rules and collections in SQLite, cached in memory; a change is durable when its call returns. */
export interface MocksStore {
  /** In order of creation, including recorded ones. */
  readonly rules: () => readonly StoredMock[];
  readonly rule: (id: string) => StoredMock | undefined;
  /** Hits and sequence indexes as last written. */
  readonly progress: () => ReadonlyMap<string, Readonly<MockProgress>>;
  readonly insert: (rules: readonly StoredMock[]) => void;
  /** Replaces rules, all or none. A `kept` version is stored; the oldest above the limit are removed. */
  readonly update: (changes: readonly { readonly rule: StoredMock; readonly kept?: StoredVersion }[]) => void;
  readonly remove: (ids: readonly string[]) => void;
  /** Newest first. */
  readonly versions: (id: string) => StoredVersion[];
  readonly collections: () => readonly StoredCollection[];
  readonly saveCollection: (collection: StoredCollection) => void;
  /** Its rules stay, without a collection. */
  readonly removeCollection: (id: string) => void;
  /** Replaces all rules except recorded ones. The cache is unchanged; statistics of remaining rules stay. */
  readonly replaceAll: (
    rules: readonly {
      readonly rule: StoredMock;
      readonly progress: Readonly<MockProgress>;
      readonly versions: readonly StoredVersion[];
    }[],
  ) => void;
  readonly replaceCollections: (collections: readonly StoredCollection[]) => void;
  readonly transaction: (work: () => void) => void;
  /** Drops the cache after the tables were written from elsewhere. */
  readonly reload: () => void;
}

export function createMocksStore(database: Database): MocksStore {
  const sql = prepared(database);
  let rules: Map<string, StoredMock> | undefined;
  let collections: Map<string, StoredCollection> | undefined;
  const allRules = (): Map<string, StoredMock> =>
    (rules ??= new Map(sql.rules.all().map((row) => [String(row["id"]), toRule(row)])));
  const allCollections = (): Map<string, StoredCollection> =>
    (collections ??= new Map(sql.collections.all().map((row) => [String(row["id"]), toCollection(row)])));
  const reload = (): void => {
    rules = undefined;
    collections = undefined;
  };
  /** The cache must match the disk even when a change fails half way. */
  const changing = (work: () => void): void => {
    try {
      database.transaction(work);
    } catch (error) {
      reload();
      throw error;
    }
  };
  return {
    rules: () => [...allRules().values()],
    rule: (id) => allRules().get(id),
    progress: () => new Map(sql.progress.all().map((row) => [String(row["id"]), toProgress(row)])),
    insert: (added) =>
      changing(() => {
        for (const rule of added) {
          sql.insert.run(...ruleValues(rule), rule.createdAtMs, rule.id);
          allRules().set(rule.id, rule);
        }
      }),
    update: (changes) =>
      changing(() => {
        for (const { rule, kept } of changes) {
          sql.update.run(...ruleValues(rule), rule.id);
          if (kept !== undefined) keepVersion(sql, rule.id, kept);
          allRules().set(rule.id, rule);
        }
      }),
    remove: (ids) =>
      changing(() => {
        for (const id of ids) {
          sql.remove.run(id);
          allRules().delete(id);
        }
      }),
    versions: (id) => sql.versions.all(id).map(toVersion),
    collections: () => [...allCollections().values()],
    saveCollection: (collection) =>
      changing(() => {
        sql.saveCollection.run(...collectionValues(collection));
        allCollections().set(collection.id, collection);
      }),
    removeCollection: (id) =>
      changing(() => {
        sql.removeCollection.run(id);
        allCollections().delete(id);
        for (const rule of allRules().values()) {
          if (rule.collectionId === id) allRules().set(rule.id, { ...rule, collectionId: null });
        }
      }),
    ...replacement(database, sql),
    transaction: changing,
    reload,
  };
}

type Statements = ReturnType<typeof prepared>;

const RULE_COLUMNS = [
  "name",
  "description",
  "tags",
  "collection_id",
  "condition",
  "response_config",
  "enabled",
  "priority",
  "expiration",
  "expiration_since_ms",
  "expiration_since_hits",
  "response_schema",
  "version",
  "recorded",
  "updated_at_ms",
] as const;

function prepared(database: Database) {
  const columns = RULE_COLUMNS.join(", ");
  const marks = RULE_COLUMNS.map(() => "?").join(", ");
  return {
    rules: database.prepare(`SELECT id, ${columns}, created_at_ms FROM mock_rules ORDER BY position`),
    progress: database.prepare("SELECT id, hit_count, next_index FROM mock_rules"),
    insert: database.prepare(
      `INSERT INTO mock_rules (${columns}, created_at_ms, id, hit_count, next_index, position)
       VALUES (${marks}, ?, ?, 0, 0, (SELECT COALESCE(MAX(position), 0) + 1 FROM mock_rules))`,
    ),
    update: database.prepare(
      `UPDATE mock_rules SET ${RULE_COLUMNS.map((name) => `${name} = ?`).join(", ")} WHERE id = ?`,
    ),
    remove: database.prepare("DELETE FROM mock_rules WHERE id = ?"),
    versions: database.prepare("SELECT * FROM mock_versions WHERE mock_id = ? ORDER BY version DESC"),
    keepVersion: database.prepare(
      "INSERT INTO mock_versions (mock_id, version, condition, response_config, comment, saved_at_ms) VALUES (?, ?, ?, ?, ?, ?)",
    ),
    dropVersions: database.prepare("DELETE FROM mock_versions WHERE mock_id = ? AND version <= ?"),
    collections: database.prepare("SELECT * FROM mock_collections ORDER BY position"),
    saveCollection: database.prepare(
      `INSERT INTO mock_collections (id, name, description, enabled, tags, color, created_at_ms, updated_at_ms, position)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, (SELECT COALESCE(MAX(position), 0) + 1 FROM mock_collections))
       ON CONFLICT (id) DO UPDATE SET name = excluded.name, description = excluded.description,
         enabled = excluded.enabled, tags = excluded.tags, color = excluded.color, updated_at_ms = excluded.updated_at_ms`,
    ),
    removeCollection: database.prepare("DELETE FROM mock_collections WHERE id = ?"),
    ...preparedForReplacement(database, columns, marks),
  } satisfies Record<string, Statement>;
}

function replacement(database: Database, sql: Statements): Pick<MocksStore, "replaceAll" | "replaceCollections"> {
  return {
    replaceAll: (given) =>
      database.transaction(() => {
        const kept = JSON.stringify(given.map(({ rule }) => rule.id));
        sql.removeOthers.run(kept);
        sql.moveAside.run();
        sql.moveRecorded.run(given.length);
        for (const [index, { rule, progress, versions }] of given.entries()) {
          sql.insertAt.run(
            ...ruleValues(rule),
            rule.createdAtMs,
            rule.id,
            progress.hits,
            progress.nextIndex,
            index + 1,
          );
          sql.removeVersions.run(rule.id);
          for (const version of versions) keepVersion(sql, rule.id, version);
        }
      }),
    replaceCollections: (given) =>
      database.transaction(() => {
        sql.removeOtherCollections.run(JSON.stringify(given.map(({ id }) => id)));
        sql.moveCollectionsAside.run();
        for (const [index, collection] of given.entries()) {
          sql.insertCollectionAt.run(...collectionValues(collection), index + 1);
        }
      }),
  };
}

/** Positions are unique, so all rows move out of the way before they get new positions. */
function preparedForReplacement(database: Database, columns: string, marks: string) {
  const updates = RULE_COLUMNS.map((name) => `${name} = excluded.${name}`).join(", ");
  return {
    removeOthers: database.prepare(
      "DELETE FROM mock_rules WHERE recorded = 0 AND id NOT IN (SELECT value FROM json_each(?))",
    ),
    moveAside: database.prepare("UPDATE mock_rules SET position = -position - 1"),
    moveRecorded: database.prepare("UPDATE mock_rules SET position = ? - position WHERE recorded = 1"),
    insertAt: database.prepare(
      `INSERT INTO mock_rules (${columns}, created_at_ms, id, hit_count, next_index, position)
       VALUES (${marks}, ?, ?, ?, ?, ?)
       ON CONFLICT (id) DO UPDATE SET ${updates}, created_at_ms = excluded.created_at_ms,
         hit_count = excluded.hit_count, next_index = excluded.next_index, position = excluded.position`,
    ),
    removeVersions: database.prepare("DELETE FROM mock_versions WHERE mock_id = ?"),
    removeOtherCollections: database.prepare(
      "DELETE FROM mock_collections WHERE id NOT IN (SELECT value FROM json_each(?))",
    ),
    moveCollectionsAside: database.prepare("UPDATE mock_collections SET position = -position - 1"),
    insertCollectionAt: database.prepare(
      `INSERT INTO mock_collections (id, name, description, enabled, tags, color, created_at_ms, updated_at_ms, position)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (id) DO UPDATE SET name = excluded.name, description = excluded.description,
         enabled = excluded.enabled, tags = excluded.tags, color = excluded.color,
         created_at_ms = excluded.created_at_ms, updated_at_ms = excluded.updated_at_ms, position = excluded.position`,
    ),
  } satisfies Record<string, Statement>;
}

function keepVersion(sql: Statements, id: string, kept: StoredVersion): void {
  const { version, condition, responseConfig, comment, savedAtMs } = kept;
  sql.keepVersion.run(id, version, JSON.stringify(condition), JSON.stringify(responseConfig), comment, savedAtMs);
  sql.dropVersions.run(id, version - MOCK_LIMITS.versions);
}

function ruleValues(rule: StoredMock): (string | number | null)[] {
  return [
    rule.name,
    rule.description,
    JSON.stringify(rule.tags),
    rule.collectionId,
    JSON.stringify(rule.condition),
    JSON.stringify(rule.responseConfig),
    Number(rule.enabled),
    rule.priority,
    rule.expiration === null ? null : JSON.stringify(rule.expiration),
    rule.expirationSince.atMs,
    rule.expirationSince.hits,
    rule.responseSchema,
    rule.version,
    Number(rule.isRecorded),
    rule.updatedAtMs,
  ];
}

function collectionValues(collection: StoredCollection): (string | number | null)[] {
  const { id, name, description, enabled, tags, color, createdAtMs, updatedAtMs } = collection;
  return [id, name, description, Number(enabled), JSON.stringify(tags), color, createdAtMs, updatedAtMs];
}

function toRule(row: SqlRow): StoredMock {
  const expiration = textOrNull(row["expiration"]);
  return {
    id: String(row["id"]),
    name: String(row["name"]),
    description: textOrNull(row["description"]),
    tags: JSON.parse(String(row["tags"])) as string[],
    collectionId: textOrNull(row["collection_id"]),
    condition: readJson(String(row["condition"])) as unknown as Condition,
    responseConfig: readJson(String(row["response_config"])) as unknown as MockResponseConfig,
    enabled: Number(row["enabled"]) === 1,
    priority: Number(row["priority"]),
    expiration: expiration === null ? null : (JSON.parse(expiration) as MockExpiration),
    expirationSince: { atMs: Number(row["expiration_since_ms"]), hits: Number(row["expiration_since_hits"]) },
    responseSchema: textOrNull(row["response_schema"]),
    version: Number(row["version"]),
    isRecorded: Number(row["recorded"]) === 1,
    createdAtMs: Number(row["created_at_ms"]),
    updatedAtMs: Number(row["updated_at_ms"]),
  };
}

function toProgress(row: SqlRow): MockProgress {
  return { hits: Number(row["hit_count"]), nextIndex: Number(row["next_index"]) };
}

function toVersion(row: SqlRow): StoredVersion {
  return {
    version: Number(row["version"]),
    condition: readJson(String(row["condition"])) as unknown as Condition,
    responseConfig: readJson(String(row["response_config"])) as unknown as MockResponseConfig,
    comment: textOrNull(row["comment"]),
    savedAtMs: Number(row["saved_at_ms"]),
  };
}

function toCollection(row: SqlRow): StoredCollection {
  return {
    id: String(row["id"]),
    name: String(row["name"]),
    description: textOrNull(row["description"]),
    enabled: Number(row["enabled"]) === 1,
    tags: JSON.parse(String(row["tags"])) as string[],
    color: textOrNull(row["color"]),
    createdAtMs: Number(row["created_at_ms"]),
    updatedAtMs: Number(row["updated_at_ms"]),
  };
}

function textOrNull(value: SqlRow[string] | undefined): string | null {
  return value === null || value === undefined ? null : String(value);
}
