import type { ConfigDocument, Route } from "@headworks/gateway-contract";
import { removeField } from "@headworks/http1";
import { systemTimer, type Timer } from "#egress/timer.ts";
import type { Decorator, ResponseStore } from "#request/context.ts";
import type { Clock, GatewaySlice, IssueReport } from "#slice.ts";
import { ChangedResources } from "./changed-resources.ts";
import { RequestCoalescer } from "./request-coalescer.ts";
import { ResponseMemory } from "./response-memory.ts";
import { type CacheOutcome, type CacheState, RouteCache } from "./route-cache.ts";

/** Fields of a connection or a single client; responses that depend on them are never stored. */
const REFUSED: ReadonlySet<string> = new Set([
  "authorization",
  "connection",
  "cookie",
  "keep-alive",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

export interface CacheHost {
  readonly clock: Clock;
  /** Default: the system's timers. */
  readonly timer?: Timer;
}

export interface ResponseCache extends GatewaySlice {
  /**
   * Discards stored and pending responses of a route; returns the new epoch, or undefined for a route without a cache.
   */
  purge(route: string): number | undefined;
  /** Purges all routes; returns their number. */
  purgeAll(): number;
  counts(): CacheCounts;
}

export interface CacheCounts {
  readonly entries: number;
  readonly bytes: number;
  readonly purges: number;
  /** For `gateway_cache_lookups_total`. */
  readonly lookups: readonly { readonly route: string; readonly outcome: CacheOutcome; readonly count: number }[];
}

interface KnownRoute {
  readonly identity: string;
  readonly state: CacheState;
}

/** A bounded in-memory cache for routes that enable it. */
export function createCache({ clock, timer = systemTimer }: CacheHost): ResponseCache {
  const memory = new ResponseMemory();
  const changed = new ChangedResources();
  const lookups = new Map<string, Map<CacheOutcome, number>>();
  let running: ReadonlyMap<string, KnownRoute> = new Map();
  let epochs = 0;
  let purges = 0;
  const count = (route: string, outcome: CacheOutcome): void => {
    let counts = lookups.get(route);
    if (counts === undefined) lookups.set(route, (counts = new Map<CacheOutcome, number>()));
    counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
  };
  const nextEpoch = (): number => (epochs += 1);
  const watch = watching(changed);
  const watchChanges: Decorator = {
    on: "action-responses",
    decorate: (request, head) => changed.answered(request, head.status),
  };
  const forget = (route: string, state: CacheState): void => {
    state.epoch = nextEpoch();
    memory.deleteRoute(route);
  };
  return {
    name: "cache",
    check: checkCache,
    compile: (document) => {
      const hasCache = document.routes.some(({ cache }) => cache !== undefined);
      const known = new Map<string, KnownRoute>();
      return {
        decoratorFor: (route) => (route.cache !== undefined ? watch : hasCache ? watchChanges : undefined),
        responseStoreFor: (route): ResponseStore | undefined => {
          if (route.cache === undefined || route.action.type !== "proxy") return undefined;
          const identity = identityOf(route, document);
          const before = running.get(route.name);
          const state =
            before?.identity === identity
              ? before.state
              : { epoch: nextEpoch(), coalescer: new RequestCoalescer(timer) };
          known.set(route.name, { identity, state });
          return new RouteCache(route.name, route.cache, state, { memory, changed, clock, count });
        },
        published: () => {
          for (const [name, { state }] of running) {
            if (known.get(name)?.state !== state) memory.deleteRoute(name);
          }
          running = known;
        },
      };
    },
    purge: (route) => {
      const known = running.get(route);
      if (known === undefined) return undefined;
      purges += 1;
      forget(route, known.state);
      return known.state.epoch;
    },
    purgeAll: () => {
      purges += 1;
      for (const [name, { state }] of running) forget(name, state);
      return running.size;
    },
    counts: () => ({
      entries: memory.responses,
      bytes: memory.bytes,
      purges,
      lookups: [...lookups].flatMap(([route, counts]) =>
        Array.from(counts, ([outcome, times]) => ({ route, outcome, count: times })),
      ),
    }),
  };
}

/** Tracks changed resources and removes the upstream's X-Cache. */
function watching(changed: ChangedResources): Decorator {
  return {
    on: "action-responses",
    decorate: (request, head) => {
      changed.answered(request, head.status);
      removeField(head.fields, "x-cache");
    },
  };
}

/** Everything that responses of the route depend on; a change of the service invalidates the cache. */
function identityOf(route: Route, { services, upstreams }: ConfigDocument): string {
  const service = services.find(({ name }) => name === route.service);
  const names = new Set([service?.upstream, ...(service?.split?.targets ?? []).map(({ upstream }) => upstream)]);
  return JSON.stringify([route, service, upstreams.filter(({ name }) => names.has(name))]);
}

/** Fields in the key must come from the client unchanged. */
function checkCache(document: ConfigDocument, report: IssueReport): void {
  for (const [index, { cache, action }] of document.routes.entries()) {
    if (cache === undefined) continue;
    const fieldPath = ["routes", index, "cache"];
    for (const [at, name] of (cache.vary ?? []).entries()) {
      const lower = name.toLowerCase();
      if (!REFUSED.has(lower) && !lower.startsWith("x-consumer-")) continue;
      report.error("bad_header", [...fieldPath, "vary", at], `Answers cannot be kept by ${name}`);
    }
    if (action.type !== "proxy") {
      report.warning("unused", fieldPath, "Only upstream responses are cached: this route's action generates its own");
    }
  }
}
