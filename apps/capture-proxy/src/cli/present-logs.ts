import type { LogStatus } from "@headworks/capture-contract";
import { sizeText, timeText } from "./present-values.ts";
import { renderPairs, renderTable } from "./table.ts";
import type { Terminal } from "./terminal.ts";

/** The log's status for people: what is in force, how writing goes, and the files. Works for a rotation's answer too. */
export function presentLogStatus(status: LogStatus & { readonly rotated_to?: string }, terminal: Terminal): string {
  const { current_file: file, async, debug_logging: debug, traffic_events: events, restart_pending: pending } = status;
  const overridden = Object.entries(status.overridden_by).map(([name, by]) => `${name} by ${by}`);
  const pairs: [string, string][] = [
    ["put away", status.rotated_to ?? ""],
    ["file", file === null ? "none; standard output alone" : `${file.path} (${sizeText(file.size_bytes)})`],
    ["problem", status.problem ?? ""],
    ["new file", `${rotationText(status.rotation)}, at most ${status.max_file_size_mb} MiB`],
    ["kept", `${status.archived_count} of at most ${status.max_files} old files`],
    ["form", `${status.json_format ? "JSON lines" : "text"}, level ${status.verbosity}`],
    ["after a restart", pending.join(", ")],
    ["overridden", overridden.join(", ")],
    ["lines", `${async.written_events} written, ${async.dropped_events} lost, ${async.buffer_depth} waiting`],
    ["traffic", trafficText(debug, events)],
  ];
  const head = renderPairs(
    pairs.filter(([, value]) => value !== ""),
    terminal,
  );
  if (status.archived_files.length === 0) return head;
  const table = renderTable(
    status.archived_files,
    [
      { title: "Old file", text: (row) => row.name },
      { title: "Size", text: (row) => sizeText(row.size_bytes), align: "right" },
      { title: "Last line", text: (row) => timeText(row.modified) },
    ],
    terminal,
  );
  return `${head}\n${table}`;
}

function rotationText(rotation: LogStatus["rotation"]): string {
  return rotation.mode === "size" ? `size (${rotation.size_mb} MiB)` : rotation.mode;
}

function trafficText(debug: LogStatus["debug_logging"], events: LogStatus["traffic_events"]): string {
  if (!debug.enabled) return "not logged";
  const hosts = debug.host_filter.length === 0 ? "all hosts" : debug.host_filter.join(", ");
  return `${debug.level} of ${hosts}: ${events.logged} events, ${events.dropped} lost`;
}
