import type { Logger } from "pino";
import type { RequestContext } from "#request/context.ts";
import type { BudgetName } from "#storage/state-store.ts";

export interface QuotaMetrics {
  /** A refusal ignored by a dry run; `gateway_policy_dry_run_total` with phase `quota`. */
  dryRun(route: string): void;
  /** A refusal; `gateway_quota_denied_total`. */
  denied(consumer: string, budget: BudgetName): void;
}

/** Minimum interval of repeated log lines. */
const REPEAT_MS = 1000;

export class QuotaReports {
  readonly #log: Logger;
  readonly #metrics: QuotaMetrics;
  readonly #monotonic: () => number;
  readonly #loggedUnsynced = new Set<string>();
  #loggedMissing = false;
  #failedAtMs = Number.NEGATIVE_INFINITY;
  #failures = 0;

  constructor(log: Logger, metrics: QuotaMetrics, monotonic: () => number) {
    this.#log = log;
    this.#metrics = metrics;
    this.#monotonic = monotonic;
  }

  wouldDeny(request: RequestContext, consumer: string, budget: BudgetName): void {
    const route = request.route?.name ?? "unrouted";
    this.#metrics.dryRun(route);
    this.#log.warn(
      {
        code: "policy_dry_run",
        phase: "quota",
        would_be_status: 429,
        route,
        consumer,
        budget,
        request_id: request.requestId,
      },
      `Without dry_run, the ${budget} budget of consumer '${consumer}' would have refused this request`,
    );
  }

  denied(consumer: string, budget: BudgetName): void {
    this.#metrics.denied(consumer, budget);
  }

  /** Logs once per consumer. */
  unsynced(consumer: string): void {
    if (this.#loggedUnsynced.has(consumer)) return;
    this.#loggedUnsynced.add(consumer);
    this.#log.warn(
      { code: "quota_consumer_unsynced", consumer },
      `Consumer '${consumer}' has no row in the state store: its requests pass and are not counted`,
    );
  }

  /** Logs at most once a second, with the number of requests. */
  storeFailed(request: RequestContext, consumer: string, error: string): void {
    this.#failures += 1;
    const nowMs = this.#monotonic();
    if (nowMs - this.#failedAtMs < REPEAT_MS) return;
    this.#failedAtMs = nowMs;
    this.#log.error(
      { code: "quota_store_unavailable", consumer, request_id: request.requestId, requests: this.#failures },
      error,
    );
    this.#failures = 0;
  }

  /** Logs once. */
  storeMissing(): void {
    if (this.#loggedMissing) return;
    this.#loggedMissing = true;
    this.#log.warn(
      { code: "quota_store_missing" },
      "Quotas are configured and not enforced: they need a state store, set GATEWAY_STATE_DB to a file",
    );
  }
}
