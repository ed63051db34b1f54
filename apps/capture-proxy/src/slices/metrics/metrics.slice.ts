import type { metricsOperations } from "@headworks/capture-contract";
import type { Slice, SliceHost } from "#slice.ts";
import { ExchangeCounts } from "./exchange-counts.ts";
import { LoopMonitor } from "./loop-monitor.ts";
import { createMetricsObserver } from "./metrics.observer.ts";
import { createMetricsOperations, currentMetrics } from "./metrics.operations.ts";
import { prometheusText } from "./prometheus.ts";

/** Health, counts and rates of everything that passes through. */
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
    worker: { start: (signal) => loop.start(signal) },
  };
}
