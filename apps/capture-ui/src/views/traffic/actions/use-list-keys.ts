import type { RefObject } from "react";
import { setPreferences, usePreferences } from "../../../preferences.ts";
import { useAction } from "../../../shell/actions.ts";
import type { GridHandle } from "../list/grid.tsx";
import type { TrafficList } from "../list/traffic-list.ts";
import type { useSelection } from "../use-selection.ts";
import { copySnippet, copyUrls } from "./entry-actions.ts";
import { compareEntries, editAndReplay, makeBreakpoint, makeMock, replayNow } from "./rule-actions.ts";
import type { useRowActions } from "./use-row-actions.ts";

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
