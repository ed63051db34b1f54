import { randomUUID } from "node:crypto";
import { open, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Logger } from "pino";
import { makeDirectory } from "@headworks/files";
import type { Analytics, Consumer } from "@headworks/gateway-contract";
import type { Clock } from "#slice.ts";
import type { BudgetName, BudgetWindow, ExportRun, StateStore, UsageTotal } from "#storage/state-store.ts";
import { type ExportKind, type ExportWindow, statementFileName, windowAt } from "./export-windows.ts";
import {
  type StatedBudget,
  type StatedConsumer,
  statementCsv,
  statementJson,
  totalOf,
  type UsageStatement,
} from "./usage-statement.ts";

const DAY_MS = 86_400_000;

/** Minimum retention of the store: hours and daily counters, days and monthly counters. */
const KEPT_SHORT_MS = 40 * DAY_MS;
const KEPT_LONG_MS = 400 * DAY_MS;

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

/** Delay after the end of a window, until all its counts are stored. */
const DUE_AFTER_MS = 300_000;
const MAX_WINDOWS_AT_ONCE = 64;
const RETRY_MS = 600_000;

export interface ExportPlan {
  readonly directory: string;
  readonly kind: ExportKind;
  readonly formats: readonly ("csv" | "json")[];
  readonly consumers: readonly Consumer[];
}

/** The plan of a document; undefined without exports. */
export function planOf(analytics: Analytics | undefined, consumers: readonly Consumer[]): ExportPlan | undefined {
  const exports = analytics?.exports;
  if (exports === undefined) return undefined;
  const { directory, window = "daily", formats = ["csv", "json"] } = exports;
  return { directory, kind: window, formats, consumers };
}

export interface ScheduleHost {
  readonly store: StateStore;
  readonly clock: Clock;
  readonly log: Logger;
  /** Flushes pending counts to the store. */
  flush(): Promise<void>;
}

/** Writes usage statements on schedule or on demand, one at a time. */
export class ExportSchedule {
  readonly #host: ScheduleHost;
  #plan: ExportPlan | undefined;
  #retryAtMs = Number.NEGATIVE_INFINITY;
  #last: Promise<unknown> = Promise.resolve();

  constructor(host: ScheduleHost) {
    this.#host = host;
  }

  get plan(): ExportPlan | undefined {
    return this.#plan;
  }

  /** Replaces the plan; failed exports may be retried. */
  follow(plan: ExportPlan | undefined): void {
    this.#plan = plan;
    this.#retryAtMs = Number.NEGATIVE_INFINITY;
  }

  /** Writes due statements, oldest first. Never rejects. */
  async tick(): Promise<void> {
    await this.#inTurn(async () => await this.#exportDue()).catch((error: unknown) => {
      this.#failed(error instanceof Error ? error.message : String(error));
    });
  }

  /** Writes one window; the run contains the outcome. Rejects if the run cannot be recorded. */
  async run(window: ExportWindow, scheduled: boolean): Promise<ExportRun> {
    return await this.#inTurn(async () => await this.#export(window, scheduled));
  }

  /** Resolves when idle. */
  async settled(): Promise<void> {
    await this.#last;
  }

  async #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const mine = this.#last.then(work);
    this.#last = mine.catch(() => undefined);
    return await mine;
  }

  async #exportDue(): Promise<void> {
    const { clock } = this.#host;
    for (let count = 0; count < MAX_WINDOWS_AT_ONCE; count += 1) {
      const plan = this.#plan;
      if (plan === undefined || clock.monotonic() < this.#retryAtMs) return;
      const window = await this.#next(plan.kind);
      if (window === undefined || window.endMs + DUE_AFTER_MS > clock.now()) return;
      const { status, error } = await this.#export(window, true);
      if (status === "failed") return this.#failed(error ?? "");
    }
  }

  #failed(error: string): void {
    const { clock, log } = this.#host;
    this.#retryAtMs = clock.monotonic() + RETRY_MS;
    log.error({ code: "analytics_export_failed" }, `A usage statement could not be written: ${error}`);
  }

  /** The window after the last written one; initially the window of the oldest known traffic. */
  async #next(kind: ExportKind): Promise<ExportWindow | undefined> {
    const { store, clock } = this.#host;
    const lastS = await store.usage.lastScheduled(kind, clock.now() / 1000);
    if (lastS !== undefined) return windowAt(kind, windowAt(kind, lastS * 1000).endMs);
    await this.#host.flush();
    const oldestS = await store.usage.oldestHour();
    return oldestS === undefined ? undefined : windowAt(kind, oldestS * 1000);
  }

  async #export(window: ExportWindow, scheduled: boolean): Promise<ExportRun> {
    const { store, clock } = this.#host;
    const plan = this.#plan;
    if (plan === undefined) throw new Error("No exports are configured any more");
    const common = {
      window: window.kind,
      windowStartS: window.startMs / 1000,
      scheduled,
      formats: plan.formats,
      directory: plan.directory,
      generatedAtMs: clock.now(),
    };
    let run: ExportRun;
    try {
      await this.#host.flush();
      const statement = await readStatement(store, plan.consumers, window, clock.now());
      for (const format of plan.formats) {
        const text = format === "csv" ? statementCsv(statement) : statementJson(statement);
        await writeStatement(plan.directory, statementFileName(window, format), text);
      }
      const { requests } = totalOf(statement.consumers);
      const consumers = statement.consumers.length;
      const { isPartial: partial, rollups: windowsNonempty } = statement;
      run = { ...common, status: "ok", partial, consumers, requests, windowsNonempty, error: undefined };
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      run = {
        ...common,
        status: "failed",
        partial: false,
        consumers: 0,
        requests: 0,
        windowsNonempty: 0,
        error: message,
      };
    }
    await store.usage.addRun(run);
    return run;
  }
}

/** Reads the content of a statement. Rejects if the store cannot be read. */
async function readStatement(
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

/** Budgets whose windows contain the statement's, of consumers with such budgets and a row. */
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

/** Omits windows whose counters may have been pruned and would read as zero. */
function containing(window: ExportWindow, nowMs: number): (BudgetWindow & { readonly resetS: number })[] {
  const day = { budget: "daily", keptMs: KEPT_SHORT_MS, ...windowAt("daily", window.startMs) } as const;
  const month = { budget: "monthly", keptMs: KEPT_LONG_MS, ...windowAt("monthly", window.startMs) } as const;
  return (window.kind === "monthly" ? [month] : [day, month])
    .filter(({ startMs, keptMs }) => startMs >= nowMs - keptMs)
    .map(({ budget, startMs, endMs }) => ({ budget, windowStartS: startMs / 1000, resetS: endMs / 1000 }));
}

/** Writes a file atomically and durably; creates the directory. Failures leave no partial file. */
async function writeStatement(directory: string, name: string, text: string): Promise<void> {
  await makeDirectory(directory, 0o777);
  const draft = join(directory, `.${name}.${randomUUID()}.tmp`);
  try {
    const file = await open(draft, "wx", 0o640);
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(draft, join(directory, name));
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
  await syncDirectory(directory);
}

/** Makes the rename durable; not supported on Windows. */
async function syncDirectory(directory: string): Promise<void> {
  if (process.platform === "win32") return;
  const folder = await open(directory, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
