import { useState } from "react";

/**
 * The current version of an edited item; its last version after it was removed from the list. `begun` is the version at
 * opening, or a new item.
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
