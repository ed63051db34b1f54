import type { EndpointPools } from "./endpoint-pools.ts";
import type { UpstreamRegistry } from "./upstream-registry.ts";

/** State of an endpoint as plain data. */
export interface EndpointSnapshot {
  readonly key: string;
  readonly health: "healthy" | "ejected" | "half_open";
  readonly isDraining: boolean;
  readonly weight: number;
  readonly inFlight: number;
  readonly connections: number;
}

/** State of an upstream as plain data. */
export interface UpstreamSnapshot {
  readonly name: string;
  readonly protocol: string;
  readonly loadBalancer: string;
  readonly breaker:
    | {
        readonly state: "closed" | "open" | "half_open";
        readonly consecutiveFailures: number;
        readonly opensAgainInMs: number;
      }
    | undefined;
  readonly failOpenPicks: number;
  readonly retries: number;
  readonly endpoints: readonly EndpointSnapshot[];
}

/** An operator's change of a breaker or an endpoint. */
export type ForcedState =
  | { readonly upstream: string; readonly breaker: "open" | "closed" }
  | { readonly upstream: string; readonly endpoint: string; readonly action: "eject" | "recover" | "drain" };

export function upstreamSnapshots(registry: UpstreamRegistry, pools: EndpointPools): readonly UpstreamSnapshot[] {
  return registry.all.map(({ name, document, breaker, failOpenPicks, retries, endpoints }) => ({
    name,
    protocol: document.protocol ?? "http1",
    loadBalancer: document.load_balancer ?? "round_robin",
    breaker:
      breaker === undefined
        ? undefined
        : {
            state: breaker.state,
            consecutiveFailures: breaker.consecutiveFailures,
            opensAgainInMs: breaker.opensAgainInMs,
          },
    failOpenPicks,
    retries,
    endpoints: endpoints.map((endpoint) => ({
      key: endpoint.key,
      health: endpoint.health,
      isDraining: endpoint.isDraining,
      weight: endpoint.weight,
      inFlight: endpoint.inFlight,
      connections: pools.openConnections(endpoint),
    })),
  }));
}

/** Applies an operator's change; ignores upstreams and endpoints that are gone. */
export function forceState(registry: UpstreamRegistry, forced: ForcedState): void {
  const upstream = registry.get(forced.upstream);
  if ("breaker" in forced) {
    upstream?.breaker?.force(forced.breaker);
    return;
  }
  const endpoint = upstream?.endpoints.find(({ key }) => key === forced.endpoint);
  if (endpoint === undefined) return;
  if (forced.action === "drain") endpoint.isDraining = true;
  else if (forced.action === "eject") endpoint.force("ejected");
  else {
    endpoint.isDraining = false;
    endpoint.force("healthy");
  }
}
