import { create } from "zustand";
import { persist } from "zustand/middleware";
import type { SortColumn } from "./row-sequence.ts";

export type ColumnId =
  | "seq"
  | "time"
  | "method"
  | "status"
  | "host"
  | "path"
  | "type"
  | "size"
  | "duration"
  | "waterfall"
  | "protocol"
  | "session"
  | "server"
  | "requestSize"
  | "ttfb"
  | "client"
  | "applied";

export interface ColumnSpec {
  readonly id: ColumnId;
  readonly label: string;
  /** Server-side sort key, if sortable. */
  readonly sort?: SortColumn;
  readonly firstOrder?: "asc" | "desc";
  readonly widthPx: number;
  readonly minPx: number;
  /** Share of the remaining width. */
  readonly grow?: number;
  /** Minimum width of a growing column before columns of low importance are shown. */
  readonly wantedPx?: number;
  readonly numeric?: boolean;
  /** Columns with a high rank are hidden first when the width is insufficient. */
  readonly rank: number;
  readonly shownByDefault: boolean;
}

export const COLUMNS: readonly ColumnSpec[] = [
  {
    id: "seq",
    label: "#",
    sort: "seq",
    firstOrder: "desc",
    widthPx: 52,
    minPx: 36,
    numeric: true,
    rank: 9,
    shownByDefault: true,
  },
  {
    id: "time",
    label: "Time",
    sort: "timestamp",
    firstOrder: "desc",
    widthPx: 92,
    minPx: 60,
    rank: 5,
    shownByDefault: true,
  },
  { id: "method", label: "Method", sort: "method", widthPx: 72, minPx: 48, rank: 2, shownByDefault: true },
  {
    id: "status",
    label: "Status",
    sort: "status",
    firstOrder: "desc",
    widthPx: 62,
    minPx: 50,
    rank: 1,
    shownByDefault: true,
  },
  {
    id: "host",
    label: "Host",
    sort: "host",
    widthPx: 170,
    minPx: 90,
    wantedPx: 130,
    grow: 1,
    rank: 3,
    shownByDefault: true,
  },
  {
    id: "path",
    label: "Path",
    sort: "path",
    widthPx: 200,
    minPx: 120,
    wantedPx: 180,
    grow: 1.6,
    rank: 0,
    shownByDefault: true,
  },
  { id: "type", label: "Type", sort: "type", widthPx: 72, minPx: 44, rank: 7, shownByDefault: true },
  {
    id: "size",
    label: "Size",
    sort: "size",
    firstOrder: "desc",
    widthPx: 70,
    minPx: 52,
    numeric: true,
    rank: 6,
    shownByDefault: true,
  },
  {
    id: "duration",
    label: "Duration",
    sort: "duration",
    firstOrder: "desc",
    widthPx: 76,
    minPx: 56,
    numeric: true,
    rank: 4,
    shownByDefault: true,
  },
  { id: "waterfall", label: "Stages", widthPx: 130, minPx: 60, rank: 8, shownByDefault: true },
  {
    id: "ttfb",
    label: "First byte",
    sort: "ttfb",
    firstOrder: "desc",
    widthPx: 82,
    minPx: 56,
    numeric: true,
    rank: 10,
    shownByDefault: false,
  },
  {
    id: "requestSize",
    label: "Sent",
    sort: "request_size",
    firstOrder: "desc",
    widthPx: 70,
    minPx: 52,
    numeric: true,
    rank: 11,
    shownByDefault: false,
  },
  { id: "protocol", label: "Protocol", widthPx: 74, minPx: 50, rank: 12, shownByDefault: false },
  { id: "server", label: "Remote address", widthPx: 150, minPx: 80, rank: 13, shownByDefault: false },
  { id: "client", label: "Client", widthPx: 140, minPx: 80, rank: 14, shownByDefault: false },
  { id: "applied", label: "Rules", widthPx: 110, minPx: 60, rank: 16, shownByDefault: false },
  { id: "session", label: "Session", widthPx: 90, minPx: 60, rank: 15, shownByDefault: false },
];

const BY_ID = new Map(COLUMNS.map((column) => [column.id, column]));

/** The column layout as stored. */
interface ColumnLayout {
  readonly order: readonly ColumnId[];
  readonly hidden: readonly ColumnId[];
  /** Resized widths in pixels. */
  readonly widths: Readonly<Partial<Record<ColumnId, number>>>;
}

export const DEFAULT_LAYOUT: ColumnLayout = {
  order: COLUMNS.map((column) => column.id),
  hidden: COLUMNS.filter((column) => !column.shownByDefault).map((column) => column.id),
  widths: {},
};

/** Reads a stored layout: unknown columns are dropped, new ones inserted at their default position. */
export function readLayout(stored: unknown): ColumnLayout {
  const { order, hidden, widths } = (typeof stored === "object" && stored !== null ? stored : {}) as Record<
    string,
    unknown
  >;
  const ids = (value: unknown): ColumnId[] | undefined =>
    Array.isArray(value) ? [...new Set(value.filter((id): id is ColumnId => BY_ID.has(id as ColumnId)))] : undefined;
  const known = ids(order) ?? [];
  const missing = DEFAULT_LAYOUT.order.filter((id) => !known.includes(id));
  const readWidths: Partial<Record<ColumnId, number>> = {};
  for (const [id, width] of Object.entries((widths ?? {}) as Record<string, unknown>)) {
    const column = BY_ID.get(id as ColumnId);
    if (column !== undefined && typeof width === "number" && Number.isFinite(width)) {
      readWidths[column.id] = clampWidth(column, width);
    }
  }
  const hiddenMissing = missing.filter((id) => DEFAULT_LAYOUT.hidden.includes(id));
  const readHidden = ids(hidden);
  return {
    order: known.length === 0 ? DEFAULT_LAYOUT.order : [...known, ...missing],
    hidden: readHidden === undefined ? DEFAULT_LAYOUT.hidden : [...new Set([...readHidden, ...hiddenMissing])],
    widths: readWidths,
  };
}

function clampWidth(column: ColumnSpec, widthPx: number): number {
  return Math.round(Math.max(column.minPx, Math.min(1200, widthPx)));
}

export function resizeColumn(layout: ColumnLayout, id: ColumnId, widthPx: number): ColumnLayout {
  const column = BY_ID.get(id);
  return column === undefined ? layout : { ...layout, widths: { ...layout.widths, [id]: clampWidth(column, widthPx) } };
}

export function resetColumnWidth(layout: ColumnLayout, id: ColumnId): ColumnLayout {
  const { [id]: _gone, ...widths } = layout.widths;
  return { ...layout, widths };
}

/** Moves a column before another, or to the end. */
export function moveColumn(layout: ColumnLayout, id: ColumnId, before: ColumnId | null): ColumnLayout {
  if (id === before) return layout;
  const rest = layout.order.filter((other) => other !== id);
  const at = before === null ? rest.length : rest.indexOf(before);
  return { ...layout, order: rest.toSpliced(at === -1 ? rest.length : at, 0, id) };
}

/** Toggles a column; the last visible one stays. */
export function toggleColumn(layout: ColumnLayout, id: ColumnId): ColumnLayout {
  if (layout.hidden.includes(id)) return { ...layout, hidden: layout.hidden.filter((other) => other !== id) };
  const left = layout.order.filter((other) => other !== id && !layout.hidden.includes(other));
  return left.length === 0 ? layout : { ...layout, hidden: [...layout.hidden, id] };
}

/** Columns from this rank on are hidden before growing columns become too narrow. */
const SPARE_RANK = 5;
const GAP_PX = 8;
const BAR_PX = 3;

/** Enabled columns that fit the width, in order. Columns of low importance are hidden first. */
export function visibleColumns(layout: ColumnLayout, roomPx: number): readonly ColumnSpec[] {
  const chosen = layout.order.flatMap((id) => (layout.hidden.includes(id) ? [] : (BY_ID.get(id) ?? [])));
  const need = (column: ColumnSpec): number => {
    const width = layout.widths[column.id] ?? (column.grow === undefined ? column.widthPx : column.minPx);
    return width + GAP_PX;
  };
  const kept = new Set<ColumnId>();
  let used = BAR_PX;
  let wanted = 0;
  for (const column of chosen.toSorted((left, right) => left.rank - right.rank)) {
    const reserved = column.rank >= SPARE_RANK ? wanted : 0;
    if (kept.size > 0 && used + need(column) + reserved > roomPx) break;
    kept.add(column.id);
    used += need(column);
    if (layout.widths[column.id] === undefined) wanted += Math.max(0, (column.wantedPx ?? 0) - column.minPx);
  }
  return chosen.filter((column) => kept.has(column.id));
}

/** `grid-template-columns` of the colour bar and the columns. One column always takes the remaining width. */
export function gridTemplate(layout: ColumnLayout, columns: readonly ColumnSpec[]): string {
  const growing = columns.some((column) => column.grow !== undefined && layout.widths[column.id] === undefined);
  const last = columns.at(-1);
  const tracks = columns.map((column) => {
    const width = layout.widths[column.id];
    if (width !== undefined) return growing || column !== last ? `${width}px` : `minmax(${width}px, 1fr)`;
    if (column.grow !== undefined) return `minmax(${column.minPx}px, ${column.grow}fr)`;
    return growing || column !== last ? `${column.widthPx}px` : `minmax(${column.widthPx}px, 1fr)`;
  });
  return [`${BAR_PX}px`, ...tracks].join(" ");
}

export const useColumns = create<ColumnLayout>()(
  persist((): ColumnLayout => DEFAULT_LAYOUT, {
    name: "weir.columns",
    version: 1,
    merge: (stored) => readLayout(stored),
  }),
);

export function changeColumns(change: (layout: ColumnLayout) => ColumnLayout): void {
  useColumns.setState((layout) => change(layout));
}
