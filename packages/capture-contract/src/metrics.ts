import { defineOperations, media, nullable, strictObject, Type } from "@headworks/contract-kit";
import type { Static } from "typebox";

export const DetailedHealth = strictObject(
  {
    healthy: Type.Boolean(),
    version: Type.String(),
    uptime_secs: Type.Integer(),
    memory_usage_mb: Type.Number(),
    active_connections: Type.Integer(),
    tier: Type.String(),
    auth_mode: Type.String(),
    auth_required: Type.Boolean(),
    license: strictObject({
      licensed: Type.Boolean(),
      plan: nullable(Type.String()),
      seats_used: Type.Integer(),
      seats_total: nullable(Type.Integer()),
      expires_at: nullable(Type.String()),
    }),
    dependencies: Type.Record(Type.String(), Type.String()),
    details: Type.Record(Type.String(), Type.String()),
    proxy_address: Type.String(),
    api_address: Type.String(),
  },
  { $id: "DetailedHealth" },
);
export type DetailedHealth = Static<typeof DetailedHealth>;

export const Metrics = strictObject(
  {
    requests_total: Type.Integer(),
    requests_success: Type.Integer(),
    requests_successful: Type.Integer(),
    requests_failed: Type.Integer(),
    avg_latency_ms: Type.Number(),
    requests_per_second: Type.Number({ description: "Over the last 10 seconds" }),
    requests_per_sec: Type.Number(),
    bytes_received: Type.Integer({ description: "From clients" }),
    bytes_sent: Type.Integer({ description: "To clients" }),
    active_connections: Type.Integer(),
    active_exchanges: Type.Integer(),
    active_tunnels: Type.Integer(),
    tunnels_total: Type.Integer(),
    tls_handshakes_total: Type.Integer(),
    tls_handshakes_failed: Type.Integer(),
    intercept_hits: strictObject({
      block_list: Type.Integer(),
      mocks: Type.Integer(),
      rewrites: Type.Integer(),
      breakpoints: Type.Integer(),
      throttle: Type.Integer(),
    }),
    latency_buckets_ms: Type.Array(strictObject({ le: nullable(Type.Number()), count: Type.Integer() }), {
      description: "Cumulative, as in Prometheus; `le` is null for infinity",
    }),
    uptime_secs: Type.Integer(),
  },
  { $id: "Metrics" },
);
export type Metrics = Static<typeof Metrics>;

export const metricsOperations = defineOperations({
  getHealth: {
    method: "GET",
    path: "/health",
    summary: "Liveness: `OK`, or 503 if the store does not respond",
    access: "public",
    responses: { 200: media("text/plain", "OK"), 503: media("text/plain", "What is wrong") },
    aliases: ["/health"],
    // `weir metrics health` says it with the reasons, and `weir doctor` fails by it.
    expose: { cli: false },
  },
  getDetailedHealth: {
    method: "GET",
    path: "/health/detailed",
    summary: "Version, uptime, memory, connections, dependencies",
    access: "public",
    responses: { 200: DetailedHealth },
    aliases: ["/health/detailed"],
  },
  getMetrics: {
    method: "GET",
    path: "/metrics",
    summary: "Counts, latency and rates",
    access: "config:read",
    responses: { 200: Metrics },
  },
  getPrometheusMetrics: {
    method: "GET",
    path: "/metrics/prometheus",
    summary: "The same in Prometheus text format",
    access: "config:read",
    responses: { 200: media("text/plain; version=0.0.4", "Prometheus text") },
    aliases: ["/metrics"],
  },
  getPerformance: {
    method: "GET",
    path: "/performance",
    summary: "Metrics, memory and connection pool",
    access: "config:read",
    responses: {
      200: strictObject({
        metrics: Metrics,
        memory: strictObject({
          used_bytes: Type.Integer(),
          total_bytes: Type.Integer(),
          usage_percent: Type.Number(),
        }),
        pool: strictObject({
          total_connections: Type.Integer(),
          idle_connections: Type.Integer(),
          active_connections: Type.Integer(),
          pending_requests: Type.Integer(),
        }),
        event_loop: strictObject({
          delay_p50_ms: Type.Number(),
          delay_p99_ms: Type.Number(),
          utilization: Type.Number(),
        }),
        storage: strictObject({
          backlog_bytes: Type.Integer(),
          backlog_entries: Type.Integer(),
          written_entries: Type.Integer(),
          last_batch_ms: Type.Number(),
        }),
      }),
    },
  },
});
