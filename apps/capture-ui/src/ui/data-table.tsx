import type { ReactNode } from "react";

/** A table whose rows keep their order, so that the index identifies them. */
export function DataTable({
  label,
  titles,
  rows,
  hasRowTitles = false,
  className,
  cellClasses = [],
}: {
  readonly label: string;
  readonly titles?: readonly string[];
  readonly rows: readonly (readonly ReactNode[])[];
  /** The first cell of each row is its header. */
  readonly hasRowTitles?: boolean;
  readonly className: string | undefined;
  readonly cellClasses?: readonly (string | undefined)[];
}) {
  return (
    <table className={className} aria-label={label}>
      {titles !== undefined && (
        <thead>
          <tr>
            {titles.map((title) => (
              <th key={title} scope="col">
                {title}
              </th>
            ))}
          </tr>
        </thead>
      )}
      <tbody>
        {rows.map((cells, row) => (
          <tr key={`${row}`}>
            {cells.map((cell, column) =>
              hasRowTitles && column === 0 ? (
                <th key={`${column}`} scope="row">
                  {cell}
                </th>
              ) : (
                <td key={`${column}`} className={cellClasses[column]}>
                  {cell}
                </td>
              ),
            )}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
