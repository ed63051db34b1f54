import type { ConfigDocument, Route } from "@headworks/gateway-contract";
import type { UpstreamChoice } from "#upstream/upstream-group.ts";
import type { RequestIdField, Via } from "./forwarded-fields.ts";
import type { BodyFilter, Decorator, Gate, Refusal, Response, ResponseStore, Tracer } from "./phases.ts";
import type { RequestContext } from "./context.ts";
import type { TrustedProxies } from "./client-identity.ts";

/** What a route does with a request. */
export type CompiledAction =
  | {
      readonly kind: "proxy";
      /** Chooses the upstream: the service's, or one of its split. */
      readonly choose: (request: RequestContext) => UpstreamChoice;
      /** The upstream's target, path and query; undefined if the result must not be sent (400). */
      readonly rewrite: (request: RequestContext) => string | undefined;
      /** Changes the upstream's request fields; undefined if there is nothing to change. */
      readonly changeFields: ((request: RequestContext, fields: string[]) => void) | undefined;
    }
  | {
      readonly kind: "response";
      readonly response: (request: RequestContext) => Response | Refusal;
    };

/** A compiled route. */
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

export interface RouteTable {
  /** Sets `route` and `pathParameters` of the request; false if no route matches. */
  resolve(request: RequestContext): boolean;
}

/** One published configuration, compiled and immutable; requests keep the one they started with. */
export interface Generation {
  readonly number: number;
  /** At most 53 bits, so that a JSON number holds it exactly. */
  readonly contentHash: number;
  readonly document: ConfigDocument;
  readonly routes: RouteTable;
  readonly routeList: readonly CompiledRoute[];
  readonly trustedProxies: TrustedProxies;
  /** Default: X-Request-Id. */
  readonly requestIdField?: RequestIdField;
  /** Via marks for forwarded messages. */
  readonly via?: Via;
  readonly tracer?: Tracer;
  /** Gates for requests without a route, by listener name. */
  readonly unroutedGates: ReadonlyMap<string, readonly Gate[]>;
}
