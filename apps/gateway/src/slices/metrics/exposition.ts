import { DURATION_BOUNDS_S, type DurationCounts } from "./traffic-counts.ts";

export type Samples = readonly (readonly [labels: Readonly<Record<string, string>>, value: number])[];

export interface MetricSamples {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge";
  readonly labels: readonly string[];
  readonly samples: Samples;
}

export const counter = (name: string, help: string, labels: readonly string[], samples: Samples): MetricSamples => ({
  name,
  help,
  type: "counter",
  labels,
  samples,
});

export const gauge = (name: string, help: string, labels: readonly string[], samples: Samples): MetricSamples => ({
  name,
  help,
  type: "gauge",
  labels,
  samples,
});

/** Prometheus text format 0.0.4 of the metrics and the request duration histograms. */
export async function expose(metrics: readonly MetricSamples[], durations: Iterable<DurationCounts>): Promise<string> {
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
