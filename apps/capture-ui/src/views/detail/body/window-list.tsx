import {
  type KeyboardEvent,
  type ReactNode,
  type Ref,
  type RefObject,
  useCallback,
  useEffect,
  useImperativeHandle,
  useLayoutEffect,
  useRef,
  useState,
} from "react";
import { classNames } from "../../../ui/class-names.ts";
import {
  contentPx,
  isScaled,
  renderedRows,
  scrollOf,
  topRow,
  topToShow,
  type WindowGeometry,
} from "../../../ui/window-math.ts";
import styles from "./body.module.css";

export interface WindowListHandle {
  /** Scrolls by the minimum needed to show a row. */
  readonly show: (row: number) => void;
  readonly focus: () => void;
}

/** A virtual list: only rows in view are rendered. */
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
  /** Receives the needed rows after each render. */
  readonly onVisible: (from: number, to: number) => void;
  readonly header?: ReactNode;
  readonly role?: "tree" | "table" | "group";
  readonly className?: string | undefined;
  readonly handle?: Ref<WindowListHandle>;
  readonly onKeyDown?: (event: KeyboardEvent<HTMLDivElement>) => void;
  /** Element id of the active row for screen readers; called only for rendered rows. */
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

  useScaledWheel(frame, geometry, scrollTo);

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
      // A reference to a missing element would make screen readers lose their position.
      aria-activedescendant={shownRows.map((row) => activeId?.(row)).find((found) => found !== undefined)}
      // Scrollable regions must be reachable by keyboard.
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

/** Scrolls a scaled list by rows: the browser's wheel scrolling would skip thousands of them. */
function useScaledWheel(
  frame: RefObject<HTMLDivElement | null>,
  geometry: WindowGeometry,
  scrollTo: (px: number) => void,
): void {
  const { rows, rowPx, viewportPx } = geometry;
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
  }, [frame, scaled, rows, rowPx, viewportPx, scrollTo]);
}

/** Rows of a long list, loaded in blocks on demand. */
interface Blocks<T> {
  readonly row: (index: number) => T | undefined;
  /** Loads the missing rows of `[from, to)`. */
  readonly want: (from: number, to: number) => void;
}

const KEPT_BLOCKS = 40;

/**
 * Loads rows through `load` in blocks. A change of `version` makes all rows stale; stale rows are kept until replaced,
 * to avoid flicker. A partial last block is loaded again after the list has grown.
 */
export function useBlocks<T>(
  load: (from: number, to: number) => Promise<readonly T[]>,
  version: string,
  blockRows = 200,
): Blocks<T> {
  const [, setTick] = useState(0);
  const held = useRef(new Map<number, { readonly version: string; readonly rows: readonly T[] }>());
  const requested = useRef(new Map<number, string>());
  const latest = useRef({ load, version });
  // Runs before the effects of child components, which request rows.
  useLayoutEffect(() => {
    latest.current = { load, version };
  });
  const alive = useRef(true);
  useEffect(() => {
    alive.current = true;
    return () => {
      alive.current = false;
    };
  }, []);

  const fetchBlock = useCallback(
    (block: number, needed: number) => {
      const { load: loadRows, version: current } = latest.current;
      const key = `${current}:${needed}`;
      if (requested.current.get(block) === key) return;
      requested.current.set(block, key);
      loadRows(block * blockRows, (block + 1) * blockRows).then(
        (rows) => {
          if (!alive.current || latest.current.version !== current) return;
          held.current.delete(block);
          held.current.set(block, { version: current, rows });
          for (const old of held.current.keys()) {
            if (held.current.size <= KEPT_BLOCKS) break;
            held.current.delete(old);
            requested.current.delete(old);
          }
          setTick((tick) => tick + 1);
        },
        () => requested.current.delete(block),
      );
    },
    [blockRows],
  );

  const row = useCallback(
    (index: number) => held.current.get(Math.floor(index / blockRows))?.rows[index % blockRows],
    [blockRows],
  );
  const want = useCallback(
    (from: number, to: number) => {
      for (let block = Math.floor(from / blockRows); block * blockRows < to; block++) {
        const needed = Math.min(to - block * blockRows, blockRows);
        const found = held.current.get(block);
        const fresh = found !== undefined && found.version === latest.current.version;
        if (!fresh || found.rows.length < needed) fetchBlock(block, fresh ? needed : 0);
      }
    },
    [blockRows, fetchBlock],
  );
  return { row, want };
}
