/** Browsers fail to lay out elements above about 17 million pixels; taller lists scroll proportionally. */
export const MAX_SCROLL_PX = 8_000_000;

/** A list of equally high rows and its viewport. */
export interface WindowGeometry {
  readonly rows: number;
  readonly rowPx: number;
  readonly viewportPx: number;
}

export function contentPx({ rows, rowPx }: WindowGeometry): number {
  return Math.min(MAX_SCROLL_PX, rows * rowPx);
}

/** Whether one scroll pixel represents more than one list pixel. */
export function isScaled({ rows, rowPx }: WindowGeometry): boolean {
  return rows * rowPx > MAX_SCROLL_PX;
}

/** The fractional row at the upper edge for a scroll position. */
export function topRow(geometry: WindowGeometry, scrollPx: number): number {
  const { rows, rowPx, viewportPx } = geometry;
  const lastTop = Math.max(0, rows - viewportPx / rowPx);
  if (!isScaled(geometry)) return Math.min(lastTop, Math.max(0, scrollPx / rowPx));
  const range = contentPx(geometry) - viewportPx;
  return range <= 0 ? 0 : Math.min(1, Math.max(0, scrollPx / range)) * lastTop;
}

/** The scroll position that puts a fractional row at the upper edge. */
export function scrollOf(geometry: WindowGeometry, top: number): number {
  const { rows, rowPx, viewportPx } = geometry;
  const lastTop = Math.max(0, rows - viewportPx / rowPx);
  const row = Math.min(lastTop, Math.max(0, top));
  if (!isScaled(geometry)) return row * rowPx;
  return lastTop === 0 ? 0 : (row / lastTop) * (contentPx(geometry) - viewportPx);
}

/** Rows to render, with `overscan` more on each side, and the offset of the first. */
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

/** The top row after the minimum scrolling that shows `row` with some context. */
export function topToShow(geometry: WindowGeometry, currentTop: number, row: number): number {
  const shown = geometry.viewportPx / geometry.rowPx;
  const margin = Math.min(3, shown / 3);
  if (row < currentTop + margin) return row - margin;
  if (row + 1 > currentTop + shown - margin) return row + 1 - shown + margin;
  return currentTop;
}

/** Browsers lay out elements correctly up to about 17 (Firefox) or 33 (Chromium) million pixels. */
export const MAX_HEIGHT_PX = 12_000_000;

/** Measures of a list of equally high rows. */
export interface Viewport {
  readonly rowHeightPx: number;
  readonly heightPx: number;
  readonly length: number;
}

/** Height of the element that sizes the scroll bar. */
export function scrollHeight({ rowHeightPx, length }: Viewport): number {
  return Math.min(MAX_HEIGHT_PX, rowHeightPx * length);
}

/** List pixels per scroll pixel: 1, or more if the list exceeds the limit. */
function ratio({ rowHeightPx, heightPx, length }: Viewport): number {
  const content = rowHeightPx * length;
  if (content <= MAX_HEIGHT_PX) return 1;
  return (content - heightPx) / (MAX_HEIGHT_PX - heightPx);
}

/** Rows to draw at a scroll position. In very long lists rows are shifted by `shiftPx` from `index * rowHeight`. */
export interface DrawnWindow {
  /** First and last visible row, also partly; `last` is -1 for an empty list. */
  readonly first: number;
  readonly last: number;
  readonly shiftPx: number;
}

export function drawnWindow(viewport: Viewport, scrollTopPx: number): DrawnWindow {
  const { rowHeightPx, heightPx, length } = viewport;
  if (length === 0) return { first: 0, last: -1, shiftPx: 0 };
  const scrolled = Math.max(0, Math.min(scrollTopPx, scrollHeight(viewport) - heightPx));
  const contentTop = Math.max(0, scrolled) * ratio(viewport);
  const first = Math.min(length - 1, Math.floor(contentTop / rowHeightPx));
  const last = Math.min(length - 1, Math.ceil((contentTop + heightPx) / rowHeightPx) - 1);
  return { first, last: Math.max(first, last), shiftPx: Math.max(0, scrolled) - contentTop };
}

/** Scroll position that shows a row completely, moving as little as possible from `scrollTopPx`. */
export function scrollToShow(viewport: Viewport, scrollTopPx: number, index: number): number {
  const { rowHeightPx, heightPx } = viewport;
  const factor = ratio(viewport);
  const contentTop = scrollTopPx * factor;
  const rowTop = index * rowHeightPx;
  if (rowTop < contentTop) return rowTop / factor;
  if (rowTop + rowHeightPx > contentTop + heightPx) return Math.max(0, (rowTop + rowHeightPx - heightPx) / factor);
  return scrollTopPx;
}
