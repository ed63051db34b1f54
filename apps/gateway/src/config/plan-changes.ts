import type { Authorization, ConfigDocument, Route, Service } from "@headworks/gateway-contract";
import { diffDocuments, type Change } from "./diff-documents.ts";

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
