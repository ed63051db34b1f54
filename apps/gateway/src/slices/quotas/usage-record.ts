import type { StateStore } from "#storage/state-store.ts";
import type { ConsumerBudgets } from "./consumer-budgets.ts";

/** State of one budget (specification, quota usage record). */
export interface BudgetUsage {
  readonly budget: "daily" | "monthly";
  readonly limit: bigint;
  readonly used: bigint;
  readonly remaining: bigint;
  readonly window_start_epoch_s: number;
  readonly reset_epoch_s: number;
}

/** A consumer's budgets; `synced` is false, and there are none, if the store has no row. */
export interface ConsumerUsage {
  readonly consumer: string;
  readonly synced: boolean;
  readonly budgets: readonly BudgetUsage[];
}

/** The response of `GET /quotas/usage`. 64-bit numbers are bigints: serialize with {@link usageJson}. */
export interface UsageRecord {
  readonly now_epoch_s: number;
  readonly consumers: readonly ConsumerUsage[];
}

export interface UsageRefusal {
  readonly refused: "state_store_not_configured" | "quota_bad_consumer" | "quota_bad_budget";
  readonly message: string;
}

/** The record of one consumer, or of all with quotas in document order. Rejects if the store cannot be read. */
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

/** The distinct windows of all consumers: at most one day and one month. */
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

/** Serializes a record with exact 64-bit numbers, which `JSON.stringify` does not support. */
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
