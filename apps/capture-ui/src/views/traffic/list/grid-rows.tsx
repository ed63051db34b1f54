import type { ReactNode } from "react";
import type { CellContext } from "./cells.tsx";
import type { ColumnSpec } from "./columns.ts";
import { Row } from "./row.tsx";
import type { Selection } from "./selection.ts";
import type { TrafficList } from "./traffic-list.ts";
import type { Axis } from "./waterfall-maths.ts";
import type { DrawnWindow } from "./window-maths.ts";

/** More than are ever drawn at once. */
const SLOTS = 256;

/** The rows of a window. */
export function GridRows({
  list,
  drawn,
  rowHeightPx,
  columns,
  selection,
  focused,
  context,
  axis,
}: {
  readonly list: TrafficList;
  /** Changes with the list, so that rows are looked up again. */
  readonly version: number;
  readonly drawn: DrawnWindow;
  readonly rowHeightPx: number;
  readonly columns: readonly ColumnSpec[];
  readonly selection: Selection;
  readonly focused: ((host: string) => boolean) | undefined;
  readonly context: CellContext;
  readonly axis: Axis | undefined;
}) {
  const rows: ReactNode[] = [];
  const last = Math.min(list.length - 1, drawn.last);
  for (let index = drawn.first; index <= last; index += 1) {
    const row = list.rowAt(index);
    rows.push(
      <Row
        // Slots are used again while scrolling, and stay with their rows while new ones come on top.
        key={((list.ordinalAt(index) % SLOTS) + SLOTS) % SLOTS}
        row={row}
        index={index}
        topPx={index * rowHeightPx + drawn.shiftPx}
        columns={columns}
        selected={row !== undefined && selection.ids.has(row.id)}
        active={row !== undefined && selection.active === row.id}
        dimmed={row !== undefined && focused !== undefined && !focused(row.host)}
        context={context}
        axis={axis}
      />,
    );
  }
  return rows;
}
