import type { Authorization, ConfigDocument, Route, Service } from "@headworks/gateway-contract";
import { type FieldPath, pointer } from "./pointer.ts";

type ChangedKind =
  | "gateway"
  | "admin"
  | "analytics"
  | "listener"
  | "upstream"
  | "service"
  | "route"
  | "consumer"
  | "policy"
  | "webhook";

/** One difference between two documents. Contains no values, since these may be secret. */
export interface Change {
  readonly kind: ChangedKind;
  /** Name of the entity, or URL of a webhook; empty for singleton sections. */
  readonly name: string;
  /** `moved`: only the position among its siblings changed, which is the tie-break for equal route matches. */
  readonly change: "added" | "removed" | "changed" | "moved";
  /** JSON pointers of changed values, relative to the entity. */
  readonly pointers: readonly string[];
}

/** Changes from `before` to `after` in section order; empty if both are equivalent. */
export function diffDocuments(before: ConfigDocument | undefined, after: ConfigDocument): Change[] {
  const named = (
    kind: ChangedKind,
    get: (document: ConfigDocument) => readonly { readonly name: string }[],
  ): Change[] => diffLists(kind, before === undefined ? [] : get(before), get(after), ({ name }) => name);
  return [
    ...diffSection("gateway", before?.gateway ?? {}, after.gateway),
    ...diffSection("admin", before?.admin, after.admin),
    ...diffSection("analytics", before?.analytics, after.analytics),
    ...named("listener", (document) => document.listeners),
    ...named("upstream", (document) => document.upstreams),
    ...named("service", (document) => document.services),
    ...named("route", (document) => document.routes),
    ...named("consumer", (document) => document.consumers),
    ...named("policy", (document) => document.policies),
    ...diffLists("webhook", before?.webhooks ?? [], after.webhooks, ({ url }) => url),
  ];
}

function diffSection(kind: ChangedKind, before: unknown, after: unknown): Change[] {
  if (before === undefined && after === undefined) return [];
  if (before === undefined) return [{ kind, name: "", change: "added", pointers: [] }];
  if (after === undefined) return [{ kind, name: "", change: "removed", pointers: [] }];
  const pointers = differences(before, after, []);
  return pointers.length === 0 ? [] : [{ kind, name: "", change: "changed", pointers }];
}

function diffLists<T>(
  kind: ChangedKind,
  before: readonly T[],
  after: readonly T[],
  nameOf: (entity: T) => string,
): Change[] {
  const old = new Map(before.map((entity) => [nameOf(entity), entity]));
  const names = new Set(after.map(nameOf));
  const changes: Change[] = [];
  for (const entity of before) {
    if (!names.has(nameOf(entity))) changes.push({ kind, name: nameOf(entity), change: "removed", pointers: [] });
  }
  const moved = kind === "route" ? movedNames(before.map(nameOf), after.map(nameOf)) : new Set<string>();
  for (const entity of after) {
    const name = nameOf(entity);
    const was = old.get(name);
    if (was === undefined) {
      changes.push({ kind, name, change: "added", pointers: [] });
      continue;
    }
    const pointers = differences(was, entity, []);
    if (pointers.length > 0) changes.push({ kind, name, change: "changed", pointers });
    else if (moved.has(name)) changes.push({ kind, name, change: "moved", pointers: [] });
  }
  return changes;
}

/**
 * The minimal set of names to move to get from one order to the other; additions and removals do not count as moves.
 */
function movedNames(before: readonly string[], after: readonly string[]): Set<string> {
  const oldRank = new Map(before.map((name, rank) => [name, rank]));
  const kept = after.filter((name) => oldRank.has(name));
  const ranks = kept.map((name) => oldRank.get(name) ?? 0);
  const staying = longestIncrease(ranks);
  return new Set(kept.filter((_, at) => !staying.has(at)));
}

/** Indexes of a longest strictly increasing subsequence, O(n log n). */
function longestIncrease(ranks: readonly number[]): Set<number> {
  const tails: number[] = [];
  const previous: number[] = [];
  for (const [at, rank] of ranks.entries()) {
    let low = 0;
    let high = tails.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((ranks[tails[middle] ?? 0] ?? 0) < rank) low = middle + 1;
      else high = middle;
    }
    previous.push(low === 0 ? -1 : (tails[low - 1] ?? -1));
    tails[low] = at;
  }
  const members = new Set<number>();
  for (let at = tails.at(-1) ?? -1; at >= 0; at = previous[at] ?? -1) members.add(at);
  return members;
}

function differences(before: unknown, after: unknown, fieldPath: FieldPath): string[] {
  if (isSame(before, after)) return [];
  if (!isContainer(before) || !isContainer(after) || Array.isArray(before) !== Array.isArray(after)) {
    return [pointer(fieldPath)];
  }
  // Lists of different lengths differ as a whole: pairing members by index would name the wrong ones.
  if (Array.isArray(before) && Array.isArray(after) && before.length !== after.length) return [pointer(fieldPath)];
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  return Array.from(names).flatMap((name) => differences(before[name], after[name], [...fieldPath, name]));
}

/** Allocation-free comparison: most of two documents is equal. */
function isSame(before: unknown, after: unknown): boolean {
  if (Object.is(before, after)) return true;
  if (!isContainer(before) || !isContainer(after) || Array.isArray(before) !== Array.isArray(after)) return false;
  for (const name in before) if (!isSame(before[name], after[name])) return false;
  for (const name in after) if (before[name] === undefined && after[name] !== undefined) return false;
  return true;
}

function isContainer(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}

/** The impact of a candidate. */
export interface ChangePlan {
  readonly changes: readonly Change[];
  /** Names of routes whose behavior may change: they, or something they depend on, changed. */
  readonly routes: readonly string[];
  readonly consumers: readonly string[];
  readonly upstreams: readonly string[];
  /** Listeners whose sockets are opened, closed or reopened, which closes their connections. */
  readonly rebound: readonly string[];
}

/** Fields that require a new socket. */
const SOCKET_FIELDS = /^\/(?:address|port|protocol|proxy_protocol|http2)(?:\/|$)/;

/** Compares two documents and follows references from changes to affected routes. */
export function planChanges(before: ConfigDocument | undefined, after: ConfigDocument): ChangePlan {
  const changes = diffDocuments(before, after);
  const touched = new Touched(changes);
  const everything = changes.some(
    ({ kind, pointers, change }) => kind === "gateway" && (change !== "changed" || pointers.some(isTraffic)),
  );
  const services = new Map([...(before?.services ?? []), ...after.services].map((service) => [service.name, service]));
  const concerned = (route: Route): boolean =>
    everything ||
    touched.has("route", route.name) ||
    touched.route(route) ||
    touched.service(services.get(route.service ?? ""));
  return {
    changes,
    routes: unique([
      ...changes.filter(({ kind, change }) => kind === "route" && change === "removed").map(({ name }) => name),
      ...after.routes.filter(concerned).map(({ name }) => name),
    ]),
    consumers: unique([
      ...touched.names("consumer"),
      ...after.consumers.filter((one) => touched.any("policy", one.policies)).map(({ name }) => name),
    ]),
    upstreams: unique(touched.names("upstream")),
    rebound: unique(
      changes
        .filter(
          ({ kind, change, pointers }) =>
            kind === "listener" && (change !== "changed" || pointers.some((one) => SOCKET_FIELDS.test(one))),
        )
        .map(({ name }) => name),
    ),
  };
}

/** True for gateway settings that affect requests; names and shutdown do not. */
function isTraffic(pointer: string): boolean {
  return !/^\/(?:name|shutdown_delay_ms|shutdown_timeout_ms|allow_empty_routes|ssrf_filter|egress)(?:\/|$)/.test(
    pointer,
  );
}

class Touched {
  readonly #names = new Map<string, Set<string>>();

  constructor(changes: readonly Change[]) {
    for (const { kind, name } of changes) {
      const names = this.#names.get(kind) ?? new Set<string>();
      this.#names.set(kind, names.add(name));
    }
  }

  names(kind: Change["kind"]): readonly string[] {
    return Array.from(this.#names.get(kind) ?? []);
  }

  has(kind: Change["kind"], name: string | undefined): boolean {
    return name !== undefined && this.#names.get(kind)?.has(name) === true;
  }

  any(kind: Change["kind"], names: readonly string[] | undefined): boolean {
    return (names ?? []).some((name) => this.has(kind, name));
  }

  route({ policies, authorization }: Route): boolean {
    return this.any("policy", policies) || this.#rules(authorization);
  }

  service(service: Service | undefined): boolean {
    if (service === undefined) return false;
    const { name, upstream, split, policies, authorization } = service;
    return (
      this.has("service", name) ||
      this.has("upstream", upstream) ||
      (split?.targets ?? []).some((target) => this.has("upstream", target.upstream)) ||
      this.any("policy", policies) ||
      this.#rules(authorization)
    );
  }

  #rules(authorization: Authorization | undefined): boolean {
    return (
      this.any("consumer", authorization?.allowed_consumers) || this.any("consumer", authorization?.denied_consumers)
    );
  }
}

function unique(names: readonly string[]): string[] {
  return Array.from(new Set(names));
}
