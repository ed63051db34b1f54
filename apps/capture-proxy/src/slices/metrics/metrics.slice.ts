import { totalmem } from "node:os";
import { type EventLoopUtilization, monitorEventLoopDelay, performance } from "node:perf_hooks";
import type { DetailedHealth, Metrics, metricsOperations } from "@headworks/capture-contract";
import type { Handlers } from "@headworks/contract-kit";
import type { Clock, Slice, SliceHost } from "#slice.ts";
import type { StorageStatus } from "#storage/capture-store.ts";
import { createMetricsObserver, ExchangeCounts, type LatencyBucket } from "./metrics.observer.ts";

const LATENCY = "weir_request_duration_seconds";

const COUNTERS: readonly Row[] = [
  ["weir_received_bytes_total", "Bytes from clients", ({ metrics }) => metrics.bytes_received],
  ["weir_sent_bytes_total", "Bytes to clients", ({ metrics }) => metrics.bytes_sent],
  ["weir_tunnels_total", "Tunnels opened", ({ metrics }) => metrics.tunnels_total],
  ["weir_tls_handshakes_total", "TLS handshakes with clients", ({ metrics }) => metrics.tls_handshakes_total],
  [
    "weir_tls_handshakes_failed_total",
    "TLS handshakes that clients or this proxy refused",
    ({ metrics }) => metrics.tls_handshakes_failed,
  ],
  [
    "weir_bodies_not_stored_total",
    "Bodies not stored: storage fell behind, the disk refused them, or they are above a limit",
    ({ storage }) => storage.bodiesNotStored,
  ],
  ["weir_entries_lost_total", "Entries that could not be stored", ({ storage }) => storage.entriesLost],
  ["weir_entries_written_total", "Entries committed to the store", ({ storage }) => storage.writtenEntries],
];

const GAUGES: readonly Row[] = [
  ["weir_active_connections", "Client connections that are open", ({ metrics }) => metrics.active_connections],
  ["weir_active_requests", "Requests in flight", ({ metrics }) => metrics.active_exchanges],
  ["weir_active_tunnels", "Tunnels that are open", ({ metrics }) => metrics.active_tunnels],
  ["weir_uptime_seconds", "Time since start", ({ metrics }) => metrics.uptime_secs],
  ["weir_storage_up", "1 while the store works", ({ storage }) => (storage.ok ? 1 : 0)],
  ["weir_storage_entries", "Entries of the active session", ({ storage }) => storage.entryCount],
  ["weir_storage_size_bytes", "Database and body files on disk", ({ storage }) => storage.storeSizeBytes],
  ["weir_storage_backlog_bytes", "Bytes waiting to be written", ({ storage }) => storage.backlogBytes],
  ["weir_storage_backlog_entries", "Entries waiting to be written", ({ storage }) => storage.backlogEntries],
  [
    "weir_event_loop_delay_p99_seconds",
    "How late timers fire, 99th percentile of the last minute",
    ({ loop }) => loop.delayP99Ms / 1000,
  ],
  ["weir_event_loop_utilization", "Share of time the main thread works", ({ loop }) => loop.utilization],
  ["process_resident_memory_bytes", "Resident memory size in bytes", ({ residentBytes }) => residentBytes],
];

/** Health and metrics. */
export function createMetricsSlice(host: SliceHost): Slice<typeof metricsOperations> {
  const { clock } = host;
  const startedMs = clock.monotonic();
  const counts = new ExchangeCounts();
  const loop = new LoopMonitor(clock);
  const read = () => currentMetrics(host, counts, startedMs);
  const scrape = () =>
    prometheusText({
      metrics: read(),
      latency: { buckets: counts.cumulativeBuckets(), sumMs: counts.latencySumMs },
      storage: host.store.status(),
      loop: loop.sample(),
      residentBytes: process.memoryUsage.rss(),
    });
  return {
    name: "metrics",
    operations: createMetricsOperations(host, loop, read, scrape),
    observer: createMetricsObserver(counts, clock),
    task: { start: (signal) => loop.start(signal) },
  };
}

/** Values read at the time of a scrape. */
interface ScrapeFacts {
  readonly metrics: Metrics;
  readonly latency: { readonly buckets: readonly LatencyBucket[]; readonly sumMs: number };
  readonly storage: StorageStatus;
  readonly loop: LoopSample;
  readonly residentBytes: number;
}

/** Metrics in Prometheus text format, in base units. */
async function prometheusText(facts: ScrapeFacts): Promise<string> {
  const { metrics, latency } = facts;
  // Imported on the first scrape: the library has eighty files, and many instances are never scraped.
  const { Counter, Gauge, Registry } = await import("@prometheus-io/client");
  const registry = new Registry();
  const registers = [registry];
  const requests = new Counter({
    name: "weir_requests_total",
    help: "Finished requests",
    labelNames: ["result"],
    registers,
  });
  requests.inc({ result: "success" }, metrics.requests_success);
  requests.inc({ result: "failed" }, metrics.requests_failed);
  const hits = new Counter({
    name: "weir_intercept_hits_total",
    help: "Requests that a rule acted on",
    labelNames: ["rule"],
    registers,
  });
  for (const [rule, count] of Object.entries(metrics.intercept_hits)) hits.inc({ rule }, count);
  for (const [name, help, value] of COUNTERS) new Counter({ name, help, registers }).inc(value(facts));
  for (const [name, help, value] of GAUGES) new Gauge({ name, help, registers }).set(value(facts));
  return latencyText(latency) + (await registry.metrics());
}

/** Written by hand: the library accepts no precomputed sums, and its counting costs more. */
function latencyText({ buckets, sumMs }: ScrapeFacts["latency"]): string {
  const lines = buckets.map(({ le, count }) => `${LATENCY}_bucket{le="${le === null ? "+Inf" : le / 1000}"} ${count}`);
  return [
    `# HELP ${LATENCY} Time from the first byte of a request to the last byte of its response`,
    `# TYPE ${LATENCY} histogram`,
    ...lines,
    `${LATENCY}_sum ${sumMs / 1000}`,
    `${LATENCY}_count ${buckets.at(-1)?.count ?? 0}`,
    "",
  ].join("\n");
}

type Row = readonly [name: string, help: string, value: (facts: ScrapeFacts) => number];

function createMetricsOperations(
  host: SliceHost,
  loop: LoopMonitor,
  read: () => Metrics,
  scrape: () => Promise<string>,
): Handlers<typeof metricsOperations> {
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
function currentMetrics(host: Pick<SliceHost, "gauges" | "clock">, counts: ExchangeCounts, startedMs: number): Metrics {
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

/** Load of the main thread. */
interface LoopSample {
  /** Delay of timers. */
  readonly delayP50Ms: number;
  readonly delayP99Ms: number;
  /** Share of time spent working, 0 to 1. */
  readonly utilization: number;
}

const RESOLUTION_MS = 20;
const WINDOW_MS = 60_000;

/** Measures the event loop by minutes; a sample covers the current minute, or the last while it is young. */
class LoopMonitor {
  readonly #clock: Clock;
  readonly #histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  #begin: EventLoopUtilization = performance.eventLoopUtilization();
  #beganMs = 0;
  #last: LoopSample | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  start(signal: AbortSignal): void {
    this.#histogram.enable();
    this.#beganMs = this.#clock.monotonic();
    const stop = this.#clock.every(WINDOW_MS, () => this.#nextWindow());
    signal.addEventListener("abort", () => {
      stop();
      this.#histogram.disable();
    });
  }

  sample(): LoopSample {
    const isYoung = this.#clock.monotonic() - this.#beganMs < WINDOW_MS / 6;
    return isYoung && this.#last ? this.#last : this.#measure();
  }

  #nextWindow(): void {
    this.#last = this.#measure();
    this.#histogram.reset();
    this.#begin = performance.eventLoopUtilization();
    this.#beganMs = this.#clock.monotonic();
  }

  #measure(): LoopSample {
    return {
      delayP50Ms: this.#delayMs(50),
      delayP99Ms: this.#delayMs(99),
      utilization: Math.round(performance.eventLoopUtilization(this.#begin).utilization * 1000) / 1000,
    };
  }

  /**
   * The histogram measures intervals between timers, so an idle loop shows the timer resolution, which is subtracted.
   */
  #delayMs(percentile: number): number {
    if (this.#histogram.count === 0) return 0;
    return Math.max(0, Math.round((this.#histogram.percentile(percentile) / 1e6 - RESOLUTION_MS) * 100) / 100);
  }
}
