import assert from "node:assert/strict";
import { test } from "node:test";
import type { FinishedRequest } from "#request/context.ts";
import { createMetrics, type GatewayFacts } from "./metrics.slice.ts";

const NOTHING: GatewayFacts = {
  generation: 3,
  activeRequests: 2,
  listeners: [{ name: "l", openConnections: 3, tlsHandshakeFailures: 9, slowClients: { requests: 2, responses: 4 } }],
  bufferedBytes: 77,
  upstreams: [
    {
      name: "u",
      breaker: "half_open",
      failOpenPicks: 1,
      retries: 4,
      hedges: 6,
      queue: { saturated: 21, timedOut: 22, evicted: 23 },
      endpoints: [{ key: "h:1", isHealthy: false, attemptsByClass: [1, 0, 5, 0, 0, 2] }],
    },
  ],
  events: { emitted: 7, dropped: 1, replayed: 0 },
  webhooks: [{ kind: "breaker_opened", outcome: "failed", count: 2 }],
  egressDenied: [{ purpose: "webhook", count: 1 }],
  quotas: [{ consumer: 'a"b', budget: "daily", used: 5, limit: 10 }],
  cache: { entries: 2, bytes: 300, lookups: [{ route: "v1", outcome: "hit", count: 8 }] },
  rateLimits: { liveKeys: 11, evictions: 12 },
  admissionQueue: { admitted: 13, timeout: 14, queueFull: 15, depth: 16 },
  spans: { exported: 18, dropped: 19 },
  callouts: [{ policy: "p", outcome: "error_denied", count: 17 }],
};

const finished = (status: number, durationMs: number, more: object = {}): FinishedRequest =>
  ({
    request: { route: undefined, consumer: undefined, listener: { name: "public" }, ...more },
    status,
    origin: status < 400 ? "upstream" : "short-circuit",
    durationMs,
  }) as unknown as FinishedRequest;

test("a scrape shows the specification's metrics with their types, labels and values", async () => {
  const metrics = createMetrics();
  metrics.dryRun("quota", "r");
  metrics.quotaDenied("acme", "monthly");
  metrics.observer?.onFinished(finished(200, 3));
  metrics.observer?.onFinished(finished(404, 30_000));
  metrics.observer?.onFinished(finished(0, 1));
  const route = { name: "v1", priority: 5, document: { deprecation: { since: "x" } } };
  metrics.observer?.onFinished(finished(200, 20, { route, consumer: { name: "acme" }, wasRateLimited: true }));
  // Refused, so not counted as use of the old version.
  metrics.observer?.onFinished(finished(401, 1, { route }));
  const text = await metrics.text(NOTHING);
  assert.ok(!text.includes('deprecated_requests_total{route="v1",consumer="anonymous"}'));
  for (const line of [
    "# TYPE gateway_events_emitted_total gauge",
    "# TYPE gateway_events_dropped_total gauge",
    "# TYPE gateway_webhook_events_total counter",
    "# TYPE gateway_policy_dry_run_total counter",
    "gateway_events_emitted_total 7",
    "gateway_events_dropped_total 1",
    'gateway_webhook_events_total{kind="breaker_opened",outcome="failed"} 2',
    'gateway_policy_dry_run_total{phase="quota",route="r"} 1',
    'gateway_quota_denied_total{consumer="acme",budget="monthly"} 1',
    'gateway_deprecated_requests_total{route="v1",consumer="acme"} 1',
    'requests_total{route="unrouted",listener="public",status_class="2xx"} 1',
    'requests_total{route="unrouted",listener="public",status_class="none"} 1',
    'rate_limited_total{route="v1"} 1',
    'request_duration_seconds_bucket{route="unrouted",le="0.005"} 2',
    'request_duration_seconds_bucket{route="unrouted",le="10"} 2',
    'request_duration_seconds_bucket{route="unrouted",le="+Inf"} 3',
    'request_duration_seconds_count{route="unrouted"} 3',
    "active_requests 2",
    `gateway_open_connections{listener="l"} 3`,
    `gateway_tls_handshake_failures_total{listener="l"} 9`,
    "config_generation 3",
    'breaker_state{upstream="u"} 2',
    'endpoint_health{upstream="u",endpoint="h:1"} 0',
    'upstream_attempts_total{upstream="u",endpoint="h:1",status_class="error"} 1',
    'retries_total{upstream="u"} 4',
    'gateway_hedge_sent_total{upstream="u"} 6',
    'gateway_upstream_queue_refused_total{upstream="u",reason="queue_full"} 21',
    'gateway_upstream_queue_refused_total{upstream="u",reason="timeout"} 22',
    'gateway_upstream_queue_refused_total{upstream="u",reason="slow_client"} 23',
    'gateway_slow_clients_total{listener="l",body="request"} 2',
    'gateway_slow_clients_total{listener="l",body="response"} 4',
    "gateway_buffered_bytes 77",
    'gateway_cache_lookups_total{route="v1",outcome="hit"} 8',
    "gateway_cache_entries 2",
    "gateway_cache_bytes 300",
    "# TYPE gateway_rate_limiter_live_keys gauge",
    "gateway_rate_limiter_live_keys 11",
    "# TYPE gateway_rate_limiter_evictions_total gauge",
    "gateway_rate_limiter_evictions_total 12",
    'gateway_admission_queued_total{outcome="admitted"} 13',
    'gateway_admission_queued_total{outcome="timeout"} 14',
    'gateway_admission_queued_total{outcome="queue_full"} 15',
    "gateway_admission_queue_depth 16",
    'gateway_trace_spans_total{outcome="exported"} 18',
    'gateway_trace_spans_total{outcome="dropped"} 19',
    'gateway_callouts_total{policy="p",outcome="error_denied"} 17',
    String.raw`gateway_quota_used{consumer="a\"b",budget="daily"} 5`,
  ]) {
    assert.ok(text.split("\n").includes(line), `${line}\nin\n${text}`);
  }
});
