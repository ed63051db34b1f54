import { useEffect, useEffectEvent, useLayoutEffect, useMemo, useRef, useState } from "react";
import type { RefObject } from "react";
import type { TrafficList } from "./traffic-list.ts";
import { drawnWindow, type DrawnWindow, type Viewport } from "./window-maths.ts";

/** Rows beyond the edges that are drawn too. */
const OVERSCAN = 8;
/** With fewer rows than this left beyond an edge, the next ones are drawn. */
const RESERVE = 2;
/** The header is inside the scrolled element. */
const HEADER_PX = 26;
const AT_TOP_PX = 2;

/** What depends on the rows in sight (a time axis moves every bar) follows scrolling only so often. */
const SEEN_MS = 120;

/** Width and height inside the scroll bars. */
export function useSize(ref: RefObject<HTMLElement | null>): { readonly width: number; readonly height: number } {
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
 * Which rows to draw in a scrolled element; tells the list what is seen and whether the reader is at the top. `exact`
 * also gives the rows that are really in sight. While `hold` is set, rows stay
 * where they are even at the top.
 */
export function useDrawnRows(
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

  // The length and the measures decide what is visible as much as scrolling does.
  const measured = useEffectEvent(update);
  useLayoutEffect(() => {
    latest.current = viewport;
    measured();
  }, [viewport, list, exact, hold]);
  return { viewport, latest, drawn, seen, update };
}
