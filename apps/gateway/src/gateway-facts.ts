import type { Generations } from "#config/generations.ts";
import type { EventBus } from "#events/event-bus.ts";
import type { ListenerSet } from "#listener/listener-set.ts";
import type { AdmissionControl } from "#request/admission.ts";
import type { Pipeline } from "#request/pipeline.ts";
import type { GatewayFacts } from "#slices/metrics/metrics.slice.ts";
import type { EndpointPools } from "#upstream/endpoint-pools.ts";
import type { UpstreamRegistry } from "#upstream/upstream-registry.ts";
import type { Slices } from "./slices.ts";

export interface FactSources {
  readonly generations: Generations;
  readonly pipeline: Pick<Pipeline, "activeRequests">;
  readonly admission: Pick<AdmissionControl, "queueCounts">;
  readonly listeners: Pick<ListenerSet, "states">;
  readonly upstreams: UpstreamRegistry;
  readonly pools: Pick<EndpointPools, "buffers">;
  readonly events: EventBus;
  readonly slices: Slices;
}

/** The state of the gateway for a scrape. */
export async function gatewayFacts(sources: FactSources): Promise<GatewayFacts> {
  const { generations, pipeline, admission, listeners, upstreams, pools, events, slices } = sources;
  return {
    generation: generations.current?.number ?? 0,
    activeRequests: pipeline.activeRequests,
    listeners: listeners.states,
    bufferedBytes: pools.buffers.usedBytes,
    upstreams: upstreams.all.map(({ name, breaker, failOpenPicks, retries, hedges, queueCounts, endpoints }) => ({
      name,
      breaker: breaker?.state,
      failOpenPicks,
      retries,
      hedges,
      queue: queueCounts,
      endpoints: endpoints.map(({ key, health, attemptsByClass }) => ({
        key,
        isHealthy: health === "healthy",
        attemptsByClass,
      })),
    })),
    events: { emitted: events.emitted, dropped: events.dropped, replayed: events.replayed },
    webhooks: slices.webhooks.counts(),
    egressDenied: [...slices.dialer.denied].map(([purpose, count]) => ({ purpose, count })),
    quotas: await quotaFacts(slices),
    cache: slices.cache.counts(),
    rateLimits: slices.rateLimits.counts(),
    admissionQueue: admission.queueCounts,
    callouts: slices.callouts.counts(),
    spans: slices.tracing.counts(),
  };
}

/** Undefined without a store, or while it does not respond. */
async function quotaFacts(slices: Slices): Promise<GatewayFacts["quotas"]> {
  try {
    const record = await slices.quotas.usageRecord();
    if (!("consumers" in record)) return [];
    return record.consumers.flatMap(({ consumer, budgets }) =>
      budgets.map(({ budget, used, limit }) => ({ consumer, budget, used: Number(used), limit: Number(limit) })),
    );
  } catch {
    return [];
  }
}
