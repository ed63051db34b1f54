import type { ConfigDocument, Listener, Route } from "@headworks/gateway-contract";
import type {
  BodyFilter,
  CompiledAction,
  CompiledRoute,
  Decorator,
  Gate,
  Generation,
  RequestChange,
  ResponseStore,
  RouteTable,
} from "#request/context.ts";
import { RequestIdField, TrustedProxies, Via, X_REQUEST_ID } from "#request/forwarding-rules.ts";
import type { CompiledSlice, CompileScope, GatewaySlice } from "#slice.ts";

export interface CompiledActions {
  actionFor(route: Route): CompiledAction;
  /** Runs after publication: starts added upstreams and stops removed ones. */
  published?(): void;
}

export interface CompileParts {
  /** In gate order. */
  readonly slices: readonly GatewaySlice[];
  /** The slices in the order of their response changes; gate order if omitted. */
  readonly responseOrder?: readonly GatewaySlice[];
  /** Compiles the routing table; `routes` are in document order. */
  compileTable(routes: readonly CompiledRoute[]): RouteTable;
  compileActions(document: ConfigDocument, scope: CompileScope): CompiledActions;
  /** A token unique to this gateway, shared by its processes and generations. */
  readonly instance: string;
}

export interface Candidate {
  readonly generation: Generation;
  /** Runs the publication hooks of slices and actions independently; each exception goes to `failed`. */
  readonly published: (failed: (name: string, error: unknown) => void) => void;
}

const DEFAULT_PRIORITY = 5;
// Shared: most routes have none, and the engine reads `length` on every request.
const NONE: readonly never[] = Object.freeze([]);

/** Compiles a document without errors. No side effects on running generations. */
export function compileGeneration(
  document: ConfigDocument,
  hash: number,
  scope: CompileScope,
  parts: CompileParts,
): Candidate {
  const compiled = new Map<GatewaySlice, CompiledSlice>();
  for (const slice of parts.slices) {
    const part = slice.compile?.(document, scope);
    if (part !== undefined) compiled.set(slice, part);
  }
  const gating = [...compiled.values()];
  const answering = inOrder(compiled, parts.responseOrder ?? parts.slices);
  const actions = parts.compileActions(document, scope);
  const routeList = document.routes.map((route, index): CompiledRoute => ({
    name: route.name,
    document: route,
    index,
    gates: present<Gate>(gating, (part) => part.gateFor?.(route)),
    decorators: present<Decorator>(answering, (part) => part.decoratorFor?.(route)),
    bodyFilters: present<BodyFilter>(answering, (part) => part.bodyFilterFor?.(route)),
    responseStore: present<ResponseStore>(gating, (part) => part.responseStoreFor?.(route))[0],
    action: withChanges(
      actions.actionFor(route),
      present<RequestChange>(answering, (part) => part.requestChangeFor?.(route)),
    ),
    priority: route.priority ?? DEFAULT_PRIORITY,
  }));
  const { request_id_header: idName = X_REQUEST_ID.name, forward_client_headers: fromAnybody } = document.gateway;
  const tracer = gating.find((part) => part.tracer !== undefined)?.tracer;
  const generation: Generation = {
    number: scope.generation,
    contentHash: hash,
    document,
    routes: parts.compileTable(routeList),
    routeList,
    trustedProxies: new TrustedProxies(document.gateway.trusted_proxies ?? []),
    requestIdField: new RequestIdField(idName, fromAnybody),
    via: new Via(document.gateway, parts.instance),
    ...(tracer === undefined ? {} : { tracer }),
    unroutedGates: new Map(document.listeners.map((listener) => [listener.name, unroutedGates(gating, listener)])),
  };
  return {
    generation,
    published: (failed) => {
      attempt("actions", () => actions.published?.(), failed);
      for (const [slice, part] of compiled) attempt(slice.name, () => part.published?.(), failed);
    },
  };
}

/** Wraps an action with the slices' request changes; returns it unchanged if there are none. */
function withChanges(action: CompiledAction, changes: readonly RequestChange[]): CompiledAction {
  if (action.kind !== "proxy") return action;
  let { rewrite, changeFields } = action;
  for (const change of changes) {
    const before = { rewrite, changeFields };
    if (change.changeTarget !== undefined) {
      rewrite = (request) => {
        const target = before.rewrite(request);
        return target === undefined ? undefined : change.changeTarget?.(target);
      };
    }
    if (change.changeFields !== undefined) {
      changeFields = (request, fields) => {
        before.changeFields?.(request, fields);
        change.changeFields?.(fields);
      };
    }
  }
  return changes.length === 0 ? action : { ...action, rewrite, changeFields };
}

function unroutedGates(parts: readonly CompiledSlice[], listener: Listener): readonly Gate[] {
  return present<Gate>(parts, (part) => part.unroutedGateFor?.(listener));
}

function inOrder(compiled: ReadonlyMap<GatewaySlice, CompiledSlice>, order: readonly GatewaySlice[]): CompiledSlice[] {
  return order.map((slice) => compiled.get(slice)).filter((part) => part !== undefined);
}

function present<T>(parts: readonly CompiledSlice[], get: (part: CompiledSlice) => T | undefined): readonly T[] {
  const found = parts.map(get).filter((value) => value !== undefined);
  // `slice` gives exact capacity; a grown array reserves 17 elements on each of thousands of routes.
  return found.length === 0 ? NONE : found.slice();
}

function attempt(name: string, run: () => void, failed: (name: string, error: unknown) => void): void {
  try {
    run();
  } catch (error) {
    failed(name, error);
  }
}
