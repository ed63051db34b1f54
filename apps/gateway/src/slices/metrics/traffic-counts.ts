import type { FinishedRequest, Observer } from "#request/phases.ts";
import { MinuteCounts, spanMs, type RecentTraffic } from "./recent-traffic.ts";

/** Upper bounds of duration buckets in seconds. */
export const DURATION_BOUNDS_S = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10] as const;

/** Requests of one route on one listener. */
export interface RequestCounts {
  readonly route: string;
  readonly listener: string;
  /** By status class, `1xx` to `5xx` at 1 to 5; 0: the client disconnected before a response. */
  readonly byClass: number[];
}

export interface DurationCounts {
  readonly route: string;
  /** Not cumulative; the last bucket counts values above all bounds. */
  readonly buckets: number[];
  sumS: number;
  readonly recent: MinuteCounts;
}

/** Requests for deprecated routes by consumer. */
export interface DeprecatedCount {
  readonly route: string;
  readonly consumer: string;
  count: number;
}

/** Label of requests that match no route and of the gateway's own paths. */
const UNROUTED = "unrouted";

/**
 * Counts finished requests with a few additions each; text is generated on scrape. Label cardinality is bounded by the
 * configuration.
 */
export class TrafficCounts implements Observer {
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
