import type { Metrics, metricsOperations } from "@headworks/capture-contract";
import type { Slice, SliceHost } from "#slice.ts";
import type { StorageStatus } from "#storage/capture-store.ts";
import { ExchangeCounts, type LatencyBucket } from "./exchange-counts.ts";
import { LoopMonitor, type LoopSample } from "./loop-monitor.ts";
import { createMetricsObserver } from "./metrics.observer.ts";
import { createMetricsOperations, currentMetrics } from "./metrics.operations.ts";

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
  const scrape = () =>
    prometheusText({
      metrics: currentMetrics(host, counts, startedMs),
      latency: { buckets: counts.cumulativeBuckets(), sumMs: counts.latencySumMs },
      storage: host.store.status(),
      loop: loop.sample(),
      residentBytes: process.memoryUsage.rss(),
    });
  return {
    name: "metrics",
    operations: createMetricsOperations(host, { counts, loop, scrape, startedMs }),
    observer: createMetricsObserver((exchange) => counts.add(exchange, clock.monotonic())),
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

/**
 * Written by hand: the library accepts no precomputed sums, and its own counting costs more than all other counts of a
 * request.
 */
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
