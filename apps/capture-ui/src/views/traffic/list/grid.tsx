import { ArrowUp } from "lucide-react";
import {
  type CSSProperties,
  type MouseEvent,
  type ReactNode,
  type Ref,
  type RefObject,
  useEffect,
  useEffectEvent,
  useImperativeHandle,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
  useSyncExternalStore,
} from "react";
import { usePreferences } from "../../../preferences.ts";
import { formatCount } from "../../../ui/format.ts";
import { ContextMenu, type MenuEntry } from "../../../ui/menu.tsx";
import { type CellContext, Row, rowElementId } from "./row.tsx";
import { COLUMNS, type ColumnSpec, gridTemplate, useColumns, visibleColumns } from "./columns.ts";
import styles from "./grid.module.css";
import { HeaderRow } from "./header.tsx";
import type { Selection } from "./selection.ts";
import type { TrafficList } from "./traffic-list.ts";
import { type Axis, axisOf } from "./waterfall-maths.ts";
import { type Viewport, scrollHeight, type DrawnWindow, drawnWindow, scrollToShow } from "../../../ui/window-math.ts";

/** More than are ever drawn at once. */
const SLOTS = 256;

/** Extra rows drawn beyond the edges. */
const OVERSCAN = 8;

/** New rows are drawn when fewer than this are left beyond an edge. */
const RESERVE = 2;

/** The header is inside the scroll container. */
const HEADER_PX = 26;
const AT_TOP_PX = 2;

/** Minimum interval of updates that depend on visible rows (the time axis moves every bar). */
const SEEN_MS = 120;

export interface GridHandle {
  /** Scrolls by the minimum needed to show a row. */
  show(index: number): void;
  /** Rows per page. */
  pageSize(): number;
  focus(): void;
}

const WATERFALL = {
  wide: {
    columns: COLUMNS.filter((column) => ["status", "method", "host", "path"].includes(column.id)),
    template: "3px 66px 50px minmax(80px, 0.5fr) minmax(110px, 0.9fr) minmax(200px, 2fr)",
    ticks: 6,
  },
  narrow: {
    columns: COLUMNS.filter((column) => ["status", "path"].includes(column.id)),
    template: "3px 44px minmax(90px, 0.8fr) minmax(140px, 1fr)",
    ticks: 2,
  },
};
const NARROW_PX = 640;

/** Current time, updated every second while active. */
function useNow(active: boolean): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    if (!active) return undefined;
    const timer = window.setInterval(() => setNow(Date.now()), 1000);
    return () => window.clearInterval(timer);
  }, [active]);
  return now;
}

const ROW_PX = { compact: 24, normal: 28, comfortable: 34 } as const;

export interface GridProps {
  readonly ref: Ref<GridHandle>;
  readonly list: TrafficList;
  readonly mode: "list" | "waterfall";
  /** Holds back new rows while the user reads or selects entries. They are also held back while a menu is open. */
  readonly hold: boolean;
  readonly selection: Selection;
  readonly focused: ((host: string) => boolean) | undefined;
  readonly onRowClick: (index: number, event: MouseEvent) => void;
  readonly onRowOpen: (index: number) => void;
  readonly onSort: (column: ColumnSpec) => void;
  readonly onShowNew: () => void;
  readonly rowMenu: (index: number) => readonly MenuEntry[];
  /** Shown instead of rows if there are none. */
  readonly whenEmpty: ReactNode;
}

/** The virtual list of entries as an ARIA grid: visible rows are rendered, and loaded in windows. */
export function Grid({
  ref,
  list,
  mode,
  hold,
  selection,
  focused,
  onRowClick,
  onRowOpen,
  onSort,
  onShowNew,
  rowMenu,
  whenEmpty,
}: GridProps) {
  const version = useSyncExternalStore(list.subscribe, list.version);
  const scroller = useRef<HTMLDivElement>(null);
  const size = useSize(scroller);
  const { timeFormat, density } = usePreferences();
  const waterfall = mode === "waterfall";
  const nowMs = useNow(timeFormat === "relative" || waterfall);
  const rowPx = ROW_PX[density];
  const [isMenuOpen, setMenuOpen] = useState(false);
  const held = hold || isMenuOpen;
  const { viewport, latest, drawn, seen, update } = useDrawnRows(list, scroller, rowPx, size.height, waterfall, held);

  useImperativeHandle(ref, () => ({
    show(index) {
      const element = scroller.current;
      if (element !== null) element.scrollTop = scrollToShow(latest.current, element.scrollTop, index);
    },
    pageSize: () => Math.max(1, Math.floor(latest.current.heightPx / latest.current.rowHeightPx) - 1),
    focus: () => scroller.current?.focus({ preventScroll: true }),
  }));

  const { columns, axis, template } = useArrangement({ list, version, widthPx: size.width, waterfall, seen, nowMs });
  const context = useMemo(() => ({ timeFormat, nowMs }), [timeFormat, nowMs]);
  const activeIndex = selection.active === null ? undefined : list.indexOf(selection.active);
  const activeShown = activeIndex !== undefined && activeIndex >= drawn.first && activeIndex <= drawn.last;
  return (
    <div className={styles["frame"]}>
      <ContextMenu
        items={(event) => {
          // The menu key acts on the active row.
          const byKey = event.button !== 2 && event.target === scroller.current;
          const index = byKey ? activeIndex : rowIndexOf(event);
          return index === undefined ? [] : rowMenu(index);
        }}
        onOpenChange={setMenuOpen}
      >
        {/* oxlint-disable-next-line jsx-a11y/click-events-have-key-events -- keys come through the table of bindings */}
        <div
          ref={scroller}
          role="grid"
          aria-label="Captured traffic"
          aria-rowcount={list.isLengthKnown ? list.length + 1 : -1}
          aria-colcount={columns.length}
          aria-multiselectable="true"
          aria-busy={!list.loaded}
          aria-activedescendant={activeShown && selection.active !== null ? rowElementId(selection.active) : undefined}
          tabIndex={0}
          className={styles["grid"]}
          style={{ "--columns": template } as CSSProperties}
          onScroll={update}
          onMouseDown={preventTextSelection}
          onClick={(event) => {
            const index = rowIndexOf(event);
            if (index !== undefined) onRowClick(index, event);
          }}
          onDoubleClick={(event) => {
            const index = rowIndexOf(event);
            if (index !== undefined) onRowOpen(index);
          }}
        >
          <div role="rowgroup" className={styles["headGroup"]}>
            <HeaderRow columns={columns} scope={list.scope} onSort={onSort} axis={axis} fixed={waterfall} />
          </div>
          <div role="rowgroup" className={styles["body"]} style={{ height: scrollHeight(viewport) }}>
            <GridRows
              list={list}
              version={version}
              drawn={drawn}
              rowHeightPx={rowPx}
              columns={columns}
              selection={selection}
              focused={focused}
              context={context}
              axis={axis}
            />
          </div>
        </div>
      </ContextMenu>
      {list.length === 0 && <div className={styles["over"]}>{whenEmpty}</div>}
      <NewPill
        count={list.newCount}
        onShow={() => {
          onShowNew();
          list.showNew();
          if (scroller.current !== null) scroller.current.scrollTop = 0;
        }}
      />
    </div>
  );
}

/** Columns that fit the width, their template, and the time axis of the waterfall. */
function useArrangement({
  list,
  version,
  widthPx,
  waterfall,
  seen,
  nowMs,
}: {
  readonly list: TrafficList;
  readonly version: number;
  readonly widthPx: number;
  readonly waterfall: boolean;
  readonly seen: { readonly first: number; readonly last: number };
  readonly nowMs: number;
}) {
  const layout = useColumns();
  const arrangement = widthPx < NARROW_PX ? WATERFALL.narrow : WATERFALL.wide;
  const columns = useMemo(
    () => (waterfall ? arrangement.columns : visibleColumns(layout, widthPx - 10)),
    [layout, widthPx, waterfall, arrangement],
  );
  const axis = useMemo(() => {
    // The list object stays the same when its rows change; only the version differs.
    void version;
    return waterfall ? visibleAxis(list, seen, nowMs, arrangement.ticks) : undefined;
  }, [waterfall, list, version, seen, nowMs, arrangement]);
  const template = waterfall ? arrangement.template : gridTemplate(layout, columns);
  return { columns, axis, template };
}

/** Shift-click selects rows instead of text; plain dragging can still select text. */
function preventTextSelection(event: MouseEvent<HTMLElement>): void {
  if (!event.shiftKey || rowIndexOf(event) === undefined) return;
  event.preventDefault();
  event.currentTarget.focus({ preventScroll: true });
}

function rowIndexOf(event: MouseEvent): number | undefined {
  const row = event.target instanceof Element ? event.target.closest("[data-index]") : null;
  return row === null ? undefined : Number(row.getAttribute("data-index"));
}

function NewPill({ count, onShow }: { readonly count: number; readonly onShow: () => void }) {
  if (count === 0) return null;
  return (
    <button type="button" className={styles["newPill"]} onClick={onShow}>
      <ArrowUp size={13} aria-hidden />
      {formatCount(count)} new
    </button>
  );
}

function visibleAxis(
  list: TrafficList,
  seen: { readonly first: number; readonly last: number },
  nowMs: number,
  ticks: number,
): Axis | undefined {
  const exchanges: { startMs: number; durationMs: number }[] = [];
  for (let index = seen.first; index <= seen.last; index += 1) {
    const row = list.rowAt(index);
    if (row === undefined) continue;
    const startMs = Date.parse(row.timestamp);
    exchanges.push({ startMs, durationMs: row.duration_ms ?? Math.max(0, Math.min(60_000, nowMs - startMs)) });
  }
  return axisOf(exchanges, ticks);
}

/** Size inside the scroll bars. */
function useSize(ref: RefObject<HTMLElement | null>): { readonly width: number; readonly height: number } {
  const [size, setSize] = useState({ width: 0, height: 0 });
  useLayoutEffect(() => {
    const element = ref.current;
    if (element === null) return undefined;
    const measure = (): void => setSize({ width: element.clientWidth, height: element.clientHeight });
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    measure();
    return () => observer.disconnect();
  }, [ref]);
  return size;
}

function needsDrawing(drawn: DrawnWindow, next: DrawnWindow, length: number): boolean {
  if (next.first < drawn.first || next.last > drawn.last || next.shiftPx !== drawn.shiftPx) return true;
  const above = next.first === 0 || next.first - drawn.first >= RESERVE;
  const below = next.last >= length - 1 || drawn.last - next.last >= RESERVE;
  return !above || !below;
}

/**
 * Rows to draw in a scroll container; reports visible rows, and whether the list is at the top. `exact` also returns
 * the rows actually visible. While `hold` is set, rows keep their position even at the top.
 */
function useDrawnRows(
  list: TrafficList,
  scroller: RefObject<HTMLElement | null>,
  rowHeightPx: number,
  elementHeightPx: number,
  exact: boolean,
  hold: boolean,
) {
  const { length } = list;
  const viewport: Viewport = useMemo(
    () => ({ rowHeightPx, heightPx: Math.max(0, elementHeightPx - HEADER_PX), length }),
    [rowHeightPx, elementHeightPx, length],
  );
  const latest = useRef(viewport);
  const [drawn, setDrawn] = useState<DrawnWindow>({ first: 0, last: 60, shiftPx: 0 });
  const [seen, setSeen] = useState({ first: 0, last: 40 });

  const seenTimer = useRef<number | undefined>(undefined);
  useEffect(
    () => () => {
      window.clearTimeout(seenTimer.current);
      seenTimer.current = undefined;
    },
    [],
  );

  const update = (): void => {
    const element = scroller.current;
    if (element === null) return;
    const next = drawnWindow(latest.current, element.scrollTop);
    list.setFollowing(!hold && element.scrollTop < AT_TOP_PX);
    list.setRange(next.first, next.last);
    if (exact && seenTimer.current === undefined) {
      seenTimer.current = window.setTimeout(() => {
        seenTimer.current = undefined;
        const { first, last } = drawnWindow(latest.current, element.scrollTop);
        setSeen((now) => (now.first === first && now.last === last ? now : { first, last }));
      }, SEEN_MS);
    }
    setDrawn((now) =>
      needsDrawing(now, next, latest.current.length)
        ? { first: Math.max(0, next.first - OVERSCAN), last: next.last + OVERSCAN, shiftPx: next.shiftPx }
        : now,
    );
  };

  // Length and size determine the visible rows as well as scrolling.
  const measured = useEffectEvent(update);
  useLayoutEffect(() => {
    latest.current = viewport;
    measured();
  }, [viewport, list, exact, hold]);
  return { viewport, latest, drawn, seen, update };
}

function GridRows({
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
  /** Changes with the list, to look rows up again. */
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
        // Slots are reused while scrolling, and stay with their rows when new ones are inserted on top.
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
