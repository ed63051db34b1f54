import type { Logger } from "pino";
import type { RequestContext } from "#request/context.ts";

export type CalloutOutcome = "allowed" | "denied" | "error_denied" | "error_allowed" | "dry_run_denied";

/** One series of `gateway_callouts_total`. */
export interface CalloutCount {
  readonly policy: string;
  readonly outcome: CalloutOutcome;
  readonly count: number;
}

/** Minimum interval of repeated log lines. */
const REPEAT_MS = 1000;

/** Counts and logs callout outcomes. */
export class CalloutReports {
  readonly #log: Logger;
  readonly #monotonic: () => number;
  readonly #onDryRun: (route: string) => void;
  readonly #counts = new Map<string, Map<CalloutOutcome, number>>();
  readonly #failures = new Map<string, { atMs: number; unreported: number }>();

  constructor(log: Logger, monotonic: () => number, onDryRun: (route: string) => void) {
    this.#log = log;
    this.#monotonic = monotonic;
    this.#onDryRun = onDryRun;
  }

  count(policy: string, outcome: CalloutOutcome): void {
    const counts = this.#counts.get(policy) ?? new Map<CalloutOutcome, number>();
    counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
    this.#counts.set(policy, counts);
  }

  list(): CalloutCount[] {
    return [...this.#counts].flatMap(([policy, counts]) =>
      Array.from(counts, ([outcome, count]) => ({ policy, outcome, count })),
    );
  }

  wouldDeny(request: RequestContext, policy: string, wouldBeStatus: 403 | 503): void {
    const route = request.route?.name ?? "unrouted";
    this.#onDryRun(route);
    this.#log.warn(
      {
        code: "policy_dry_run",
        phase: "callout",
        would_be_status: wouldBeStatus,
        route,
        consumer: request.consumer?.name ?? "anonymous",
        policy,
        request_id: request.requestId,
      },
      `Without dry_run, the callout of policy '${policy}' would have refused this request`,
    );
  }

  /** Logs at most once a second per policy, with the number of requests. */
  failed(request: RequestContext, policy: string, why: string, isAllowed: boolean): void {
    const failures = this.#failures.get(policy) ?? { atMs: Number.NEGATIVE_INFINITY, unreported: 0 };
    this.#failures.set(policy, failures);
    failures.unreported += 1;
    const nowMs = this.#monotonic();
    if (nowMs - failures.atMs < REPEAT_MS) return;
    this.#log.warn(
      { code: "callout_failed", policy, why, request_id: request.requestId, requests: failures.unreported },
      `The decision point of policy '${policy}' gave no decision: requests ${isAllowed ? "pass" : "are refused"}`,
    );
    failures.atMs = nowMs;
    failures.unreported = 0;
  }
}
