// Tested by ../test/pipeline.test.ts
import type { Logger } from "pino";
import { EgressDialer } from "#egress/egress-dialer.ts";
import { acceptVary } from "#slices/accept-vary/accept-vary.slice.ts";
import { deprecation } from "#slices/deprecation/deprecation.slice.ts";
import { createEgressFilter } from "#slices/egress-filter/egress-filter.slice.ts";
import { quotas, type QuotasSlice } from "#slices/quotas/quotas.slice.ts";
import { usageExport, type UsageExportSlice } from "#slices/usage-export/usage-export.slice.ts";
import { createWebhooks, type Webhooks } from "#slices/webhooks/webhooks.slice.ts";
import type { StateStore } from "#storage/state-store.ts";
import { ANSWER_ORDER, GATE_ORDER } from "./pipeline-order.ts";
import type { Clock, GatewaySlice } from "./slice.ts";

/** What slices are made of. */
export interface SliceParts {
  readonly log: Logger;
  readonly clock: Clock;
  /** Undefined without `GATEWAY_STATE_DB`. */
  readonly store: StateStore | undefined;
}

/** All slices; those that others ask something have a name of their own. */
export interface Slices {
  readonly all: readonly GatewaySlice[];
  readonly webhooks: Webhooks;
  readonly quotas: QuotasSlice;
  readonly usageExport: UsageExportSlice;
}

/** Makes every slice, in no order. */
export function createSlices({ log, clock, store }: SliceParts): Slices {
  const dialer = new EgressDialer({ log });
  const webhooks = createWebhooks({ dialer, clock, log });
  const quotaSlice = quotas({ store, log, clock, metrics: { dryRun: () => undefined, denied: () => undefined } });
  const usage = usageExport({ store, log, clock, every });
  const all = [createEgressFilter(dialer), webhooks, deprecation, acceptVary, quotaSlice, usage];
  return { all, webhooks, quotas: quotaSlice, usageExport: usage };
}

function every(periodMs: number, run: () => void): () => void {
  const timer = setInterval(run, periodMs).unref();
  return () => clearInterval(timer);
}

/** Slices in the order of their gates; those without a gate come first. */
export function inGateOrder(slices: readonly GatewaySlice[]): GatewaySlice[] {
  return ordered(slices, GATE_ORDER);
}

/** Slices in the order in which they change answers. */
export function inAnswerOrder(slices: readonly GatewaySlice[]): GatewaySlice[] {
  return ordered(slices, ANSWER_ORDER);
}

function ordered(slices: readonly GatewaySlice[], order: readonly string[]): GatewaySlice[] {
  return slices.toSorted((a, b) => order.indexOf(a.name) - order.indexOf(b.name));
}
