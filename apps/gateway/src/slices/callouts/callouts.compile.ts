import type { Callout, ConfigDocument, Policy, Route } from "@headworks/gateway-contract";
import { wireText } from "@headworks/http1";
import { parseEgressUrl } from "#egress/egress-url.ts";
import type { CompileScope } from "#slice.ts";
import { DecisionPoint, type DecisionPointTools } from "./decision-point.ts";

const DEFAULT_TIMEOUT_MS = 500;

/** A policy's callout, ready to ask. */
export interface CompiledCallout {
  readonly policy: string;
  readonly point: DecisionPoint;
  /** Whether a request passes when there is no decision. */
  readonly passesOnError: boolean;
  readonly isDryRun: boolean;
}

/** Which callouts stand at which level of the document. */
export interface CalloutLevels {
  /** Of the gateway, the route's service and the route: the same for every request of a route. */
  ofRoute(route: Route): readonly CompiledCallout[];
  readonly ofListeners: ReadonlyMap<string, readonly CompiledCallout[]>;
  readonly ofConsumers: ReadonlyMap<string, readonly CompiledCallout[]>;
  /** Every callout that somebody names. */
  readonly all: readonly CompiledCallout[];
}

/** Compiles the callouts that are named somewhere, each once. */
export function compileCallouts(
  document: ConfigDocument,
  scope: CompileScope,
  tools: DecisionPointTools,
): CalloutLevels {
  const policies = new Map(document.policies.map((policy) => [policy.name, policy]));
  const compiled = new Map<string, CompiledCallout | undefined>();
  const named = (names: readonly string[] | undefined): CompiledCallout[] =>
    (names ?? []).flatMap((name) => {
      if (!compiled.has(name)) compiled.set(name, compileCallout(policies.get(name), scope, tools));
      return compiled.get(name) ?? [];
    });
  const mapOf = (entities: readonly { name: string; policies?: string[] }[]): Map<string, CompiledCallout[]> =>
    new Map(
      entities.map((entity) => [entity.name, named(entity.policies)] as const).filter(([, list]) => list.length > 0),
    );
  const global = named(document.gateway.global_policies);
  const services = mapOf(document.services);
  const routes = mapOf(document.routes);
  const ofListeners = mapOf(document.listeners);
  const ofConsumers = mapOf(document.consumers);
  const ofService = (name: string | undefined): readonly CompiledCallout[] =>
    name === undefined ? [] : (services.get(name) ?? []);
  return {
    ofRoute: (route) => [...new Set([...global, ...ofService(route.service), ...(routes.get(route.name) ?? [])])],
    ofListeners,
    ofConsumers,
    all: [...compiled.values()].filter((callout) => callout !== undefined),
  };
}

function compileCallout(
  policy: Policy | undefined,
  scope: CompileScope,
  tools: DecisionPointTools,
): CompiledCallout | undefined {
  if (policy?.callout === undefined) return undefined;
  const { callout } = policy;
  const url = parseEgressUrl(callout.url);
  if ("issue" in url) return undefined;
  const parts = {
    type: callout.type,
    url,
    fields: fieldsOf(callout, scope),
    timeoutMs: callout.timeout_ms ?? DEFAULT_TIMEOUT_MS,
    cacheTtlMs: callout.cache_ttl_ms ?? 0,
  };
  return {
    policy: policy.name,
    point: new DecisionPoint(parts, tools),
    passesOnError: callout.on_error === "allow",
    isDryRun: policy.dry_run === true,
  };
}

function fieldsOf(callout: Callout, scope: CompileScope): string[] {
  const fields = ["Content-Type", "application/json", "Accept", "application/json", "User-Agent", "gateway-callout"];
  for (const [name, text] of Object.entries(callout.headers ?? {})) {
    fields.push(name, wireText(scope.secret(text).reveal()));
  }
  return fields;
}
