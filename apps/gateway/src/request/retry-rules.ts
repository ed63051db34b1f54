import type { Retries } from "@headworks/gateway-contract";
import { hasBody, isIdempotent, type Framing } from "@headworks/http1";

/** What may be done for one request when an attempt fails, or takes long. */
export interface RetryRules {
  /** Further attempts at most. */
  readonly attempts: number;
  /** So much of the body is kept to be sent again. */
  readonly maxKeptBytes: number;
  /** Whether attempts without an answer are made again. */
  readonly onTransport: boolean;
  /** Answers that are not passed on while another attempt may be made. */
  readonly statuses: readonly number[];
  readonly baseMs: number;
  readonly capMs: number;
  /** Attempts beside one that takes long, at most. */
  readonly hedges: number;
  readonly hedgeAfterMs: number;
}

const NO_RETRIES: RetryRules = Object.freeze({
  attempts: 0,
  maxKeptBytes: 0,
  onTransport: false,
  statuses: [],
  baseMs: 0,
  capMs: 0,
  hedges: 0,
  hedgeAfterMs: 0,
});

const RETRYABLE_STATUSES: readonly number[] = [502, 503, 504];

/** The rules for a request: none for methods that must not be repeated, upgrades, and bodies too large to keep. */
export function retryRules(
  retries: Retries | undefined,
  request: { readonly method: string; readonly framing: Framing; readonly upgrade: string | undefined },
): RetryRules {
  if (retries === undefined) return NO_RETRIES;
  const { attempts = 0, buffer_max_bytes: maxKeptBytes = 0, hedge } = retries;
  if (attempts === 0 && hedge === undefined) return NO_RETRIES;
  if (!isEligible(retries, request) || !fits(request.framing, maxKeptBytes)) return NO_RETRIES;
  return {
    attempts,
    maxKeptBytes,
    onTransport: retries.retry_transport ?? true,
    statuses: retries.retry_statuses ?? RETRYABLE_STATUSES,
    baseMs: retries.backoff_base_ms ?? 25,
    capMs: retries.backoff_cap_ms ?? 250,
    hedges: hedge === undefined ? 0 : (hedge.hedge_max ?? 1),
    hedgeAfterMs: hedge?.hedge_after_ms ?? 0,
  };
}

function isEligible(
  retries: Retries,
  { method, upgrade }: { readonly method: string; readonly upgrade: string | undefined },
): boolean {
  if (upgrade !== undefined) return false;
  return method === "POST" ? retries.retry_post === true : isIdempotent(method) && method !== "DELETE";
}

function fits(framing: Framing, maxBytes: number): boolean {
  if (!hasBody(framing)) return true;
  return framing.kind === "length" ? framing.lengthBytes <= maxBytes : maxBytes > 0;
}

/** The pause before attempt number `next` (the first retry is 2): anything up to a ceiling that doubles and is capped. */
export function backoffMs({ baseMs, capMs }: RetryRules, next: number, random: () => number = Math.random): number {
  return random() * Math.min(capMs, baseMs * 2 ** Math.max(0, next - 2));
}
