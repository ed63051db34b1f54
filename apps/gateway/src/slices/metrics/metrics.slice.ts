import type { EventKind } from "@headworks/gateway-contract";
import type { GatewaySlice } from "#slice.ts";
import { expose, type MetricSamples, type Samples } from "./exposition.ts";
import { TrafficCounts } from "./traffic-counts.ts";

/** Phases of policies that may be on trial. */
export type DryRunPhase = "route_limits" | "authz" | "rate_limit" | "load_shed" | "quota" | "callout";

/** What others know, read at the moment of a scrape. */
export interface GatewayFacts {
  readonly generation: number;
  readonly activeRequests: number;
  readonly listeners: readonly {
    readonly name: string;
    readonly openConnections: number;
    readonly tlsHandshakeFailures: number;
  }[];
  readonly upstreams: readonly {
    readonly name: string;
    /** Undefined: it has no breaker. */
    readonly breaker: "closed" | "open" | "half_open" | undefined;
    readonly failOpenPicks: number;
    readonly retries: number;
    readonly endpoints: readonly {
      readonly key: string;
      readonly isHealthy: boolean;
      /** By status class, `2xx` at 2; those without an answer at 0. */
      readonly attemptsByClass: readonly number[];
    }[];
  }[];
  readonly events: { readonly emitted: number; readonly dropped: number; readonly replayed: number };
  readonly webhooks: readonly { readonly kind: EventKind; readonly outcome: string; readonly count: number }[];
  readonly egressDenied: readonly { readonly purpose: string; readonly count: number }[];
  readonly quotas: readonly {
    readonly consumer: string;
    readonly budget: string;
    readonly used: number;
    readonly limit: number;
  }[];
}

/** The slice, with what others count in it. */
export interface Metrics extends GatewaySlice {
  /** A policy on trial would have refused. */
  dryRun(phase: DryRunPhase, route: string): void;
  quotaDenied(consumer: string, budget: string): void;
  /** Prometheus text, format 0.0.4. */
  text(facts: GatewayFacts): Promise<string>;
}

/** Counts what happens; who asks gets it as Prometheus text. */
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
    text: async (facts) =>
      await expose(
        [...trafficMetrics(traffic), ...countedMetrics(samplesOf), ...factMetrics(facts)],
        traffic.durations.values(),
      ),
  };
}

const counter = (name: string, help: string, labels: readonly string[], samples: Samples): MetricSamples => ({
  name,
  help,
  type: "counter",
  labels,
  samples,
});

const gauge = (name: string, help: string, labels: readonly string[], samples: Samples): MetricSamples => ({
  name,
  help,
  type: "gauge",
  labels,
  samples,
});

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
      "Requests refused because too many were under way",
      ["priority"],
      [...traffic.shed].map(([priority, count]) => [{ priority: String(priority) }, count]),
    ),
    counter(
      "gateway_deprecated_requests_total",
      "Requests of routes with a deprecation block, by who still sends them",
      ["route", "consumer"],
      [...traffic.deprecated.values()].map(({ route, consumer, count }) => [{ route, consumer }, count]),
    ),
  ];
}

function countedMetrics(samplesOf: (name: string) => Samples): MetricSamples[] {
  return [
    counter(
      "gateway_policy_dry_run_total",
      "Refusals that a dry run let pass",
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

const BREAKER_VALUES = { closed: 0, open: 1, half_open: 2 } as const;

function factMetrics(facts: GatewayFacts): MetricSamples[] {
  return [...listenerMetrics(facts), ...upstreamMetrics(facts), ...eventMetrics(facts), ...quotaMetrics(facts)];
}

function listenerMetrics({ listeners }: GatewayFacts): MetricSamples[] {
  return [
    gauge(
      "gateway_open_connections",
      "Connections of clients",
      ["listener"],
      listeners.map(({ name, openConnections }) => [{ listener: name }, openConnections]),
    ),
    counter(
      "gateway_tls_handshake_failures_total",
      "Connections that never became TLS",
      ["listener"],
      listeners.map(({ name, tlsHandshakeFailures }) => [{ listener: name }, tlsHandshakeFailures]),
    ),
  ];
}

function upstreamMetrics(facts: GatewayFacts): MetricSamples[] {
  const { upstreams } = facts;
  const endpoints = upstreams.flatMap(({ name, endpoints: list }) =>
    list.map((endpoint) => ({ labels: { upstream: name, endpoint: endpoint.key }, ...endpoint })),
  );
  return [
    gauge("active_requests", "Requests under way", [], [[{}, facts.activeRequests]]),
    gauge("config_generation", "Number of the running configuration", [], [[{}, facts.generation]]),
    gauge(
      "breaker_state",
      "0 closed, 1 open, 2 half-open",
      ["upstream"],
      upstreams.flatMap(({ name, breaker }) =>
        breaker === undefined ? [] : [[{ upstream: name }, BREAKER_VALUES[breaker]] as const],
      ),
    ),
    gauge(
      "endpoint_health",
      "1 in rotation, 0 ejected",
      ["upstream", "endpoint"],
      endpoints.map(({ labels, isHealthy }) => [labels, isHealthy ? 1 : 0]),
    ),
    counter(
      "upstream_attempts_total",
      "Attempts at endpoints",
      ["upstream", "endpoint", "status_class"],
      endpoints.flatMap(({ labels, attemptsByClass }) =>
        attemptsByClass.flatMap((count, of) =>
          count === 0 ? [] : [[{ ...labels, status_class: of === 0 ? "error" : `${of}xx` }, count] as const],
        ),
      ),
    ),
    counter(
      "retries_total",
      "Attempts after the first",
      ["upstream"],
      upstreams.map(({ name, retries }) => [{ upstream: name }, retries]),
    ),
    gauge(
      "upstream_fail_open_picks",
      "Picks that ignored health because no endpoint was in rotation",
      ["upstream"],
      upstreams.map(({ name, failOpenPicks }) => [{ upstream: name }, failOpenPicks]),
    ),
  ];
}

function eventMetrics({ events, webhooks, egressDenied }: GatewayFacts): MetricSamples[] {
  return [
    // Gauges by the specification, although they only grow.
    gauge("gateway_events_emitted_total", "Events emitted", [], [[{}, events.emitted]]),
    gauge("gateway_events_dropped_total", "Events dropped at their emission", [], [[{}, events.dropped]]),
    counter("gateway_events_replayed_total", "Events of earlier processes sent again", [], [[{}, events.replayed]]),
    counter(
      "gateway_webhook_events_total",
      "Webhook deliveries by outcome",
      ["kind", "outcome"],
      webhooks.map(({ kind, outcome, count }) => [{ kind, outcome }, count]),
    ),
    counter(
      "gateway_ssrf_denied_total",
      "Connections of the gateway itself that the egress filter refused",
      ["purpose"],
      egressDenied.map(({ purpose, count }) => [{ purpose }, count]),
    ),
  ];
}

function quotaMetrics({ quotas }: GatewayFacts): MetricSamples[] {
  return [
    gauge(
      "gateway_quota_used",
      "Units used in the running window",
      ["consumer", "budget"],
      quotas.map(({ consumer, budget, used }) => [{ consumer, budget }, used]),
    ),
    gauge(
      "gateway_quota_limit",
      "Size of the budget",
      ["consumer", "budget"],
      quotas.map(({ consumer, budget, limit }) => [{ consumer, budget }, limit]),
    ),
  ];
}
