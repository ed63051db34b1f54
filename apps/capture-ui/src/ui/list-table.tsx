import type { ReactNode } from "react";
import { classNames } from "./class-names.ts";
import styles from "./list-table.module.css";
import { EmptyState, ErrorState, Spinner } from "./states.tsx";
import { useRowFocus } from "./use-row-focus.ts";

export interface ListColumn<Item> {
  readonly title: string;
  /**
   * `switch` is minimal in width; `number` and `actions` are aligned to the end; `quiet` is dimmed. The title of
   * `actions` is visually hidden.
   */
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

/**
 * A table of up to some hundred items, or its loading, error or `empty` state. After a failure the last known rows stay
 * below the error.
 */
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
