import type { TrafficSnapshot } from "@headworks/capture-contract";
import { memo } from "react";
import { classNames } from "../../../ui/class-names.ts";
import { formatDuration } from "../../../ui/format.ts";
import { barTone, rowSentence } from "./cell-text.ts";
import { cellContent, type CellContext } from "./cells.tsx";
import type { ColumnSpec } from "./columns.ts";
import styles from "./grid.module.css";
import { barOnAxis, segments, type Axis } from "./waterfall-maths.ts";

export interface RowProps {
  readonly row: TrafficSnapshot | undefined;
  readonly index: number;
  readonly topPx: number;
  readonly columns: readonly ColumnSpec[];
  readonly selected: boolean;
  readonly active: boolean;
  readonly dimmed: boolean;
  readonly context: CellContext;
  /** Set in the waterfall: the common time axis. */
  readonly axis: Axis | undefined;
}

/** Element id of a row, for `aria-activedescendant`. */
export function rowElementId(id: string): string {
  return `entry-${id}`;
}

/** One row of the list. Clicks are handled by the list. */
export const Row = memo(function Row({
  row,
  index,
  topPx,
  columns,
  selected,
  active,
  dimmed,
  context,
  axis,
}: RowProps) {
  const style = { transform: `translateY(${topPx}px)` };
  if (row === undefined) {
    return (
      <div
        role="row"
        aria-rowindex={index + 2}
        aria-busy="true"
        className={classNames(styles["row"], styles["loading"])}
        style={style}
      >
        <span role="gridcell" aria-label="Loading" className={styles["placeholder"]} />
      </div>
    );
  }
  return (
    <div
      role="row"
      id={rowElementId(row.id)}
      aria-rowindex={index + 2}
      aria-selected={selected}
      aria-label={rowSentence(row)}
      data-index={index}
      className={classNames(
        styles["row"],
        selected && styles["selected"],
        active && styles["active"],
        dimmed && styles["dimmed"],
      )}
      style={style}
    >
      <span className={styles["bar"]} data-tone={barTone(row)} />
      {columns.map((column) => (
        <span
          key={column.id}
          role="gridcell"
          data-column={column.id}
          data-method={column.id === "method" ? row.method : undefined}
          className={classNames(styles["cell"], column.numeric === true && styles["number"])}
        >
          {cellContent(column.id, row, context)}
        </span>
      ))}
      {axis !== undefined && <Timeline row={row} axis={axis} nowMs={context.nowMs} />}
    </div>
  );
});

function Timeline({
  row,
  axis,
  nowMs,
}: {
  readonly row: TrafficSnapshot;
  readonly axis: Axis;
  readonly nowMs: number;
}) {
  const startMs = Date.parse(row.timestamp);
  const durationMs = row.duration_ms ?? Math.max(0, Math.min(nowMs, axis.startMs + axis.spanMs) - startMs);
  const { left, width } = barOnAxis(axis, startMs, durationMs, 0.004);
  const label = row.duration_ms === null ? "waiting" : formatDuration(row.duration_ms);
  const labelBefore = left + width > 0.88;
  return (
    <span role="gridcell" className={styles["timeline"]} aria-label={label}>
      <span
        className={classNames(styles["timelineBar"], row.duration_ms === null && styles["open"])}
        style={{ left: `${left * 100}%`, width: `max(2px, ${width * 100}%)` }}
      >
        {row.duration_ms !== null &&
          segments(row.timings).map((segment) => (
            <i
              key={segment.stage}
              data-stage={segment.stage}
              style={{ left: `${segment.start * 100}%`, width: `${segment.width * 100}%` }}
            />
          ))}
      </span>
      <span
        className={styles["timelineLabel"]}
        style={
          labelBefore ? { right: `calc(${(1 - left) * 100}% + 6px)` } : { left: `calc(${(left + width) * 100}% + 6px)` }
        }
      >
        {label}
      </span>
    </span>
  );
}
