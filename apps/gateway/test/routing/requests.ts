import type { Match, Route } from "@headworks/gateway-contract";
import { NO_BODY, type RawFields } from "@headworks/http1";
import { RequestContext } from "#request/context.ts";
import type { CompiledRoute, Generation } from "#request/generation.ts";
import { TrustedProxies } from "#request/trusted-proxies.ts";

/** What a test says of a request; everything else is plain. */
export interface RequestParts {
  readonly method?: string;
  readonly target?: string;
  readonly host?: string;
  readonly fields?: RawFields;
}

/** A request as a listener would hand it over. */
export function requestFor(parts: RequestParts = {}): RequestContext {
  const generation: Generation = {
    number: 1,
    contentHash: 0,
    document: {
      gateway: {},
      listeners: [],
      upstreams: [],
      services: [],
      routes: [],
      consumers: [],
      policies: [],
      webhooks: [],
      admin: undefined,
      analytics: undefined,
    },
    routes: { resolve: () => false },
    routeList: [],
    trustedProxies: new TrustedProxies([]),
    unroutedGates: new Map(),
  };
  return new RequestContext({
    generation,
    listener: { name: "public", isSecure: false, port: 8080 },
    peer: { address: "127.0.0.1", port: 40_000 },
    startedMs: 0,
    version: "1.1",
    method: parts.method ?? "GET",
    target: parts.target ?? "/",
    authority: parts.host,
    fields: parts.fields ?? [],
    framing: NO_BODY,
    upgrade: undefined,
  });
}

/** A route that proxies to nowhere, with nothing but what it matches. */
export function compiledRoute(name: string, match: Match, index: number): CompiledRoute {
  const document: Route = { name, service: "s", match, action: { type: "proxy" } };
  return {
    name,
    document,
    index,
    gates: [],
    decorators: [],
    bodyFilters: [],
    answerStore: undefined,
    action: { kind: "answer", answer: () => ({ status: 200, fields: [], body: "" }) },
    priority: 5,
  };
}
