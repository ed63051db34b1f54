import type { ExportRefusal, ExportRequest, UsageExportSlice } from "#slices/usage-export/usage-export.slice.ts";
import type { QuotasSlice, UsageRecord } from "#slices/quotas/quotas.slice.ts";
import type { RecentTraffic } from "#slices/metrics/metrics.slice.ts";
import type { ForcedState, UpstreamSnapshot } from "#upstream/upstream-registry.ts";
import { AdminError, type HandlerCall } from "./bind-operation.ts";
import { allShares } from "./traffic-shares.ts";

export interface RuntimeParts {
  readonly quotas: QuotasSlice;
  readonly usageJson: (record: UsageRecord) => string;
  readonly usageExport: UsageExportSlice;
  readonly upstreams: () => readonly UpstreamSnapshot[] | Promise<readonly UpstreamSnapshot[]>;
  readonly recent: () => RecentTraffic | Promise<RecentTraffic>;
  readonly force: (forced: ForcedState) => void | Promise<void>;
  /** Purges the cache of a route or of all; returns the number of routes. */
  readonly purge: (route: string | undefined) => number | Promise<number>;
  readonly activeRequests: () => number | Promise<number>;
  /** True while requests are accepted. */
  readonly isReady: () => boolean;
  readonly generation: () => number;
  readonly metricsText: () => Promise<string>;
  readonly version: string;
  /** Monotonic. */
  readonly uptimeMs: () => number;
}

/** Handlers for state and runtime operations of the gateway. */
export function runtimeOperations(parts: RuntimeParts) {
  return {
    ...quotaOperations(parts),
    ...upstreamOperations(parts),
    ...processOperations(parts),
  };
}

function quotaOperations(parts: RuntimeParts) {
  return {
    getQuotaUsage: async ({ query }: HandlerCall) => {
      const { consumer } = query as { consumer?: string };
      const record = await usageOf(async () => await parts.quotas.usageRecord(consumer));
      return { status: 200, body: parts.usageJson(record) };
    },
    adjustQuota: async ({ body, note }: HandlerCall) => {
      const { consumer, budget, delta, reason } = body as AdjustBody;
      note(`${consumer} ${budget} ${delta > 0 ? "+" : ""}${delta}: ${reason}`);
      const record = await usageOf(async () => await parts.quotas.adjust(consumer, budget, BigInt(delta)));
      return { status: 200, body: parts.usageJson(record) };
    },
    listExports: async ({ query }: HandlerCall) => {
      const { limit } = query as { limit?: number };
      return { status: 200, body: accepted(await parts.usageExport.exportRuns(limit)) };
    },
    runExport: async ({ body, note }: HandlerCall) => {
      const run = accepted(await parts.usageExport.runExport((body ?? {}) as ExportRequest));
      note(`${run.window} ${new Date(run.window_start_ms).toISOString()}`);
      return { status: 200, body: run };
    },
  };
}

interface AdjustBody {
  readonly consumer: string;
  readonly budget: "daily" | "monthly";
  readonly delta: number;
  readonly reason: string;
}

/** A usage record; throws the matching `AdminError` without one. */
export async function usageOf(read: () => ReturnType<QuotasSlice["usageRecord"]>): Promise<UsageRecord> {
  let record: Awaited<ReturnType<QuotasSlice["usageRecord"]>>;
  try {
    record = await read();
  } catch (error) {
    throw new AdminError("quota_store_unavailable", undefined, { cause: error });
  }
  if ("refused" in record) throw new AdminError(record.refused, record.message);
  return record;
}

function accepted<T extends object>(response: T | ExportRefusal): T {
  if ("refused" in response) throw new AdminError(response.refused, response.message);
  return response;
}

function upstreamOperations(parts: RuntimeParts) {
  const find = async (params: unknown): Promise<UpstreamSnapshot> => {
    const { upstream } = params as { upstream: string };
    const found = (await parts.upstreams()).find(({ name }) => name === upstream);
    if (found === undefined) throw new AdminError("not_found", `There is no upstream ${upstream}`);
    return found;
  };
  return {
    listUpstreams: async () => ({ status: 200, body: { upstreams: (await parts.upstreams()).map(stateOf) } }),
    getUpstream: async ({ params }: HandlerCall) => ({ status: 200, body: stateOf(await find(params)) }),
    forceBreaker: async ({ params, body, note }: HandlerCall) => {
      const { state } = body as { state: "open" | "closed" };
      note(`${(params as { upstream: string }).upstream} ${state}`);
      const { name, breaker } = await find(params);
      if (breaker === undefined) throw new AdminError("not_found", `${name} has no breaker`);
      await parts.force({ upstream: name, breaker: state });
      return { status: 200, body: stateOf(await find(params)) };
    },
    forceEndpoint: async ({ params, body, note }: HandlerCall) => {
      const { upstream, endpoint: key } = params as { upstream: string; endpoint: string };
      const { action } = body as { action: "eject" | "recover" | "drain" };
      note(`${upstream} ${key} ${action}`);
      const { name, endpoints } = await find(params);
      if (!endpoints.some((known) => known.key === key)) {
        throw new AdminError("not_found", `${name} has no endpoint ${key}`);
      }
      await parts.force({ upstream: name, endpoint: key, action });
      return { status: 200, body: stateOf(await find(params)) };
    },
  };
}

function stateOf({ name, protocol, loadBalancer, breaker, ...counts }: UpstreamSnapshot): object {
  return {
    name,
    protocol,
    load_balancer: loadBalancer,
    breaker:
      breaker === undefined
        ? null
        : {
            state: breaker.state,
            consecutive_failures: breaker.consecutiveFailures,
            opens_again_in_ms: Math.ceil(breaker.opensAgainInMs),
          },
    fail_open_picks: counts.failOpenPicks,
    retries: counts.retries,
    endpoints: counts.endpoints.map(({ key, health, isDraining, weight, inFlight, connections }) => ({
      endpoint: key,
      health,
      draining: isDraining,
      weight,
      in_flight: inFlight,
      connections,
    })),
  };
}

function processOperations(parts: RuntimeParts) {
  return {
    purgeCache: async ({ body, note }: HandlerCall) => {
      const { route } = (body ?? {}) as { route?: string };
      note(route ?? "all routes");
      const routes = await parts.purge(route);
      if (route !== undefined && routes === 0) {
        throw new AdminError("not_found", `No route ${route} that runs has a cache`);
      }
      return { status: 200, body: { routes } };
    },
    getHealth: async () => ({
      status: 200,
      body: {
        ready: parts.isReady(),
        config_generation: parts.generation(),
        upstreams: Object.fromEntries(
          (await parts.upstreams()).map(({ name, endpoints }) => [
            name,
            { endpoints: Object.fromEntries(endpoints.map(({ key, health }) => [key, health])) },
          ]),
        ),
      },
    }),
    getStats: async () => ({
      status: 200,
      body: {
        active_requests: await parts.activeRequests(),
        config_generation: parts.generation(),
        breakers: Object.fromEntries(
          (await parts.upstreams()).map(({ name, breaker }) => [name, breaker?.state ?? "disabled"]),
        ),
      },
    }),
    getTraffic: async () => ({ status: 200, body: allShares(await parts.recent()) }),
    getVersion: () => ({
      status: 200,
      body: { version: parts.version, uptime_seconds: Math.floor(parts.uptimeMs() / 1000) },
    }),
    getMetrics: async () => ({ status: 200, body: await parts.metricsText() }),
  };
}
