import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useMemo, useSyncExternalStore } from "react";
import { api } from "../../api.ts";
import { usePreferences } from "../../preferences.ts";
import { filterOf, focusQuery, statsQuery } from "../../queries.ts";
import { focusMatcher } from "./list/focus-match.ts";
import { useTrafficList } from "./list/use-traffic-list.ts";
import { effectiveQuery } from "./query/effective-query.ts";
import { refuseUnreadable } from "./query/refuse-unreadable.ts";
import { expandViews } from "./query/saved-views.ts";
import { useViews } from "./query/view-store.ts";
import type { useViewState } from "./use-view-state.ts";

function useSummary(q: string, session: string | null, enabled = true) {
  return useQuery({
    queryKey: ["traffic", "summary", q, session],
    queryFn: async ({ signal }) => {
      refuseUnreadable(q);
      return await api.traffic.summarizeTraffic({ query: filterOf(q, session), signal });
    },
    placeholderData: keepPreviousData,
    enabled,
  });
}

/** The list and totals of the current view. */
export function useTrafficData(view: ReturnType<typeof useViewState>) {
  const focusOnly = usePreferences((preferences) => preferences.focusOnly);
  const views = useViews((state) => state.views);
  const focus = useQuery(focusQuery);
  const stats = useQuery(statsQuery);
  const patterns = useMemo(() => focus.data?.map((host) => host.pattern) ?? [], [focus.data]);
  const focused = useMemo(() => (patterns.length === 0 ? undefined : focusMatcher(patterns)), [patterns]);
  const parts = {
    q: expandViews(view.q, views),
    pills: view.pills,
    range: view.range,
    hosts: focusOnly ? patterns : [],
  };
  const q = effectiveQuery(parts);
  const { session } = view;
  const list = useTrafficList({ q, ...view.sort, session });
  useSyncExternalStore(list.subscribe, list.version);
  const summary = useSummary(q, session);
  const withoutPills = useSummary(effectiveQuery(parts, { pills: true }), session, view.pills.length > 0);
  const withoutRange = useSummary(effectiveQuery(parts, { range: true }), session, view.range !== null);
  return {
    /** All filters combined into one query. */
    q,
    list,
    summary: summary.data,
    /** Counted without the pills, so that each pill shows its own count. */
    pillSummary: view.pills.length > 0 ? withoutPills.data : summary.data,
    /** Counted without the time range, so that the overview shows all traffic. */
    stripSummary: view.range === null ? summary.data : withoutRange.data,
    stats: stats.data,
    hasFocusPatterns: patterns.length > 0,
    /** Matches focused hosts; undefined when nothing is dimmed. */
    focused: focusOnly ? undefined : focused,
  };
}
