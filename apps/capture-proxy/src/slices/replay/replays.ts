import type { ReplayModifications, ReplayResult } from "@headworks/capture-contract";
import { notFound } from "#api/api-error.ts";
import type { SliceHost } from "#slice.ts";
import { capturedRequest } from "./captured-request.ts";
import { modified, prepared } from "./prepare.ts";
import { resultOf } from "./replay-result.ts";
import type { ReplayRequest } from "./replay-request.ts";
import { run } from "./run.ts";
import type { SavedRequestsStore } from "./saved-requests.ts";

const DEFAULT_REDIRECTS = 10;

export interface Replayed {
  readonly request: ReplayRequest;
  readonly savedRequestId: string | null;
  readonly sourceEntryId: string | null;
}

export interface ReplayOptions {
  readonly modifications: ReplayModifications;
  readonly variables: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  readonly keepsBody: boolean;
  readonly batch?: { readonly id: string; readonly iteration: number };
}

export interface Replays {
  /** Throws 404 for an unknown id. */
  find(id: string): Promise<Replayed>;
  /** Throws 400 for a request that cannot be sent; sends nothing. */
  check(replayed: Replayed, options: Pick<ReplayOptions, "modifications" | "variables">): void;
  /** Throws 400 for a request that cannot be sent. */
  execute(replayed: Replayed, options: ReplayOptions): Promise<ReplayResult>;
}

export function createReplays(
  { store, send, clock }: Pick<SliceHost, "store" | "send" | "clock">,
  saved: SavedRequestsStore,
): Replays {
  return {
    find: async (id) => {
      const kept = saved.get(id);
      if (kept !== undefined) {
        return { request: kept.request, savedRequestId: id, sourceEntryId: kept.sourceEntryId };
      }
      const request = await capturedRequest(store, id);
      if (request === undefined) return notFound("saved request", id);
      return { request, savedRequestId: null, sourceEntryId: id };
    },
    check: ({ request }, { modifications, variables }) => {
      prepared(modified(request, modifications), { given: variables, iteration: 1, nowMs: clock.now() });
    },
    execute: async ({ request, savedRequestId, sourceEntryId }, options) => {
      const { modifications, variables, batch } = options;
      const iteration = batch?.iteration ?? 1;
      const nowMs = clock.now();
      const outgoing = prepared(modified(request, modifications), { given: variables, iteration, nowMs });
      const redirects =
        modifications.follow_redirects === true ? (modifications.max_redirects ?? DEFAULT_REDIRECTS) : 0;
      const done = await run(send, outgoing, {
        signal: options.signal,
        nowMs,
        redirects,
        keepsBody: options.keepsBody,
      });
      return resultOf(done, {
        savedRequestId,
        sourceEntryId,
        batchId: batch?.id ?? null,
        iteration: batch?.iteration ?? null,
      });
    },
  };
}
