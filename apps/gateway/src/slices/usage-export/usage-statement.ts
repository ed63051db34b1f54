import type { UsageTotal } from "#storage/state-store.ts";
import type { ExportWindow } from "./export-windows.ts";

/** A budget in the window that contains the statement's. */
export interface StatedBudget {
  readonly used: bigint;
  readonly limit: bigint;
  readonly windowStartS: number;
  readonly resetS: number;
}

/** A consumer's row; budgets are absent if not configured or not covering the window. */
export interface StatedConsumer extends UsageTotal {
  readonly daily: StatedBudget | undefined;
  readonly monthly: StatedBudget | undefined;
}

export interface UsageStatement {
  readonly window: ExportWindow;
  readonly generatedAtMs: number;
  /** Part of the window exceeds the retention. */
  readonly isPartial: boolean;
  /** Number of non-empty rollups in the window. */
  readonly rollups: number;
  readonly consumers: readonly StatedConsumer[];
}

const COLUMNS = [
  "consumer",
  "requests",
  "errors",
  "error_rate",
  "rate_limited",
  "shed",
  "avg_ms",
  "quota_daily_used",
  "quota_daily_limit",
  "quota_monthly_used",
  "quota_monthly_limit",
] as const;

/** RFC 4180 CSV: CRLF, header line, minimal quoting; absent budgets are empty cells. */
export function statementCsv(statement: UsageStatement): string {
  const lines = statement.consumers.map((consumer) => {
    const figures = figuresOf(consumer);
    const cells: (string | number | bigint)[] = [
      consumer.consumer,
      figures.requests,
      figures.errors,
      figures.error_rate,
      figures.rate_limited,
      figures.shed,
      figures.avg_ms,
      consumer.daily?.used ?? "",
      consumer.daily?.limit ?? "",
      consumer.monthly?.used ?? "",
      consumer.monthly?.limit ?? "",
    ];
    return cells.map((cell) => csvCell(String(cell))).join(",");
  });
  return [COLUMNS.join(","), ...lines].map((line) => `${line}\r\n`).join("");
}

function csvCell(text: string): string {
  return /[",\r\n]/u.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** JSON with exact 64-bit numbers; absent budgets are omitted. */
export function statementJson(statement: UsageStatement): string {
  const { window, consumers } = statement;
  const head = JSON.stringify({
    kind: "usage_statement",
    window: window.kind,
    from_ms: window.startMs,
    to_ms: window.endMs,
    generated_at_ms: Math.floor(statement.generatedAtMs),
    partial: statement.isPartial,
    windows_nonempty: statement.rollups,
    totals: figuresOf(totalOf(consumers)),
  });
  return `${head.slice(0, -1)},"consumers":[${consumers.map(consumerJson).join(",")}]}\n`;
}

function consumerJson(consumer: StatedConsumer): string {
  const plain = JSON.stringify({ consumer: consumer.consumer, ...figuresOf(consumer) });
  const budgets = [...budgetMembers("daily", consumer.daily), ...budgetMembers("monthly", consumer.monthly)];
  return `${[plain.slice(0, -1), ...budgets].join(",")}}`;
}

function budgetMembers(name: string, budget: StatedBudget | undefined): string[] {
  if (budget === undefined) return [];
  return [
    `"quota_${name}_used":${budget.used}`,
    `"quota_${name}_limit":${budget.limit}`,
    `"quota_${name}_window_start_epoch_s":${budget.windowStartS}`,
    `"quota_${name}_reset_epoch_s":${budget.resetS}`,
  ];
}

interface Figures {
  readonly requests: number;
  readonly errors: number;
  /** Error ratio, 0 to 1, rounded to six decimals. */
  readonly error_rate: number;
  readonly rate_limited: number;
  readonly shed: number;
  /** Rounded to a microsecond. */
  readonly avg_ms: number;
}

function figuresOf({ requests, errors, rateLimited, shed, totalMs }: Omit<UsageTotal, "consumer">): Figures {
  const share = (part: number, places: number): number =>
    requests === 0 ? 0 : Math.round((part / requests) * 10 ** places) / 10 ** places;
  return { requests, errors, error_rate: share(errors, 6), rate_limited: rateLimited, shed, avg_ms: share(totalMs, 3) };
}

export function totalOf(consumers: readonly UsageTotal[]): Omit<UsageTotal, "consumer"> {
  const sum = { requests: 0, errors: 0, rateLimited: 0, shed: 0, totalMs: 0 };
  for (const { requests, errors, rateLimited, shed, totalMs } of consumers) {
    sum.requests += requests;
    sum.errors += errors;
    sum.rateLimited += rateLimited;
    sum.shed += shed;
    sum.totalMs += totalMs;
  }
  return sum;
}
