import { useEffect, useRef } from "react";
import type { RefObject } from "react";
import { api } from "../../api.ts";
import type { GridHandle } from "./list/grid.tsx";
import { placeOfEntry } from "./list/place-of-entry.ts";
import { filterOf } from "../../queries.ts";
import type { TrafficList } from "./list/traffic-list.ts";

/** Scrolls the list to the entry that the screen was opened with, once, wherever it stands. */
export function useArrival(list: TrafficList, grid: RefObject<GridHandle | null>, openId: string | null): void {
  const wanted = useRef(openId);
  const { loaded } = list;
  useEffect(() => {
    const id = wanted.current;
    if (!loaded || id === null) return;
    wanted.current = null;
    const show = (index: number | undefined): void => {
      if (index !== undefined) grid.current?.show(index);
    };
    const firstRow = async (q: string) =>
      await api.traffic.listTrafficRows({ query: { ...filterOf(q, list.scope.session), limit: 1 } });
    // Whoever opened the entry has its details; without its place the list stays where it is.
    placeOfEntry(list, id, firstRow).then(show, () => undefined);
  }, [list, grid, loaded]);
}
