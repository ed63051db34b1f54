import { useQuery } from "@tanstack/react-query";
import { statsQuery } from "../../queries.ts";
import { formatBytes, formatCount } from "../../ui/format.ts";
import { ErrorState, Spinner } from "../../ui/states.tsx";
import { Card } from "../../ui/page.tsx";
import styles from "./settings.module.css";

/** What is stored, against its limits, and what could not be stored. */
export function StorageCard() {
  const stats = useQuery({ ...statsQuery, refetchInterval: 5000 });
  const data = stats.data;
  return (
    <Card id="storage" title="Storage">
      {stats.error !== null && (
        <ErrorState title="Storage cannot be read" error={stats.error} onRetry={() => void stats.refetch()} />
      )}
      {stats.isPending && <Spinner label="Reading the storage" />}
      {data !== undefined && (
        <>
          {!data.storage_ok && (
            <p className={styles["error"]} role="alert">
              Traffic is not being stored: {data.storage_problem ?? "the reason is in the log"}
            </p>
          )}
          <div className={styles["bars"]}>
            <Bar
              label="Entries of the active session"
              value={data.entry_count}
              max={data.max_entries}
              text={formatCount}
            />
            <Bar
              label="Stored bodies of the active session"
              value={data.total_size_bytes}
              max={data.max_total_size_bytes}
              text={formatBytes}
            />
          </div>
          <dl className={styles["facts"]}>
            <dt>On disk, all sessions</dt>
            <dd>{formatBytes(data.store_size_bytes)}</dd>
            <dt>Stored part of one body</dt>
            <dd>at most {formatBytes(data.max_body_size)}</dd>
            <dt>Bodies not stored since start</dt>
            <dd className={data.bodies_not_stored > 0 ? styles["bad"] : undefined}>
              {formatCount(data.bodies_not_stored)}
            </dd>
            <dt>Entries lost since start</dt>
            <dd className={data.entries_lost > 0 ? styles["bad"] : undefined}>{formatCount(data.entries_lost)}</dd>
          </dl>
        </>
      )}
    </Card>
  );
}

function Bar({
  label,
  value,
  max,
  text,
}: {
  readonly label: string;
  readonly value: number;
  readonly max: number;
  readonly text: (value: number) => string;
}) {
  const share = max > 0 ? Math.min(1, value / max) : 0;
  return (
    <div className={styles["bar"]}>
      <span>{label}</span>
      <span className={styles["barText"]}>
        <b>{text(value)}</b> {max > 0 ? `of ${text(max)}` : "no limit"}
      </span>
      <span
        className={styles["barTrack"]}
        role="meter"
        aria-label={label}
        aria-valuemin={0}
        aria-valuemax={Math.max(1, max, value)}
        aria-valuenow={value}
      >
        <i style={{ width: `${share * 100}%` }} data-full={share > 0.9 || undefined} />
      </span>
    </div>
  );
}
