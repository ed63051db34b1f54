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
import { capturedRequest } from "./captured-request.ts";
import { type ReplayRequest, requestOf, showRequest } from "./replay-request.ts";
import type { SavedRequestsStore, StoredRequest } from "./saved-requests.ts";

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

export interface SavedOperationsParts {
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
