import type { ReplayBatch, ReplayResult, ResponseData } from "@headworks/capture-contract";
import { utf8Reading } from "@headworks/http-fields";
import { presentDiff } from "./present-diff.ts";
import { durationText, sizeText } from "./present-values.ts";
import { renderPairs } from "./table.ts";
import { visibleText } from "./terminal.ts";
import type { Terminal } from "./terminal.ts";

const BAR_COLUMNS = 40;

/** A replay for people: what came of it, then the differences where it was compared, otherwise the answer's text. */
export function presentReplay(result: ReplayResult, terminal: Terminal): string {
  const { response, redirects } = result;
  const pairs: [string, string][] = [
    ["request", `${result.request.method} ${result.request.url}`],
    ...redirects.map(({ status_code: status, url }): [string, string] => ["redirect", `${status} from ${url}`]),
    ["answer", response === null ? `none: ${result.error ?? ""}` : statusText(response)],
    ["took", durationText(result.duration_ms)],
    ["size", response === null ? "" : sizeText(response.body_size)],
    ["entry", result.entry_id ?? "not captured"],
  ];
  const head = renderPairs(
    pairs.filter(([, value]) => value !== ""),
    terminal,
  );
  if (result.diff) return `${head}\n${presentDiff(result.diff, terminal)}`;
  const body = response?.body ?? null;
  if (body === null) return head;
  const isBytes = response?.body_encoding === "base64";
  return `${head}\n${isBytes ? terminal.style("dim", "The body is no text: see --json") : shownBody(body, terminal)}\n`;
}

function statusText({ status_code: status, status_message: message }: ResponseData): string {
  return `${status} ${utf8Reading(message ?? "") ?? message ?? ""}`.trim();
}

function shownBody(body: string, terminal: Terminal): string {
  return terminal.isTty ? visibleText(body.replaceAll("\r\n", "\n"), true) : body;
}

/** A batch for people: the numbers, what failed, and how durations spread. */
export function presentBatch(batch: ReplayBatch, terminal: Terminal): string {
  const statuses = Object.entries(batch.statuses).map(([status, count]) => `${status} (${count})`);
  const pairs: [string, string][] = [
    ["batch", batch.id],
    ["sent", `${batch.total} of ${batch.iterations}, ${batch.succeeded} answered, ${batch.failed} failed`],
    ["statuses", statuses.join(", ")],
    ["fastest", durationText(batch.min_ms)],
    ["average", durationText(batch.avg_ms)],
    ["p50", durationText(batch.p50_ms)],
    ["p90", durationText(batch.p90_ms)],
    ["p95", durationText(batch.p95_ms)],
    ["p99", durationText(batch.p99_ms)],
    ["slowest", durationText(batch.max_ms)],
    ...batch.errors.map(({ code, message, count }): [string, string] => [`${code} (${count})`, message]),
  ];
  const shown = pairs.filter(([, value]) => value !== "");
  return renderPairs([...shown, ...bars(batch)], terminal);
}

function bars({ histogram }: ReplayBatch): [string, string][] {
  const most = Math.max(0, ...histogram.map(({ count }) => count));
  if (histogram.length < 2) return [];
  return histogram.map(({ to_ms: to, count }) => [
    `≤ ${durationText(to)}`,
    `${"█".repeat(Math.ceil((count / most) * BAR_COLUMNS))} ${count}`.trim(),
  ]);
}
