import { isNumeric } from "@headworks/json";
import { fitted, padded, type Terminal, textWidth, visibleText } from "./terminal.ts";

type Style = Parameters<Terminal["style"]>[0];

export interface Column<Row> {
  readonly title: string;
  /** The cell; it may hold anything, control characters become visible. */
  readonly text: (row: Row) => string;
  readonly align?: "left" | "right";
  /** The column may be narrowed down to this many columns when the window is small; without it it keeps its width. */
  readonly shrinksTo?: number;
  readonly cut?: "end" | "middle";
  readonly style?: (row: Row) => Style | undefined;
}

/** A column that small windows go without. */
export type WideColumn<Row> = Column<Row> & {
  /** Shown only in windows at least this wide. */
  readonly fromColumns?: number;
};

/** Columns between two cells. */
const GAP = 2;

/**
 * Rows as lines no wider than the terminal: cells that do not fit are cut with `…`, the widest shrinkable column first.
 * In a pipe nothing is cut.
 */
export function renderTable<Row>(rows: readonly Row[], columns: readonly Column<Row>[], terminal: Terminal): string {
  const cells = rows.map((row) => columns.map((column) => visibleText(column.text(row))));
  const widths = columnWidths(columns, cells, terminal.columns);
  const heading = columns.map((column, at) => terminal.style("dim", cell(column.title, column, widths[at] ?? 0)));
  const lines = cells.map((texts, line) =>
    texts.map((text, at) => {
      const column = columns[at];
      const row = rows[line];
      if (column === undefined || row === undefined) return "";
      const shown = cell(text, column, widths[at] ?? 0);
      const style = column.style?.(row);
      return style === undefined ? shown : terminal.style(style, shown);
    }),
  );
  return [heading, ...lines].map((parts) => `${parts.join(" ".repeat(GAP)).trimEnd()}\n`).join("");
}

function cell<Row>(text: string, column: Column<Row>, width: number): string {
  return padded(fitted(text, width, column.cut), width, column.align);
}

function columnWidths<Row>(
  columns: readonly Column<Row>[],
  cells: readonly (readonly string[])[],
  available: number,
): number[] {
  const widths = columns.map((column, at) =>
    cells.reduce((widest, texts) => Math.max(widest, textWidth(texts[at] ?? "")), textWidth(column.title)),
  );
  let excess = widths.reduce((sum, width) => sum + width, 0) + GAP * (columns.length - 1) - available;
  while (excess > 0) {
    const widest = widestShrinkable(columns, widths);
    if (widest === undefined) break;
    const next = secondWidth(columns, widths, widest);
    const least = Math.max(columns[widest]?.shrinksTo ?? 0, next);
    const width = widths[widest] ?? 0;
    const step = Math.min(excess, Math.max(1, width - least));
    widths[widest] = width - step;
    excess -= step;
  }
  return widths;
}

function widestShrinkable<Row>(columns: readonly Column<Row>[], widths: readonly number[]): number | undefined {
  let found: number | undefined;
  for (const [at, column] of columns.entries()) {
    const width = widths[at] ?? 0;
    if (column.shrinksTo === undefined || width <= column.shrinksTo) continue;
    if (found === undefined || width > (widths[found] ?? 0)) found = at;
  }
  return found;
}

/** The width of the next widest column that may shrink: down to it, only the widest shrinks. */
function secondWidth<Row>(columns: readonly Column<Row>[], widths: readonly number[], widest: number): number {
  return columns.reduce((found, column, at) => {
    const width = widths[at] ?? 0;
    return at === widest || column.shrinksTo === undefined || width > (widths[widest] ?? 0)
      ? found
      : Math.max(found, width);
  }, 0);
}

/** Name and value pairs, one to a line, names aligned; values with several lines are indented below their name. */
export function renderPairs(pairs: readonly (readonly [string, string])[], terminal: Terminal): string {
  const width = pairs.reduce((widest, [name]) => Math.max(widest, textWidth(name)), 0);
  return pairs
    .map(([name, value]) => {
      const [first = "", ...rest] = visibleText(value, true).split("\n");
      const label = padded(visibleText(name), width);
      if (rest.length === 0) return `${`${terminal.style("dim", label)}  ${first}`.trimEnd()}\n`;
      return `${terminal.style("dim", visibleText(name))}\n${[first, ...rest].map((line) => `    ${line}\n`).join("")}`;
    })
    .join("");
}

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

/** A number of bytes for people: `0 B`, `1.5 KiB`, `12 MiB`. */
export function sizeText(bytes: number | null | undefined): string {
  if (bytes === null || bytes === undefined) return "";
  let value = bytes;
  let unit = 0;
  while (value >= 1023.95 && unit < UNITS.length - 1) {
    value /= 1024;
    unit++;
  }
  const digits = unit === 0 || value >= 99.95 ? value.toFixed(0) : value.toFixed(1);
  return `${digits} ${UNITS[unit] ?? ""}`;
}

/** Milliseconds for people: `3.1 ms`, `250 ms`, `1.25 s`, `2 min 5 s`. */
export function durationText(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return "";
  if (ms < 9.95) return `${ms.toFixed(1)} ms`;
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  if (ms < 59_995) return `${(ms / 1000).toFixed(2)} s`;
  const seconds = Math.round(ms / 1000);
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

/**
 * A moment of the API in local time, to the second, with its zone: without one a query would take it for UTC. As it stands
 * here it can be put into a query.
 */
export function timeText(timestamp: string | null | undefined): string {
  if (timestamp === null || timestamp === undefined) return "";
  const date = new Date(timestamp);
  if (Number.isNaN(date.getTime())) return timestamp;
  const two = (value: number): string => String(value).padStart(2, "0");
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  const time = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  const eastMinutes = -date.getTimezoneOffset();
  const [hours, minutes] = [Math.floor(Math.abs(eastMinutes) / 60), Math.abs(eastMinutes) % 60];
  const zone = eastMinutes === 0 ? "Z" : `${eastMinutes < 0 ? "-" : "+"}${two(hours)}:${two(minutes)}`;
  return `${day}T${time}${zone}`;
}

/** Any JSON value on one line: lists with commas, nothing for null. */
export function valueText(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (typeof value === "string") return value;
  if (typeof value === "boolean") return value ? "yes" : "no";
  // Measured values have a dozen meaningless digits.
  if (typeof value === "number") return String(Number(value.toFixed(3)));
  if (isNumeric(value)) return String(value);
  if (Array.isArray(value) && value.every((item) => typeof item !== "object" || item === null || isNumeric(item))) {
    return value.map(valueText).join(", ");
  }
  return JSON.stringify(value);
}
