import type { AffectedByPlan, RouteTraffic } from "@headworks/gateway-contract";
import type { ChangePlan } from "#config/diff-documents.ts";
import type { RecentTraffic } from "#slices/metrics/metrics.slice.ts";

/** Routes with recent traffic, busiest first, with their share of the total. */
export function allShares(recent: RecentTraffic): RouteTraffic {
  const routes = recent.requests.toSorted(([, a], [, b]) => b - a).map(([name]) => name);
  return sharesOf(routes, recent);
}

/** The affected entities of a plan, with recent requests of its routes. */
export function affectedBy(plan: ChangePlan, recent: RecentTraffic): AffectedByPlan {
  return {
    consumers: [...plan.consumers],
    upstreams: [...plan.upstreams],
    rebound_listeners: [...plan.rebound],
    ...sharesOf(plan.routes, recent),
  };
}

function sharesOf(routes: readonly string[], { spanMs, requests }: RecentTraffic): RouteTraffic {
  const counts = new Map(requests);
  const total = requests.reduce((sum, [, count]) => sum + count, 0);
  return {
    span_seconds: Math.round(spanMs / 1000),
    requests: total,
    routes: routes.map((name) => {
      const count = counts.get(name) ?? 0;
      return { name, requests: count, share: total === 0 ? 0 : Math.round((count / total) * 10_000) / 10_000 };
    }),
  };
}
