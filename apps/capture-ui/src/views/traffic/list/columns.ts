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
  /** Server-side order, if there is one. */
  readonly sort?: SortColumn;
  /** Which order a first click gives. */
  readonly firstOrder?: "asc" | "desc";
  readonly widthPx: number;
  readonly minPx: number;
  /** Takes a part of the room that is left over. */
  readonly grow?: number;
  /** Width that a growing column has before columns of low importance get any. */
  readonly wantedPx?: number;
  readonly numeric?: boolean;
  /** When the room is too small, columns with a low number go last. */
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

/** The columns as this browser remembers them. */
export interface ColumnLayout {
  readonly order: readonly ColumnId[];
  readonly hidden: readonly ColumnId[];
  /** Widths that were dragged, in pixels. */
  readonly widths: Readonly<Partial<Record<ColumnId, number>>>;
}

export const DEFAULT_LAYOUT: ColumnLayout = {
  order: COLUMNS.map((column) => column.id),
  hidden: COLUMNS.filter((column) => !column.shownByDefault).map((column) => column.id),
  widths: {},
};

/** Makes a layout of whatever was stored: unknown columns go, new ones come in at their default place. */
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

/** Sets a column's width. */
export function resizeColumn(layout: ColumnLayout, id: ColumnId, widthPx: number): ColumnLayout {
  const column = BY_ID.get(id);
  return column === undefined ? layout : { ...layout, widths: { ...layout.widths, [id]: clampWidth(column, widthPx) } };
}

/** Gives a column its own width back. */
export function resetColumnWidth(layout: ColumnLayout, id: ColumnId): ColumnLayout {
  const { [id]: _gone, ...widths } = layout.widths;
  return { ...layout, widths };
}

/** Puts a column before another one, or at the end. */
export function moveColumn(layout: ColumnLayout, id: ColumnId, before: ColumnId | null): ColumnLayout {
  if (id === before) return layout;
  const rest = layout.order.filter((other) => other !== id);
  const at = before === null ? rest.length : rest.indexOf(before);
  return { ...layout, order: rest.toSpliced(at === -1 ? rest.length : at, 0, id) };
}

/** Shows or hides a column; the last one stays. */
export function toggleColumn(layout: ColumnLayout, id: ColumnId): ColumnLayout {
  if (layout.hidden.includes(id)) return { ...layout, hidden: layout.hidden.filter((other) => other !== id) };
  const left = layout.order.filter((other) => other !== id && !layout.hidden.includes(other));
  return left.length === 0 ? layout : { ...layout, hidden: [...layout.hidden, id] };
}

/** Columns from this rank on give way before the growing ones become hard to read. */
const SPARE_RANK = 5;
const GAP_PX = 8;
const BAR_PX = 3;

/** Columns that are chosen and fit into the room, in order. Those of low importance give way. */
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

/** `grid-template-columns` for the colour bar and the columns. One column always takes the room that is left. */
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
