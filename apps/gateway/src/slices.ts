import type { Logger } from "pino";
import { EgressDialer } from "#egress/egress-dialer.ts";
import { environmentNumber } from "#listener/environment-numbers.ts";
import { createAccessLog } from "#slices/access-log/access-log.slice.ts";
import { acceptVary } from "#slices/accept-vary/accept-vary.slice.ts";
import { createAuthorization } from "#slices/authorization/authorization.slice.ts";
import { createCallouts, type Callouts } from "#slices/callouts/callouts.slice.ts";
import {
  createConsumers,
  NonceMemory,
  type ConsumersSlice,
  type IssuedKeys,
  type Nonces,
} from "#slices/consumers/consumers.slice.ts";
import { deprecation } from "#slices/deprecation/deprecation.slice.ts";
import { createCache, type ResponseCache } from "#slices/cache/cache.slice.ts";
import { compression } from "#slices/compression/compression.slice.ts";
import { cors } from "#slices/cors/cors.slice.ts";
import { createEgressFilter } from "#slices/egress-filter/egress-filter.slice.ts";
import { createLimits } from "#slices/limits/limits.slice.ts";
import { maintenance } from "#slices/maintenance/maintenance.slice.ts";
import { methods } from "#slices/methods/methods.slice.ts";
import { securityHeaders } from "#slices/security-headers/security-headers.slice.ts";
import { createMetrics, type Metrics } from "#slices/metrics/metrics.slice.ts";
import { quotas, type QuotasSlice } from "#slices/quotas/quotas.slice.ts";
import { createRateLimits, type RateCounters, type RateLimits } from "#slices/rate-limit/rate-limit.slice.ts";
import { createTracing, type Tracing } from "#slices/tracing/tracing.slice.ts";
import { transforms } from "#slices/transforms/transforms.slice.ts";
import { usageExport, type UsageExportSlice } from "#slices/usage-export/usage-export.slice.ts";
import { createWebhooks, type Webhooks } from "#slices/webhooks/webhooks.slice.ts";
import type { StateStore } from "#storage/state-store.ts";
import { RESPONSE_ORDER, GATE_ORDER } from "./pipeline-order.ts";
import type { Clock, GatewaySlice } from "./slice.ts";
import manifest from "../package.json" with { type: "json" };

export interface SliceParts {
  readonly log: Logger;
  readonly clock: Clock;
  /** Undefined without `GATEWAY_STATE_DB`. */
  readonly store: StateStore | undefined;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Keys issued over the admin API; absent in processes that handle no requests. */
  readonly issued?: IssuedKeys;
  /** A token unique to this gateway. */
  readonly instance?: string;
  /** Undefined: this process is the whole gateway. */
  readonly elsewhere?: CountedElsewhere | undefined;
}

/** State that the processes of one gateway share, kept in another process. */
export interface CountedElsewhere {
  readonly rates: RateCounters;
  readonly nonces: Nonces;
}

/** All slices; those that others use have a name of their own. */
export interface Slices {
  readonly all: readonly GatewaySlice[];
  readonly webhooks: Webhooks;
  readonly quotas: QuotasSlice;
  readonly usageExport: UsageExportSlice;
  readonly metrics: Metrics;
  readonly rateLimits: RateLimits;
  readonly nonces: Nonces;
  readonly consumers: ConsumersSlice;
  readonly cache: ResponseCache;
  readonly callouts: Callouts;
  readonly tracing: Tracing;
  readonly dialer: EgressDialer;
}

const random = (): number => Math.random();

/** Creates every slice, in no order. */
export function createSlices({ log, clock, store, environment, issued, elsewhere, instance = "" }: SliceParts): Slices {
  const dialer = new EgressDialer({ log });
  const webhooks = createWebhooks({ dialer, clock, log });
  const metrics = createMetrics();
  const quotaSlice = quotas({
    store,
    log,
    clock,
    metrics: {
      dryRun: (route) => metrics.dryRun("quota", route),
      denied: (consumer, budget) => metrics.quotaDenied(consumer, budget),
    },
  });
  const cache = createCache({ clock });
  const onRateDryRun = (route: string): void => metrics.dryRun("rate_limit", route);
  const rateLimits = createRateLimits({ log, clock, onDryRun: onRateDryRun, counters: elsewhere?.rates });
  const callouts = createCallouts({ dialer, clock, log, onDryRun: (route) => metrics.dryRun("callout", route) });
  const nonces = elsewhere?.nonces ?? new NonceMemory();
  const consumers = createConsumers({ dialer, clock, log, nonces, ...(issued === undefined ? {} : { issued }) });
  const usage = usageExport({ store, log, clock, every });
  const resource = { "service.name": "sluice", "service.instance.id": instance, "process.pid": process.pid };
  const source = { resource: { ...resource, "service.version": manifest.version }, version: manifest.version };
  const tracing = createTracing({
    dialer,
    clock,
    log,
    source,
    endpoint: environment["GATEWAY_OTLP_ENDPOINT"],
    random,
  });
  const all = [
    createEgressFilter(dialer),
    webhooks,
    consumers,
    createAuthorization({ log, metrics: { dryRun: (route) => metrics.dryRun("authz", route) } }),
    maintenance,
    methods,
    createLimits({ log, onDryRun: (route) => metrics.dryRun("route_limits", route) }),
    cors,
    deprecation,
    acceptVary,
    securityHeaders,
    transforms,
    compression,
    cache,
    callouts,
    tracing,
    rateLimits,
    quotaSlice,
    usage,
    metrics,
    createAccessLog({ log, sample: environmentNumber(environment, "GATEWAY_ACCESS_LOG_SAMPLE"), random }),
  ];
  return {
    all,
    cache,
    callouts,
    tracing,
    rateLimits,
    nonces,
    consumers,
    webhooks,
    quotas: quotaSlice,
    usageExport: usage,
    metrics,
    dialer,
  };
}

function every(periodMs: number, run: () => void): () => void {
  const timer = setInterval(run, periodMs).unref();
  return () => clearInterval(timer);
}

/** Slices in the order of their gates; those without a gate come first. */
export function inGateOrder(slices: readonly GatewaySlice[]): GatewaySlice[] {
  return ordered(slices, GATE_ORDER);
}

/** Slices in the order in which they change responses. */
export function inResponseOrder(slices: readonly GatewaySlice[]): GatewaySlice[] {
  return ordered(slices, RESPONSE_ORDER);
}

function ordered(slices: readonly GatewaySlice[], order: readonly string[]): GatewaySlice[] {
  return slices.toSorted((a, b) => order.indexOf(a.name) - order.indexOf(b.name));
}
