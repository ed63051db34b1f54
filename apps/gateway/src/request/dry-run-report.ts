import type { Logger } from "pino";
import type { RequestContext } from "./context.ts";

/** Tells that a rule on trial would have refused a request; `detail` names the rule and what it measured. */
export type DryRunReport = (request: RequestContext, wouldBeStatus: number, detail: string) => void;

/** Makes the report of one phase: a line of the log for each refusal that did not happen, and `count` for its metric. */
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
