import type { Logger } from "pino";
import { dryRunReport, type DryRunReport, type RequestContext } from "#request/context.ts";
import type { Objection } from "./decision.ts";

export interface AuthorizationMetrics {
  /** A refusal ignored by a dry run; `gateway_policy_dry_run_total` with phase `authz`. */
  dryRun(route: string): void;
}

export class AuthorizationReports {
  readonly #log: Logger;
  readonly #dryRun: DryRunReport;

  constructor(log: Logger, metrics: AuthorizationMetrics) {
    this.#log = log;
    this.#dryRun = dryRunReport(log, "authz", (route) => metrics.dryRun(route));
  }

  refused(request: RequestContext, { status, block }: Objection): void {
    const labels = {
      status,
      level: block.level,
      route: request.route?.name ?? "unrouted",
      consumer: request.consumer?.name ?? "anonymous",
      request_id: request.requestId,
    };
    // The client only gets the status; the reason is logged for the operator.
    this.#log.debug({ code: "authorization_denied", ...labels }, "The rules do not let this request pass");
  }

  wouldRefuse(request: RequestContext, { status, block }: Objection): void {
    this.#dryRun(request, status, `the authorization of the ${block.level}`);
  }
}
