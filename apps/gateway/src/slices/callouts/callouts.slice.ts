import type { Logger } from "pino";
import type { EgressDialer } from "#egress/egress-dialer.ts";
import { systemTimer, type Timer } from "#egress/timer.ts";
import type { Clock, GatewaySlice } from "#slice.ts";
import { CalloutGate } from "./callout-gate.ts";
import { CalloutReports, type CalloutCount } from "./callout-reports.ts";
import { checkCallouts } from "./callouts.check.ts";
import { compileCallouts, type CalloutLevels } from "./callouts.compile.ts";

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
