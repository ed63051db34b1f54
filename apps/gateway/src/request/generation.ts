import type { ConfigDocument, Route } from "@headworks/gateway-contract";
import type { UpstreamChoice } from "#upstream/upstream-group.ts";
import type { RequestIdField } from "./forwarded-fields.ts";
import type { Response, ResponseStore, BodyFilter, Decorator, Gate, Refusal } from "./phases.ts";
import type { RequestContext } from "./context.ts";
import type { Tracer } from "./request-trace.ts";
import type { TrustedProxies } from "./trusted-proxies.ts";
import type { Via } from "./via.ts";

/** What a route does with a request. */
export type CompiledAction =
  | {
      readonly kind: "proxy";
      /** Which upstream gets it: the service's, or one of its split. */
      readonly choose: (request: RequestContext) => UpstreamChoice;
      /** The target to ask the upstream for, path and query; undefined when what came out must not be sent: 400. */
      readonly rewrite: (request: RequestContext) => string | undefined;
      /** Changes the fields on their way to the upstream; undefined when there is nothing to change. */
      readonly changeFields: ((request: RequestContext, fields: string[]) => void) | undefined;
    }
  | {
      readonly kind: "response";
      readonly response: (request: RequestContext) => Response | Refusal;
    };

/** A route with everything that was said about it, ready to run. */
export interface CompiledRoute {
  readonly name: string;
  readonly document: Route;
  readonly index: number;
  readonly gates: readonly Gate[];
  readonly decorators: readonly Decorator[];
  readonly bodyFilters: readonly BodyFilter[];
  readonly responseStore: ResponseStore | undefined;
  readonly action: CompiledAction;
  readonly priority: number;
}

/** Finds the route of a request. */
export interface RouteTable {
  /** Sets `route` and `pathParameters` of the request; false when none takes it. */
  resolve(request: RequestContext): boolean;
}

/** One published configuration, compiled. Never changed; requests keep the one they started with. */
export interface Generation {
  readonly number: number;
  /** At most 53 bits, so that it is exact as a JSON number. */
  readonly contentHash: number;
  readonly document: ConfigDocument;
  readonly routes: RouteTable;
  readonly routeList: readonly CompiledRoute[];
  readonly trustedProxies: TrustedProxies;
  /** What carries the id of requests; X-Request-Id unless given. */
  readonly requestIdField?: RequestIdField;
  /** What the gateway says of itself on what it passes on; not given: nothing. */
  readonly via?: Via;
  /** Notes how requests are handled; not given: nobody wants to know. */
  readonly tracer?: Tracer;
  /** Gates for requests that no route takes, by listener name. */
  readonly unroutedGates: ReadonlyMap<string, readonly Gate[]>;
}
