import type { AutoSaveStatus, MirrorStatus } from "@headworks/capture-contract";
import { formatBytes, formatCount, formatDateTime } from "../../ui/format.ts";
import type { Status } from "./listener-status.ts";

/** What is said of the mirror. */
export function mirrorStatus(mirror: MirrorStatus): Status {
  if (!mirror.enabled) return { tone: "idle", text: "Off: nothing is written to files" };
  if (!mirror.writing) return { tone: "bad", text: "On, but files are being dropped" };
  const whose =
    mirror.host_filter === null
      ? "of all hosts"
      : mirror.host_filter.length === 1
        ? `of ${mirror.host_filter[0] ?? ""}`
        : `of hosts that match one of ${formatCount(mirror.host_filter.length)} patterns`;
  return { tone: "good", text: `On: answers ${whose} are written to ${mirror.output_dir}` };
}

/** What is said of the automatic backup. */
export function autoSaveStatus(autoSave: AutoSaveStatus): Status {
  if (autoSave.saving) return { tone: "waiting", text: "A snapshot is being written" };
  if (autoSave.last_error !== null) return { tone: "bad", text: "A session could not be saved" };
  // A change that something else overrides comes with no start.
  const isEnabledNext = autoSave.overridden_by["enabled"] === undefined ? autoSave.enabled : autoSave.running;
  if (!autoSave.running) {
    return isEnabledNext
      ? { tone: "waiting", text: "Off; it is switched on with the next start" }
      : { tone: "idle", text: "Off: snapshots are made only when asked for" };
  }
  const next =
    autoSave.next_snapshot === null ? "" : `; the next one at ${formatDateTime(Date.parse(autoSave.next_snapshot))}`;
  const until = isEnabledNext ? "" : " until the next start";
  return { tone: "good", text: `Snapshots are made by the clock${until}${next}` };
}

/** The newest snapshot in a few words. */
export function lastSnapshotText(autoSave: AutoSaveStatus): string {
  if (autoSave.last_snapshot === null) return "none since the start";
  const entries = autoSave.last_snapshot_entries ?? 0;
  const size = formatBytes(autoSave.last_snapshot_bytes);
  return `${formatDateTime(Date.parse(autoSave.last_snapshot))}, ${formatCount(entries)} ${entries === 1 ? "entry" : "entries"}, ${size}`;
}
