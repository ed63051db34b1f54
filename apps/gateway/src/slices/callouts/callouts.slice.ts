import type { Logger } from "pino";
import type { ConfigDocument } from "@headworks/gateway-contract";
import type { EgressDialer } from "#egress/egress-dialer.ts";
import { parseEgressUrl } from "#egress/egress-url.ts";
import { fieldNameIssue, fieldValueIssue } from "#egress/post.ts";
import { systemTimer, type Timer } from "#egress/timer.ts";
import type { CheckScope, Clock, GatewaySlice, IssueReport } from "#slice.ts";
import { CalloutGate } from "./callout-gate.ts";
import { type CalloutCount, CalloutReports } from "./callout-reports.ts";
import { type CalloutLevels, compileCallouts } from "./callouts.compile.ts";

/** Fields that callouts set themselves, besides those of every outgoing request. */
const OWN_FIELDS = new Set(["accept", "x-request-id"]);

export interface CalloutsHost {
  readonly dialer: EgressDialer;
  readonly clock: Clock;
  readonly log: Logger;
  /** Default: the system's timers. */
  readonly timer?: Timer;
  /** Counts a denial ignored by a dry run; `gateway_policy_dry_run_total` with phase `callout`. */
  readonly onDryRun?: (route: string) => void;
}

export interface Callouts extends GatewaySlice {
  counts(): readonly CalloutCount[];
}

/** Authorizes requests with external decision points such as Open Policy Agent. */
export function createCallouts(host: CalloutsHost): Callouts {
  const { dialer, clock, log, timer = systemTimer, onDryRun = () => undefined } = host;
  const reports = new CalloutReports(log, () => clock.monotonic(), onDryRun);
  let running: CalloutLevels | undefined;
  const retire = (levels: CalloutLevels | undefined): void => {
    for (const { point } of levels?.all ?? []) point.retire();
  };
  return {
    name: "callouts",
    check: checkCallouts,
    compile: (document, scope) => {
      const levels = compileCallouts(document, scope, { dialer, clock, timer });
      const hasOthers = levels.ofListeners.size > 0 || levels.ofConsumers.size > 0;
      return {
        gateFor: (route) => {
          const ofRoute = levels.ofRoute(route);
          return ofRoute.length === 0 && !hasOthers ? undefined : new CalloutGate(ofRoute, levels, reports);
        },
        published: () => {
          retire(running);
          running = levels;
        },
      };
    },
    counts: () => reports.list(),
    stop: async () => retire(running),
  };
}

function checkCallouts(document: ConfigDocument, report: IssueReport, scope: CheckScope): void {
  for (const [index, { callout }] of document.policies.entries()) {
    if (callout === undefined) continue;
    const fieldPath = ["policies", index, "callout"];
    const url = parseEgressUrl(callout.url);
    if ("issue" in url) report.error("bad_url", [...fieldPath, "url"], url.issue);
    const names = new Set<string>();
    for (const [name, text] of Object.entries(callout.headers ?? {})) {
      const field = [...fieldPath, "headers", name];
      const lower = name.toLowerCase();
      const own = OWN_FIELDS.has(lower) ? "This header is set by the gateway itself." : undefined;
      const nameIssue = fieldNameIssue(name) ?? own;
      if (nameIssue !== undefined) report.error("bad_header", field, nameIssue);
      if (names.has(lower)) report.error("bad_header", field, "The header is named twice, in different letter case.");
      names.add(lower);
      const value = scope.secret(text);
      const valueIssue = value === undefined ? undefined : fieldValueIssue(value.reveal());
      if (valueIssue !== undefined) report.error("bad_header", field, valueIssue);
    }
  }
}
