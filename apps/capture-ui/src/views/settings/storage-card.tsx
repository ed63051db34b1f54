import { useQuery } from "@tanstack/react-query";
import { statsQuery } from "../../queries.ts";
import { formatBytes, formatCount } from "../../ui/format.ts";
import { Fact, Facts, LiveSection, Problem } from "./section.tsx";
import styles from "./settings.module.css";

export function StorageCard() {
  const stats = useQuery({ ...statsQuery, refetchInterval: 5000 });
  return (
    <LiveSection id="storage" title="Storage" query={stats}>
      {(data) => (
        <>
          {!data.storage_ok && <Problem>Traffic is not being stored: {data.storage_problem ?? "see the log"}</Problem>}
          <div className={styles["bars"]}>
            <Bar
              label="Requests in the active session"
              value={data.entry_count}
              max={data.max_entries}
              text={formatCount}
            />
            <Bar
              label="Stored bodies in the active session"
              value={data.total_size_bytes}
              max={data.max_total_size_bytes}
              text={formatBytes}
            />
          </div>
          <Facts>
            <Fact name="On disk, all sessions">{formatBytes(data.store_size_bytes)}</Fact>
            <Fact name="Stored bytes per body">at most {formatBytes(data.max_body_size)}</Fact>
            <Fact name="Bodies not stored since start" bad={data.bodies_not_stored > 0}>
              {formatCount(data.bodies_not_stored)}
            </Fact>
            <Fact name="Requests lost since start" bad={data.entries_lost > 0}>
              {formatCount(data.entries_lost)}
            </Fact>
          </Facts>
        </>
      )}
    </LiveSection>
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
