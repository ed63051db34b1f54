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
      "Open client connections",
      ["listener"],
      listeners.map(({ name, openConnections }) => [{ listener: name }, openConnections]),
    ),
    counter(
      "gateway_tls_handshake_failures_total",
      "Failed TLS handshakes",
      ["listener"],
      listeners.map(({ name, tlsHandshakeFailures }) => [{ listener: name }, tlsHandshakeFailures]),
    ),
    counter(
      "gateway_slow_clients_total",
      "Requests ended because the client was slower than the listener's minimum rate, by the slow body",
      ["listener", "body"],
      listeners.flatMap(({ name, slowClients }) => [
        [{ listener: name, body: "request" }, slowClients.requests],
        [{ listener: name, body: "response" }, slowClients.responses],
      ]),
    ),
    gauge("gateway_buffered_bytes", "Bytes of bodies buffered in memory", [], [[{}, bufferedBytes]]),
  ];
}

function upstreamMetrics(facts: GatewayFacts): MetricSamples[] {
  const { upstreams } = facts;
  const endpoints = upstreams.flatMap(({ name, endpoints: list }) =>
    list.map((endpoint) => ({ labels: { upstream: name, endpoint: endpoint.key }, ...endpoint })),
  );
  return [
    gauge("active_requests", "Requests in progress", [], [[{}, facts.activeRequests]]),
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
      "Upstream attempts by endpoint",
      ["upstream", "endpoint", "status_class"],
      endpoints.flatMap(({ labels, attemptsByClass }) =>
        attemptsByClass.flatMap((count, of) =>
          count === 0 ? [] : [[{ ...labels, status_class: of === 0 ? "error" : `${of}xx` }, count] as const],
        ),
      ),
    ),
    counter(
      "retries_total",
      "Retries",
      ["upstream"],
      upstreams.map(({ name, retries }) => [{ upstream: name }, retries]),
    ),
    counter(
      "gateway_hedge_sent_total",
      "Hedged attempts",
      ["upstream"],
      upstreams.map(({ name, hedges }) => [{ upstream: name }, hedges]),
    ),
    counter(
      "gateway_upstream_queue_refused_total",
      "Requests without a connection to an endpoint, by reason",
      ["upstream", "reason"],
      upstreams.flatMap(({ name, queue }) => [
        [{ upstream: name, reason: "queue_full" }, queue.saturated],
        [{ upstream: name, reason: "timeout" }, queue.timedOut],
        [{ upstream: name, reason: "slow_client" }, queue.evicted],
      ]),
    ),
    gauge(
      "upstream_fail_open_picks",
      "Endpoint selections that ignored health because no endpoint was in rotation",
      ["upstream"],
      upstreams.map(({ name, failOpenPicks }) => [{ upstream: name }, failOpenPicks]),
    ),
  ];
}

function eventMetrics({ events, webhooks, egressDenied }: GatewayFacts): MetricSamples[] {
  return [
    // Gauges by specification, although monotonic.
    gauge("gateway_events_emitted_total", "Events emitted", [], [[{}, events.emitted]]),
    gauge("gateway_events_dropped_total", "Events dropped at emission", [], [[{}, events.dropped]]),
    counter(
      "gateway_events_replayed_total",
      "Events of earlier processes, delivered after a restart",
      [],
      [[{}, events.replayed]],
    ),
    counter(
      "gateway_webhook_events_total",
      "Webhook deliveries by outcome",
      ["kind", "outcome"],
      webhooks.map(({ kind, outcome, count }) => [{ kind, outcome }, count]),
    ),
    counter(
      "gateway_ssrf_denied_total",
      "Outgoing connections refused by the egress filter",
      ["purpose"],
      egressDenied.map(({ purpose, count }) => [{ purpose }, count]),
    ),
  ];
}

function quotaMetrics({ quotas }: GatewayFacts): MetricSamples[] {
  return [
    gauge(
      "gateway_quota_used",
      "Units used in the current window",
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
      "Cache lookups by outcome",
      ["route", "outcome"],
      cache.lookups.map(({ route, outcome, count }) => [{ route, outcome }, count]),
    ),
    gauge("gateway_cache_entries", "Cached responses", [], [[{}, cache.entries]]),
    gauge("gateway_cache_bytes", "Memory of cached responses", [], [[{}, cache.bytes]]),
  ];
}

function policyMetrics({ rateLimits, callouts, spans }: GatewayFacts): MetricSamples[] {
  return [
    gauge("gateway_rate_limiter_live_keys", "Keys tracked by rate limits", [], [[{}, rateLimits.liveKeys]]),
    gauge(
      "gateway_rate_limiter_evictions_total",
      "Keys evicted from rate limits while still active",
      [],
      [[{}, rateLimits.evictions]],
    ),
    counter(
      "gateway_callouts_total",
      "Requests decided by a policy engine, by outcome",
      ["policy", "outcome"],
      callouts.map(({ policy, outcome, count }) => [{ policy, outcome }, count]),
    ),
    counter(
      "gateway_trace_spans_total",
      "Trace spans by outcome",
      ["outcome"],
      Object.entries(spans).map(([outcome, count]) => [{ outcome }, count]),
    ),
  ];
}

function admissionMetrics({ admissionQueue: queue }: GatewayFacts): MetricSamples[] {
  return [
    counter(
      "gateway_admission_queued_total",
      "Requests queued for admission, by outcome",
      ["outcome"],
      [
        [{ outcome: "admitted" }, queue.admitted],
        [{ outcome: "timeout" }, queue.timeout],
        [{ outcome: "queue_full" }, queue.queueFull],
      ],
    ),
    gauge("gateway_admission_queue_depth", "Requests waiting for admission", [], [[{}, queue.depth]]),
  ];
}
