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
    // The first result only identifies the session already shown.
    if (before === undefined || list.scope.session !== null) return;
    list.reload();
    void queryClient.invalidateQueries({ queryKey: ["traffic"] });
  }, [current, list]);
  return list;
}
