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
