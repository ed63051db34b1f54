import { create } from "zustand";
import { persist } from "zustand/middleware";
import { DEFAULT_LAYOUT, readLayout, type ColumnLayout } from "./columns.ts";

/** The column layout, stored in this browser. */
export const useColumns = create<ColumnLayout>()(
  persist((): ColumnLayout => DEFAULT_LAYOUT, {
    name: "weir.columns",
    version: 1,
    merge: (stored) => readLayout(stored),
  }),
);

/** Changes and stores the layout. */
export function changeColumns(change: (layout: ColumnLayout) => ColumnLayout): void {
  useColumns.setState((layout) => change(layout));
}
