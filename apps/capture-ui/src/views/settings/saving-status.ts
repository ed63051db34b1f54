import type { AutoSaveStatus, MirrorStatus } from "@headworks/capture-contract";
import { formatBytes, formatCount, formatDateTime } from "../../ui/format.ts";
import type { Status } from "./listener-status.ts";

/** Status of the mirror. */
export function mirrorStatus(mirror: MirrorStatus): Status {
  if (!mirror.enabled) return { tone: "idle", text: "Off: no files are written" };
  if (!mirror.writing) return { tone: "bad", text: "On, but files are being dropped" };
  const whose =
    mirror.host_filter === null
      ? "of all hosts"
      : mirror.host_filter.length === 1
        ? `of ${mirror.host_filter[0] ?? ""}`
        : `of hosts matching ${formatCount(mirror.host_filter.length)} patterns`;
  return { tone: "good", text: `On: writing responses ${whose} to ${mirror.output_dir}` };
}

/** Status of the auto-save. */
export function autoSaveStatus(autoSave: AutoSaveStatus): Status {
  if (autoSave.saving) return { tone: "waiting", text: "Writing a snapshot" };
  if (autoSave.last_error !== null) return { tone: "bad", text: "Could not save a session" };
  // A setting overridden by flag or environment does not change at restart.
  const isEnabledNext = autoSave.overridden_by["enabled"] === undefined ? autoSave.enabled : autoSave.running;
  if (!autoSave.running) {
    return isEnabledNext
      ? { tone: "waiting", text: "Off; enabled after a restart" }
      : { tone: "idle", text: "Off: snapshots are saved only on request" };
  }
  const next =
    autoSave.next_snapshot === null ? "" : `; next snapshot at ${formatDateTime(Date.parse(autoSave.next_snapshot))}`;
  const until = isEnabledNext ? "" : " until restart";
  return { tone: "good", text: `Saving snapshots at the configured interval${until}${next}` };
}

/** Summary of the newest snapshot. */
export function lastSnapshotText(autoSave: AutoSaveStatus): string {
  if (autoSave.last_snapshot === null) return "none since start";
  const entries = autoSave.last_snapshot_entries ?? 0;
  const size = formatBytes(autoSave.last_snapshot_bytes);
  return `${formatDateTime(Date.parse(autoSave.last_snapshot))}, ${formatCount(entries)} ${entries === 1 ? "request" : "requests"}, ${size}`;
}
