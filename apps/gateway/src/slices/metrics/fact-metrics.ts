import type { EventKind } from "@headworks/gateway-contract";
import { counter, gauge, type MetricSamples } from "./exposition.ts";

/** State of other components, read at scrape time. */
export interface GatewayFacts {
  readonly generation: number;
  readonly activeRequests: number;
  readonly listeners: readonly {
    readonly name: string;
    readonly openConnections: number;
    readonly tlsHandshakeFailures: number;
    readonly slowClients: { readonly requests: number; readonly responses: number };
  }[];
  /** Bytes of buffered bodies. */
  readonly bufferedBytes: number;
  readonly upstreams: readonly {
    readonly name: string;
    /** Undefined: no breaker configured. */
    readonly breaker: "closed" | "open" | "half_open" | undefined;
    readonly failOpenPicks: number;
    readonly retries: number;
    readonly hedges: number;
    readonly queue: { readonly saturated: number; readonly timedOut: number; readonly evicted: number };
    readonly endpoints: readonly {
      readonly key: string;
      readonly isHealthy: boolean;
      /** By status class, `2xx` at index 2; attempts without a response at 0. */
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
  readonly cache: {
    readonly entries: number;
    readonly bytes: number;
    readonly lookups: readonly { readonly route: string; readonly outcome: string; readonly count: number }[];
  };
  readonly rateLimits: { readonly liveKeys: number; readonly evictions: number };
  readonly admissionQueue: {
    readonly admitted: number;
    readonly timeout: number;
    readonly queueFull: number;
    readonly depth: number;
  };
  /** By outcome. */
  readonly spans: Readonly<Record<string, number>>;
  readonly callouts: readonly { readonly policy: string; readonly outcome: string; readonly count: number }[];
}

const BREAKER_VALUES = { closed: 0, open: 1, half_open: 2 } as const;

/** Metrics of component state. Labels are configuration names. */
export function factMetrics(facts: GatewayFacts): MetricSamples[] {
  return [
    ...listenerMetrics(facts),
    ...upstreamMetrics(facts),
    ...eventMetrics(facts),
    ...quotaMetrics(facts),
    ...cacheMetrics(facts),
    ...policyMetrics(facts),
    ...admissionMetrics(facts),
  ];
}

function listenerMetrics({ listeners, bufferedBytes }: GatewayFacts): MetricSamples[] {
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
    counter(
      "gateway_slow_clients_total",
      "Requests ended because their client was slower than the listener's least rate, by the body that was slow",
      ["listener", "body"],
      listeners.flatMap(({ name, slowClients }) => [
        [{ listener: name, body: "request" }, slowClients.requests],
        [{ listener: name, body: "response" }, slowClients.responses],
      ]),
    ),
    gauge("gateway_buffered_bytes", "Bytes of bodies that wait in memory", [], [[{}, bufferedBytes]]),
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
    counter(
      "gateway_hedge_sent_total",
      "Attempts beside one that takes long",
      ["upstream"],
      upstreams.map(({ name, hedges }) => [{ upstream: name }, hedges]),
    ),
    counter(
      "gateway_upstream_queue_refused_total",
      "Requests that got no connection to an endpoint, or lost theirs to others since their client was slow",
      ["upstream", "reason"],
      upstreams.flatMap(({ name, queue }) => [
        [{ upstream: name, reason: "queue_full" }, queue.saturated],
        [{ upstream: name, reason: "timeout" }, queue.timedOut],
        [{ upstream: name, reason: "slow_client" }, queue.evicted],
      ]),
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
    // Gauges by specification, although monotonic.
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

function cacheMetrics({ cache }: GatewayFacts): MetricSamples[] {
  return [
    counter(
      "gateway_cache_lookups_total",
      "Requests of routes with a cache, by what it had for them",
      ["route", "outcome"],
      cache.lookups.map(({ route, outcome, count }) => [{ route, outcome }, count]),
    ),
    gauge("gateway_cache_entries", "Answers that the cache holds", [], [[{}, cache.entries]]),
    gauge("gateway_cache_bytes", "Memory of the responses in the cache", [], [[{}, cache.bytes]]),
  ];
}

function policyMetrics({ rateLimits, callouts, spans }: GatewayFacts): MetricSamples[] {
  return [
    gauge("gateway_rate_limiter_live_keys", "Keys that rate limits remember", [], [[{}, rateLimits.liveKeys]]),
    gauge(
      "gateway_rate_limiter_evictions_total",
      "Keys that rate limits had to forget while they still counted",
      [],
      [[{}, rateLimits.evictions]],
    ),
    counter(
      "gateway_callouts_total",
      "Requests that a decision point was asked about, by what came of it",
      ["policy", "outcome"],
      callouts.map(({ policy, outcome, count }) => [{ policy, outcome }, count]),
    ),
    counter(
      "gateway_trace_spans_total",
      "Spans of traces, by what became of them",
      ["outcome"],
      Object.entries(spans).map(([outcome, count]) => [{ outcome }, count]),
    ),
  ];
}

function admissionMetrics({ admissionQueue: queue }: GatewayFacts): MetricSamples[] {
  return [
    counter(
      "gateway_admission_queued_total",
      "Requests that had to wait to be admitted, by how that ended",
      ["outcome"],
      [
        [{ outcome: "admitted" }, queue.admitted],
        [{ outcome: "timeout" }, queue.timeout],
        [{ outcome: "queue_full" }, queue.queueFull],
      ],
    ),
    gauge("gateway_admission_queue_depth", "Requests that wait to be admitted", [], [[{}, queue.depth]]),
  ];
}
