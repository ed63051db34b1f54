import type { TrafficEntry } from "@headworks/capture-contract";
import { formatDateTime, formatDuration } from "../../ui/format.ts";
import { EmptyState, Spinner } from "../../ui/states.tsx";
import styles from "./detail.module.css";
import { missingStages, timingBars } from "./timing-bars.ts";

/** The stages of the exchange as a waterfall with their lengths and meanings. */
export function TimingTab({ entry }: { readonly entry: TrafficEntry }) {
  const { bars, totalMs } = timingBars(entry.timings);
  const missing = missingStages(entry.timings);
  if (bars.length === 0) {
    return entry.state === "pending" ? (
      <EmptyState title="Still under way" icon={<Spinner />}>
        The stages are shown when they are over.
      </EmptyState>
    ) : (
      <EmptyState title="No timings">None were recorded for this entry.</EmptyState>
    );
  }
  return (
    <div className={styles["body"]}>
      <table className={styles["waterfall"]} aria-label="Stages">
        <thead className="visually-hidden">
          <tr>
            <th scope="col">Stage</th>
            <th scope="col">Place in time</th>
            <th scope="col">Starts</th>
            <th scope="col">Takes</th>
          </tr>
        </thead>
        <tbody>
          {bars.map((bar) => (
            <tr key={bar.stage}>
              <th scope="row">{bar.label}</th>
              <td style={{ width: "70%" }}>
                <div className={styles["track"]}>
                  <i style={{ left: `${bar.left}%`, width: `${bar.width}%`, background: `var(--${bar.stage})` }} />
                </div>
                <small>{bar.explanation}</small>
              </td>
              <td className={styles["num"]}>
                <span className={styles["quiet"]}>+{formatDuration(bar.startMs)}</span>
              </td>
              <td className={styles["num"]}>{formatDuration(bar.durationMs)}</td>
            </tr>
          ))}
          <tr>
            <th scope="row">Total</th>
            <td colSpan={2}>{missing === null ? "" : <small>{missing}.</small>}</td>
            <td className={styles["num"]}>
              <b>{formatDuration(totalMs)}</b>
            </td>
          </tr>
        </tbody>
      </table>
      <p className={styles["none"]}>Began {formatDateTime(Date.parse(entry.timestamp))}, local time.</p>
    </div>
  );
}
