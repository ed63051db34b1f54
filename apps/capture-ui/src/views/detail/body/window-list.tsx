import {
  type KeyboardEvent,
  type ReactNode,
  type Ref,
  useCallback,
  useEffect,
  useImperativeHandle,
  useLayoutEffect,
  useRef,
  useState,
} from "react";
import { classNames } from "../../../ui/class-names.ts";
import styles from "./body.module.css";

/** Browsers stop laying out boxes somewhere above 17 million pixels; taller lists scroll in proportion instead. */
export const MAX_SCROLL_PX = 8_000_000;

export interface WindowListHandle {
  /** Scrolls just as far as needed to show a row. */
  readonly show: (row: number) => void;
  readonly focus: () => void;
}

/** A list of any length of which only the rows in view exist in the page. */
export function WindowList({
  rows,
  rowPx,
  label,
  renderRow,
  onVisible,
  header,
  role,
  className,
  handle,
  onKeyDown,
  activeId,
  onResize,
}: {
  readonly rows: number;
  readonly rowPx: number;
  readonly label: string;
  readonly renderRow: (row: number) => ReactNode;
  /** Told which rows are needed, after each render. */
  readonly onVisible: (from: number, to: number) => void;
  /** Stays at the top. */
  readonly header?: ReactNode;
  readonly role?: "tree" | "table" | "group";
  readonly className?: string | undefined;
  readonly handle?: Ref<WindowListHandle>;
  readonly onKeyDown?: (event: KeyboardEvent<HTMLDivElement>) => void;
  /** The element of a row, if that is the one a screen reader takes as focused; asked only for rows in the page. */
  readonly activeId?: (row: number) => string | undefined;
  readonly onResize?: (widthPx: number) => void;
}) {
  const frame = useRef<HTMLDivElement>(null);
  const [scrollPx, setScrollPx] = useState(0);
  const [viewportPx, setViewportPx] = useState(400);
  const geometry = { rows, rowPx, viewportPx };
  const shown = renderedRows(geometry, scrollPx);
  const shownRows = Array.from({ length: Math.max(0, shown.to - shown.from) }, (_, index) => shown.from + index);

  useEffect(() => onVisible(shown.from, shown.to));
  useLayoutEffect(() => {
    const element = frame.current;
    if (element === null) return undefined;
    const measure = (): void => {
      setViewportPx(Math.max(rowPx, element.clientHeight));
      onResize?.(element.clientWidth);
    };
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    measure();
    return () => observer.disconnect();
  }, [rowPx, onResize]);

  const scrollTo = useCallback((px: number) => {
    if (frame.current === null) return;
    frame.current.scrollTop = px;
    setScrollPx(px);
  }, []);
  useImperativeHandle(handle, () => ({
    show: (row) => scrollTo(scrollOf(geometry, topToShow(geometry, topRow(geometry, scrollPx), row))),
    focus: () => frame.current?.focus({ preventScroll: true }),
  }));

  // In a scaled list a turn of the wheel would jump over thousands of rows.
  const scaled = isScaled(geometry);
  useEffect(() => {
    const element = frame.current;
    if (element === null || !scaled) return undefined;
    const onWheel = (event: WheelEvent): void => {
      if (event.ctrlKey || event.deltaY === 0) return;
      event.preventDefault();
      const size = { rows, rowPx, viewportPx };
      const unit = event.deltaMode === 1 ? 1 : event.deltaMode === 2 ? viewportPx / rowPx : 1 / rowPx;
      scrollTo(scrollOf(size, topRow(size, element.scrollTop) + event.deltaY * unit));
    };
    element.addEventListener("wheel", onWheel, { passive: false });
    return () => element.removeEventListener("wheel", onWheel);
  }, [scaled, rows, rowPx, viewportPx, scrollTo]);

  const onKey = (event: KeyboardEvent<HTMLDivElement>): void => {
    onKeyDown?.(event);
    if (event.defaultPrevented) return;
    const page = viewportPx / rowPx - 1;
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity }[
      event.key
    ];
    if (step === undefined || event.target !== event.currentTarget) return;
    event.preventDefault();
    event.stopPropagation();
    const top = step === -Infinity ? 0 : step === Infinity ? rows : topRow(geometry, scrollPx) + step;
    scrollTo(scrollOf(geometry, top));
  };

  return (
    // oxlint-disable-next-line jsx-a11y/no-static-element-interactions -- the role comes from the caller, or is group
    <div
      ref={frame}
      role={role ?? "group"}
      aria-label={label}
      aria-rowcount={role === "table" ? rows + 1 : undefined}
      // A screen reader that is sent to an element which is not there loses its place.
      aria-activedescendant={shownRows.map((row) => activeId?.(row)).find((found) => found !== undefined)}
      // A scrolled region must be reachable by keyboard.
      tabIndex={0}
      className={classNames(styles["window"], className)}
      onScroll={(event) => setScrollPx(event.currentTarget.scrollTop)}
      onKeyDown={onKey}
    >
      {header}
      <div className={styles["sizer"]} role="presentation" style={{ height: contentPx(geometry) }}>
        <div className={styles["rows"]} role="presentation" style={{ transform: `translateY(${shown.offsetPx}px)` }}>
          {shownRows.map((row) => renderRow(row))}
        </div>
      </div>
    </div>
  );
}

/** A list of rows of equal height, seen through a window. */
interface WindowGeometry {
  readonly rows: number;
  readonly rowPx: number;
  readonly viewportPx: number;
}

/** Height of the scrolled content. */
export function contentPx({ rows, rowPx }: WindowGeometry): number {
  return Math.min(MAX_SCROLL_PX, rows * rowPx);
}

/** Whether one pixel of the scroll bar stands for more than one pixel of the list. */
export function isScaled({ rows, rowPx }: WindowGeometry): boolean {
  return rows * rowPx > MAX_SCROLL_PX;
}

/** The row at the upper edge, with a fraction, for a scroll position. */
export function topRow(geometry: WindowGeometry, scrollPx: number): number {
  const { rows, rowPx, viewportPx } = geometry;
  const lastTop = Math.max(0, rows - viewportPx / rowPx);
  if (!isScaled(geometry)) return Math.min(lastTop, Math.max(0, scrollPx / rowPx));
  const range = contentPx(geometry) - viewportPx;
  return range <= 0 ? 0 : Math.min(1, Math.max(0, scrollPx / range)) * lastTop;
}

/** The scroll position that puts a row (with a fraction) at the upper edge. */
export function scrollOf(geometry: WindowGeometry, top: number): number {
  const { rows, rowPx, viewportPx } = geometry;
  const lastTop = Math.max(0, rows - viewportPx / rowPx);
  const row = Math.min(lastTop, Math.max(0, top));
  if (!isScaled(geometry)) return row * rowPx;
  return lastTop === 0 ? 0 : (row / lastTop) * (contentPx(geometry) - viewportPx);
}

/** Rows to render, `overscan` more on each side, and where the first of them stands in the content. */
export function renderedRows(
  geometry: WindowGeometry,
  scrollPx: number,
  overscan = 10,
): { readonly from: number; readonly to: number; readonly offsetPx: number } {
  const top = topRow(geometry, scrollPx);
  const from = Math.max(0, Math.floor(top) - overscan);
  const to = Math.min(geometry.rows, Math.ceil(top + geometry.viewportPx / geometry.rowPx) + overscan);
  const offsetPx = isScaled(geometry) ? scrollPx - (top - from) * geometry.rowPx : from * geometry.rowPx;
  return { from, to, offsetPx };
}

/** The top row after scrolling just as far as needed to show `row`, with some rows around it. */
export function topToShow(geometry: WindowGeometry, currentTop: number, row: number): number {
  const shown = geometry.viewportPx / geometry.rowPx;
  const margin = Math.min(3, shown / 3);
  if (row < currentTop + margin) return row - margin;
  if (row + 1 > currentTop + shown - margin) return row + 1 - shown + margin;
  return currentTop;
}
