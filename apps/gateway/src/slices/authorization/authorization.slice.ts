import type { Logger } from "pino";
import type { Authorization, ConfigDocument } from "@headworks/gateway-contract";
import { parseAddress } from "@headworks/host-patterns";
import {
  challengesOf,
  dryRunReport,
  type DryRunReport,
  type Gate,
  type Refusal,
  type RequestContext,
  type Verdict,
} from "#request/context.ts";
import type { CompiledSlice, GatewaySlice, IssueReport } from "#slice.ts";
import { isEverything } from "./address-set.ts";
import { type Objection, objectionTo } from "./decision.ts";
import { type Level, RuleBlock, type Subject } from "./rule-block.ts";

const FORBIDDEN: Refusal = { code: "forbidden" };

/** Enforces the rules of all levels on requests of a route. */
class AuthorizationGate implements Gate {
  readonly #rules: RouteRules;
  readonly #unauthorized: Refusal;
  readonly #reports: AuthorizationReports;
  /** Blocks below the consumer's by listener; equal for all requests. */
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
    if (blocks.some(({ isDryRun }) => isDryRun)) {
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

interface AuthorizationHost {
  readonly log: Logger;
  readonly metrics: AuthorizationMetrics;
}

/** Access control by rules at five levels. Routes without rules get no gate. */
export function createAuthorization({ log, metrics }: AuthorizationHost): GatewaySlice {
  const reports = new AuthorizationReports(log, metrics);
  return {
    name: "authorization",
    check: checkAuthorization,
    compile: (document) => compile(document, reports),
  };
}

function compile(document: ConfigDocument, reports: AuthorizationReports): CompiledSlice {
  const ofConsumers = blocksOf("consumer", document.consumers);
  const ofServices = blocksOf("service", document.services);
  const ofListeners = blocksOf("listener", document.listeners);
  const ofGateway = blockOf("gateway", document.gateway.authorization);
  const unauthorized: Refusal = { code: "unauthorized", fields: [...challengesOf(document)] };
  const standsEverywhere = ofConsumers.size + ofListeners.size > 0 || ofGateway !== undefined;
  return {
    gateFor: (route) => {
      const own = blockOf("route", route.authorization);
      const ofService = route.service === undefined ? undefined : ofServices.get(route.service);
      const ofRoute = [own, ofService].filter((block) => block !== undefined);
      if (ofRoute.length === 0 && !standsEverywhere) return undefined;
      return new AuthorizationGate({ ofConsumers, ofRoute, ofListeners, ofGateway }, unauthorized, reports);
    },
  };
}

function blockOf(level: Level, document: Authorization | undefined): RuleBlock | undefined {
  return document === undefined ? undefined : new RuleBlock(level, document);
}

function blocksOf(
  level: Level,
  entities: readonly { readonly name: string; readonly authorization?: Authorization }[],
): ReadonlyMap<string, RuleBlock> {
  return new Map(
    entities.flatMap(({ name, authorization }) => {
      const block = blockOf(level, authorization);
      return block === undefined ? [] : [[name, block] as const];
    }),
  );
}

/** Blocks that may apply to requests of a route; lists are most specific first. */
interface RouteRules {
  readonly ofConsumers: ReadonlyMap<string, RuleBlock>;
  /** Of the route and its service. */
  readonly ofRoute: readonly RuleBlock[];
  readonly ofListeners: ReadonlyMap<string, RuleBlock>;
  readonly ofGateway: RuleBlock | undefined;
}

function subjectOf(request: RequestContext, blocks: readonly RuleBlock[]): Subject {
  const needsAddress = blocks.some(({ asksForAddress }) => asksForAddress);
  return { consumer: request.consumer, address: needsAddress ? parseAddress(request.clientAddress) : undefined };
}

type FieldPath = readonly (string | number)[];

/** Rejects empty blocks and address rules that admit everyone. */
function checkAuthorization(document: ConfigDocument, report: IssueReport): void {
  checkBlock(document.gateway.authorization, ["gateway", "authorization"], report);
  for (const section of ["listeners", "services", "routes", "consumers"] as const) {
    for (const [at, { authorization }] of document[section].entries()) {
      checkBlock(authorization, [section, at, "authorization"], report);
    }
  }
}

function checkBlock(block: Authorization | undefined, fieldPath: FieldPath, report: IssueReport): void {
  if (block === undefined) return;
  if (!hasRule(block)) {
    const message = "This authorization has no rules and no effect; add one, or remove it";
    report.error("required", fieldPath, message);
  }
  for (const [at, network] of (block.ip_acl?.allow ?? []).entries()) {
    if (!isEverything(network)) continue;
    const message = `"${network}" allows every address; remove ip_acl, or use "default: allow"`;
    report.error("bad_cidr", [...fieldPath, "ip_acl", "allow", at], message);
  }
}

function hasRule(block: Authorization): boolean {
  const { ip_acl: acl = {} } = block;
  const lists = [
    block.allowed_consumers,
    block.denied_consumers,
    block.allowed_groups,
    block.denied_groups,
    block.required_scopes,
    acl.allow,
    acl.deny,
  ];
  if (lists.some((list) => list !== undefined && list.length > 0)) return true;
  return Object.keys(block.required_claims ?? {}).length > 0 || acl.default !== undefined;
}

interface AuthorizationMetrics {
  /** A refusal ignored by a dry run; `gateway_policy_dry_run_total` with phase `authz`. */
  dryRun(route: string): void;
}

class AuthorizationReports {
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
