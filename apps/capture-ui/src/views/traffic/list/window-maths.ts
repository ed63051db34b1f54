/** Browsers lay out elements of up to some 17 million pixels (Firefox) or 33 million (Chromium) correctly. */
export const MAX_HEIGHT_PX = 12_000_000;

/** The measures of a list of equally high rows. */
export interface Viewport {
  readonly rowHeightPx: number;
  readonly heightPx: number;
  readonly length: number;
}

/** Height of the element that gives the scroll bar its length. */
export function scrollHeight({ rowHeightPx, length }: Viewport): number {
  return Math.min(MAX_HEIGHT_PX, rowHeightPx * length);
}

/** Pixels of rows for one pixel of scrolling: 1, or more when the list is too long to be laid out whole. */
function ratio({ rowHeightPx, heightPx, length }: Viewport): number {
  const content = rowHeightPx * length;
  if (content <= MAX_HEIGHT_PX) return 1;
  return (content - heightPx) / (MAX_HEIGHT_PX - heightPx);
}

/** What to draw at a scroll position. Rows are `shiftPx` off their place `index * rowHeight` in a very long list. */
export interface DrawnWindow {
  /** First and last row that can be seen, partly or whole; `last` is -1 for an empty list. */
  readonly first: number;
  readonly last: number;
  readonly shiftPx: number;
}

/** The rows to draw at `scrollTopPx`. */
export function drawnWindow(viewport: Viewport, scrollTopPx: number): DrawnWindow {
  const { rowHeightPx, heightPx, length } = viewport;
  if (length === 0) return { first: 0, last: -1, shiftPx: 0 };
  const scrolled = Math.max(0, Math.min(scrollTopPx, scrollHeight(viewport) - heightPx));
  const contentTop = Math.max(0, scrolled) * ratio(viewport);
  const first = Math.min(length - 1, Math.floor(contentTop / rowHeightPx));
  const last = Math.min(length - 1, Math.ceil((contentTop + heightPx) / rowHeightPx) - 1);
  return { first, last: Math.max(first, last), shiftPx: Math.max(0, scrolled) - contentTop };
}

/** Scroll position at which a row can be seen whole, moving as little as possible from `scrollTopPx`. */
export function scrollToShow(viewport: Viewport, scrollTopPx: number, index: number): number {
  const { rowHeightPx, heightPx } = viewport;
  const factor = ratio(viewport);
  const contentTop = scrollTopPx * factor;
  const rowTop = index * rowHeightPx;
  if (rowTop < contentTop) return rowTop / factor;
  if (rowTop + rowHeightPx > contentTop + heightPx) return Math.max(0, (rowTop + rowHeightPx - heightPx) / factor);
  return scrollTopPx;
}
