import { type PointerEvent, useRef, useState } from "react";
import type { TrafficSummary } from "@headworks/capture-contract";
import { usePreferences } from "../../../preferences.ts";
import { formatCount, formatDuration, formatTimeOfDay } from "../../../ui/format.ts";
import styles from "./overview.module.css";
import { histogramBars, dragRange, rangeOnStrip } from "./histogram-maths.ts";

interface Range {
  readonly fromMs: number;
  readonly toMs: number;
}

/** Traffic over time. Dragging filters by start time; `summary` counts without that filter. */
export function Overview({
  summary,
  range,
  onRange,
}: {
  readonly summary: TrafficSummary | undefined;
  readonly range: Range | null;
  readonly onRange: (range: Range | null) => void;
}) {
  const chart = useRef<HTMLDivElement>(null);
  const [drag, setDrag] = useState<{ readonly from: number; readonly to: number } | null>(null);
  const utc = usePreferences((preferences) => preferences.timeFormat === "utc");
  const startMs = Date.parse(summary?.first_timestamp ?? "");
  const endMs = Date.parse(summary?.last_timestamp ?? "");
  const known = Number.isFinite(startMs) && Number.isFinite(endMs) && endMs > startMs;
  // Milliseconds are shown only for short ranges.
  const label = (atMs: number): string => formatTimeOfDay(atMs, utc).slice(0, endMs - startMs < 10_000 ? 12 : 8);
  // There is no time range before the first entry.
  if (summary?.total === 0) return null;
  const buckets = summary?.histogram ?? [];
  const bars = histogramBars(buckets);
  const position = (event: PointerEvent): number => {
    const box = chart.current?.getBoundingClientRect();
    return box === undefined || box.width === 0 ? 0 : (event.clientX - box.left) / box.width;
  };
  const dragged = drag === null || !known ? null : dragRange(startMs, endMs, drag.from, drag.to);
  const shown = dragged ?? range;
  const marked = shown === null || !known ? undefined : rangeOnStrip(startMs, endMs, shown);
  return (
    <div className={styles["frame"]}>
      <div
        ref={chart}
        role="img"
        aria-label={`Traffic over time: ${formatCount(summary?.matched ?? 0)} requests${known ? ` in ${formatDuration(endMs - startMs)}` : ""}`}
        className={styles["strip"]}
        onPointerDown={(event) => {
          if (!known || event.button !== 0) return;
          event.currentTarget.setPointerCapture(event.pointerId);
          setDrag({ from: position(event), to: position(event) });
        }}
        onPointerMove={(event) => {
          if (drag !== null) setDrag({ from: drag.from, to: position(event) });
        }}
        onPointerUp={() => {
          if (drag !== null && known) {
            onRange(Math.abs(drag.to - drag.from) < 0.004 ? null : dragRange(startMs, endMs, drag.from, drag.to));
          }
          setDrag(null);
        }}
        onPointerCancel={() => setDrag(null)}
      >
        {bars.map((bar, index) => (
          <span
            key={buckets[index]?.start ?? index}
            className={styles["bar"]}
            style={{ height: `${bar.height * 100}%` }}
            title={
              buckets[index] === undefined
                ? undefined
                : `${formatTimeOfDay(Date.parse(buckets[index].start), utc)}: ${formatCount(buckets[index].count)} requests, ${formatCount(buckets[index].errors)} errors`
            }
          >
            {bar.errors > 0 && <i style={{ height: `max(2px, ${bar.errors * 100}%)` }} />}
          </span>
        ))}
        {marked !== undefined && (
          <span
            className={styles["range"]}
            style={{ left: `${marked.left * 100}%`, width: `${marked.width * 100}%` }}
          />
        )}
      </div>
      <div className={styles["labels"]}>
        <span>{known ? label(startMs) : ""}</span>
        {shown === null ? (
          <span>{known ? "Drag to filter by time" : ""}</span>
        ) : (
          <span>
            {formatTimeOfDay(shown.fromMs, utc)} to {formatTimeOfDay(shown.toMs, utc)} (
            {formatDuration(shown.toMs - shown.fromMs)})
            <button type="button" className={styles["reset"]} onClick={() => onRange(null)}>
              Clear time filter
            </button>
          </span>
        )}
        <span>{known ? label(endMs) : ""}</span>
      </div>
    </div>
  );
}
