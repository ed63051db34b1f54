import type { replayOperations } from "@headworks/capture-contract";
import type { Slice, SliceHost } from "#slice.ts";
import { createBatches } from "./batches.ts";
import { createHistoryStore } from "./replay-history.ts";
import { createReplayOperations } from "./replay.operations.ts";
import { createReplays } from "./replays.ts";
import { portableRequests } from "./saved-request.ts";
import { createSavedRequestsStore } from "./saved-requests.ts";

const HISTORY_BOUNDS = { singles: 2000, batches: 100, batchResults: 20_000 };

/** Saved requests, replays, batches and comparisons. */
export function createReplaySlice(host: SliceHost): Slice<typeof replayOperations> {
  const saved = createSavedRequestsStore(host.database);
  const history = createHistoryStore(host.database, HISTORY_BOUNDS);
  const replays = createReplays(host, saved);
  const batches = createBatches({ host, history, replays });
  return {
    name: "replay",
    operations: createReplayOperations({ host, saved, history, replays, batches }),
    worker: batches.worker,
    portableRules: portableRequests(saved, () => host.events.changed("replay")),
  };
}
