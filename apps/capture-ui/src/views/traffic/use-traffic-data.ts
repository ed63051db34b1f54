import type { TrafficEvent } from "@headworks/capture-contract";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useRef, useState, useSyncExternalStore } from "react";
import { api } from "../../api.ts";
import { listenLive } from "../../live.ts";
import { usePreferences } from "../../preferences.ts";
import { activeSessionId, filterOf, focusQuery, queryClient, sessionsQuery, statsQuery } from "../../queries.ts";
import { effectiveQuery, focusMatcher, refuseUnreadable } from "./query/effective-query.ts";
import type { ListScope } from "./list/row-sequence.ts";
import { TrafficList } from "./list/traffic-list.ts";
import { expandViews, useViews } from "./query/saved-views.ts";
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

const clock = {
  now: () => performance.now(),
  after(ms: number, callback: () => void) {
    const timer = window.setTimeout(callback, ms);
    return () => window.clearTimeout(timer);
  },
};

function createList(): TrafficList {
  return new TrafficList(async ({ q, sort, order, session }, offset, limit, signal) => {
    refuseUnreadable(q);
    const query = { ...filterOf(q, session), sort, order, offset, limit };
    return await api.traffic.listTrafficRows({ query, signal });
  }, clock);
}

/** Minimum interval of refetches of totals and trees during traffic. */
const TOTALS_MS = 1500;

/** Keeps totals, trees and store sizes current during traffic. */
function useTotalsRefresh(): void {
  useEffect(() => {
    let timer: number | undefined;
    const refresh = (): void => {
      timer ??= window.setTimeout(() => {
        timer = undefined;
        void queryClient.invalidateQueries({ queryKey: ["traffic"] }, { cancelRefetch: false });
        void queryClient.invalidateQueries({ queryKey: ["storage"] }, { cancelRefetch: false });
      }, TOTALS_MS);
    };
    const stop = listenLive({ traffic: refresh, resync: refresh });
    return () => {
      stop();
      window.clearTimeout(timer);
    };
  }, []);
}

/** Whether an event concerns the list of a session; `active` is undefined until known. */
function concerns(event: TrafficEvent, session: string | null, active: string | undefined): boolean {
  switch (event.type) {
    case "Added":
    case "Updated": {
      const shown = session ?? active;
      return shown === undefined || event.data.session_id === shown;
    }
    case "Deleted":
      return true;
    case "Cleared":
    case "CountUpdate":
      return session === null || session === active;
  }
}

/** The list of a scope, updated live. */
function useTrafficList(scope: ListScope): TrafficList {
  const [list] = useState(createList);
  useTotalsRefresh();
  useEffect(() => {
    const stop = listenLive({
      traffic: (events) => {
        const active = activeSessionId();
        const { session } = list.scope;
        list.apply(events.filter((event) => concerns(event, session, active)));
      },
      resync: () => list.resync(),
    });
    return () => {
      stop();
      list.dispose();
    };
  }, [list]);
  const { q, sort, order, session } = scope;
  useEffect(() => list.setScope({ q, sort, order, session }), [list, q, sort, order, session]);

  const sessions = useQuery(sessionsQuery);
  const current = sessions.data?.find((session) => session.is_current)?.id;
  const shown = useRef(current);
  useEffect(() => {
    const before = shown.current;
    if (current === undefined || current === before) return;
    shown.current = current;
    // The first result only identifies the session already shown.
    if (before === undefined || list.scope.session !== null) return;
    list.reload();
    void queryClient.invalidateQueries({ queryKey: ["traffic"] });
  }, [current, list]);
  return list;
}
