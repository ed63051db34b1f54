import type { EventKind } from "@headworks/gateway-contract";
import type { FinishedRequest, Observer } from "#request/context.ts";
import type { GatewaySlice } from "#slice.ts";

/** Policy phases with dry runs. */
type DryRunPhase = "route_limits" | "authz" | "rate_limit" | "load_shed" | "quota" | "callout";

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

/** Upper bounds of duration buckets in seconds. */
const DURATION_BOUNDS_S = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10] as const;

/** Requests of one route on one listener. */
interface RequestCounts {
  readonly route: string;
  readonly listener: string;
  /** By status class, `1xx` to `5xx` at 1 to 5; 0: the client disconnected before a response. */
  readonly byClass: number[];
}

interface DurationCounts {
  readonly route: string;
  /** Not cumulative; the last bucket counts values above all bounds. */
  readonly buckets: number[];
  sumS: number;
  readonly recent: MinuteCounts;
}

/** Requests for deprecated routes by consumer. */
interface DeprecatedCount {
  readonly route: string;
  readonly consumer: string;
  count: number;
}

/** Label of requests that match no route and of the gateway's own paths. */
const UNROUTED = "unrouted";

/** Counts finished requests cheaply; text is made on scrape. The configuration bounds the labels. */
class TrafficCounts implements Observer {
  readonly #startedMs = performance.now();
  readonly requests = new Map<string, RequestCounts>();
  readonly durations = new Map<string, DurationCounts>();
  readonly deprecated = new Map<string, DeprecatedCount>();
  readonly rateLimited = new Map<string, number>();
  readonly shed = new Map<number, number>();

  onFinished({ request, status, origin, durationMs }: FinishedRequest): void {
    const { route } = request;
    const name = route?.name ?? UNROUTED;
    const counts = this.#requestCounts(name, request.listener.name);
    const statusClass = Math.floor(status / 100);
    counts.byClass[statusClass] = (counts.byClass[statusClass] ?? 0) + 1;
    const ofRoute = this.#observeDuration(name, durationMs / 1000);
    ofRoute.recent.add(request.startedMs + durationMs);
    if (request.wasRateLimited) this.rateLimited.set(name, (this.rateLimited.get(name) ?? 0) + 1);
    if (request.wasShed) {
      const priority = request.consumer?.priority ?? route?.priority ?? 0;
      this.shed.set(priority, (this.shed.get(priority) ?? 0) + 1);
    }
    // Unauthenticated requests and preflights do not use the deprecated version.
    if (route?.document.deprecation !== undefined && origin !== "short-circuit") {
      this.#countDeprecated(name, request.consumer?.name ?? "anonymous");
    }
  }

  /** Recent traffic per route; unrouted requests excluded. */
  recent(): RecentTraffic {
    const nowMs = performance.now();
    const requests = Array.from(this.durations.values(), ({ route, recent }) => [route, recent.total(nowMs)] as const);
    return {
      spanMs: spanMs(this.#startedMs, nowMs),
      requests: requests.filter(([route, count]) => route !== UNROUTED && count > 0),
    };
  }

  #requestCounts(route: string, listener: string): RequestCounts {
    const key = `${listener}\n${route}`;
    let counts = this.requests.get(key);
    if (counts === undefined) this.requests.set(key, (counts = { route, listener, byClass: [0, 0, 0, 0, 0, 0] }));
    return counts;
  }

  #observeDuration(route: string, seconds: number): DurationCounts {
    let counts = this.durations.get(route);
    if (counts === undefined) {
      counts = { route, buckets: [...DURATION_BOUNDS_S.map(() => 0), 0], sumS: 0, recent: new MinuteCounts() };
      this.durations.set(route, counts);
    }
    let bucket = 0;
    while (bucket < DURATION_BOUNDS_S.length && seconds > (DURATION_BOUNDS_S[bucket] ?? 0)) bucket += 1;
    counts.buckets[bucket] = (counts.buckets[bucket] ?? 0) + 1;
    counts.sumS += seconds;
    return counts;
  }

  #countDeprecated(route: string, consumer: string): void {
    const key = `${route}\n${consumer}`;
    const known = this.deprecated.get(key);
    if (known === undefined) this.deprecated.set(key, { route, consumer, count: 1 });
    else known.count += 1;
  }
}

/** Retention of per-route counts. */
const MAX_MINUTES = 60;
const MINUTE_MS = 60_000;

export interface RecentTraffic {
  /** Covered time: an hour, or the uptime if shorter. */
  readonly spanMs: number;
  readonly requests: readonly (readonly [route: string, count: number])[];
}

/** Requests per minute for the last 60 minutes, by a monotonic clock in milliseconds. */
export class MinuteCounts {
  readonly #counts = new Uint32Array(MAX_MINUTES);
  #minute = 0;

  add(nowMs: number): void {
    const minute = Math.floor(nowMs / MINUTE_MS);
    if (minute !== this.#minute) this.#forgetUntil(minute);
    const at = this.#minute % MAX_MINUTES;
    this.#counts[at] = (this.#counts[at] ?? 0) + 1;
  }

  total(nowMs: number): number {
    this.#forgetUntil(Math.floor(nowMs / MINUTE_MS));
    return this.#counts.reduce((sum, count) => sum + count, 0);
  }

  /** Requests may be reported slightly out of order. */
  #forgetUntil(minute: number): void {
    for (let one = Math.max(this.#minute + 1, minute - MAX_MINUTES + 1); one <= minute; one += 1) {
      this.#counts[one % MAX_MINUTES] = 0;
    }
    this.#minute = Math.max(this.#minute, minute);
  }
}

/** The time covered by the counts of a process started at `startedMs`. */
export function spanMs(startedMs: number, nowMs: number): number {
  return Math.min(Math.max(0, nowMs - startedMs), MAX_MINUTES * MINUTE_MS);
}

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
  readonly spans: Readonly<Record<string, number>>;
  readonly callouts: readonly { readonly policy: string; readonly outcome: string; readonly count: number }[];
}

const BREAKER_VALUES = { closed: 0, open: 1, half_open: 2 } as const;

/** Metrics of component state. Labels are configuration names. */
function factMetrics(facts: GatewayFacts): MetricSamples[] {
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

type Samples = readonly (readonly [labels: Readonly<Record<string, string>>, value: number])[];

interface MetricSamples {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge";
  readonly labels: readonly string[];
  readonly samples: Samples;
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

/** Prometheus text format 0.0.4 of the metrics and the request duration histograms. */
async function expose(metrics: readonly MetricSamples[], durations: Iterable<DurationCounts>): Promise<string> {
  // Loaded on the first scrape: it has eighty files that CLI commands do not need.
  const { Counter, Gauge, Registry } = await import("@prometheus-io/client");
  const registry = new Registry();
  const registers = [registry];
  for (const { name, help, type, labels, samples } of metrics) {
    const facts = { name, help, labelNames: [...labels], registers };
    if (type === "counter") {
      const counter = new Counter(facts);
      for (const [of, value] of samples) counter.inc(of, value);
    } else {
      const gauge = new Gauge(facts);
      for (const [of, value] of samples) gauge.set(of, value);
    }
  }
  return `${await registry.metrics()}${durationText(durations)}`;
}

const DURATION = "request_duration_seconds";

/** Formatted here, since the library cannot import bucket counts. */
function durationText(durations: Iterable<DurationCounts>): string {
  let text = `# HELP ${DURATION} Time from the head of a request to the end of its response\n# TYPE ${DURATION} histogram\n`;
  for (const { route, buckets, sumS } of durations) {
    const label = `route="${route.replace(/[\\"\n]/g, (sign) => (sign === "\n" ? "\\n" : `\\${sign}`))}"`;
    let total = 0;
    for (const [at, count] of buckets.entries()) {
      total += count;
      text += `${DURATION}_bucket{${label},le="${DURATION_BOUNDS_S[at] ?? "+Inf"}"} ${total}\n`;
    }
    text += `${DURATION}_sum{${label}} ${sumS}\n${DURATION}_count{${label}} ${total}\n`;
  }
  return text;
}
