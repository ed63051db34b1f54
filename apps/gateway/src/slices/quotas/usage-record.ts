import type { StateStore } from "#storage/state-store.ts";
import type { ConsumerBudgets } from "./consumer-budgets.ts";

/** One budget of a consumer as it stands (specification, quota usage record). */
export interface BudgetUsage {
  readonly budget: "daily" | "monthly";
  readonly limit: bigint;
  readonly used: bigint;
  readonly remaining: bigint;
  readonly window_start_epoch_s: number;
  readonly reset_epoch_s: number;
}

/** A consumer's budgets; `synced` false and none of them when the store has no row for it. */
export interface ConsumerUsage {
  readonly consumer: string;
  readonly synced: boolean;
  readonly budgets: readonly BudgetUsage[];
}

/** The answer of `GET /quotas/usage`. Numbers of 64 bits are bigints: write it with {@link usageJson}. */
export interface UsageRecord {
  readonly now_epoch_s: number;
  readonly consumers: readonly ConsumerUsage[];
}

/** Why there is no usage record. */
export interface UsageRefusal {
  readonly refused: "state_store_not_configured" | "quota_bad_consumer" | "quota_bad_budget";
  readonly message: string;
}

/**
 * Reads the record of one consumer, or of all that have quotas in the document's order. Rejects when the store cannot
 * be read.
 */
export async function usageRecordOf(
  store: StateStore | undefined,
  budgets: ReadonlyMap<string, ConsumerBudgets>,
  nowMs: number,
  consumer?: string,
): Promise<UsageRecord | UsageRefusal> {
  if (store === undefined) {
    return {
      refused: "state_store_not_configured",
      message: "Quotas are counted in a state store; set GATEWAY_STATE_DB",
    };
  }
  const one = consumer === undefined ? undefined : budgets.get(consumer);
  if (consumer !== undefined && one === undefined) {
    return { refused: "quota_bad_consumer", message: `No consumer of that name declares quotas` };
  }
  const asked = one === undefined ? [...budgets.values()] : [one];
  const windows = windowsOf(asked, nowMs);
  const rows = await store.quotas.usage(
    asked.map((entry) => entry.consumer),
    windows,
  );
  return {
    now_epoch_s: Math.floor(nowMs / 1000),
    consumers: asked.map((entry, index) => consumerUsage(entry, nowMs, windows, rows[index])),
  };
}

/** The windows that any of them counts in: at most one day and one month. */
function windowsOf(asked: readonly ConsumerBudgets[], nowMs: number): readonly Window[] {
  const windows: Window[] = [];
  for (const { budget, windowStartS } of asked.flatMap((entry) => entry.at(nowMs))) {
    if (!windows.some((window) => window.budget === budget)) windows.push({ budget, windowStartS });
  }
  return windows;
}

interface Window {
  readonly budget: "daily" | "monthly";
  readonly windowStartS: number;
}

function consumerUsage(
  entry: ConsumerBudgets,
  nowMs: number,
  windows: readonly Window[],
  row: readonly bigint[] | undefined,
): ConsumerUsage {
  if (row === undefined) return { consumer: entry.consumer, synced: false, budgets: [] };
  const budgets = entry.at(nowMs).map(({ budget, limit, windowStartS, endMs }) => {
    const used = row[windows.findIndex((window) => window.budget === budget)] ?? 0n;
    return {
      budget,
      limit,
      used,
      remaining: used >= limit ? 0n : limit - used,
      window_start_epoch_s: windowStartS,
      reset_epoch_s: endMs / 1000,
    };
  });
  return { consumer: entry.consumer, synced: true, budgets };
}

/** The record as JSON text; a number has all its digits, which `JSON.stringify` gives no bigint. */
export function usageJson(record: UsageRecord): string {
  return `{"now_epoch_s":${record.now_epoch_s},"consumers":[${record.consumers.map(consumerJson).join(",")}]}`;
}

function consumerJson({ consumer, synced, budgets }: ConsumerUsage): string {
  return `{"consumer":${JSON.stringify(consumer)},"synced":${synced},"budgets":[${budgets.map(budgetJson).join(",")}]}`;
}

function budgetJson({ budget, ...numbers }: BudgetUsage): string {
  const members = Object.entries(numbers).map(([name, value]) => `"${name}":${value}`);
  return `{"budget":"${budget}",${members.join(",")}}`;
}
