import { useEffect, useLayoutEffect, useRef, type FocusEvent } from "react";

/**
 * Keeps the focus in a list when the focused row is removed: on the row that takes its position, the last row, or the
 * screen if the list is empty. The handler belongs to the element around the rows, which are `li` or `tr` with
 * `tabIndex={-1}`.
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
    // React also bubbles events from portals, such as menus and dialogs opened by a row.
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
