export interface RetryRule {
  readonly maxAttempts: number;
  readonly backoffBaseMs: number;
  readonly backoffCapMs: number;
}

/** Status and Retry-After of a response, or no response. */
export type AttemptResult =
  | { readonly kind: "response"; readonly status: number; readonly retryAfter: string | undefined }
  | { readonly kind: "no-answer"; readonly isFinal: boolean };

export type NextStep =
  | { readonly step: "delivered" }
  | { readonly step: "failed"; readonly reason: "answer_not_retried" | "attempts_spent" | "time_spent" | "not_allowed" }
  | { readonly step: "retry"; readonly waitMs: number };

const RETRIED_STATUSES = new Set([429, 502, 503, 504]);

/**
 * Delivery rules 2 to 5 for attempt number `attempt`, from 1, with `leftMs` of the total time left. A delay that would
 * use up the remaining time fails at once.
 */
export function nextStep(result: AttemptResult, attempt: number, rule: RetryRule, leftMs: number): NextStep {
  if (result.kind === "response") {
    if (result.status >= 200 && result.status < 300) return { step: "delivered" };
    if (!RETRIED_STATUSES.has(result.status)) return { step: "failed", reason: "answer_not_retried" };
  } else if (result.isFinal) {
    return { step: "failed", reason: "not_allowed" };
  }
  if (attempt >= rule.maxAttempts) return { step: "failed", reason: "attempts_spent" };
  const requestedMs = result.kind === "response" ? retryAfterMs(result.retryAfter) : undefined;
  const waitMs = requestedMs ?? backoffMs(attempt, rule);
  return waitMs >= leftMs ? { step: "failed", reason: "time_spent" } : { step: "retry", waitMs };
}

/** Delay after attempt number `attempt`: the base, doubled per attempt, up to the cap. */
export function backoffMs(attempt: number, rule: RetryRule): number {
  return Math.min(rule.backoffCapMs, rule.backoffBaseMs * 2 ** (attempt - 1));
}

/** Retry-After in seconds; undefined for other forms, dates included. */
export function retryAfterMs(value: string | undefined): number | undefined {
  return value !== undefined && /^[0-9]+$/.test(value) ? Number(value) * 1000 : undefined;
}
