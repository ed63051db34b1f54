import type { LogStatus } from "@headworks/capture-contract";
import { formatBytes, formatCount } from "../../ui/format.ts";
import type { Status } from "./listener-status.ts";

export function logStatus(log: LogStatus): Status {
  if (log.current_file === null) return { tone: "idle", text: "No file: logging to standard output only" };
  if (log.problem !== null) return { tone: "bad", text: "Cannot write the file; retrying every second" };
  const waits = log.restart_pending.length > 0 ? "; some settings require a restart" : "";
  return { tone: "good", text: `Written to ${log.current_file.path}${waits}` };
}

export function trafficLogText(log: LogStatus): string {
  const { enabled, level, host_filter: hosts } = log.debug_logging;
  if (!enabled) return "not logged";
  const whose = hosts.length === 0 ? "all hosts" : hosts.length === 1 ? (hosts[0] ?? "") : `${hosts.length} patterns`;
  const isHidden = log.verbosity === "warn" || log.verbosity === "error" || log.verbosity === "silent";
  if (isHidden) return `nothing: only level ${log.verbosity} is logged`;
  return `${level} of ${whose}, ${formatCount(log.traffic_events.logged)} events since start`;
}

export function archivesText(log: LogStatus): string {
  const size = log.archived_files.reduce((sum, file) => sum + file.size_bytes, 0);
  if (log.archived_count === 0) return "none yet";
  return `${formatCount(log.archived_count)} of at most ${formatCount(log.max_files)}, ${formatBytes(size)}`;
}
