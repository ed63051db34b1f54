import type { Callout, ConfigDocument, Policy, Route } from "@headworks/gateway-contract";
import { EgressDialer } from "#egress/egress-dialer.ts";
import type { RequestContext, Verdict } from "#request/context.ts";
import { createCallouts, type Callouts } from "#slices/callouts/callouts.slice.ts";
import type { CompiledSlice } from "#slice.ts";
import { documentWith, publish, realClock, type Secrets } from "../egress/documents.ts";
import { logLines, type LogLines } from "../egress/log-lines.ts";
import { compiledRoute, requestFor, type RequestParts } from "../routing/requests.ts";

/** The callout part of a gateway with real connections. */
export interface CalloutRig {
  readonly callouts: Callouts;
  readonly dialer: EgressDialer;
  readonly logged: LogLines;
  readonly dryRuns: string[];
  publish(document: ConfigDocument, secrets?: Secrets): CompiledSlice;
  [Symbol.asyncDispose](): Promise<void>;
}

export function calloutRig(): CalloutRig {
  const logged = logLines();
  const dialer = new EgressDialer({ log: logged.log });
  const dryRuns: string[] = [];
  const onDryRun = (route: string): void => void dryRuns.push(route);
  const callouts = createCallouts({ dialer, clock: realClock, log: logged.log, onDryRun });
  return {
    callouts,
    dialer,
    logged,
    dryRuns,
    publish: (document, secrets) => publish(callouts, document, logged.log, secrets),
    [Symbol.asyncDispose]: async () => await callouts.stop?.(),
  };
}

export const ROUTE: Route = {
  name: "a",
  service: "s",
  match: { path: { type: "prefix", value: "/" } },
  action: { type: "proxy" },
};

/** A document whose one route names one policy with this callout. */
export const documentWithCallout = (callout: Callout, more: Partial<Policy> = {}): ConfigDocument =>
  documentWith({
    routes: [{ ...ROUTE, policies: ["decide"] }],
    policies: [{ name: "decide", callout, ...more }],
  });

/** A request of the route `a`. */
export function requestOf(parts: RequestParts & { readonly consumer?: string } = {}): RequestContext {
  const request = requestFor({ host: "api.test", ...parts });
  request.requestId = "req-1";
  request.route = compiledRoute(ROUTE, 0);
  if (parts.consumer !== undefined) {
    request.consumer = { name: parts.consumer, groups: ["gold"], priority: undefined, credential: "api_key" };
  }
  return request;
}

/** Sends a request through the gate of a route, as the pipeline does; `no gate` when the route has none. */
export async function ask(
  compiled: CompiledSlice,
  document: ConfigDocument,
  request: RequestContext,
): Promise<Verdict | "no gate"> {
  const [route] = document.routes;
  const gate = route && compiled.gateFor?.(route);
  return gate === undefined ? "no gate" : await gate.check(request);
}

/** `pass`, or the code of the refusal. */
export function codeOf(verdict: Verdict | "no gate"): string {
  if (verdict === undefined) return "pass";
  if (verdict === "no gate") return verdict;
  return "code" in verdict ? verdict.code : `answer ${verdict.status}`;
}
