import type { TrafficEvent, TrafficSnapshot } from "@headworks/capture-contract";

/**
 * What a window of events comes to: one event for each entry (the first kind with the latest row), nothing of entries
 * deleted or cleared in the same window, only the last count. Order is that of each entry's first event.
 */
export function coalesce(events: readonly TrafficEvent[]): readonly TrafficEvent[] {
  const result: (TrafficEvent | undefined)[] = [];
  const places = new Map<string, number>();
  let countPlace = -1;
  for (const event of events) {
    switch (event.type) {
      case "Added":
      case "Updated": {
        const place = places.get(event.data.id);
        const first = place === undefined ? undefined : result[place];
        if (place === undefined || first === undefined) {
          places.set(event.data.id, result.length);
          result.push(event);
        } else {
          result[place] = { type: first.type, data: event.data } as { type: "Added"; data: TrafficSnapshot };
        }
        break;
      }
      case "Deleted":
        for (const id of event.data) drop(id, places, result);
        result.push(event);
        break;
      case "Cleared":
        // What came before is gone on the client too; only other sessions' entries could differ, and they are not shown.
        result.fill(undefined);
        places.clear();
        countPlace = -1;
        result.push(event);
        break;
      case "CountUpdate":
        if (countPlace >= 0) result[countPlace] = undefined;
        countPlace = result.length;
        result.push(event);
        break;
    }
  }
  return result.filter((event) => event !== undefined);
}

function drop(id: string, places: Map<string, number>, result: (TrafficEvent | undefined)[]): void {
  const place = places.get(id);
  if (place === undefined) return;
  result[place] = undefined;
  places.delete(id);
}
