import type { Logger } from "pino";
import type { RequestContext } from "#request/context.ts";
import type { Clock } from "#slice.ts";

/** A line that many requests cause is written this often. */
const REPEAT_MS = 1000;

/** Tells the log why credentials cannot be checked. */
export class AuthenticationReports {
  readonly #log: Logger;
  readonly #clock: Clock;
  readonly #told = new Map<string, { atMs: number; requests: number }>();

  constructor(log: Logger, clock: Clock) {
    this.#log = log;
    this.#clock = clock;
  }

  /** At most once a second for each reason; the line says how many requests it stands for. */
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
