import type { Window } from "./row-sequence.ts";
import type { TrafficList } from "./traffic-list.ts";

/** Returns the first row matching a query, and the total count. */
export type FirstRowSource = (q: string) => Promise<Window>;

/**
 * Number of rows above an entry. Undefined if it is not in the list, the list is sorted differently, or the count is
 * incomplete.
 */
export async function positionOfEntry(
  list: Pick<TrafficList, "indexOf" | "scope" | "newCount" | "length">,
  id: string,
  firstRow: FirstRowSource,
): Promise<number | undefined> {
  const known = list.indexOf(id);
  if (known !== undefined) return known;
  const { q, sort, order } = list.scope;
  if (sort !== "seq") return undefined;
  const narrowed = async (term: string) => await firstRow(q === "" ? term : `(${q}) ${term}`);
  const [row] = (await narrowed(`id:${id}`)).rows;
  if (row?.id !== id) return undefined;
  const above = await narrowed(`seq:${order === "desc" ? ">" : "<"}${row.seq}`);
  if (!above.total_complete) return undefined;
  const place = order === "desc" ? above.total - list.newCount : above.total;
  return place < list.length ? place : undefined;
}
