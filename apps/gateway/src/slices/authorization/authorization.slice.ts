import type { Authorization, ConfigDocument } from "@headworks/gateway-contract";
import type { Logger } from "pino";
import { challengesOf } from "#request/challenges.ts";
import type { Refusal } from "#request/phases.ts";
import type { CompiledSlice, GatewaySlice } from "#slice.ts";
import { AuthorizationGate } from "./authorization-gate.ts";
import { AuthorizationReports, type AuthorizationMetrics } from "./authorization-reports.ts";
import { checkAuthorization } from "./authorization.check.ts";
import { RuleBlock, type Level } from "./rule-block.ts";

export type { AuthorizationMetrics } from "./authorization-reports.ts";

/** What authorization needs of the gateway. */
export interface AuthorizationHost {
  readonly log: Logger;
  readonly metrics: AuthorizationMetrics;
}

/** Decides who may pass, by rules at five levels. A route that no rule stands over has no gate. */
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
