// Tested by ../../../test/authorization.test.ts
import type { Logger } from "pino";
import type { RequestContext } from "#request/context.ts";
import type { Objection } from "./decision.ts";

/** What is counted of authorization. */
export interface AuthorizationMetrics {
  /** A refusal that a dry run let pass; `gateway_policy_dry_run_total` with phase `authz`. */
  dryRun(route: string): void;
}

/** Tells logs and metrics what authorization did. */
export class AuthorizationReports {
  readonly #log: Logger;
  readonly #metrics: AuthorizationMetrics;

  constructor(log: Logger, metrics: AuthorizationMetrics) {
    this.#log = log;
    this.#metrics = metrics;
  }

  refused(request: RequestContext, { status, block }: Objection): void {
    // The client is told no more than the status; who looks for the reason finds it here.
    this.#log.debug({ code: "authorization_denied", status, level: block.level, ...labelsOf(request) }, "forbidden");
  }

  wouldRefuse(request: RequestContext, { status, block }: Objection): void {
    const labels = labelsOf(request);
    this.#metrics.dryRun(labels.route);
    this.#log.warn(
      { code: "policy_dry_run", phase: "authz", would_be_status: status, level: block.level, ...labels },
      `Without dry_run, the authorization of the ${block.level} would have refused this request`,
    );
  }
}

function labelsOf(request: RequestContext): { route: string; consumer: string; request_id: string } {
  return {
    route: request.route?.name ?? "unrouted",
    consumer: request.consumer?.name ?? "anonymous",
    request_id: request.requestId,
  };
}
