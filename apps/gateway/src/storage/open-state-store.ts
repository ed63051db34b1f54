import { resolve } from "node:path";
import type { Logger } from "pino";
import type { Clock } from "#slice.ts";
import type { BudgetWindow, OutboxEvent, StateStore, UsageSpan, UsageStretch, UsageTotal } from "./state-store.ts";
import { StoreClient } from "./store-client.ts";
import { StateStoreError } from "./state-store-error.ts";

export interface StateStoreOptions {
  /** The value of `GATEWAY_STATE_DB`: a file path, created with its directory if missing. */
  readonly path: string;
  readonly log: Logger;
  readonly clock: Clock;
  /** For benchmarks. */
  readonly pageBytes?: number;
}

const PRUNE_EVERY_MS = 3_600_000;
/** Consumers per message: a few milliseconds, so that charges can interleave. */
const USAGE_STEP = 500;

/**
 * Opens the state store. Rejects with a {@link StateStoreError} with a readable message if the path is invalid, or the
 * file belongs to a newer version or another program, is locked, damaged or not writable.
 */
export async function openStateStore(options: StateStoreOptions): Promise<StateStore> {
  const path = fileOf(options.path);
  const { log, clock, pageBytes } = options;
  const setup = pageBytes === undefined ? { path } : { path, pageBytes };
  const client = await StoreClient.start({ setup, log, clock });
  const store = storeOf(client, clock);
  const prune = (): void => {
    store.prune().catch((error: unknown) => {
      if (client.isClosing) return;
      log.warn({ code: "state_store_prune_failed", err: error }, "Old state could not be deleted");
    });
  };
  const timer = setInterval(prune, PRUNE_EVERY_MS).unref();
  prune();
  return {
    ...store,
    close: async () => {
      clearInterval(timer);
      await client.close();
    },
  };
}

function fileOf(address: string): string {
  if (/^postgres(?:ql)?:/iu.test(address)) {
    throw new StateStoreError(
      "other",
      "GATEWAY_STATE_DB names a PostgreSQL server: that is reserved for a store shared by several gateways, which this version does not have. Name a file",
    );
  }
  if (address === "" || /^[a-z][a-z0-9+.-]+:/iu.test(address) || address.includes("\0")) {
    throw new StateStoreError("other", "GATEWAY_STATE_DB must be the path of a file");
  }
  return resolve(address);
}

function storeOf(client: StoreClient, clock: Clock): StateStore {
  const { ledger } = client;
  return {
    quotas: {
      charge: (consumer, budgets, enforce) =>
        client.isClosing
          ? { outcome: "failed", error: "The state store is closed" }
          : ledger.charge(consumer, budgets, enforce),
      usage: async (consumers, windows) => await usageOf(client, consumers, windows),
      adjust: async (consumer, window, delta) => {
        if (client.isClosing) throw new Error("The state store is closed");
        await ledger.adjust(consumer, window, delta);
      },
      syncConsumers: async (names) => await ledger.sync(names),
    },
    outbox: {
      append: async (event) => await client.call("appendEvent", { ...event, nowMs: clock.now() }),
      acknowledge: async (id, target) => await client.call("acknowledgeEvent", { id, target, nowMs: clock.now() }),
      pending: async () => await pendingEvents(client),
    },
    usage: {
      add: async (rows) => await client.call("addUsage", rows),
      totals: async (span, fromS, toS) => await usageTotals(client, span, fromS, toS),
      oldestHour: async () => await client.call("oldestHour", undefined),
      addRun: async (run) => await client.call("addRun", run),
      runs: async (limit) => await client.call("runs", { limit }),
      lastScheduled: async (window, beforeS) => await client.call("lastScheduled", { window, beforeS }),
    },
    credentials: {
      all: async () => await client.call("credentials", undefined),
      add: async (credential) => await client.call("addCredential", credential),
      retire: async (id, atMs) => await client.call("retireCredential", { id, atMs }),
    },
    recordGeneration: async (record) => await client.call("addGeneration", record),
    generations: async (limit) => await client.call("generations", { limit }),
    generation: async (number) => await client.call("generation", { number }),
    prune: async () => {
      while (!(await client.call("prune", { nowMs: clock.now() })));
    },
    close: async () => await client.close(),
  };
}

async function usageOf(
  client: StoreClient,
  consumers: readonly string[],
  windows: readonly BudgetWindow[],
): Promise<readonly (readonly bigint[] | undefined)[]> {
  const asked = windows.map(({ budget, windowStartS }) => [budget, windowStartS] as const);
  const responses: (readonly bigint[] | undefined)[] = [];
  for (let at = 0; at < consumers.length; at += USAGE_STEP) {
    const names = consumers.slice(at, at + USAGE_STEP);
    responses.push(...(await client.call("usageOf", { names, windows: asked })));
  }
  return responses;
}

async function pendingEvents(client: StoreClient): Promise<readonly OutboxEvent[]> {
  const events: OutboxEvent[] = [];
  let afterSeq: number | undefined = 0;
  while (afterSeq !== undefined) {
    const page: Awaited<ReturnType<typeof client.call<"pendingEvents">>> = await client.call("pendingEvents", {
      afterSeq,
    });
    events.push(...page.events);
    afterSeq = page.nextSeq;
  }
  return events;
}

async function usageTotals(client: StoreClient, span: UsageSpan, fromS: number, toS: number): Promise<UsageStretch> {
  const sums = new Map<string, UsageTotal>();
  let rollups = 0;
  let nextS: number | undefined = fromS;
  while (nextS !== undefined) {
    const piece: Awaited<ReturnType<typeof client.call<"usageTotals">>> = await client.call("usageTotals", {
      span,
      fromS: nextS,
      toS,
    });
    if (piece.totals.length > 0) rollups += 1;
    for (const total of piece.totals) sums.set(total.consumer, sumOf(sums.get(total.consumer), total));
    nextS = piece.nextS;
  }
  return { totals: [...sums.values()], rollups };
}

function sumOf(sum: UsageTotal | undefined, more: UsageTotal): UsageTotal {
  if (sum === undefined) return more;
  return {
    consumer: sum.consumer,
    requests: sum.requests + more.requests,
    errors: sum.errors + more.errors,
    rateLimited: sum.rateLimited + more.rateLimited,
    shed: sum.shed + more.shed,
    totalMs: sum.totalMs + more.totalMs,
  };
}
