import type { Settings, trafficOperations } from "@headworks/capture-contract";
import type { StoreLimits } from "#storage/capture-store.ts";
import type { Slice, SliceHost } from "../../slice.ts";
import { TrafficObserver } from "./traffic.observer.ts";
import { createTrafficOperations } from "./traffic.operations.ts";

/** The captured traffic: records what flows, shows it live, answers questions about it. */
export function createTrafficSlice(host: SliceHost): Slice<typeof trafficOperations> {
  const { store, events, settings } = host;
  const observer = new TrafficObserver(host);
  store.on("pruned", (ids) => {
    if (events.hasListeners) events.traffic({ type: "Deleted", data: ids });
  });
  store.on("statusChanged", () => events.changed("storage"));
  settings.onChange((running) => store.setLimits(limitsOf(running)));
  return { name: "traffic", operations: createTrafficOperations(host, observer), observer, worker: observer };
}

function limitsOf(settings: Settings): StoreLimits {
  return {
    maxRequests: settings.max_requests,
    maxTotalSizeMb: settings.max_total_size_mb,
    maxBodyBytes: settings.max_body_size,
  };
}
