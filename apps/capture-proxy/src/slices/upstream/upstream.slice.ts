import type { upstreamOperations } from "@headworks/capture-contract";
import type { ProbeRoute } from "#exchange/route-probe.ts";
import type { Slice, SliceHost } from "#slice.ts";
import { createUpstreamOperations } from "./upstream.operations.ts";

/** Tests the upstream proxy before traffic depends on it. */
export function createUpstreamSlice(host: SliceHost, probe: ProbeRoute): Slice<typeof upstreamOperations> {
  return { name: "upstream", operations: createUpstreamOperations(host, probe) };
}
