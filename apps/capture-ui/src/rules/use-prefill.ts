import type { Breakpoint, Condition, TrafficEntry } from "@headworks/capture-contract";
import { useQuery } from "@tanstack/react-query";
import { api } from "../api.ts";
import { usePlace } from "../shell/router.ts";
import { conditionForRequest, nameForRequest } from "./from-entry.ts";

/** The captured entry given by `?from=<id>`, to create a rule from; null without one or while it loads. */
export function usePrefill(): TrafficEntry | null {
  const { params } = usePlace();
  const from = params.get("from");
  const entry = useQuery({
    queryKey: ["entry", from, "prefill"],
    queryFn: ({ signal }) => api.traffic.getTraffic({ params: { id: from ?? "" }, signal }),
    enabled: from !== null,
    staleTime: Infinity,
  });
  return from === null ? null : (entry.data ?? null);
}

/** Name, condition and direction of a rule for requests similar to an entry's. */
export function prefillOf(
  { request }: TrafficEntry,
  direction: string | null,
): { readonly name: string; readonly condition: Condition; readonly direction: Breakpoint["direction"] } {
  return {
    name: nameForRequest(request),
    condition: conditionForRequest(request),
    direction: direction === "response" || direction === "both" ? direction : "request",
  };
}
