import type { GatewaySlice } from "#slice.ts";
import { counter, expose, type MetricSamples, type Samples } from "./exposition.ts";
import { factMetrics, type GatewayFacts } from "./fact-metrics.ts";
import type { RecentTraffic } from "./recent-traffic.ts";
import { TrafficCounts } from "./traffic-counts.ts";

export type { GatewayFacts } from "./fact-metrics.ts";
export type { RecentTraffic } from "./recent-traffic.ts";

/** Policy phases with dry runs. */
export type DryRunPhase = "route_limits" | "authz" | "rate_limit" | "load_shed" | "quota" | "callout";

export interface Metrics extends GatewaySlice {
  /** Counts a refusal ignored by a dry run. */
  dryRun(phase: DryRunPhase, route: string): void;
  quotaDenied(consumer: string, budget: string): void;
  /** Recent requests per route in this process. */
  recent(): RecentTraffic;
  /** Prometheus text format 0.0.4. */
  text(facts: GatewayFacts): Promise<string>;
}

/** Collects metrics, exposed in Prometheus text format. */
export function createMetrics(): Metrics {
  const traffic = new TrafficCounts();
  const counted = new Map<string, { readonly labels: Readonly<Record<string, string>>; count: number }>();
  const count = (name: string, labels: Readonly<Record<string, string>>): void => {
    const key = [name, ...Object.values(labels)].join("\n");
    const known = counted.get(key);
    if (known === undefined) counted.set(key, { labels, count: 1 });
    else known.count += 1;
  };
  const samplesOf = (name: string): Samples =>
    [...counted].filter(([key]) => key.startsWith(`${name}\n`)).map(([, entry]) => [entry.labels, entry.count]);
  return {
    name: "metrics",
    observer: traffic,
    dryRun: (phase, route) => count("dry_run", { phase, route }),
    quotaDenied: (consumer, budget) => count("quota_denied", { consumer, budget }),
    recent: () => traffic.recent(),
    text: async (facts) =>
      await expose(
        [...trafficMetrics(traffic), ...countedMetrics(samplesOf), ...factMetrics(facts)],
        traffic.durations.values(),
      ),
  };
}

function trafficMetrics(traffic: TrafficCounts): MetricSamples[] {
  const requests: Samples = [...traffic.requests.values()].flatMap(({ route, listener, byClass }) =>
    byClass.flatMap((count, of) =>
      count === 0 ? [] : [[{ route, listener, status_class: of === 0 ? "none" : `${of}xx` }, count] as const],
    ),
  );
  return [
    counter("requests_total", "Finished requests", ["route", "listener", "status_class"], requests),
    counter(
      "rate_limited_total",
      "Requests refused by a rate limit",
      ["route"],
      [...traffic.rateLimited].map(([route, count]) => [{ route }, count]),
    ),
    counter(
      "shed_total",
      "Requests refused because too many were in progress",
      ["priority"],
      [...traffic.shed].map(([priority, count]) => [{ priority: String(priority) }, count]),
    ),
    counter(
      "gateway_deprecated_requests_total",
      "Requests of routes with a deprecation block, by consumer",
      ["route", "consumer"],
      [...traffic.deprecated.values()].map(({ route, consumer, count }) => [{ route, consumer }, count]),
    ),
  ];
}

function countedMetrics(samplesOf: (name: string) => Samples): MetricSamples[] {
  return [
    counter(
      "gateway_policy_dry_run_total",
      "Requests that a dry run would have refused",
      ["phase", "route"],
      samplesOf("dry_run"),
    ),
    counter(
      "gateway_quota_denied_total",
      "Requests refused by a quota",
      ["consumer", "budget"],
      samplesOf("quota_denied"),
    ),
  ];
}
