import { randomUUID } from "node:crypto";
import type { NewSavedRequest, ReplayResult, replayOperations } from "@headworks/capture-contract";
import type { Handlers } from "@headworks/contract-kit";
import { ApiError, notFound, validationError } from "#api/api-error.ts";
import type { SliceHost } from "#slice.ts";
import type { Batches } from "./batches.ts";
import { capturedRequest } from "./captured-request.ts";
import type { HistoryStore } from "./history.store.ts";
import { withoutBodies } from "./replay-result.ts";
import { requestOf } from "./replay-request.ts";
import type { ReplayRequest } from "./replay-request.ts";
import type { Replays } from "./replays.ts";
import { showSaved } from "./saved-request.ts";
import type { SavedRequestsStore, StoredRequest } from "./saved-requests.store.ts";

const MOST_SAVED = 10_000;
const MOST_SAVED_BYTES = 268_435_456;
const DEFAULT_LIMIT = 100;
const DEFAULT_RESULTS = 1000;

export interface ReplayOperationsParts {
  readonly host: Pick<SliceHost, "store" | "clock" | "events">;
  readonly saved: SavedRequestsStore;
  readonly history: HistoryStore;
  readonly replays: Replays;
  readonly batches: Batches;
}

type Table = Handlers<typeof replayOperations>;

/** Handlers of saved requests, replays, batches and comparisons. */
export function createReplayOperations(parts: ReplayOperationsParts): Table {
  return { ...savedOperations(parts), ...runOperations(parts), ...historyOperations(parts) };
}

type Saved =
  | "listSavedRequests"
  | "saveRequest"
  | "saveFromTraffic"
  | "listReplayCollections"
  | "getSavedRequest"
  | "updateSavedRequest"
  | "deleteSavedRequest";
type Running = "executeReplay" | "executeBatch" | "cancelBatch";

function savedOperations({ host, saved }: ReplayOperationsParts): Pick<Table, Saved> {
  const { clock, events, store } = host;
  const changed = (): void => events.changed("replay");
  const find = (id: string): StoredRequest => saved.get(id) ?? notFound("saved request", id);
  const fresh = (request: ReplayRequest, sourceEntryId: string | null, about: About): StoredRequest => ({
    id: randomUUID(),
    sourceEntryId,
    name: about.name ?? null,
    collection: about.collection ?? null,
    tags: about.tags ?? [],
    request,
    bodyBytes: request.body?.length ?? 0,
    savedAtMs: clock.now(),
    updatedAtMs: clock.now(),
  });
  const insert = (requests: readonly StoredRequest[]): void => {
    refuseExcess(saved, requests);
    saved.insert(requests);
    changed();
  };
  return {
    listSavedRequests: ({ query }) => {
      const { collection, tag, search, limit = DEFAULT_LIMIT, offset = 0 } = query;
      const withBodies = query.include_bodies === "true";
      const { requests, total } = saved.list({ collection, tag, search }, { limit, offset, withBodies });
      return { ...counted(total), status: 200, body: requests.map((request) => showSaved(request, withBodies)) };
    },
    saveRequest: async ({ body }) => {
      const entryId = body.entry_id ?? body.traffic_id ?? null;
      if (body.request === undefined && entryId === null) {
        throw validationError([{ path: "body/request", message: "is required, or an entry_id to take it from" }]);
      }
      const captured =
        entryId === null ? undefined : ((await capturedRequest(store, entryId)) ?? notFound("entry", entryId));
      const request = body.request === undefined ? (captured as ReplayRequest) : requestOf(body.request);
      const stored = fresh(request, entryId, body);
      insert([stored]);
      return { status: 201, body: { id: stored.id } };
    },
    saveFromTraffic: async ({ body }) => {
      const { entry_ids: ids, name_prefix: prefix } = body;
      const requests: StoredRequest[] = [];
      const errors: string[] = [];
      for (const id of ids) {
        try {
          const request = (await capturedRequest(store, id)) ?? notFound("entry", id);
          const name = `${prefix ?? ""}${request.method} ${request.url}`.slice(0, 255);
          requests.push(fresh(request, id, { name, tags: body.tags, collection: body.collection }));
        } catch (error) {
          if (!(error instanceof ApiError)) throw error;
          errors.push(`entry ${id}: ${error.message}`);
        }
      }
      if (requests.length === 0) throw new ApiError("NOT_FOUND", errors[0] ?? "No entry can be saved");
      insert(requests);
      return {
        status: 201,
        body: { saved: requests.length, ids: requests.map(({ id }) => id), errors, total: ids.length },
      };
    },
    listReplayCollections: () => ({ status: 200, body: saved.collections() }),
    getSavedRequest: ({ params }) => ({ status: 200, body: showSaved(find(params.id), true) }),
    updateSavedRequest: ({ params, body }) => {
      const { id, sourceEntryId, savedAtMs } = find(params.id);
      const updated = { ...fresh(requestOf(body.request), sourceEntryId, body), id, savedAtMs };
      refuseExcess(saved, [updated]);
      if (!saved.update(updated)) return notFound("saved request", id);
      changed();
      return { status: 200, body: showSaved(updated, true) };
    },
    deleteSavedRequest: ({ params }) => {
      if (!saved.remove(params.id)) return notFound("saved request", params.id);
      changed();
      return { status: 204 };
    },
  };
}

type About = { readonly [K in "name" | "tags" | "collection"]?: NewSavedRequest[K] | undefined };

function refuseExcess(saved: SavedRequestsStore, added: readonly StoredRequest[]): void {
  const present = saved.usage();
  const bytes = added.reduce((sum, { bodyBytes }) => sum + bodyBytes, present.bodyBytes);
  if (present.count + added.length > MOST_SAVED || bytes > MOST_SAVED_BYTES) {
    throw new ApiError(
      "CONFLICT",
      `${present.count} requests with ${present.bodyBytes} bytes of bodies are saved already: delete some first`,
    );
  }
}

function counted(total: number): { readonly headers: Readonly<Record<string, string>> } {
  return { headers: { "x-total-count": String(total) } };
}

function runOperations({ host, history, replays, batches }: ReplayOperationsParts): Pick<Table, Running> {
  const { store, events } = host;
  return {
    executeReplay: async ({ params, body, signal }) => {
      const replayed = await replays.find(params.id);
      const result = await replays.execute(replayed, {
        modifications: body?.modifications ?? {},
        variables: body?.variables ?? {},
        signal,
        keepsBody: true,
      });
      history.add([withoutBodies(result)]);
      events.changed("replay");
      // The caller may ask for the entry at once.
      if (result.entry_id !== null) await store.flush();
      return { status: 200, body: result };
    },
    executeBatch: async ({ params, query, body, signal }) => {
      const batch = batches.begin(await replays.find(params.id), body ?? {}, query.task_id);
      if (body?.wait === false) {
        // Its end is told on /ws and kept; nobody waits here.
        void batch.over.catch(() => undefined);
        return { status: 202, body: { id: batch.id } };
      }
      const onGone = (): void => void batches.cancel(batch.id);
      signal.addEventListener("abort", onGone, { once: true });
      try {
        await batch.over;
      } finally {
        signal.removeEventListener("abort", onGone);
      }
      return { status: 200, body: withResults(history, batches, batch.id, query.results_limit) };
    },
    cancelBatch: ({ params }) => ({ status: 200, body: batches.cancel(params.id) }),
  };
}

function withResults(history: HistoryStore, batches: Batches, id: string, limit = DEFAULT_RESULTS) {
  const { results } = history.list({ batchId: id, savedRequestId: undefined }, limit, 0);
  return { ...batches.find(id), results };
}

function historyOperations({ host, history, batches }: ReplayOperationsParts): Omit<Table, Saved | Running> {
  const { store, events } = host;
  return {
    listBatches: ({ query }) => {
      const { batches: stored, total } = history.batches(query.limit ?? DEFAULT_LIMIT, query.offset ?? 0);
      return { ...counted(total), status: 200, body: stored.map((batch) => batches.show(batch)) };
    },
    getBatch: ({ params, query }) => ({
      status: 200,
      body: withResults(history, batches, params.id, query.results_limit),
    }),
    listReplayHistory: ({ query }) => {
      const { saved_request_id: savedRequestId, batch_id: batchId, limit = DEFAULT_LIMIT, offset = 0 } = query;
      const { results, total } = history.list({ savedRequestId, batchId }, limit, offset);
      return { ...counted(total), status: 200, body: results };
    },
    getReplay: async ({ params }) => {
      const result = history.get(params.id) ?? notFound("replay", params.id);
      return { status: 200, body: await withStoredBodies(store, result) };
    },
    clearReplayHistory: () => {
      history.clear();
      events.changed("replay");
      return { status: 204 };
    },
  };
}

/** The bodies of a replay are those of its entry, as long as that is kept. */
async function withStoredBodies(store: SliceHost["store"], result: ReplayResult): Promise<ReplayResult> {
  if (result.entry_id === null) return result;
  const entry = await store.getEntry(result.entry_id, { includeBodies: true, decompressed: false });
  if (entry === undefined) return result;
  const { request, response } = entry;
  const bodyOf = ({ body, body_encoding }: Pick<typeof request, "body" | "body_encoding">) => ({ body, body_encoding });
  return {
    ...result,
    request: { ...result.request, ...bodyOf(request) },
    response: result.response && { ...result.response, ...(response === null ? {} : bodyOf(response)) },
  };
}
