import { parseAddress } from "@headworks/host-patterns";
import type { RequestContext } from "#request/context.ts";
import type { Gate, Refusal, Verdict } from "#request/phases.ts";
import type { AuthorizationReports } from "./authorization-reports.ts";
import { objectionTo, type Objection } from "./decision.ts";
import type { RuleBlock, Subject } from "./rule-block.ts";

/** The blocks that may stand over requests of one route, the most specific first where several are in a list. */
export interface RouteRules {
  readonly ofConsumers: ReadonlyMap<string, RuleBlock>;
  /** Of the route and its service. */
  readonly ofRoute: readonly RuleBlock[];
  readonly ofListeners: ReadonlyMap<string, RuleBlock>;
  readonly ofGateway: RuleBlock | undefined;
}

const FORBIDDEN: Refusal = { code: "forbidden" };

/** Refuses requests of a route that the rules over it do not let pass. */
export class AuthorizationGate implements Gate {
  readonly #rules: RouteRules;
  readonly #unauthorized: Refusal;
  readonly #reports: AuthorizationReports;
  /** Blocks below the consumer's, by listener; the same for every request. */
  readonly #byListener: ReadonlyMap<string, readonly RuleBlock[]>;
  readonly #elsewhere: readonly RuleBlock[];

  constructor(rules: RouteRules, unauthorized: Refusal, reports: AuthorizationReports) {
    this.#rules = rules;
    this.#unauthorized = unauthorized;
    this.#reports = reports;
    const gateway = rules.ofGateway === undefined ? [] : [rules.ofGateway];
    this.#elsewhere = [...rules.ofRoute, ...gateway];
    this.#byListener = new Map(
      [...rules.ofListeners].map(([name, block]) => [name, [...rules.ofRoute, block, ...gateway]]),
    );
  }

  check(request: RequestContext): Verdict {
    const blocks = this.#blocksOver(request);
    if (blocks.length === 0) return undefined;
    const subject = subjectOf(request, blocks);
    const objection = objectionTo(subject, blocks, false);
    if (objection !== undefined) return this.#refuse(request, objection);
    if (blocks.some(({ isOnTrial }) => isOnTrial)) {
      const trial = objectionTo(subject, blocks, true);
      if (trial !== undefined) this.#reports.wouldRefuse(request, trial);
    }
    return undefined;
  }

  #blocksOver({ consumer, listener }: RequestContext): readonly RuleBlock[] {
    const shared = this.#byListener.get(listener.name) ?? this.#elsewhere;
    const own = consumer === undefined ? undefined : this.#rules.ofConsumers.get(consumer.name);
    return own === undefined ? shared : [own, ...shared];
  }

  #refuse(request: RequestContext, objection: Objection): Verdict {
    this.#reports.refused(request, objection);
    return objection.status === 401 ? this.#unauthorized : FORBIDDEN;
  }
}

function subjectOf(request: RequestContext, blocks: readonly RuleBlock[]): Subject {
  const needsAddress = blocks.some(({ asksForAddress }) => asksForAddress);
  return { consumer: request.consumer, address: needsAddress ? parseAddress(request.clientAddress) : undefined };
}
