import type { Logger } from "pino";
import type { RequestContext } from "./context.ts";

/** Reports that a rule in dry run would have refused a request; `detail` names the rule and the measured value. */
export type DryRunReport = (request: RequestContext, wouldBeStatus: number, detail: string) => void;

/** Creates the report of one phase: a log line for each avoided refusal, and `count` for its metric. */
export function dryRunReport(log: Logger, phase: string, count: (route: string) => void): DryRunReport {
  return (request, wouldBeStatus, detail) => {
    const route = request.route?.name ?? "unrouted";
    count(route);
    log.warn(
      {
        code: "policy_dry_run",
        target: "gateway::policy",
        phase,
        would_be_status: wouldBeStatus,
        route,
        consumer: request.consumer?.name ?? "anonymous",
        request_id: request.requestId,
        detail,
      },
      "Without dry run, this request would have been refused",
    );
  };
}
