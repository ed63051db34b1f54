import type { TrafficEvent } from "@headworks/capture-contract";
import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { api } from "../../../api.ts";
import { listenLive } from "../../../live.ts";
import { activeSessionId, filterOf, queryClient, sessionsQuery } from "../../../queries.ts";
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
  return new TrafficList(async ({ q, sort, order, session }, offset, limit, signal) => {
    refuseUnreadable(q);
    const query = { ...filterOf(q, session), sort, order, offset, limit };
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

/** Whether a list of a session shows what an event tells; `active` is undefined until it is known. */
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

/** The list for a scope, kept current by the live channel. */
export function useTrafficList(scope: ListScope): TrafficList {
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
    // The first answer only tells which session the list has been showing all along.
    if (before === undefined || list.scope.session !== null) return;
    list.reload();
    void queryClient.invalidateQueries({ queryKey: ["traffic"] });
  }, [current, list]);
  return list;
}
