import { queryOptions } from "@tanstack/react-query";
import { api } from "../../api.ts";

/** Paused messages of all connections. */
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
