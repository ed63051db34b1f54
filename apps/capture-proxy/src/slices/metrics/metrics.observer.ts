import type { Metrics, RuleKind } from "@headworks/capture-contract";
import { type ExchangeView, isClosedByClient } from "#exchange/exchange.ts";
import type { Observer } from "#exchange/phases.ts";
import type { Clock } from "#slice.ts";

type HitName = keyof Metrics["intercept_hits"];

const HIT_NAMES: Readonly<Partial<Record<RuleKind, HitName>>> = {
  block: "block_list",
  mock: "mocks",
  rewrite: "rewrites",
  breakpoint: "breakpoints",
  throttle: "throttle",
};
const NO_HITS: readonly HitName[] = [];
const BLOCKED: readonly HitName[] = ["block_list"];

/** Counts every finished exchange, recorded or not. */
export function createMetricsObserver(counts: ExchangeCounts, clock: Pick<Clock, "monotonic">): Observer {
  return {
    name: "metrics",
    onFinished: (exchange) => counts.add(countsOf(exchange), clock.monotonic()),
  };
}

function countsOf(exchange: ExchangeView): FinishedExchange {
  const { request, response, requestBody, responseBody, moments } = exchange;
  return {
    hasFailed: exchange.state.step === "failed" && !isClosedByClient(exchange),
    isTunnel: exchange.passthrough,
    latencyMs: Math.max(0, moments.ended - moments.started),
    bytesFromClient: requestBody.sizeBytes + headBytes(request.fields, request.method.length + request.path.length),
    bytesToClient: responseBody.sizeBytes + (response ? headBytes(response.fields, response.reason.length + 3) : 0),
    touchedBy: touchedBy(exchange),
  };
}

/** A tunnel refused at CONNECT has no request that could carry a trace. */
function touchedBy({ trace, state }: ExchangeView): readonly HitName[] {
  if (trace !== undefined) return [...new Set(trace.flatMap(({ kind }) => HIT_NAMES[kind] ?? []))];
  return state.step === "failed" && state.failure.code === "BLOCKED" ? BLOCKED : NO_HITS;
}

/** Bytes of a head in HTTP/1.1: `name: value` and a line end each. */
function headBytes(fields: readonly string[], startLineTexts: number): number {
  let sizeBytes = startLineTexts + 12 + 2;
  for (const text of fields) sizeBytes += text.length + 2;
  return sizeBytes;
}

/** Upper bounds of the latency buckets in milliseconds; the last bucket is unbounded. */
export const LATENCY_BOUNDS_MS: readonly number[] = [1, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000];

/** Window of the request rate. */
const RATE_SECONDS = 10;

/** Requests with a latency of at most `le` milliseconds; null is unbounded. */
export interface LatencyBucket {
  readonly le: number | null;
  readonly count: number;
}

export interface FinishedExchange {
  readonly hasFailed: boolean;
  readonly isTunnel: boolean;
  readonly latencyMs: number;
  readonly bytesFromClient: number;
  readonly bytesToClient: number;
  /** Slices that acted on the exchange. */
  readonly touchedBy: readonly (keyof Metrics["intercept_hits"])[];
}

/** Sums since start. Tunnels count as bytes only: their duration is no latency. */
export class ExchangeCounts {
  requests = 0;
  failed = 0;
  latencySumMs = 0;
  bytesFromClients = 0;
  bytesToClients = 0;
  readonly hits: Record<keyof Metrics["intercept_hits"], number> = {
    block_list: 0,
    mocks: 0,
    rewrites: 0,
    breakpoints: 0,
    throttle: 0,
  };
  readonly #buckets: number[] = Array.from({ length: LATENCY_BOUNDS_MS.length + 1 }, () => 0);
  /** Requests of each recent second, in a ring buffer. */
  readonly #perSecond: number[] = Array.from({ length: RATE_SECONDS + 1 }, () => 0);
  #second = 0;

  add(exchange: FinishedExchange, monotonicMs: number): void {
    this.bytesFromClients += exchange.bytesFromClient;
    this.bytesToClients += exchange.bytesToClient;
    for (const slice of exchange.touchedBy) this.hits[slice] += 1;
    if (exchange.isTunnel) return;
    this.requests += 1;
    if (exchange.hasFailed) this.failed += 1;
    this.latencySumMs += exchange.latencyMs;
    const bucket = bucketOf(exchange.latencyMs);
    this.#buckets[bucket] = (this.#buckets[bucket] ?? 0) + 1;
    this.#moveTo(monotonicMs);
    const slot = this.#second % this.#perSecond.length;
    this.#perSecond[slot] = (this.#perSecond[slot] ?? 0) + 1;
  }

  /** Mean over all requests since start; 0 without requests. */
  get averageLatencyMs(): number {
    return this.requests === 0 ? 0 : this.latencySumMs / this.requests;
  }

  /** Cumulative counts per bound; the last, unbounded one counts all requests. */
  cumulativeBuckets(): LatencyBucket[] {
    let count = 0;
    return this.#buckets.map((own, index) => {
      count += own;
      return { le: LATENCY_BOUNDS_MS[index] ?? null, count };
    });
  }

  /** Requests per second over the last ten whole seconds. */
  rate(monotonicMs: number): number {
    this.#moveTo(monotonicMs);
    const running = this.#second % this.#perSecond.length;
    const sum = this.#perSecond.reduce((total, count, slot) => (slot === running ? total : total + count), 0);
    return sum / RATE_SECONDS;
  }

  #moveTo(monotonicMs: number): void {
    const second = Math.floor(monotonicMs / 1000);
    const steps = Math.min(second - this.#second, this.#perSecond.length);
    for (let step = 1; step <= steps; step += 1) this.#perSecond[(this.#second + step) % this.#perSecond.length] = 0;
    // After a long pause every slot is cleared.
    if (second > this.#second) this.#second = second;
  }
}

function bucketOf(latencyMs: number): number {
  const index = LATENCY_BOUNDS_MS.findIndex((bound) => latencyMs <= bound);
  return index === -1 ? LATENCY_BOUNDS_MS.length : index;
}
