import type { Logger } from "pino";
import type { RequestContext } from "#request/context.ts";
import type { Clock } from "#slice.ts";

/** Minimum interval of repeated log lines. */
const REPEAT_MS = 1000;

/** Logs why credentials cannot be verified. */
export class AuthenticationReports {
  readonly #log: Logger;
  readonly #clock: Clock;
  readonly #told = new Map<string, { atMs: number; requests: number }>();

  constructor(log: Logger, clock: Clock) {
    this.#log = log;
    this.#clock = clock;
  }

  /** Logs at most once a second per reason, with the number of requests. */
  unavailable(request: RequestContext, why: string): void {
    const told = this.#told.get(why) ?? { atMs: Number.NEGATIVE_INFINITY, requests: 0 };
    this.#told.set(why, told);
    told.requests += 1;
    const nowMs = this.#clock.monotonic();
    if (nowMs - told.atMs < REPEAT_MS) return;
    const labels = { request_id: request.requestId, route: request.route?.name, requests: told.requests };
    this.#log.error({ code: "authentication_unavailable", ...labels }, why);
    told.atMs = nowMs;
    told.requests = 0;
  }
}
