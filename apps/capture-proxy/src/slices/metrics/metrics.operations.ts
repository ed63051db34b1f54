import { totalmem } from "node:os";
import type { DetailedHealth, Metrics, metricsOperations } from "@headworks/capture-contract";
import type { Handlers } from "@headworks/contract-kit";
import type { SliceHost } from "#slice.ts";
import type { ExchangeCounts } from "./exchange-counts.ts";
import type { LoopMonitor } from "./loop-monitor.ts";

export interface MetricsOperationsParts {
  readonly counts: ExchangeCounts;
  readonly loop: LoopMonitor;
  readonly scrape: () => Promise<string>;
  /** Monotonic time of the start. */
  readonly startedMs: number;
}

export function createMetricsOperations(
  host: SliceHost,
  parts: MetricsOperationsParts,
): Handlers<typeof metricsOperations> {
  const { counts, loop, scrape, startedMs } = parts;
  const read = () => currentMetrics(host, counts, startedMs);
  return {
    getHealth: () =>
      host.store.status().ok ? { status: 200, body: "OK" } : { status: 503, body: "Database not ready" },
    getDetailedHealth: () => ({ status: 200, body: detailedHealth(host, read().uptime_secs) }),
    getMetrics: () => ({ status: 200, body: read() }),
    getPrometheusMetrics: async () => ({ status: 200, body: await scrape() }),
    getPerformance: () => {
      const { gauges } = host;
      const storage = host.store.status();
      const { delayP50Ms, delayP99Ms, utilization } = loop.sample();
      const usedBytes = process.memoryUsage.rss();
      return {
        status: 200,
        body: {
          metrics: read(),
          memory: {
            used_bytes: usedBytes,
            total_bytes: totalmem(),
            usage_percent: rounded((usedBytes / totalmem()) * 100),
          },
          pool: {
            total_connections: gauges.upstreamConnections,
            idle_connections: gauges.idleUpstreamConnections,
            active_connections: gauges.upstreamConnections - gauges.idleUpstreamConnections,
            pending_requests: gauges.pendingRequests,
          },
          event_loop: { delay_p50_ms: delayP50Ms, delay_p99_ms: delayP99Ms, utilization },
          storage: {
            backlog_bytes: storage.backlogBytes,
            backlog_entries: storage.backlogEntries,
            written_entries: storage.writtenEntries,
            last_batch_ms: storage.lastBatchMs,
          },
        },
      };
    },
  };
}

/** Current values under every supported spelling. */
export function currentMetrics(
  host: Pick<SliceHost, "gauges" | "clock">,
  counts: ExchangeCounts,
  startedMs: number,
): Metrics {
  const { gauges, clock } = host;
  const monotonicMs = clock.monotonic();
  const success = counts.requests - counts.failed;
  const rate = counts.rate(monotonicMs);
  return {
    requests_total: counts.requests,
    requests_success: success,
    requests_successful: success,
    requests_failed: counts.failed,
    avg_latency_ms: rounded(counts.averageLatencyMs),
    requests_per_second: rate,
    requests_per_sec: rate,
    bytes_received: counts.bytesFromClients,
    bytes_sent: counts.bytesToClients,
    active_connections: gauges.activeConnections,
    active_exchanges: gauges.activeExchanges,
    active_tunnels: gauges.activeTunnels,
    tunnels_total: gauges.tunnelsTotal,
    tls_handshakes_total: gauges.tlsHandshakesTotal,
    tls_handshakes_failed: gauges.tlsHandshakesFailed,
    intercept_hits: { ...counts.hits },
    latency_buckets_ms: counts.cumulativeBuckets(),
    uptime_secs: Math.floor((monotonicMs - startedMs) / 1000),
  };
}

/** Public, so it names no paths and no traffic. */
function detailedHealth(host: SliceHost, uptimeSecs: number): DetailedHealth {
  const storage = host.store.status();
  const addresses = host.addresses();
  return {
    healthy: storage.ok,
    version: host.version,
    uptime_secs: uptimeSecs,
    memory_usage_mb: rounded(process.memoryUsage.rss() / 1_048_576),
    active_connections: host.gauges.activeConnections,
    tier: "community",
    auth_mode: "disabled",
    auth_required: false,
    license: { licensed: false, plan: null, seats_used: 0, seats_total: null, expires_at: null },
    dependencies: { database: storage.ok ? "ok" : "failing" },
    details: { node: process.version, platform: process.platform },
    proxy_address: addresses.proxy,
    api_address: addresses.api,
  };
}

function rounded(value: number): number {
  return Math.round(value * 100) / 100;
}
