import type { Logger } from "pino";
import { type ConfigDocument, dayOf, monthOf, secondsUntil } from "@headworks/gateway-contract";
import type { Gate, RequestContext, Verdict } from "#request/context.ts";
import type { Clock, CompiledSlice, GatewaySlice, IssueReport } from "#slice.ts";
import type { BudgetCharge, BudgetName, ChargeResult, QuotaStore, StateStore } from "#storage/state-store.ts";

const BUDGETS = ["daily_requests", "monthly_requests"] as const;

interface QuotasHost {
  /** Undefined without `GATEWAY_STATE_DB`: quotas are not enforced. */
  readonly store: StateStore | undefined;
  readonly log: Logger;
  readonly clock: Clock;
  readonly metrics: QuotaMetrics;
}

export interface QuotasSlice extends GatewaySlice {
  /** The response of `GET /quotas/usage` for the running configuration. Rejects if the store cannot be read. */
  usageRecord(consumer?: string): Promise<UsageRecord | UsageRefusal>;
  /**
   * Corrects the usage of a budget in its current window; resolves with the updated record. Rejects if the store fails.
   */
  adjust(consumer: string, budget: "daily" | "monthly", delta: bigint): Promise<UsageRecord | UsageRefusal>;
}

/** Request budgets of consumers per UTC day and month. */
export function quotas(host: QuotasHost): QuotasSlice {
  const { store, log, clock } = host;
  const reports = new QuotaReports(log, host.metrics, () => clock.monotonic());
  let running: ReadonlyMap<string, ConsumerBudgets> = new Map();

  const compile = (document: ConfigDocument): CompiledSlice => {
    const budgets = budgetsOf(document);
    const published = (): void => {
      running = budgets;
      if (store === undefined || budgets.size === 0) return;
      // Charges that precede the rows wait for them or fail.
      store.quotas.syncConsumers([...budgets.keys()]).catch((error: unknown) => {
        log.error({ code: "quota_sync_failed", err: error }, "The state store has no rows for the consumers yet");
      });
    };
    if (budgets.size === 0) return { published };
    const gate =
      store === undefined
        ? new InertQuotaGate(budgets, reports)
        : new QuotaGate(budgets, store.quotas, reports, () => clock.now());
    return { gateFor: () => gate, published };
  };

  return {
    name: "quotas",
    check: checkQuotas,
    compile,
    usageRecord: async (consumer) => await usageRecordOf(store, running, clock.now(), consumer),
    adjust: async (consumer, budget, delta) => {
      const nowMs = clock.now();
      const window = running
        .get(consumer)
        ?.at(nowMs)
        .find((current) => current.budget === budget);
      if (running.has(consumer) && window === undefined) {
        return { refused: "quota_bad_budget", message: `Consumer '${consumer}' has no ${budget} budget` };
      }
      if (window !== undefined) await store?.quotas.adjust(consumer, window, delta);
      return await usageRecordOf(store, running, nowMs, consumer);
    },
  };
}

/** Quota rule 1: a consumer with quotas has at least one budget, none of them zero. */
function checkQuotas(document: ConfigDocument, report: IssueReport): void {
  for (const [index, consumer] of document.consumers.entries()) {
    const { quotas } = consumer;
    if (quotas === undefined) continue;
    const fieldPath = ["consumers", index, "quotas"];
    if (BUDGETS.every((budget) => quotas[budget] === undefined)) {
      const message = `consumer '${consumer.name}' has quotas without a budget: set daily_requests or monthly_requests, or leave quotas out`;
      report.error("quota_empty", fieldPath, message);
    }
    for (const budget of BUDGETS) {
      if (quotas[budget] !== 0n) continue;
      const message = `consumer '${consumer.name}' has ${budget} 0: a budget must be greater than zero; omit it for no budget`;
      report.error("quota_zero", [...fieldPath, budget], message);
    }
  }
}

interface CurrentBudget extends BudgetCharge {
  readonly endMs: number;
}

/** The configured budgets of a consumer. */
class ConsumerBudgets {
  readonly consumer: string;
  readonly isDryRun: boolean;
  readonly #daily: bigint | undefined;
  readonly #monthly: bigint | undefined;
  #current: readonly CurrentBudget[] = [];
  #fromMs = Number.POSITIVE_INFINITY;
  #untilMs = Number.NEGATIVE_INFINITY;

  constructor(
    consumer: string,
    limits: { readonly daily: bigint | undefined; readonly monthly: bigint | undefined },
    isDryRun: boolean,
  ) {
    this.consumer = consumer;
    this.isDryRun = isDryRun;
    this.#daily = limits.daily;
    this.#monthly = limits.monthly;
  }

  /** Windows of both budgets at the same instant, daily first. Cached until the day ends or the clock is set back. */
  at(nowMs: number): readonly CurrentBudget[] {
    if (nowMs >= this.#fromMs && nowMs < this.#untilMs) return this.#current;
    const day = dayOf(nowMs);
    const month = monthOf(nowMs);
    const budgets: CurrentBudget[] = [];
    const add = (budget: BudgetName, window: { startMs: number; endMs: number }, limit: bigint | undefined): void => {
      if (limit === undefined) return;
      budgets.push({ budget, limit, windowStartS: window.startMs / 1000, endMs: window.endMs });
    };
    add("daily", day, this.#daily);
    add("monthly", month, this.#monthly);
    this.#current = budgets;
    this.#fromMs = day.startMs;
    this.#untilMs = day.endMs;
    return budgets;
  }
}

/** Consumers with quotas by name, in document order. */
function budgetsOf(document: ConfigDocument): ReadonlyMap<string, ConsumerBudgets> {
  const budgets = new Map<string, ConsumerBudgets>();
  for (const { name, quotas } of document.consumers) {
    if (quotas === undefined) continue;
    const limits = { daily: quotas.daily_requests, monthly: quotas.monthly_requests };
    budgets.set(name, new ConsumerBudgets(name, limits, quotas.dry_run ?? false));
  }
  return budgets;
}

/** State of one budget (specification, quota usage record). */
interface BudgetUsage {
  readonly budget: "daily" | "monthly";
  readonly limit: bigint;
  readonly used: bigint;
  readonly remaining: bigint;
  readonly window_start_epoch_s: number;
  readonly reset_epoch_s: number;
}

/** A consumer's budgets; `synced` is false, and there are none, if the store has no row. */
interface ConsumerUsage {
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
async function usageRecordOf(
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
  const requested = one === undefined ? [...budgets.values()] : [one];
  const windows = windowsOf(requested, nowMs);
  const rows = await store.quotas.usage(
    requested.map((entry) => entry.consumer),
    windows,
  );
  return {
    now_epoch_s: Math.floor(nowMs / 1000),
    consumers: requested.map((entry, index) => consumerUsage(entry, nowMs, windows, rows[index])),
  };
}

/** The distinct windows of all consumers: at most one day and one month. */
function windowsOf(requested: readonly ConsumerBudgets[], nowMs: number): readonly Window[] {
  const windows: Window[] = [];
  for (const { budget, windowStartS } of requested.flatMap((entry) => entry.at(nowMs))) {
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

/** Charges requests of consumers with quotas; others pass synchronously. */
class QuotaGate implements Gate {
  readonly #budgets: ReadonlyMap<string, ConsumerBudgets>;
  readonly #store: QuotaStore;
  readonly #reports: QuotaReports;
  readonly #nowMs: () => number;

  constructor(
    budgets: ReadonlyMap<string, ConsumerBudgets>,
    store: QuotaStore,
    reports: QuotaReports,
    nowMs: () => number,
  ) {
    this.#budgets = budgets;
    this.#store = store;
    this.#reports = reports;
    this.#nowMs = nowMs;
  }

  check(request: RequestContext): Verdict | Promise<Verdict> {
    if (request.consumer === undefined) return undefined;
    const budgets = this.#budgets.get(request.consumer.name);
    if (budgets === undefined) return undefined;
    const nowMs = this.#nowMs();
    const current = budgets.at(nowMs);
    const result = this.#store.charge(budgets.consumer, current, !budgets.isDryRun);
    if (!(result instanceof Promise)) return this.#verdict(request, budgets, current, nowMs, result);
    return this.#later(request, budgets, current, nowMs, result);
  }

  async #later(
    request: RequestContext,
    budgets: ConsumerBudgets,
    current: readonly CurrentBudget[],
    nowMs: number,
    result: Promise<ChargeResult>,
  ): Promise<Verdict> {
    return this.#verdict(request, budgets, current, nowMs, await result);
  }

  #verdict(
    request: RequestContext,
    { consumer }: ConsumerBudgets,
    current: readonly CurrentBudget[],
    nowMs: number,
    result: ChargeResult,
  ): Verdict {
    switch (result.outcome) {
      case "charged": {
        const binding = bindingBudget(current, result.over);
        if (binding !== undefined) this.#reports.wouldDeny(request, consumer, binding.budget);
        return undefined;
      }
      case "exhausted":
        return this.#refuse(request, consumer, current, nowMs, result.budgets);
      case "unsynced":
        this.#reports.unsynced(consumer);
        return undefined;
      case "failed":
        this.#reports.storeFailed(request, consumer, result.error);
        return { code: "quota_store_unavailable" };
    }
  }

  #refuse(
    request: RequestContext,
    consumer: string,
    current: readonly CurrentBudget[],
    nowMs: number,
    exhausted: readonly BudgetName[],
  ): Verdict {
    const binding = bindingBudget(current, exhausted);
    if (binding === undefined) return { code: "quota_store_unavailable" };
    request.wasRateLimited = true;
    this.#reports.denied(consumer, binding.budget);
    return {
      code: "quota_exceeded",
      fields: [
        "Retry-After",
        String(secondsUntil(binding.endMs, nowMs)),
        "X-RateLimit-Limit",
        String(binding.limit),
        "X-RateLimit-Remaining",
        "0",
        "X-RateLimit-Reset",
        String(binding.endMs / 1000),
      ],
    };
  }
}

/** The exhausted budget whose window ends last, which determines Retry-After. */
function bindingBudget(current: readonly CurrentBudget[], usedUp: readonly BudgetName[]): CurrentBudget | undefined {
  let binding: CurrentBudget | undefined;
  for (const budget of current) {
    if (!usedUp.includes(budget.budget)) continue;
    if (binding === undefined || budget.endMs > binding.endMs) binding = budget;
  }
  return binding;
}

/** Used without a store: logs once that quotas are not enforced. */
class InertQuotaGate implements Gate {
  readonly #budgets: ReadonlyMap<string, ConsumerBudgets>;
  readonly #reports: QuotaReports;

  constructor(budgets: ReadonlyMap<string, ConsumerBudgets>, reports: QuotaReports) {
    this.#budgets = budgets;
    this.#reports = reports;
  }

  check(request: RequestContext): Verdict {
    if (request.consumer !== undefined && this.#budgets.has(request.consumer.name)) this.#reports.storeMissing();
    return undefined;
  }
}

export interface QuotaMetrics {
  /** A refusal ignored by a dry run; `gateway_policy_dry_run_total` with phase `quota`. */
  dryRun(route: string): void;
  /** A refusal; `gateway_quota_denied_total`. */
  denied(consumer: string, budget: BudgetName): void;
}

/** Minimum interval of repeated log lines. */
const REPEAT_MS = 1000;

class QuotaReports {
  readonly #log: Logger;
  readonly #metrics: QuotaMetrics;
  readonly #monotonic: () => number;
  readonly #loggedUnsynced = new Set<string>();
  #loggedMissing = false;
  #failedAtMs = Number.NEGATIVE_INFINITY;
  #failures = 0;

  constructor(log: Logger, metrics: QuotaMetrics, monotonic: () => number) {
    this.#log = log;
    this.#metrics = metrics;
    this.#monotonic = monotonic;
  }

  wouldDeny(request: RequestContext, consumer: string, budget: BudgetName): void {
    const route = request.route?.name ?? "unrouted";
    this.#metrics.dryRun(route);
    this.#log.warn(
      {
        code: "policy_dry_run",
        phase: "quota",
        would_be_status: 429,
        route,
        consumer,
        budget,
        request_id: request.requestId,
      },
      `Without dry_run, the ${budget} budget of consumer '${consumer}' would have refused this request`,
    );
  }

  denied(consumer: string, budget: BudgetName): void {
    this.#metrics.denied(consumer, budget);
  }

  /** Logs once per consumer. */
  unsynced(consumer: string): void {
    if (this.#loggedUnsynced.has(consumer)) return;
    this.#loggedUnsynced.add(consumer);
    this.#log.warn(
      { code: "quota_consumer_unsynced", consumer },
      `Consumer '${consumer}' has no row in the state store: its requests pass and are not counted`,
    );
  }

  /** Logs at most once a second, with the number of requests. */
  storeFailed(request: RequestContext, consumer: string, error: string): void {
    this.#failures += 1;
    const nowMs = this.#monotonic();
    if (nowMs - this.#failedAtMs < REPEAT_MS) return;
    this.#failedAtMs = nowMs;
    this.#log.error(
      { code: "quota_store_unavailable", consumer, request_id: request.requestId, requests: this.#failures },
      error,
    );
    this.#failures = 0;
  }

  /** Logs once. */
  storeMissing(): void {
    if (this.#loggedMissing) return;
    this.#loggedMissing = true;
    this.#log.warn(
      { code: "quota_store_missing" },
      "Quotas are configured and not enforced: they need a state store, set GATEWAY_STATE_DB to a file",
    );
  }
}
