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
