import type { MockHit, mocksOperations } from "@headworks/capture-contract";
import type { Handlers } from "@headworks/contract-kit";
import type { StoredHit } from "./hit-store.ts";
import type { RuleBook } from "./rule-book.ts";

type HistoryHandlers = Pick<
  Handlers<typeof mocksOperations>,
  "listMockHits" | "clearMockHistory" | "clearMockAnalytics" | "getMockStats" | "listMockHistory"
>;

/** Handlers of the operations on what rules answered. */
export function historyHandlers({ hits, find }: RuleBook): HistoryHandlers {
  const clear = () => {
    hits.clearHistory();
    return { status: 204 } as const;
  };
  return {
    listMockHits: ({ query }) => page(hits.history(), query),
    clearMockHistory: clear,
    clearMockAnalytics: clear,
    getMockStats: ({ params }) => {
      const stats = hits.stats(find(params.id).id);
      return {
        status: 200,
        body: {
          total_hits: stats?.total ?? 0,
          avg_response_time_ms: stats === undefined ? null : Math.round((stats.sumMs / stats.total) * 100) / 100,
          min_response_time_ms: stats?.minMs ?? null,
          max_response_time_ms: stats?.maxMs ?? null,
          first_hit: stats === undefined ? null : new Date(stats.firstMs).toISOString(),
          last_hit: stats === undefined ? null : new Date(stats.lastMs).toISOString(),
        },
      };
    },
    listMockHistory: ({ params, query }) => {
      const { id } = find(params.id);
      return page(
        hits.history().filter(({ mockId }) => mockId === id),
        query,
      );
    },
  };
}

/** Newest first. */
function page(hits: readonly StoredHit[], query: { readonly limit?: number; readonly offset?: number }) {
  const { limit = 100, offset = 0 } = query;
  return {
    status: 200,
    headers: { "x-total-count": String(hits.length) },
    body: hits
      .toReversed()
      .slice(offset, offset + limit)
      .map(showHit),
  } as const;
}

function showHit(hit: StoredHit): MockHit {
  return {
    mock_id: hit.mockId,
    timestamp: new Date(hit.atMs).toISOString(),
    request_url: hit.url,
    request_method: hit.method,
    response_status: hit.status,
    response_time_ms: hit.timeMs,
    response_index: hit.index,
  };
}
