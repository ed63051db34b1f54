import { Secret } from "@headworks/contract-kit";
import type { ConfigDocument, Match, Route } from "@headworks/gateway-contract";
import { NO_BODY, type RawFields } from "@headworks/http1";
import { pino } from "pino";
import {
  type CompiledRoute,
  type Decorator,
  type Generation,
  RequestContext,
  type ResponseOrigin,
} from "#request/context.ts";
import { TrustedProxies } from "#request/forwarding-rules.ts";
import type { GatewaySlice, IssueReport } from "#slice.ts";

/** What a test says of a request; everything else is plain. */
export interface RequestParts {
  readonly method?: string;
  readonly target?: string;
  readonly host?: string;
  readonly listener?: string;
  readonly isSecure?: boolean;
  readonly fields?: RawFields;
  readonly trusted?: readonly string[];
}

/** A document with these routes and nothing else. */
export function documentOf(routes: readonly Route[]): ConfigDocument {
  return {
    gateway: {},
    listeners: [],
    upstreams: [],
    services: [],
    routes,
    consumers: [],
    policies: [],
    webhooks: [],
    admin: undefined,
    analytics: undefined,
  };
}

/** A request as a listener would hand it over. */
export function requestFor(parts: RequestParts = {}): RequestContext {
  const generation: Generation = {
    number: 1,
    contentHash: 0,
    document: documentOf([]),
    routes: { resolve: () => false },
    routeList: [],
    trustedProxies: new TrustedProxies(parts.trusted ?? []),
    unroutedGates: new Map(),
  };
  return new RequestContext({
    generation,
    listener: { name: parts.listener ?? "public", isSecure: parts.isSecure ?? false, port: 8080 },
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

/** A route that proxies to nowhere, with nothing but what it matches and what a test is about. */
export function routeWith(name: string, match: Match, rest: Partial<Route> = {}): Route {
  return { name, service: "s", match, action: { type: "proxy" }, ...rest };
}

/** The same, compiled without anything but its document. */
export function compiledRoute(document: Route, index: number): CompiledRoute {
  return {
    name: document.name,
    document,
    index,
    gates: [],
    decorators: [],
    bodyFilters: [],
    responseStore: undefined,
    action: { kind: "response", response: () => ({ status: 200, fields: [], body: "" }) },
    priority: 5,
  };
}

/** Issues as `code place`, warnings with `warning ` in front; the messages beside. */
export function issueNotes(): { readonly report: IssueReport; readonly notes: string[]; readonly messages: string[] } {
  const notes: string[] = [];
  const messages: string[] = [];
  const note =
    (prefix: string): IssueReport["error"] =>
    (code, place, message) => {
      notes.push(`${prefix}${code} ${place.join(".")}`);
      messages.push(message);
    };
  return { report: { error: note(""), warning: note("warning ") }, notes, messages };
}

/** What a slice decorates answers of the route with. */
export function decoratorOf(slice: GatewaySlice, route: Route): Decorator | undefined {
  const compiled = slice.compile?.(documentOf([route]), {
    generation: 1,
    clock: { now: () => 0, monotonic: () => 0 },
    log: pino({ level: "silent" }),
    secret: (text) => new Secret(text),
    readFile: () => Buffer.alloc(0),
  });
  return compiled?.decoratorFor?.(route);
}

/** The fields of an answer after a decorator had it. */
export function decorated(decorator: Decorator | undefined, fields: RawFields, origin: ResponseOrigin): RawFields {
  const head = { status: 200, reason: "OK", fields: [...fields] };
  decorator?.decorate(requestFor(), head, origin);
  return head.fields;
}
