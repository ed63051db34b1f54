import type { trafficOperations } from "@headworks/capture-contract";
import type { Slice, SliceHost } from "#slice.ts";
import { TrafficObserver } from "./traffic.observer.ts";
import { createTrafficOperations } from "./traffic.operations.ts";

/** Captured traffic: recording, live updates and queries. */
export function createTrafficSlice(host: SliceHost): Slice<typeof trafficOperations> {
  const observer = new TrafficObserver(host);
  host.store.streams.onOpened((exchange) => observer.show(exchange));
  return { name: "traffic", operations: createTrafficOperations(host, observer), observer, worker: observer };
}
