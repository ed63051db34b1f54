import type { Database, SqlRow, SqlValue } from "#storage/database.ts";
import type { ReplayRequest } from "./replay-request.ts";

export interface StoredRequest {
  readonly id: string;
  readonly sourceEntryId: string | null;
  readonly name: string | null;
  readonly collection: string | null;
  readonly tags: readonly string[];
  readonly request: ReplayRequest;
  /** Set also when the body was not read. */
  readonly bodyBytes: number;
  readonly savedAtMs: number;
  readonly updatedAtMs: number;
}

export interface SavedFilter {
  readonly collection: string | undefined;
  readonly tag: string | undefined;
  readonly search: string | undefined;
}

/** Saved requests in SQLite; a change is durable when its call returns. */
export interface SavedRequestsStore {
  list(
    filter: SavedFilter,
    page: { readonly limit: number; readonly offset: number; readonly withBodies: boolean },
  ): { readonly requests: StoredRequest[]; readonly total: number };
  all(): StoredRequest[];
  usage(): { readonly count: number; readonly bodyBytes: number };
  get(id: string): StoredRequest | undefined;
  insert(requests: readonly StoredRequest[]): void;
  update(request: StoredRequest): boolean;
  remove(id: string): boolean;
  clear(): void;
  collections(): { name: string; count: number }[];
}

const HEAD = "id, source_entry_id, name, collection, tags, method, url, fields, body_bytes, saved_ms, updated_ms";

export function createSavedRequestsStore(database: Database): SavedRequestsStore {
  const get = database.prepare(`SELECT ${HEAD}, body FROM saved_request WHERE id = ?`);
  const insert = database.prepare(
    `INSERT INTO saved_request (${HEAD}, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const update = database.prepare(
    "UPDATE saved_request SET source_entry_id = ?, name = ?, collection = ?, tags = ?, method = ?, url = ?, fields = ?, body_bytes = ?, saved_ms = ?, updated_ms = ?, body = ? WHERE id = ?",
  );
  const remove = database.prepare("DELETE FROM saved_request WHERE id = ?");
  const clear = database.prepare("DELETE FROM saved_request");
  const usage = database.prepare("SELECT count(*) AS n, coalesce(sum(body_bytes), 0) AS bytes FROM saved_request");
  const all = database.prepare(`SELECT ${HEAD}, body FROM saved_request ORDER BY seq`);
  const collections = database.prepare(
    "SELECT collection AS name, count(*) AS count FROM saved_request WHERE collection IS NOT NULL GROUP BY collection ORDER BY collection",
  );
  return {
    list: (filter, page) => listed(database, filter, page),
    all: () => all.all().map(storedOf),
    usage: () => {
      const row = usage.get();
      return { count: Number(row?.["n"]), bodyBytes: Number(row?.["bytes"]) };
    },
    get: (id) => {
      const row = get.get(id);
      return row && storedOf(row);
    },
    insert: (requests) =>
      database.transaction(() => {
        for (const request of requests) insert.run(request.id, ...valuesOf(request));
      }),
    update: (request) => update.run(...valuesOf(request), request.id).changes > 0,
    remove: (id) => remove.run(id).changes > 0,
    clear: () => void clear.run(),
    collections: () => collections.all().map(({ name, count: n }) => ({ name: String(name), count: Number(n) })),
  };
}

function listed(
  database: Database,
  { collection, tag, search }: SavedFilter,
  { limit, offset, withBodies }: { readonly limit: number; readonly offset: number; readonly withBodies: boolean },
): { requests: StoredRequest[]; total: number } {
  const conditions: string[] = [];
  const values: SqlValue[] = [];
  const add = (condition: string, ...given: SqlValue[]): void => {
    conditions.push(condition);
    values.push(...given);
  };
  if (collection !== undefined) add("collection = ?", collection);
  if (tag !== undefined) add("EXISTS (SELECT 1 FROM json_each(tags) WHERE value = ?)", tag);
  const lower = search?.toLowerCase();
  if (lower !== undefined) add("(instr(lower(name), ?) > 0 OR instr(lower(url), ?) > 0)", lower, lower);
  const where = conditions.length === 0 ? "" : `WHERE ${conditions.join(" AND ")}`;
  const total = database.prepare(`SELECT count(*) AS n FROM saved_request ${where}`).get(...values);
  const columns = withBodies ? `${HEAD}, body` : HEAD;
  const rows = database
    .prepare(`SELECT ${columns} FROM saved_request ${where} ORDER BY seq DESC LIMIT ? OFFSET ?`)
    .all(...values, limit, offset);
  return { requests: rows.map(storedOf), total: Number(total?.["n"]) };
}

function valuesOf(stored: StoredRequest): SqlValue[] {
  const { sourceEntryId, name, collection, tags, request, savedAtMs, updatedAtMs } = stored;
  const { method, url, fields, body } = request;
  return [
    sourceEntryId,
    name,
    collection,
    JSON.stringify(tags),
    method,
    url,
    JSON.stringify(fields),
    body?.length ?? 0,
    savedAtMs,
    updatedAtMs,
    body ?? null,
  ];
}

function storedOf(row: SqlRow): StoredRequest {
  const text = (name: string): string | null => (row[name] === null ? null : String(row[name]));
  const body = row["body"];
  return {
    id: String(row["id"]),
    sourceEntryId: text("source_entry_id"),
    name: text("name"),
    collection: text("collection"),
    tags: JSON.parse(String(row["tags"])) as string[],
    request: {
      method: String(row["method"]),
      url: String(row["url"]),
      fields: JSON.parse(String(row["fields"])) as string[],
      body: body instanceof Uint8Array ? body : undefined,
    },
    bodyBytes: Number(row["body_bytes"]),
    savedAtMs: Number(row["saved_ms"]),
    updatedAtMs: Number(row["updated_ms"]),
  };
}
