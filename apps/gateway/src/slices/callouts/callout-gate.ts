import { fieldValues } from "@headworks/http1";
import type { ConsumerIdentity, Gate, RequestContext, Verdict } from "#request/context.ts";
import type { CalloutReports } from "./callout-reports.ts";
import type { CalloutLevels, CompiledCallout } from "./callouts.compile.ts";
import type { CalloutDecision } from "./decision.ts";

/** Fields shown to a decision point; none carries credentials. */
const SHOWN_FIELDS = ["accept", "accept-language", "content-length", "content-type", "origin", "user-agent"] as const;

/** Spoofable unless set by a trusted proxy. */
const FIELDS_OF_TRUSTED_PROXIES = ["x-forwarded-host", "x-forwarded-proto"] as const;

/** Calls the decision points of all levels from gateway to consumer, each policy once, until the first denial. */
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

  #judge(
    request: RequestContext,
    { policy, passesOnError, isDryRun }: CompiledCallout,
    decision: CalloutDecision,
  ): Verdict {
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

/** Input of a decision. */
interface CalloutInput {
  readonly method: string;
  readonly host: string | null;
  readonly path: string;
  /** Names only, as sent: values are often credentials. */
  readonly query_names: readonly string[];
  readonly route: string | null;
  readonly listener: string;
  readonly client_address: string;
  readonly consumer: {
    readonly name: string;
    readonly groups: readonly string[];
    /** The credential type, never its value. */
    readonly credential: string;
    /** Of a verified token; only with `jwt`. */
    readonly claims?: Readonly<Record<string, unknown>>;
  } | null;
  /** Lower-case names; repeated fields are joined. */
  readonly headers: Readonly<Record<string, string>>;
}

/** The input for a request. Equal facts serialize to equal text, which is the cache key. */
export function calloutInput(request: RequestContext): CalloutInput {
  const headers: Record<string, string> = {};
  const isTrusted = request.generation.trustedProxies.includes(request.peer.address);
  for (const name of isTrusted ? [...SHOWN_FIELDS, ...FIELDS_OF_TRUSTED_PROXIES] : SHOWN_FIELDS) {
    const values = fieldValues(request.fields, name);
    if (values.length > 0) headers[name] = values.join(", ");
  }
  const { consumer } = request;
  return {
    method: request.method,
    host: request.authority ?? null,
    path: request.path,
    query_names: queryNames(request.query),
    route: request.route?.name ?? null,
    listener: request.listener.name,
    client_address: request.clientAddress,
    consumer: consumer === undefined ? null : consumerFacts(consumer),
    headers,
  };
}

function consumerFacts({ name, groups, credential, claims }: ConsumerIdentity): NonNullable<CalloutInput["consumer"]> {
  return claims === undefined ? { name, groups, credential } : { name, groups, credential, claims };
}

function queryNames(query: string | undefined): string[] {
  if (query === undefined || query === "") return [];
  const names = query.split("&").map((pair) => pair.split("=", 1)[0] ?? "");
  return names.filter((name) => name !== "");
}
