import type { RecentTraffic } from "#slices/metrics/metrics.slice.ts";
import type { UpstreamSnapshot } from "#upstream/upstream-state.ts";
import type { WorkerStates } from "./worker-calls.ts";

/** What several workers are like, as one instance: sums, and of health the worst. */
export function mergeWorkerStates(each: readonly WorkerStates[]): WorkerStates {
  const all = new Map<string, UpstreamSnapshot>();
  for (const upstream of each.flatMap(({ upstreams }) => upstreams)) {
    const known = all.get(upstream.name);
    all.set(upstream.name, known === undefined ? upstream : together(known, upstream));
  }
  return {
    upstreams: [...all.values()],
    activeRequests: each.reduce((total, { activeRequests }) => total + activeRequests, 0),
  };
}

/** What several workers counted, as one. */
export function mergeTraffic(each: readonly RecentTraffic[]): RecentTraffic {
  const requests = new Map<string, number>();
  for (const [route, count] of each.flatMap((one) => one.requests)) {
    requests.set(route, (requests.get(route) ?? 0) + count);
  }
  return { spanMs: Math.max(0, ...each.map((one) => one.spanMs)), requests: [...requests] };
}

const WORST = ["open", "half_open", "closed"] as const;
const WORST_HEALTH = ["ejected", "half_open", "healthy"] as const;

function worst<T>(order: readonly T[], a: T, b: T): T {
  return order.indexOf(a) <= order.indexOf(b) ? a : b;
}

function together(a: UpstreamSnapshot, b: UpstreamSnapshot): UpstreamSnapshot {
  const others = new Map(b.endpoints.map((endpoint) => [endpoint.key, endpoint]));
  const known = new Set(a.endpoints.map(({ key }) => key));
  return {
    ...a,
    breaker:
      a.breaker === undefined || b.breaker === undefined
        ? (a.breaker ?? b.breaker)
        : {
            state: worst(WORST, a.breaker.state, b.breaker.state),
            consecutiveFailures: Math.max(a.breaker.consecutiveFailures, b.breaker.consecutiveFailures),
            opensAgainInMs: Math.max(a.breaker.opensAgainInMs, b.breaker.opensAgainInMs),
          },
    failOpenPicks: a.failOpenPicks + b.failOpenPicks,
    retries: a.retries + b.retries,
    endpoints: [
      ...a.endpoints.map((endpoint) => {
        const other = others.get(endpoint.key);
        if (other === undefined) return endpoint;
        return {
          ...endpoint,
          health: worst(WORST_HEALTH, endpoint.health, other.health),
          isDraining: endpoint.isDraining || other.isDraining,
          inFlight: endpoint.inFlight + other.inFlight,
          connections: endpoint.connections + other.connections,
        };
      }),
      ...b.endpoints.filter(({ key }) => !known.has(key)),
    ],
  };
}
