// Tested by ../../test/admin.test.ts
import type { ExportRefusal, ExportRequest, UsageExportSlice } from "#slices/usage-export/usage-export.slice.ts";
import type { QuotasSlice, UsageRecord } from "#slices/quotas/quotas.slice.ts";
import type { LiveUpstream } from "#upstream/upstream-registry.ts";
import { AdminError } from "./admin-error.ts";
import type { HandlerCall } from "./bind-operation.ts";

/** What operations on the running gateway work with. */
export interface RuntimeParts {
  readonly quotas: QuotasSlice;
  readonly usageJson: (record: UsageRecord) => string;
  readonly usageExport: UsageExportSlice;
  readonly upstreams: () => readonly LiveUpstream[];
  readonly openConnections: (upstream: LiveUpstream) => ReadonlyMap<string, number>;
  readonly activeRequests: () => number;
  readonly generation: () => number;
  readonly metricsText: () => Promise<string>;
  readonly version: string;
  readonly startedMs: number;
  readonly nowMs: () => number;
}

/** Handlers of everything that looks at, or works, the running gateway. */
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
    runExport: async ({ body }: HandlerCall) => ({
      status: 200,
      body: accepted(await parts.usageExport.runExport((body ?? {}) as ExportRequest)),
    }),
  };
}

interface AdjustBody {
  readonly consumer: string;
  readonly budget: "daily" | "monthly";
  readonly delta: number;
  readonly reason: string;
}

async function usageOf(ask: () => ReturnType<QuotasSlice["usageRecord"]>): Promise<UsageRecord> {
  let record: Awaited<ReturnType<QuotasSlice["usageRecord"]>>;
  try {
    record = await ask();
  } catch (error) {
    throw new AdminError("quota_store_unavailable", undefined, { cause: error });
  }
  if ("refused" in record) throw new AdminError(record.refused, record.message);
  return record;
}

function accepted<T extends object>(answer: T | ExportRefusal): T {
  if ("refused" in answer) throw new AdminError(answer.refused, answer.message);
  return answer;
}

function upstreamOperations(parts: RuntimeParts) {
  const find = (params: unknown): LiveUpstream => {
    const { upstream } = params as { upstream: string };
    const found = parts.upstreams().find(({ name }) => name === upstream);
    if (found === undefined) throw new AdminError("not_found", `There is no upstream ${upstream}`);
    return found;
  };
  return {
    listUpstreams: () => ({
      status: 200,
      body: { upstreams: parts.upstreams().map((upstream) => stateOf(upstream, parts)) },
    }),
    getUpstream: ({ params }: HandlerCall) => ({ status: 200, body: stateOf(find(params), parts) }),
    forceBreaker: ({ params, body }: HandlerCall) => {
      const upstream = find(params);
      if (upstream.breaker === undefined) throw new AdminError("not_found", `${upstream.name} has no breaker`);
      upstream.breaker.force((body as { state: "open" | "closed" }).state);
      return { status: 200, body: stateOf(upstream, parts) };
    },
    forceEndpoint: ({ params, body }: HandlerCall) => {
      const upstream = find(params);
      const { endpoint: key } = params as { endpoint: string };
      const endpoint = upstream.endpoints.find((known) => known.key === key);
      if (endpoint === undefined) throw new AdminError("not_found", `${upstream.name} has no endpoint ${key}`);
      const { action } = body as { action: "eject" | "recover" | "drain" };
      if (action === "drain") endpoint.isDraining = true;
      else if (action === "eject") endpoint.force("ejected");
      else {
        endpoint.isDraining = false;
        endpoint.force("healthy");
      }
      return { status: 200, body: stateOf(upstream, parts) };
    },
  };
}

function stateOf(upstream: LiveUpstream, parts: RuntimeParts): object {
  const { breaker, document } = upstream;
  const connections = parts.openConnections(upstream);
  return {
    name: upstream.name,
    protocol: document.protocol ?? "http1",
    load_balancer: document.load_balancer ?? "round_robin",
    breaker:
      breaker === undefined
        ? null
        : {
            state: breaker.state,
            consecutive_failures: breaker.consecutiveFailures,
            opens_again_in_ms: Math.ceil(breaker.opensAgainInMs),
          },
    fail_open_picks: upstream.failOpenPicks,
    retries: upstream.retries,
    endpoints: upstream.endpoints.map((endpoint) => ({
      endpoint: endpoint.key,
      health: endpoint.health,
      draining: endpoint.isDraining,
      weight: endpoint.weight,
      in_flight: endpoint.inFlight,
      connections: connections.get(endpoint.key) ?? 0,
    })),
  };
}

function processOperations(parts: RuntimeParts) {
  return {
    getHealth: () => ({
      status: 200,
      body: {
        ready: parts.generation() > 0,
        config_generation: parts.generation(),
        upstreams: Object.fromEntries(
          parts
            .upstreams()
            .map(({ name, endpoints }) => [
              name,
              { endpoints: Object.fromEntries(endpoints.map(({ key, health }) => [key, health])) },
            ]),
        ),
      },
    }),
    getStats: () => ({
      status: 200,
      body: {
        active_requests: parts.activeRequests(),
        config_generation: parts.generation(),
        breakers: Object.fromEntries(
          parts.upstreams().map(({ name, breaker }) => [name, breaker?.state ?? "disabled"]),
        ),
      },
    }),
    getVersion: () => ({
      status: 200,
      body: { version: parts.version, uptime_seconds: Math.floor((parts.nowMs() - parts.startedMs) / 1000) },
    }),
    getMetrics: async () => ({ status: 200, body: await parts.metricsText() }),
  };
}
