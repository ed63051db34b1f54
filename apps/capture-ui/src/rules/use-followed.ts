import { useState } from "react";

/**
 * What a window edits, as the list says now; what it was last once the list does not have it any more. `begun` is what it
 * was when the window opened, or something new, which no list has.
 */
export function useFollowed<Item extends object>(
  begun: Item,
  list: readonly Item[] | undefined,
): { readonly item: Item; readonly isGone: boolean } {
  const [last, setLast] = useState(begun);
  const id = idOf(begun);
  if (id === undefined || list === undefined) return { item: last, isGone: false };
  const now = list.find((item) => idOf(item) === id);
  if (now === undefined) return { item: last, isGone: true };
  if (now !== last) setLast(now);
  return { item: now, isGone: false };
}

function idOf(item: object): unknown {
  return "id" in item ? item.id : undefined;
}
