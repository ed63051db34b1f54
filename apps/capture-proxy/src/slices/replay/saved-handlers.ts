import { randomUUID } from "node:crypto";
import {
  type NewSavedRequest,
  type replayOperations,
  SavedRequest,
  SavedRequestUpdate,
} from "@headworks/capture-contract";
import type { Handlers } from "@headworks/contract-kit";
import { ApiError, notFound, validationError } from "#api/api-error.ts";
import { portableList, type RuleIssue } from "#portable/portable-list.ts";
import type { PortableRules, SliceHost } from "#slice.ts";
import type { Database, SqlRow, SqlValue } from "#storage/database.ts";
import { capturedRequest, type ReplayRequest, requestOf, showRequest } from "./replay-request.ts";

const MAX_SAVED = 10_000;
const MAX_SAVED_BYTES = 268_435_456;
const DEFAULT_LIMIT = 100;

type Table = Handlers<typeof replayOperations>;

export type SavedNames =
  | "listSavedRequests"
  | "saveRequest"
  | "saveFromTraffic"
  | "listReplayCollections"
  | "getSavedRequest"
  | "updateSavedRequest"
  | "deleteSavedRequest";

interface SavedOperationsParts {
  readonly host: Pick<SliceHost, "store" | "clock" | "events">;
  readonly saved: SavedRequestsStore;
}

export function savedOperations(parts: SavedOperationsParts): Pick<Table, SavedNames> {
  return { ...readOperations(parts), ...saveOperations(parts), ...changeOperations(parts) };
}

function readOperations({
  saved,
}: SavedOperationsParts): Pick<Table, "listSavedRequests" | "listReplayCollections" | "getSavedRequest"> {
  return {
    listSavedRequests: ({ query }) => {
      const { collection, tag, search, limit = DEFAULT_LIMIT, offset = 0 } = query;
      const withBodies = query.include_bodies === "true";
      const { requests, total } = saved.list({ collection, tag, search }, { limit, offset, withBodies });
      return { ...counted(total), status: 200, body: requests.map((request) => showSaved(request, withBodies)) };
    },
    listReplayCollections: () => ({ status: 200, body: saved.collections() }),
    getSavedRequest: ({ params }) => ({ status: 200, body: showSaved(find(saved, params.id), true) }),
  };
}

function saveOperations({ host, saved }: SavedOperationsParts): Pick<Table, "saveRequest" | "saveFromTraffic"> {
  const { clock, events, store } = host;
  const insert = (requests: readonly StoredRequest[]): void => {
    refuseExcess(saved, requests, undefined);
    saved.insert(requests);
    events.changed("replay");
  };
  return {
    saveRequest: async ({ body }) => {
      const entryId = body.entry_id ?? body.traffic_id ?? null;
      const written = body.request === undefined ? undefined : requestOf(body.request);
      const captured =
        entryId === null ? undefined : ((await capturedRequest(store, entryId)) ?? notFound("entry", entryId));
      const request = written ?? captured;
      if (request === undefined) {
        throw validationError([{ path: "body/request", message: "is required, or an entry_id to take it from" }]);
      }
      const stored = fresh(request, entryId, body, clock.now());
      insert([stored]);
      return { status: 201, body: { id: stored.id } };
    },
    saveFromTraffic: async ({ body }) => {
      const { entry_ids: ids, name_prefix: prefix, tags, collection } = body;
      const requests: StoredRequest[] = [];
      const errors: string[] = [];
      for (const id of ids) {
        try {
          const request = (await capturedRequest(store, id)) ?? notFound("entry", id);
          const name = `${prefix ?? ""}${request.method} ${request.url}`.slice(0, 255);
          requests.push(fresh(request, id, { name, tags, collection }, clock.now()));
        } catch (error) {
          if (!(error instanceof ApiError)) throw error;
          errors.push(`entry ${id}: ${error.message}`);
        }
      }
      if (requests.length === 0) throw new ApiError("NOT_FOUND", errors[0] ?? "None of the entries can be saved");
      insert(requests);
      const saved = { saved: requests.length, ids: requests.map(({ id }) => id), errors, total: ids.length };
      return { status: 201, body: saved };
    },
  };
}

function changeOperations({
  host,
  saved,
}: SavedOperationsParts): Pick<Table, "updateSavedRequest" | "deleteSavedRequest"> {
  const { clock, events } = host;
  return {
    updateSavedRequest: ({ params, body }) => {
      const present = find(saved, params.id);
      const { id, sourceEntryId, savedAtMs } = present;
      const updated = { ...fresh(requestOf(body.request), sourceEntryId, body, clock.now()), id, savedAtMs };
      refuseExcess(saved, [updated], present);
      saved.update(updated);
      events.changed("replay");
      return { status: 200, body: showSaved(updated, true) };
    },
    deleteSavedRequest: ({ params }) => {
      if (!saved.remove(params.id)) return notFound("saved request", params.id);
      events.changed("replay");
      return { status: 204 };
    },
  };
}

function find(saved: SavedRequestsStore, id: string): StoredRequest {
  return saved.get(id) ?? notFound("saved request", id);
}

type About = { readonly [K in "name" | "tags" | "collection"]?: NewSavedRequest[K] | undefined };

function fresh(request: ReplayRequest, sourceEntryId: string | null, about: About, nowMs: number): StoredRequest {
  return {
    id: randomUUID(),
    sourceEntryId,
    name: about.name ?? null,
    collection: about.collection ?? null,
    tags: about.tags ?? [],
    request,
    bodyBytes: request.body?.length ?? 0,
    savedAtMs: nowMs,
    updatedAtMs: nowMs,
  };
}

function refuseExcess(
  saved: SavedRequestsStore,
  added: readonly StoredRequest[],
  replaced: StoredRequest | undefined,
): void {
  const present = saved.usage();
  const count = present.count + added.length - (replaced === undefined ? 0 : 1);
  const bytes = added.reduce((sum, { bodyBytes }) => sum + bodyBytes, present.bodyBytes - (replaced?.bodyBytes ?? 0));
  if (count <= MAX_SAVED && bytes <= MAX_SAVED_BYTES) return;
  throw new ApiError(
    "CONFLICT",
    `${present.count} requests with ${present.bodyBytes} bytes of bodies are saved already: delete some first`,
  );
}

export function counted(total: number): { readonly headers: Readonly<Record<string, string>> } {
  return { headers: { "x-total-count": String(total) } };
}

function showSaved(stored: StoredRequest, withBody: boolean): SavedRequest {
  return {
    id: stored.id,
    source_entry_id: stored.sourceEntryId,
    name: stored.name,
    request: showRequest(stored.request, withBody ? stored.request.body : undefined, stored.bodyBytes),
    saved_at: new Date(stored.savedAtMs).toISOString(),
    updated_at: new Date(stored.updatedAtMs).toISOString(),
    tags: [...stored.tags],
    collection: stored.collection,
  };
}

/** The inverse of {@link showSaved}. Throws 400 for a request that cannot be sent. */
function readSaved(saved: SavedRequest, at: string): StoredRequest {
  const request = requestOf(saved.request, at);
  return {
    id: saved.id,
    sourceEntryId: saved.source_entry_id,
    name: saved.name,
    collection: saved.collection,
    tags: saved.tags,
    request,
    bodyBytes: request.body?.length ?? 0,
    savedAtMs: Date.parse(saved.saved_at),
    updatedAtMs: Date.parse(saved.updated_at),
  };
}

export function portableRequests(store: SavedRequestsStore, onChange: () => void): PortableRules {
  return portableList<SavedRequest>({
    key: "saved_requests",
    schemaVersion: 1,
    schemas: [SavedRequest, SavedRequestUpdate],
    list: () => store.all().map((stored) => showSaved(stored, true)),
    check: issuesOf,
    write: (requests) => {
      store.clear();
      store.insert(requests.map((saved) => readSaved(saved, "")));
    },
    reload: onChange,
  });
}

function issuesOf(saved: SavedRequest): RuleIssue[] {
  try {
    readSaved(saved, "/request");
    return [];
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return (error.details ?? []).map(({ path, message }) => ({ path, message }));
  }
}

interface StoredRequest {
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

interface SavedFilter {
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
