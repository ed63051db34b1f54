import type { CaptureStats, TrafficSummary } from "@headworks/capture-contract";
import { ConnectionBadge } from "../../shell/connection-badge.tsx";
import { formatBytes, formatCount, formatDuration, formatShare } from "../../ui/format.ts";
import styles from "./traffic.module.css";

/** Totals of what is shown, and how the store and the live channel are. */
export function Footer({
  summary,
  stats,
  selected,
}: {
  readonly summary: TrafficSummary | undefined;
  readonly stats: CaptureStats | undefined;
  readonly selected: number;
}) {
  return (
    <footer className={styles["footer"]}>
      {summary !== undefined && (
        <>
          <span>
            <b>{formatCount(summary.matched)}</b>
            {summary.matched === summary.total ? (
              summary.total === 1 ? (
                " entry"
              ) : (
                " entries"
              )
            ) : (
              <>
                {" "}
                shown of <b>{formatCount(summary.total)}</b>
              </>
            )}
          </span>
          {selected > 1 && (
            <span>
              <b>{formatCount(selected)}</b> selected
            </span>
          )}
          {summary.pending > 0 && <span>{formatCount(summary.pending)} waiting</span>}
          <span title={`${formatBytes(summary.request_bytes)} sent, ${formatBytes(summary.response_bytes)} received`}>
            {formatBytes(summary.request_bytes + summary.response_bytes)}
          </span>
          <span className={styles["wide"]}>
            p50 <b>{formatDuration(summary.duration_p50_ms)}</b>
          </span>
          <span className={styles["wide"]}>
            p95 <b>{formatDuration(summary.duration_p95_ms)}</b>
          </span>
          <span className={summary.errors > 0 ? styles["errors"] : undefined}>
            {formatShare(summary.errors, summary.matched)} errors
          </span>
        </>
      )}
      <span className={styles["spacer"]} />
      {stats !== undefined && stats.max_entries > 0 && stats.entry_count >= stats.max_entries && (
        <span className={styles["errors"]}>
          Session full at {formatCount(stats.max_entries)}: the oldest entries are removed
        </span>
      )}
      {stats !== undefined && (
        <span className={stats.storage_ok ? styles["wide"] : styles["errors"]}>
          {stats.storage_ok
            ? `Store ${formatBytes(stats.store_size_bytes)}`
            : (stats.storage_problem ?? "The store has a problem")}
        </span>
      )}
      <ConnectionBadge />
    </footer>
  );
}
