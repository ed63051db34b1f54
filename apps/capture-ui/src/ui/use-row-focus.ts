import { useEffect, useLayoutEffect, useRef, type FocusEvent } from "react";

/**
 * Keeps the keyboard in a list whose row with the focus is taken away: the row in its place gets it, the last one if
 * there is none, and the screen where no row is left. The handler belongs to the element around the rows, which are `li`
 * or `tr` and take the focus with `tabIndex={-1}`.
 */
export function useRowFocus(tag: "li" | "tr"): (event: FocusEvent<HTMLElement>) => void {
  const place = useRef<{ row: HTMLElement; rows: Element; index: number } | null>(null);
  useLayoutEffect(() => {
    const last = place.current;
    if (last === null) return;
    if (last.row.isConnected) last.index = indexOf(last.row);
    else if (document.activeElement === document.body) {
      place.current = null;
      const next = last.rows.children.item(Math.min(last.index, last.rows.childElementCount - 1));
      if (last.rows.isConnected && next instanceof HTMLElement) next.focus();
      else focusScreen();
    }
  });
  useEffect(
    () => () => {
      if (place.current !== null && document.activeElement === document.body) focusScreen();
    },
    [],
  );
  return ({ currentTarget, target }) => {
    const row = target.closest<HTMLElement>(tag);
    // React tells it of menus and windows as well that a row opened; they stand elsewhere in the document.
    if (row?.parentElement == null || !currentTarget.contains(row)) return;
    place.current = { row, rows: row.parentElement, index: indexOf(row) };
  };
}

function indexOf(row: Element): number {
  return [...(row.parentElement?.children ?? [])].indexOf(row);
}

function focusScreen(): void {
  document.querySelector("main")?.focus();
}
