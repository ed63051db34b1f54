import { type FocusEvent, type ReactNode, useEffect, useLayoutEffect, useRef } from "react";
import { classNames } from "./class-names.ts";
import styles from "./list-table.module.css";
import { EmptyState, ErrorState, Spinner } from "./states.tsx";

export interface ListColumn<Item> {
  readonly title: string;
  /** `switch`: minimal width; `number`, `actions`: aligned to the end; `quiet`: dimmed. */
  readonly kind?: "switch" | "number" | "quiet" | "actions";
  /** Minimum page width that shows the column; always shown if absent. */
  readonly from?: "medium" | "wide";
  readonly cell: (item: Item) => ReactNode;
}

/** The parts of a query that a {@link ListTable} needs. */
interface LoadedList<Item> {
  readonly data: readonly Item[] | undefined;
  readonly error: unknown;
  readonly isPending: boolean;
  readonly refetch: () => unknown;
}

/** A table of up to some hundred items, or its state. After a failure the last rows stay. */
export function ListTable<Item extends { readonly id: string }>({
  label,
  list,
  columns,
  empty,
  isSelected,
  isOff,
}: {
  /** Plural noun of the items, and the table's accessible name. */
  readonly label: string;
  readonly list: LoadedList<Item>;
  readonly columns: readonly ListColumn<Item>[];
  readonly empty: ReactNode;
  readonly isSelected?: (item: Item) => boolean;
  readonly isOff?: (item: Item) => boolean;
}) {
  const items = list.data ?? [];
  const noun = label.toLowerCase();
  const watchFocus = useRowFocus("tr");
  return (
    <>
      {list.error !== null && (
        <ErrorState
          title={`Could not load the ${noun}`}
          error={list.error}
          onRetry={() => {
            void list.refetch();
          }}
        />
      )}
      {list.isPending && <EmptyState title={`Loading the ${noun}`} icon={<Spinner />} />}
      {list.error === null && !list.isPending && items.length === 0 && empty}
      {items.length > 0 && (
        <div className={styles["frame"]} onFocus={watchFocus}>
          <table className={styles["table"]} aria-label={label}>
            <thead>
              <tr>
                {columns.map((column) => (
                  <th key={column.title} scope="col" data-kind={column.kind} data-from={column.from}>
                    <span className={classNames(column.kind === "actions" && "visually-hidden")}>{column.title}</span>
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {items.map((item) => (
                <tr
                  key={item.id}
                  tabIndex={-1}
                  data-selected={isSelected?.(item) === true || undefined}
                  data-off={isOff?.(item) === true || undefined}
                >
                  {columns.map((column) => (
                    <td key={column.title} data-kind={column.kind} data-from={column.from}>
                      {column.cell(item)}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  );
}

/**
 * Keeps the focus in a list when the focused row is removed: on the row that takes its position, the last row, or the
 * screen if the list is empty. The handler belongs to the element around the rows, which are `li` or `tr` with
 * `tabIndex={-1}`.
 */
export function useRowFocus(tag: "li" | "tr"): (event: FocusEvent<HTMLElement>) => void {
  const focused = useRef<{ row: HTMLElement; rows: Element; index: number } | null>(null);
  useLayoutEffect(() => {
    const last = focused.current;
    if (last === null) return;
    if (last.row.isConnected) last.index = indexOf(last.row);
    else if (document.activeElement === document.body) {
      focused.current = null;
      const next = last.rows.children.item(Math.min(last.index, last.rows.childElementCount - 1));
      if (last.rows.isConnected && next instanceof HTMLElement) next.focus();
      else focusScreen();
    }
  });
  useEffect(
    () => () => {
      if (focused.current !== null && document.activeElement === document.body) focusScreen();
    },
    [],
  );
  return ({ currentTarget, target }) => {
    const row = target.closest<HTMLElement>(tag);
    // React also bubbles events from portals, such as menus and dialogs opened by a row.
    if (row?.parentElement == null || !currentTarget.contains(row)) return;
    focused.current = { row, rows: row.parentElement, index: indexOf(row) };
  };
}

function indexOf(row: Element): number {
  return [...(row.parentElement?.children ?? [])].indexOf(row);
}

function focusScreen(): void {
  document.querySelector("main")?.focus();
}
