import type { RequestContext } from "#request/context.ts";
import type { Gate, Verdict } from "#request/phases.ts";
import { calloutInput } from "./callout-input.ts";
import type { CalloutReports } from "./callout-reports.ts";
import type { CalloutLevels, CompiledCallout } from "./callouts.compile.ts";
import type { Decision } from "./decision.ts";

/**
 * Asks every decision point that stands over a request, from the gateway's level to the consumer's, each policy once;
 * the first refusal ends it.
 */
export class CalloutGate implements Gate {
  readonly #ofRoute: readonly CompiledCallout[];
  readonly #levels: CalloutLevels;
  readonly #reports: CalloutReports;

  constructor(ofRoute: readonly CompiledCallout[], levels: CalloutLevels, reports: CalloutReports) {
    this.#ofRoute = ofRoute;
    this.#levels = levels;
    this.#reports = reports;
  }

  check(request: RequestContext): Verdict | Promise<Verdict> {
    const callouts = this.#calloutsOf(request);
    return callouts.length === 0 ? undefined : this.#askAll(request, callouts);
  }

  #calloutsOf(request: RequestContext): readonly CompiledCallout[] {
    const ofListener = this.#levels.ofListeners.get(request.listener.name);
    const ofConsumer = request.consumer && this.#levels.ofConsumers.get(request.consumer.name);
    if (ofListener === undefined && ofConsumer === undefined) return this.#ofRoute;
    return [...new Set([...this.#ofRoute, ...(ofListener ?? []), ...(ofConsumer ?? [])])];
  }

  async #askAll(request: RequestContext, callouts: readonly CompiledCallout[]): Promise<Verdict> {
    const input = calloutInput(request);
    for (const callout of callouts) {
      const verdict = this.#judge(request, callout, await callout.point.decide(input, request.requestId));
      if (verdict !== undefined) return verdict;
    }
    return undefined;
  }

  #judge(request: RequestContext, { policy, passesOnError, isDryRun }: CompiledCallout, decision: Decision): Verdict {
    if (decision.kind === "error") {
      this.#reports.failed(request, policy, decision.why, passesOnError || isDryRun);
      if (passesOnError) {
        this.#reports.count(policy, "error_allowed");
        return undefined;
      }
    }
    if (decision.kind === "allow") {
      this.#reports.count(policy, "allowed");
      return undefined;
    }
    const isDenied = decision.kind === "deny";
    if (isDryRun) {
      this.#reports.wouldDeny(request, policy, isDenied ? 403 : 503);
      this.#reports.count(policy, "dry_run_denied");
      return undefined;
    }
    this.#reports.count(policy, isDenied ? "denied" : "error_denied");
    return { code: isDenied ? "policy_denied" : "policy_unavailable" };
  }
}
