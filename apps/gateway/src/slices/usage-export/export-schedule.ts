import type { Analytics, Consumer } from "@headworks/gateway-contract";
import type { Logger } from "pino";
import type { Clock } from "#slice.ts";
import type { ExportRun, StateStore } from "#storage/state-store.ts";
import { statementFileName, windowAt } from "./export-windows.ts";
import type { ExportKind, ExportWindow } from "./export-windows.ts";
import { writeStatement } from "./statement-files.ts";
import { readStatement } from "./statement-source.ts";
import { statementCsv, statementJson, totalOf } from "./usage-statement.ts";

/** A window is exported when it has been over for so long: what was counted in it is in the store then. */
const DUE_AFTER_MS = 300_000;
const MAX_WINDOWS_AT_ONCE = 64;
const RETRY_MS = 600_000;

/** Where and what is exported. */
export interface ExportPlan {
  readonly directory: string;
  readonly kind: ExportKind;
  readonly formats: readonly ("csv" | "json")[];
  readonly consumers: readonly Consumer[];
}

/** The plan of a document; undefined when it asks for no exports. */
export function planOf(analytics: Analytics | undefined, consumers: readonly Consumer[]): ExportPlan | undefined {
  const exports = analytics?.exports;
  if (exports === undefined) return undefined;
  const { directory, window = "daily", formats = ["csv", "json"] } = exports;
  return { directory, kind: window, formats, consumers };
}

/** What exporting needs. */
export interface ScheduleHost {
  readonly store: StateStore;
  readonly clock: Clock;
  readonly log: Logger;
  /** Puts into the store what is counted and not there yet. */
  flush(): Promise<void>;
}

/** Writes usage statements when they are due, or when asked; one after the other. */
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

  /** From now on this is exported; what failed before may work now. */
  follow(plan: ExportPlan | undefined): void {
    this.#plan = plan;
    this.#retryAtMs = Number.NEGATIVE_INFINITY;
  }

  /** Writes what is due, oldest first. Never rejects. */
  async tick(): Promise<void> {
    await this.#inTurn(async () => await this.#exportDue()).catch((error: unknown) => {
      this.#failed(error instanceof Error ? error.message : String(error));
    });
  }

  /** Writes one window. The run says whether that worked; rejects when the run cannot be recorded. */
  async run(window: ExportWindow, scheduled: boolean): Promise<ExportRun> {
    return await this.#inTurn(async () => await this.#export(window, scheduled));
  }

  /** Resolves when nothing is being written. */
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

  /** Behind the last window that was written; at first, the one with the oldest traffic that is known. */
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
