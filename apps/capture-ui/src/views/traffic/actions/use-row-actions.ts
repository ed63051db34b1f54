import { type RefObject, useState } from "react";
import { setPreferences, usePreferences } from "../../../preferences.ts";
import { queryClient, statsQuery } from "../../../queries.ts";
import { useAction } from "../../../shell/actions.ts";
import { exportHar } from "../../../transfer/export.ts";
import type { MenuEntry } from "../../../ui/menu.tsx";
import type { GridHandle } from "../list/grid.tsx";
import type { TrafficList } from "../list/traffic-list.ts";
import { addTerm } from "../query/effective-query.ts";
import type { useSelection } from "../use-selection.ts";
import type { useTrafficData } from "../use-traffic-data.ts";
import type { useViewState } from "../use-view-state.ts";
import {
  clearAll,
  compareEntries,
  copySnippet,
  copyUrls,
  deleteEntries,
  editAndReplay,
  makeBreakpoint,
  makeMock,
  replayNow,
} from "./entry-actions.ts";
import { type MenuActions, rowMenu, selectionMenu } from "./row-menu.tsx";

/** Refetches totals, which would contradict the list until the next traffic event. */
function refetchTotals(): void {
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
    refetchTotals();
    chosen.drop(ids);
    if (view.id !== null && ids.includes(view.id)) chosen.close();
  };
  const clear = async (): Promise<void> => {
    if (!(await clearAll(view.session))) return;
    chosen.clear();
    chosen.close();
    list.reload();
    refetchTotals();
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

/** Registers the key actions of the list and the selected entry. */
export function useListKeys({
  list,
  grid,
  queryInput,
  chosen,
  openId,
  actions,
}: {
  readonly list: TrafficList;
  readonly grid: RefObject<GridHandle | null>;
  readonly queryInput: RefObject<HTMLInputElement | null>;
  readonly chosen: ReturnType<typeof useSelection>;
  readonly openId: string | null;
  readonly actions: ReturnType<typeof useRowActions>;
}): void {
  const { selection } = chosen;
  const active = selection.active;
  const withActive = (action: (id: string) => void) => (active === null ? undefined : () => action(active));
  const page = (): number => grid.current?.pageSize() ?? 20;

  useAction("focusQuery", () => {
    queryInput.current?.focus();
    queryInput.current?.select();
  });
  useAction("list.next", () => chosen.moveBy(1));
  useAction("list.previous", () => chosen.moveBy(-1));
  useAction("list.nextPage", () => chosen.moveBy(page()));
  useAction("list.previousPage", () => chosen.moveBy(-page()));
  useAction("list.first", () => chosen.moveTo(0, false));
  useAction("list.last", () => chosen.moveTo(list.length - 1, false));
  useAction("list.extendNext", () => chosen.moveBy(1, true));
  useAction("list.extendPrevious", () => chosen.moveBy(-1, true));
  useAction("list.selectAll", () => void chosen.selectAll());
  useAction(
    "list.open",
    withActive((id) => chosen.open(id)),
  );
  useAction(
    "list.copyCurl",
    withActive((id) => void copySnippet(id, "curl")),
  );
  useAction("note", withActive(actions.editNote));
  useAction(
    "rule.breakpoint",
    withActive((id) => makeBreakpoint(id, "request")),
  );
  useAction("rule.mock", withActive(makeMock));
  useAction(
    "replay.send",
    withActive((id) => void replayNow(id)),
  );
  useAction(
    "replay.edit",
    withActive((id) => void editAndReplay(id)),
  );
  useAction("diff", selection.ids.size === 2 ? () => compareEntries([...selection.ids]) : undefined);
  useAction("list.delete", selection.ids.size === 0 ? undefined : () => actions.remove([...selection.ids]));
  useAction(
    "list.copyUrl",
    selection.ids.size === 0 ? undefined : () => void copyUrls([...selection.ids].flatMap((id) => list.byId(id) ?? [])),
  );
  useAction("list.clear", actions.clear);
  useAction("list.focusOnly", () => setPreferences({ focusOnly: !usePreferences.getState().focusOnly }));
  useAction("detail.layout", () =>
    setPreferences({ detailLayout: usePreferences.getState().detailLayout === "right" ? "bottom" : "right" }),
  );
  useAction("close", openId !== null ? chosen.close : selection.ids.size > 0 ? chosen.clear : undefined);
}
