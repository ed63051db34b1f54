import { DURATION_BOUNDS_S, type DurationCounts } from "./traffic-counts.ts";

/** Values of one metric by their labels. */
export type Samples = readonly (readonly [labels: Readonly<Record<string, string>>, value: number])[];

/** One metric as it is at the moment. */
export interface MetricSamples {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge";
  readonly labels: readonly string[];
  readonly samples: Samples;
}

/** A metric that only grows. */
export const counter = (name: string, help: string, labels: readonly string[], samples: Samples): MetricSamples => ({
  name,
  help,
  type: "counter",
  labels,
  samples,
});

/** A metric that goes up and down. */
export const gauge = (name: string, help: string, labels: readonly string[], samples: Samples): MetricSamples => ({
  name,
  help,
  type: "gauge",
  labels,
  samples,
});

/** The Prometheus text (format 0.0.4) of these metrics and of the durations of requests. */
export async function expose(metrics: readonly MetricSamples[], durations: Iterable<DurationCounts>): Promise<string> {
  // Loaded with the first scrape: it comes in eighty files, and commands never need them.
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

/** Histograms are kept as plain counts, which the library has no way to take. */
function durationText(durations: Iterable<DurationCounts>): string {
  let text = `# HELP ${DURATION} Time from the head of a request to the end of its answer\n# TYPE ${DURATION} histogram\n`;
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
