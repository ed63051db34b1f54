import type { Terminal } from "./terminal.ts";
import { visibleText } from "./terminal.ts";
import { fitted, padded, textWidth } from "./text-width.ts";

type Style = Parameters<Terminal["style"]>[0];

/** A column of a table over rows of one type. */
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
 * Where nobody looks (a pipe), nothing is cut.
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

/** The widest of the other columns that may shrink: down to it the widest gives way alone. */
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
