import type { ReplayResult, replayOperations } from "@headworks/capture-contract";
import type { Handlers } from "@headworks/contract-kit";
import { notFound } from "#api/api-error.ts";
import type { Slice, SliceHost } from "#slice.ts";
import { type Batches, createBatches } from "./batches.ts";
import { checkDiffOptions, diffOf, diffOfSessions, diffWithOriginal, originalOf, sideOf } from "./diff.ts";
import { createHistoryStore, type HistoryStore } from "./replay-history.ts";
import { createReplays, decoded, type Replays, withoutBodies } from "./replays.ts";
import {
  counted,
  createSavedRequestsStore,
  portableRequests,
  type SavedNames,
  savedOperations,
  type SavedRequestsStore,
} from "./saved-handlers.ts";

const DEFAULT_LIMIT = 100;
const DEFAULT_RESULTS = 1000;
const HISTORY_BOUNDS = { singles: 2000, batches: 100, batchResults: 20_000 };

export function createReplaySlice(host: SliceHost): Slice<typeof replayOperations> {
  const saved = createSavedRequestsStore(host.database);
  const history = createHistoryStore(host.database, HISTORY_BOUNDS);
  const replays = createReplays(host, saved);
  const batches = createBatches({ host, history, replays });
  return {
    name: "replay",
    operations: createReplayOperations({ host, saved, history, replays, batches }),
    task: batches.task,
    portableRules: portableRequests(saved, () => host.events.changed("replay")),
  };
}

interface ReplayOperationsParts {
  readonly host: Pick<SliceHost, "store" | "clock" | "events">;
  readonly saved: SavedRequestsStore;
  readonly history: HistoryStore;
  readonly replays: Replays;
  readonly batches: Batches;
}

type Table = Handlers<typeof replayOperations>;

function createReplayOperations(parts: ReplayOperationsParts): Table {
  return { ...savedOperations(parts), ...runOperations(parts), ...historyOperations(parts) };
}

type Running = "executeReplay" | "executeBatch" | "cancelBatch" | "diffEntries" | "diffSessions";

function runOperations({ host, history, replays, batches }: ReplayOperationsParts): Pick<Table, Running> {
  const { store, events } = host;
  return {
    executeReplay: async ({ params, query, body, signal }) => {
      const replayed = await replays.find(params.id);
      const diff = body?.diff === true ? {} : body?.diff === false ? undefined : body?.diff;
      if (diff !== undefined) checkDiffOptions(diff, "body/diff");
      // Checked before anything is sent.
      const original =
        diff && (await sideOf(store, undefined, originalOf({ source_entry_id: replayed.sourceEntryId })));
      const result = await replays.execute(replayed, {
        modifications: body?.modifications ?? {},
        variables: body?.variables ?? {},
        signal,
        keepsBody: true,
      });
      history.add([withoutBodies(result)]);
      events.changed("replay");
      // The caller may fetch the entry at once.
      if (result.entry_id !== null) await store.flush();
      const shown = query.decompressed === "true" ? decoded(result) : result;
      if (diff === undefined || original === undefined) return { status: 200, body: shown };
      return { status: 200, body: { ...shown, diff: await diffWithOriginal(host, original, result, diff) } };
    },
    executeBatch: async ({ params, query, body, signal }) => {
      const batch = batches.begin(await replays.find(params.id), body ?? {}, query.task_id);
      if (body?.wait === false) {
        // The end is announced on /ws and stored.
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
    diffEntries: async ({ body }) => ({ status: 200, body: await diffOf(host, history, body) }),
    diffSessions: async ({ body, signal }) => ({ status: 200, body: await diffOfSessions(host, body, signal) }),
  };
}

function withResults(history: HistoryStore, batches: Batches, id: string, limit = DEFAULT_RESULTS) {
  const { results } = history.list({ batchId: id, savedRequestId: undefined }, limit, 0);
  return { ...batches.find(id), results };
}

function historyOperations({ host, history, batches }: ReplayOperationsParts): Omit<Table, SavedNames | Running> {
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
    getReplay: async ({ params, query }) => {
      const result = history.get(params.id) ?? notFound("replay", params.id);
      return { status: 200, body: await withStoredBodies(store, result, query.decompressed === "true") };
    },
    clearReplayHistory: () => {
      history.clear();
      events.changed("replay");
      return { status: 204 };
    },
  };
}

/** Fills in bodies from the replay's entry while it exists. */
async function withStoredBodies(
  store: SliceHost["store"],
  result: ReplayResult,
  decompressed: boolean,
): Promise<ReplayResult> {
  if (result.entry_id === null) return result;
  const entry = await store.getEntry(result.entry_id, { includeBodies: true, decompressed });
  if (entry === undefined) return result;
  const { request, response } = entry;
  const bodyOf = ({ body, body_encoding }: Pick<typeof request, "body" | "body_encoding">) => ({ body, body_encoding });
  return {
    ...result,
    request: { ...result.request, ...bodyOf(request) },
    response: result.response && { ...result.response, ...(response === null ? {} : bodyOf(response)) },
  };
}
