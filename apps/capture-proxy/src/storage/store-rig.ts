import type { TrafficEntry, TrafficFilter, TrafficSnapshot } from "@headworks/capture-contract";
import type { Exchange } from "#exchange/exchange.ts";
import type { CaptureStore, StoreLimits } from "./capture-store.ts";
import { openCaptureStore } from "./open-capture-store.ts";
import { sampleExchange } from "./read/sample-exchange.ts";
import type { SampleOptions } from "./read/sample-exchange.ts";

/** A store in a directory, with shortcuts for tests. `await using` closes it. */
export interface StoreRig {
  readonly store: CaptureStore;
  /** Logged error lines. */
  readonly alarms: readonly string[];
  /** Records a finished exchange; large bodies are spooled. */
  add(options?: SampleOptions): Exchange;
  /** Records a running or finished exchange under a number. */
  addAs(seq: number, options: SampleOptions): Exchange;
  rows(filter?: TrafficFilter, window?: RowOptions): Promise<{ total: number; rows: TrafficSnapshot[] }>;
  entry(id: string): Promise<TrafficEntry | undefined>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface RowOptions {
  readonly sort?: string;
  readonly order?: "asc" | "desc";
  readonly offset?: number;
  readonly limit?: number;
}

const NO_LIMITS: StoreLimits = { maxRequests: 0, maxTotalSizeMb: null, maxBodyBytes: 20_971_520 };
export const NEVER = new AbortController().signal;

/** Opens the store of a directory for a test. */
export async function openRig(
  dataDir: string,
  limits: Partial<StoreLimits> = {},
  databasePath?: string,
): Promise<StoreRig> {
  const alarms: string[] = [];
  const ignore = (): void => undefined;
  const store = await openCaptureStore({
    dataDir,
    databasePath,
    limits: { ...NO_LIMITS, ...limits },
    log: { info: ignore, warn: ignore, error: (_facts, message) => void alarms.push(message) },
    clock: { now: () => Date.now() },
  });
  return {
    store,
    alarms,
    add: (options = {}) => {
      const exchange = sampleExchange({ spool: store.spool, ...options });
      store.record(store.nextSeq(), exchange);
      return exchange;
    },
    addAs: (seq, options) => {
      const exchange = sampleExchange({ spool: store.spool, ...options });
      store.record(seq, exchange);
      return exchange;
    },
    rows: async (filter = {}, { sort = "seq", order = "desc", offset = 0, limit = 1000 } = {}) => {
      const { json } = await store.listRows({ filter, sort, order, offset, limit }, NEVER);
      return JSON.parse(new TextDecoder().decode(json)) as { total: number; rows: TrafficSnapshot[] };
    },
    entry: async (id) => await store.getEntry(id, { includeBodies: true, decompressed: false }),
    [Symbol.asyncDispose]: async () => await store.close(),
  };
}
