import {
  type InvalidateOptions,
  type InvalidateQueryFilters,
  QueryClient,
  type QueryKey,
  queryOptions,
} from "@tanstack/react-query";
import { api, ApiFailure } from "./api.ts";

/**
 * A query client whose invalidation also covers first responses in flight. The base class refetches only queries that
 * have data: a first response read before the change would be taken as fresh.
 */
export class InvalidatingClient extends QueryClient {
  /** Resolves when all displayed data was fetched after the call; pending first fetches are repeated. */
  override async invalidateQueries<TaggedQueryKey extends QueryKey = QueryKey>(
    filters?: InvalidateQueryFilters<TaggedQueryKey>,
    options?: InvalidateOptions,
  ): Promise<void> {
    const loading = new Set(
      this.getQueryCache()
        .findAll(filters)
        .filter(({ state }) => state.fetchStatus !== "idle" && state.data === undefined),
    );
    await super.invalidateQueries(filters, options);
    if (loading.size > 0) await super.invalidateQueries({ predicate: (query) => loading.has(query) }, options);
  }
}

/**
 * The cache of everything that is not a traffic list. The first part of each key is a topic of the service's `Changed`
 * events (`config`, `capture`, `sessions`, `blocklist`, `breakpoints` and so on), so an event invalidates by topic.
 */
export const queryClient = new InvalidatingClient({
  defaultOptions: {
    queries: {
      staleTime: 30_000,
      // On localhost a refused connection is final, and the live channel reports when the service is back.
      retry: (count, error) => count < 1 && error instanceof ApiFailure && error.status >= 500,
      refetchOnWindowFocus: false,
      // The service mostly runs on this machine, so network availability is irrelevant.
      networkMode: "always",
    },
    mutations: { networkMode: "always" },
  },
});

export const configQuery = queryOptions({
  queryKey: ["config"],
  queryFn: ({ signal }) => api.config.getConfig({ signal }),
});

export const captureQuery = queryOptions({
  queryKey: ["capture"],
  queryFn: ({ signal }) => api.capture.getCapture({ signal }),
});

/** Counts and sizes of the store; the shell polls it because traffic changes it all the time. */
export const statsQuery = queryOptions({
  queryKey: ["storage", "stats"],
  queryFn: ({ signal }) => api.capture.getCaptureStats({ signal }),
});

export const sessionsQuery = queryOptions({
  queryKey: ["sessions"],
  queryFn: ({ signal }) => api.sessions.listSessions({ signal }),
});

/** The active session's id, if loaded. */
export function activeSessionId(): string | undefined {
  return queryClient.getQueryData(sessionsQuery.queryKey)?.find((session) => session.is_current)?.id;
}

/** Runs that record into sessions of their own. */
export const runsQuery = queryOptions({
  queryKey: ["sessions", "runs"],
  queryFn: ({ signal }) => api.runs.listRuns({ signal }),
});

/** The query parameters of a list: its filter and, unless it is the active one (null), its session. */
export function filterOf(q: string, session: string | null): { readonly q?: string; readonly session_id?: string } {
  return { ...(q === "" ? {} : { q }), ...(session === null ? {} : { session_id: session }) };
}

export const focusQuery = queryOptions({
  queryKey: ["focus"],
  queryFn: ({ signal }) => api.focus.listFocusHosts({ signal }),
});

export const blocklistQuery = queryOptions({
  queryKey: ["blocklist"],
  queryFn: ({ signal }) => api.blocklist.listBlockEntries({ signal }),
});

export const healthQuery = queryOptions({
  queryKey: ["config", "health"],
  queryFn: ({ signal }) => api.metrics.getDetailedHealth({ signal }),
});

export const breakpointsQuery = queryOptions({
  queryKey: ["breakpoints", "rules"],
  queryFn: ({ signal }) => api.breakpoints.listBreakpoints({ query: { limit: 1000 }, signal }),
});

export const pausedQuery = queryOptions({
  queryKey: ["breakpoints", "paused"],
  queryFn: ({ signal }) => api.breakpoints.listPausedItems({ query: {}, signal }),
});

/** Whether everything is paused, and the number of paused messages. */
export const pauseAllQuery = queryOptions({
  queryKey: ["breakpoints", "pause-all"],
  queryFn: ({ signal }) => api.breakpoints.getPauseAll({ signal }),
});

export const rewritesQuery = queryOptions({
  queryKey: ["rewrites", "rules"],
  queryFn: ({ signal }) => api.rewrites.listRewrites({ query: { limit: 1000 }, signal }),
});

export const mocksQuery = queryOptions({
  queryKey: ["mocks", "rules"],
  queryFn: ({ signal }) => api.mocks.listMocks({ query: { limit: 1000 }, signal }),
});

export const mockCollectionsQuery = queryOptions({
  queryKey: ["mocks", "collections"],
  queryFn: ({ signal }) => api.mocks.listMockCollections({ signal }),
});

export const mockRecordingQuery = queryOptions({
  queryKey: ["mocks", "recording"],
  queryFn: ({ signal }) => api.mocks.getMockRecording({ signal }),
});

export const mockServingQuery = queryOptions({
  queryKey: ["mocks", "serving"],
  queryFn: ({ signal }) => api.mocks.getMockServing({ signal }),
});

export const savedRequestsQuery = queryOptions({
  queryKey: ["replay", "list"],
  queryFn: ({ signal }) => api.replay.listSavedRequests({ query: { limit: 1000 }, signal }),
});

export const throttleQuery = queryOptions({
  queryKey: ["throttle", "state"],
  queryFn: ({ signal }) => api.throttle.getThrottle({ signal }),
});

export const wsPausedQuery = queryOptions({
  queryKey: ["ws-traffic", "paused"],
  queryFn: ({ signal }) => api["ws-traffic"].listWsPaused({ signal }),
});

/** Message rules, newest first. */
export const wsRulesQuery = queryOptions({
  queryKey: ["ws-traffic", "rules"],
  queryFn: ({ signal }) => api["ws-traffic"].listWsRules({ query: { limit: 1000 }, signal }),
});

/** A connection, and whether messages can be injected. */
export const wsConnectionQuery = (id: string, revision: string) =>
  queryOptions({
    queryKey: ["ws-traffic", "connection", id, revision],
    queryFn: ({ signal }) => api["ws-traffic"].getWsConnection({ params: { id }, signal }),
  });

export const scriptsQuery = queryOptions({
  queryKey: ["scripts", "list"],
  queryFn: ({ signal }) => api.scripts.listScripts({ signal }),
});

/** The service's description of each setting. */
export const fieldsQuery = queryOptions({
  queryKey: ["config", "fields"],
  queryFn: ({ signal }) => api.config.describeConfig({ signal }),
});
