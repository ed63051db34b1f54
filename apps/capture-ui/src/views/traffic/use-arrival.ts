// Tested by ../../../../../e2e/ui-traffic.test.ts
import { useEffect, useRef } from "react";
import type { RefObject } from "react";
import { api } from "../../api.ts";
import type { GridHandle } from "./list/grid.tsx";
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
    // Whoever opened the entry has its details; without its place the list stays where it is.
    placeOf(list, id).then(show, () => undefined);
  }, [list, grid, loaded]);
}

/** How many rows stand above an entry; undefined where it is not in the list, or the order is another one than theirs. */
async function placeOf(list: TrafficList, id: string): Promise<number | undefined> {
  const known = list.indexOf(id);
  if (known !== undefined) return known;
  const { q, sort, order } = list.scope;
  if (sort !== "seq") return undefined;
  const count = async (term: string) =>
    await api.traffic.listTrafficRows({ query: { q: q === "" ? term : `(${q}) ${term}`, limit: 1 } });
  const [row] = (await count(`id:${id}`)).rows;
  if (row?.id !== id) return undefined;
  const above = await count(`seq:${order === "desc" ? ">" : "<"}${row.seq}`);
  return order === "desc" ? above.total - list.newCount : above.total;
}
