// Tested by ../../../../../../e2e/ui-traffic.test.ts
import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { api } from "../../../api.ts";
import { listenLive } from "../../../live.ts";
import { queryClient, sessionsQuery } from "../../../queries.ts";
import { refuseUnreadable } from "../query/refuse-unreadable.ts";
import type { ListScope } from "./row-sequence.ts";
import { TrafficList } from "./traffic-list.ts";

const clock = {
  now: () => performance.now(),
  after(ms: number, callback: () => void) {
    const timer = window.setTimeout(callback, ms);
    return () => window.clearTimeout(timer);
  },
};

function createList(): TrafficList {
  return new TrafficList(async ({ q, sort, order }, offset, limit, signal) => {
    refuseUnreadable(q);
    const query = { ...(q === "" ? {} : { q }), sort, order, offset, limit };
    return await api.traffic.listTrafficRows({ query, signal });
  }, clock);
}

/** Totals and trees are fetched again at most this often while traffic flows. */
const TOTALS_MS = 1500;

/** Keeps totals, trees and store sizes current while traffic flows. */
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

/** The list of the active session for a scope, kept current by the live channel. */
export function useTrafficList(scope: ListScope): TrafficList {
  const [list] = useState(createList);
  useTotalsRefresh();
  useEffect(() => {
    const stop = listenLive({
      traffic: (events) => list.apply(events),
      resync: () => list.resync(),
    });
    return () => {
      stop();
      list.dispose();
    };
  }, [list]);
  const { q, sort, order } = scope;
  useEffect(() => list.setScope({ q, sort, order }), [list, q, sort, order]);

  const sessions = useQuery(sessionsQuery);
  const current = sessions.data?.find((session) => session.is_current)?.id;
  const shown = useRef(current);
  useEffect(() => {
    const before = shown.current;
    if (current === undefined || current === before) return;
    shown.current = current;
    // The first answer only tells which session the list has been showing all along.
    if (before === undefined) return;
    list.reload();
    void queryClient.invalidateQueries({ queryKey: ["traffic"] });
  }, [current, list]);
  return list;
}
