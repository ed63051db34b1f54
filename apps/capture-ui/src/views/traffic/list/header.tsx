import { ArrowDown, ArrowUp } from "lucide-react";
import { useRef, useState } from "react";
import type { KeyboardEvent, PointerEvent } from "react";
import { classNames } from "../../../ui/class-names.ts";
import { formatDuration } from "../../../ui/format.ts";
import { ContextMenu, type MenuEntry } from "../../../ui/menu.tsx";
import {
  changeColumns,
  type ColumnId,
  COLUMNS,
  type ColumnSpec,
  DEFAULT_LAYOUT,
  moveColumn,
  resetColumnWidth,
  resizeColumn,
  toggleColumn,
  useColumns,
} from "./columns.ts";
import styles from "./grid.module.css";
import type { ListScope } from "./row-sequence.ts";
import { hasRoomForLabel, type Axis } from "./waterfall-maths.ts";

export function columnMenu(): readonly MenuEntry[] {
  const { hidden, order } = useColumns.getState();
  const labels = new Map(COLUMNS.map((column) => [column.id, column.label]));
  return [
    { kind: "heading", label: "Columns" },
    ...order.map((id): MenuEntry => ({
      kind: "check",
      label: id === "seq" ? "# (number)" : (labels.get(id) ?? id),
      checked: !hidden.includes(id),
      onChange: () => changeColumns((layout) => toggleColumn(layout, id)),
    })),
    { kind: "separator" },
    { kind: "item", label: "Reset columns", onSelect: () => changeColumns(() => DEFAULT_LAYOUT) },
  ];
}

/** Step of width changes by menu; dragging and arrows are finer. */
const STEP_PX = 40;

function headerMenu(column: ColumnSpec, columns: readonly ColumnSpec[], widthPx: number): readonly MenuEntry[] {
  const at = columns.findIndex((other) => other.id === column.id);
  const before = columns[at - 1];
  const after = columns[at + 2];
  return [
    {
      kind: "item",
      label: "Move left",
      disabled: before === undefined,
      onSelect: () => before !== undefined && changeColumns((layout) => moveColumn(layout, column.id, before.id)),
    },
    {
      kind: "item",
      label: "Move right",
      disabled: at === columns.length - 1,
      onSelect: () => changeColumns((layout) => moveColumn(layout, column.id, after?.id ?? null)),
    },
    {
      kind: "item",
      label: "Wider",
      onSelect: () => changeColumns((layout) => resizeColumn(layout, column.id, widthPx + STEP_PX)),
    },
    {
      kind: "item",
      label: "Narrower",
      onSelect: () => changeColumns((layout) => resizeColumn(layout, column.id, widthPx - STEP_PX)),
    },
    {
      kind: "item",
      label: "Reset width",
      onSelect: () => changeColumns((layout) => resetColumnWidth(layout, column.id)),
    },
    { kind: "item", label: "Hide", onSelect: () => changeColumns((layout) => toggleColumn(layout, column.id)) },
    { kind: "separator" },
    ...columnMenu(),
  ];
}

/** Column headers: click sorts, the edge resizes, dragging reorders, the context menu does all of it. */
export function HeaderRow({
  columns,
  scope,
  onSort,
  axis,
  fixed,
}: {
  readonly columns: readonly ColumnSpec[];
  readonly scope: ListScope;
  readonly onSort: (column: ColumnSpec) => void;
  readonly axis: Axis | undefined;
  /** The columns are fixed by the mode. */
  readonly fixed: boolean;
}) {
  const [dragged, setDragged] = useState<ColumnId | null>(null);
  const [target, setTarget] = useState<ColumnId | null>(null);
  const row = (
    <div role="row" aria-rowindex={1} className={classNames(styles["row"], styles["header"])}>
      <span className={styles["bar"]} />
      {columns.map((column) => (
        <HeaderCell
          key={column.id}
          column={column}
          scope={scope}
          onSort={onSort}
          fixed={fixed}
          isTarget={target === column.id && dragged !== column.id}
          onDragStart={() => setDragged(column.id)}
          onDragOver={() => setTarget(column.id)}
          onDragEnd={() => {
            setDragged(null);
            setTarget(null);
          }}
          onDrop={() => {
            if (dragged !== null) changeColumns((layout) => moveColumn(layout, dragged, column.id));
          }}
        />
      ))}
      {axis !== undefined && <AxisTicks axis={axis} />}
    </div>
  );
  if (fixed) return row;
  return (
    <ContextMenu
      items={(event) => {
        const cell = event.target instanceof Element ? event.target.closest("[data-column]") : null;
        const column = columns.find((other) => other.id === cell?.getAttribute("data-column"));
        if (cell === null || column === undefined) return columnMenu();
        return headerMenu(column, columns, cell.getBoundingClientRect().width);
      }}
    >
      {row}
    </ContextMenu>
  );
}

function AxisTicks({ axis }: { readonly axis: Axis }) {
  return (
    <span role="columnheader" className={styles["axis"]} aria-label="Time">
      {axis.ticksMs.map((tick) => (
        <span key={tick} className={styles["tick"]} style={{ left: `${(tick / axis.spanMs) * 100}%` }}>
          {tick === 0 ? "0" : hasRoomForLabel(axis, tick) && formatDuration(tick)}
        </span>
      ))}
    </span>
  );
}

function HeaderCell({
  column,
  scope,
  onSort,
  fixed,
  isTarget,
  onDragStart,
  onDragOver,
  onDragEnd,
  onDrop,
}: {
  readonly column: ColumnSpec;
  readonly scope: ListScope;
  readonly onSort: (column: ColumnSpec) => void;
  readonly fixed: boolean;
  readonly isTarget: boolean;
  readonly onDragStart: () => void;
  readonly onDragOver: () => void;
  readonly onDragEnd: () => void;
  readonly onDrop: () => void;
}) {
  const cell = useRef<HTMLSpanElement>(null);
  const sorted = column.sort !== undefined && scope.sort === column.sort;
  const Arrow = scope.order === "asc" ? ArrowUp : ArrowDown;
  return (
    <span
      ref={cell}
      role="columnheader"
      tabIndex={-1}
      data-column={column.id}
      aria-sort={sorted ? (scope.order === "asc" ? "ascending" : "descending") : undefined}
      className={classNames(
        styles["headerCell"],
        column.numeric === true && styles["number"],
        isTarget && styles["dropTarget"],
      )}
      draggable={!fixed}
      onDragStart={(event) => {
        event.dataTransfer.effectAllowed = "move";
        event.dataTransfer.setData("text/x-weir-column", column.id);
        onDragStart();
      }}
      onDragOver={(event) => {
        if (!event.dataTransfer.types.includes("text/x-weir-column")) return;
        event.preventDefault();
        onDragOver();
      }}
      onDragEnd={onDragEnd}
      onDrop={onDrop}
    >
      {column.sort === undefined ? (
        <span className={styles["headerText"]}>{column.label}</span>
      ) : (
        <button type="button" className={styles["headerButton"]} onClick={() => onSort(column)}>
          <span className={styles["headerText"]}>{column.label}</span>
          {sorted && <Arrow size={11} aria-hidden />}
        </button>
      )}
      {!fixed && (
        <ResizeHandle column={column} width={() => cell.current?.getBoundingClientRect().width ?? column.widthPx} />
      )}
    </span>
  );
}

function ResizeHandle({ column, width }: { readonly column: ColumnSpec; readonly width: () => number }) {
  const start = useRef<{ readonly x: number; readonly width: number } | null>(null);
  const onPointerDown = (event: PointerEvent<HTMLSpanElement>) => {
    event.preventDefault();
    event.stopPropagation();
    event.currentTarget.setPointerCapture(event.pointerId);
    start.current = { x: event.clientX, width: width() };
  };
  const onPointerMove = (event: PointerEvent) => {
    const from = start.current;
    if (from !== null) changeColumns((layout) => resizeColumn(layout, column.id, from.width + event.clientX - from.x));
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowLeft: -8, ArrowRight: 8 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    changeColumns((layout) => resizeColumn(layout, column.id, width() + step));
  };
  return (
    <span
      role="separator"
      aria-orientation="vertical"
      aria-label={`Width of ${column.label}`}
      aria-valuenow={column.widthPx}
      tabIndex={-1}
      className={styles["resize"]}
      onKeyDown={onKeyDown}
      onPointerDown={onPointerDown}
      onPointerMove={onPointerMove}
      onPointerUp={() => (start.current = null)}
      onPointerCancel={() => (start.current = null)}
      onDoubleClick={() => changeColumns((layout) => resetColumnWidth(layout, column.id))}
    />
  );
}
