import { useState } from "react";
import { queryClient, statsQuery } from "../../../queries.ts";
import { exportHar } from "../../../transfer/export.ts";
import type { MenuEntry } from "../../../ui/menu.tsx";
import { addTerm } from "../query/effective-query.ts";
import type { useSelection } from "../use-selection.ts";
import type { useTrafficData } from "../use-traffic-data.ts";
import type { useViewState } from "../use-view-state.ts";
import { clearAll, deleteEntries } from "./entry-actions.ts";
import { rowMenu, selectionMenu, type MenuActions } from "./row-menu.tsx";

/** Refetches totals, which would contradict the list until the next traffic event. */
function countAgain(): void {
  void queryClient.invalidateQueries({ queryKey: ["traffic"] });
  void queryClient.invalidateQueries({ queryKey: statsQuery.queryKey });
}

/** Actions on entries of this screen, and the menu of a row. */
export function useRowActions(
  view: ReturnType<typeof useViewState>,
  data: ReturnType<typeof useTrafficData>,
  chosen: ReturnType<typeof useSelection>,
) {
  const { list } = data;
  const [noteId, setNoteId] = useState<string | null>(null);

  const remove = async (ids: readonly string[]): Promise<void> => {
    if (!(await deleteEntries(ids))) return;
    list.remove(ids);
    countAgain();
    chosen.drop(ids);
    if (view.id !== null && ids.includes(view.id)) chosen.close();
  };
  const clear = async (): Promise<void> => {
    if (!(await clearAll(view.session))) return;
    chosen.clear();
    chosen.close();
    list.reload();
    countAgain();
  };
  const actions: MenuActions = {
    open: chosen.open,
    addFilter: (term) => view.setQ(addTerm(view.q, term)),
    editNote: setNoteId,
    remove: (ids) => void remove(ids),
    exportHar: (ids) => void exportHar({ ids }),
  };
  const menuFor = (index: number): readonly MenuEntry[] => {
    const row = list.rowAt(index);
    if (row === undefined) return [];
    const { ids } = chosen.selection;
    if (ids.size > 1 && ids.has(row.id)) {
      const all = [...ids];
      const loaded = all.flatMap((id) => list.byId(id) ?? []);
      return selectionMenu(all, loaded, actions);
    }
    chosen.chooseForMenu(row.id);
    return rowMenu(row, actions);
  };
  return {
    menuFor,
    remove: actions.remove,
    clear: () => void clear(),
    editNote: setNoteId,
    /** The entry whose note is being edited. */
    noteId,
    closeNote: () => setNoteId(null),
  };
}
