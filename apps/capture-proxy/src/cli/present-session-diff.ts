import type { SessionDiff, SessionDiffRow } from "@headworks/capture-contract";
import { visibleText } from "./terminal.ts";
import type { Terminal } from "./terminal.ts";

/** More than these are for programs; `--json` has them. */
const MAX_ROWS = 200;

/** A comparison of two sessions for people: what only one has, and which answers became others. */
export function presentSessionDiff(diff: SessionDiff, terminal: Terminal): string {
  const lines: string[] = [];
  for (const row of diff.only_left.slice(0, MAX_ROWS)) lines.push(terminal.style("red", `- ${rowText(row)}`));
  for (const row of diff.only_right.slice(0, MAX_ROWS)) lines.push(terminal.style("green", `+ ${rowText(row)}`));
  for (const { left, right, differs } of diff.changed.slice(0, MAX_ROWS)) {
    const responses =
      responseText(left) === responseText(right)
        ? responseText(left)
        : `${responseText(left)} → ${responseText(right)}`;
    lines.push(
      terminal.style("yellow", visibleText(`~ ${left.method} ${left.url}  ${responses}  ${differs.join(", ")}`)),
    );
    lines.push(terminal.style("dim", `  weir diff ${left.id} ${right.id}`));
  }
  if (Math.max(diff.only_left_count, diff.only_right_count, diff.changed_count) > MAX_ROWS) {
    lines.push(terminal.style("dim", "… more, see --json"));
  }
  const counts = `${diff.same_count} alike, ${diff.changed_count} changed, ${diff.only_left_count} only left, ${diff.only_right_count} only right`;
  const rest = diff.not_compared_count === 0 ? "" : `, ${diff.not_compared_count} not compared`;
  lines.push(terminal.style(diff.same ? "green" : "bold", `${counts}${rest}`));
  return `${lines.join("\n")}\n`;
}

function rowText(row: SessionDiffRow): string {
  return visibleText(`${row.method} ${row.url}  ${responseText(row)}`);
}

function responseText({ status_code, failure_code }: SessionDiffRow): string {
  return failure_code ?? String(status_code ?? "no answer");
}
