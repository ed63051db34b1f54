import type { ReactNode } from "react";
import { classNames } from "./class-names.ts";
import styles from "./list-table.module.css";
import { EmptyState, ErrorState, Spinner } from "./states.tsx";
import { useRowFocus } from "./use-row-focus.ts";

/** A column of a {@link ListTable}. */
export interface ListColumn<Item> {
  readonly title: string;
  /** `switch` is as narrow as can be; `number` and `actions` stand at the end; `quiet` steps back. The title of `actions` is only read out. */
  readonly kind?: "switch" | "number" | "quiet" | "actions";
  /** How wide the page must be at least for the column to be shown; without it it always is. */
  readonly from?: "medium" | "wide";
  readonly cell: (item: Item) => ReactNode;
}

/** What of a query a {@link ListTable} needs. */
interface LoadedList<Item> {
  readonly data: readonly Item[] | undefined;
  readonly error: unknown;
  readonly isPending: boolean;
  readonly refetch: () => unknown;
}

/**
 * A list of at most some hundred things as a table, or what stands in its place: a sign of loading, why it cannot be had,
 * or `empty`. After a failure the rows that were known stay, below the reason.
 */
export function ListTable<Item extends { readonly id: string }>({
  label,
  list,
  columns,
  empty,
  isSelected,
  isOff,
}: {
  /** What the things are, as in "The … cannot be loaded"; the name of the table too. */
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
