import type { Consumer } from "@headworks/gateway-contract";
import type { BudgetName, BudgetWindow, StateStore, UsageTotal } from "#storage/state-store.ts";
import { windowAt } from "./export-windows.ts";
import type { ExportWindow } from "./export-windows.ts";
import type { StatedBudget, StatedConsumer, UsageStatement } from "./usage-statement.ts";

const DAY_MS = 86_400_000;
/** What the store keeps at least: hours and daily counters, days and monthly counters. */
const KEPT_SHORT_MS = 40 * DAY_MS;
const KEPT_LONG_MS = 400 * DAY_MS;

/** Reads what a window's statement says. Rejects when the store cannot be read. */
export async function readStatement(
  store: StateStore,
  configured: readonly Consumer[],
  window: ExportWindow,
  nowMs: number,
): Promise<UsageStatement> {
  const span = window.kind === "monthly" ? "day" : "hour";
  const { totals, rollups } = await store.usage.totals(span, window.startMs / 1000, window.endMs / 1000);
  const budgets = await readBudgets(store, configured, window, nowMs);
  const lines = new Map(totals.map((total): [string, StatedConsumer] => [total.consumer, stated(total, undefined)]));
  for (const [consumer, found] of budgets) lines.set(consumer, stated(lines.get(consumer) ?? nothing(consumer), found));
  const keptMs = span === "hour" ? KEPT_SHORT_MS : KEPT_LONG_MS;
  return {
    window,
    generatedAtMs: nowMs,
    isPartial: window.startMs < nowMs - keptMs,
    rollups,
    consumers: [...lines.values()].toSorted((a, b) => (a.consumer < b.consumer ? -1 : 1)),
  };
}

type Budgets = Partial<Record<BudgetName, StatedBudget>>;

const stated = (total: UsageTotal, budgets: Budgets | undefined): StatedConsumer => ({
  ...total,
  daily: budgets?.daily,
  monthly: budgets?.monthly,
});

const nothing = (consumer: string): UsageTotal => ({
  consumer,
  requests: 0,
  errors: 0,
  rateLimited: 0,
  shed: 0,
  totalMs: 0,
});

/** Budgets whose windows contain the statement's; of consumers that have such budgets and a row. */
async function readBudgets(
  store: StateStore,
  configured: readonly Consumer[],
  window: ExportWindow,
  nowMs: number,
): Promise<Map<string, Budgets>> {
  const windows = containing(window, nowMs);
  const withQuotas = configured.filter(({ quotas }) => quotas !== undefined);
  const found = new Map<string, Budgets>();
  if (windows.length === 0 || withQuotas.length === 0) return found;
  const names = withQuotas.map(({ name }) => name);
  const rows = await store.quotas.usage(names, windows);
  for (const [index, { name, quotas }] of withQuotas.entries()) {
    const row = rows[index];
    if (row === undefined) continue;
    const budgets: Budgets = {};
    for (const [at, { budget, windowStartS, resetS }] of windows.entries()) {
      const limit = budget === "daily" ? quotas?.daily_requests : quotas?.monthly_requests;
      if (limit !== undefined) budgets[budget] = { used: row[at] ?? 0n, limit, windowStartS, resetS };
    }
    if (budgets.daily !== undefined || budgets.monthly !== undefined) found.set(name, budgets);
  }
  return found;
}

/** A counter that may have been deleted already is left out: it would read as zero. */
function containing(window: ExportWindow, nowMs: number): (BudgetWindow & { readonly resetS: number })[] {
  const day = { budget: "daily", keptMs: KEPT_SHORT_MS, ...windowAt("daily", window.startMs) } as const;
  const month = { budget: "monthly", keptMs: KEPT_LONG_MS, ...windowAt("monthly", window.startMs) } as const;
  return (window.kind === "monthly" ? [month] : [day, month])
    .filter(({ startMs, keptMs }) => startMs >= nowMs - keptMs)
    .map(({ budget, startMs, endMs }) => ({ budget, windowStartS: startMs / 1000, resetS: endMs / 1000 }));
}
