import type { TrafficSnapshot } from "@headworks/capture-contract";
import { ArrowLeftRight, Ban, Boxes, Cable, Radio, StickyNote, Waypoints } from "lucide-react";
import { type ComponentType, memo, type ReactNode } from "react";
import type { TimeFormat } from "../../../preferences.ts";
import { classNames } from "../../../ui/class-names.ts";
import { formatAgo, formatBytes, formatCount, formatDuration, formatTimeOfDay } from "../../../ui/format.ts";
import { Tag } from "../../../ui/tag.tsx";
import {
  barTone,
  type Channel,
  channelOf,
  isOpen,
  portSuffix,
  protocolLabel,
  rowSentence,
  statusTone,
  tunnelPort,
  typeLabel,
} from "./cell-text.ts";
import type { ColumnId, ColumnSpec } from "./columns.ts";
import styles from "./grid.module.css";
import { type Axis, barOnAxis, durationLength, segments } from "./waterfall-maths.ts";

/** Context of cells besides the row. */
export interface CellContext {
  readonly timeFormat: TimeFormat;
  readonly nowMs: number;
}

function Status({ row }: { readonly row: TrafficSnapshot }) {
  const tone = statusTone(row);
  if (tone === "failed") {
    return (
      <span className={styles["failed"]} title={row.failure_code === null ? "Failed" : `Failed: ${row.failure_code}`}>
        <Ban size={13} aria-label="failed" />
        {row.status_code !== null && <span>{row.status_code}</span>}
      </span>
    );
  }
  if (tone === "waiting") return <span className={styles["pulse"]} role="img" aria-label="waiting" />;
  return (
    <span className={styles[tone]} title={row.state === "closed" ? "Closed by the client" : undefined}>
      {row.status_code}
    </span>
  );
}

function Path({ row }: { readonly row: TrafficSnapshot }) {
  return (
    <>
      <span className={styles["pathText"]}>{tunnelPort(row) ?? row.path}</span>
      {isOpen(row) && <Tag tone="ok">open</Tag>}
      {row.modified && <Tag>modified</Tag>}
      {row.source === "slice" && row.state !== "failed" && (
        <Tag tone="warning">{row.applied.includes("mock") ? "mocked" : "answered by Weir"}</Tag>
      )}
      {row.state === "pending" && row.applied.includes("breakpoint") && <Tag tone="warning">paused</Tag>}
      {row.has_note && <StickyNote size={12} className={styles["noteMark"]} aria-label="has note" />}
    </>
  );
}

const CHANNEL_ICONS: Readonly<
  Record<Channel, ComponentType<{ readonly size?: number; readonly className?: string | undefined }>>
> = {
  websocket: ArrowLeftRight,
  "event-stream": Radio,
  grpc: Boxes,
  tunnel: Cable,
  socks: Waypoints,
};

function Type({ row }: { readonly row: TrafficSnapshot }) {
  const channel = channelOf(row);
  const Icon = channel === null ? null : CHANNEL_ICONS[channel];
  return (
    <>
      {Icon !== null && <Icon size={12} className={styles["channel"]} />}
      {typeLabel(row)}
    </>
  );
}

function Stages({ row }: { readonly row: TrafficSnapshot }) {
  const length = durationLength(row.duration_ms);
  if (row.duration_ms === null) return <span className={styles["stagesOpen"]} />;
  return (
    <span className={styles["stages"]} style={{ width: `${length * 100}%` }}>
      {segments(row.timings).map((segment) => (
        <i
          key={segment.stage}
          data-stage={segment.stage}
          style={{ left: `${segment.start * 100}%`, width: `${segment.width * 100}%` }}
        />
      ))}
    </span>
  );
}

function time(row: TrafficSnapshot, { timeFormat, nowMs }: CellContext): string {
  const at = Date.parse(row.timestamp);
  return timeFormat === "relative" ? formatAgo(at, nowMs) : formatTimeOfDay(at, timeFormat === "utc");
}

function cellContent(column: ColumnId, row: TrafficSnapshot, context: CellContext): ReactNode {
  switch (column) {
    case "seq":
      return formatCount(row.seq);
    case "time":
      return time(row, context);
    case "method":
      return row.method;
    case "status":
      return <Status row={row} />;
    case "host":
      return (
        <>
          {row.host}
          <span className={styles["port"]}>{portSuffix(row)}</span>
        </>
      );
    case "path":
      return <Path row={row} />;
    case "type":
      return <Type row={row} />;
    case "size":
      return row.state === "pending" ? "" : formatBytes(row.response_size);
    case "duration":
      return row.duration_ms === null ? (row.state === "pending" ? "…" : "—") : formatDuration(row.duration_ms);
    case "waterfall":
      return <Stages row={row} />;
    case "protocol":
      return protocolLabel(row);
    case "session":
      return row.session_id.slice(-8);
    case "server":
      return row.server_addr ?? "—";
    case "requestSize":
      return formatBytes(row.request_size);
    case "ttfb":
      return row.ttfb_ms === null ? "—" : formatDuration(row.ttfb_ms);
    case "client":
      return row.client_addr ?? "—";
    case "applied":
      return row.applied.join(", ");
  }
}

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
