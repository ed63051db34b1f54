import { useCallback, useEffect, useRef, useState } from "react";
import type { MouseEvent, RefObject } from "react";
import { setParams } from "../../shell/router.ts";
import { formatCount } from "../../ui/format.ts";
import { toast } from "../../ui/toast.tsx";
import { isAbort, errorText } from "../../api.ts";
import type { GridHandle } from "./list/grid.tsx";
import {
  NOTHING_SELECTED,
  afterClosing,
  releaseHold,
  selectForMenu,
  selectOne,
  selectRange,
  toggleOne,
  withoutIds,
  type Selection,
} from "./list/selection.ts";
import type { TrafficList } from "./list/traffic-list.ts";

const MAX_SELECTED = 10_000;
/** Debounce of the details while an arrow key is held down. */
const FOLLOW_MS = 90;

/** Selection by mouse and keyboard, and the opened entry. */
export function useSelection(list: TrafficList, grid: RefObject<GridHandle | null>, openId: string | null) {
  const [selection, setSelection] = useState<Selection>(openId === null ? NOTHING_SELECTED : selectOne(openId));
  const [seenId, setSeenId] = useState(openId);
  // Navigation to an entry also selects it.
  if (openId !== seenId) {
    setSeenId(openId);
    if (openId === null) setSelection(afterClosing(selection));
    else if (!selection.ids.has(openId)) setSelection(selectOne(openId));
  }
  const follow = useRef<number | undefined>(undefined);

  const open = useCallback((id: string, replace = false) => setParams({ id }, { replace }), []);
  const close = useCallback(() => {
    window.clearTimeout(follow.current);
    setParams({ id: null }, { replace: true });
  }, []);
  useEffect(() => () => window.clearTimeout(follow.current), []);

  const extendTo = async (index: number): Promise<void> => {
    const row = list.rowAt(index);
    const anchor = selection.anchor === null ? undefined : list.indexOf(selection.anchor);
    if (row === undefined) return;
    try {
      const range = await list.idsBetween(anchor ?? index, index, MAX_SELECTED);
      setSelection((now) => selectRange(now, row.id, range));
    } catch (error) {
      if (!isAbort(error)) {
        toast({ tone: "error", title: "Could not select the range", text: errorText(error) });
      }
    }
  };

  const onRowClick = (index: number, event: MouseEvent): void => {
    const row = list.rowAt(index);
    if (row === undefined) return;
    if (event.shiftKey) void extendTo(index);
    else if (event.ctrlKey || event.metaKey) setSelection((now) => toggleOne(now, row.id));
    else {
      setSelection(selectOne(row.id));
      open(row.id, openId !== null);
    }
  };

  const moveTo = (index: number, extend: boolean): void => {
    const target = Math.max(0, Math.min(list.length - 1, index));
    // Screen readers announce the active row only of a focused element; an existing focus is not taken away.
    if (document.activeElement === document.body) grid.current?.focus();
    grid.current?.show(target);
    if (extend) {
      void extendTo(target);
      return;
    }
    const row = list.rowAt(target);
    if (row === undefined) return;
    setSelection(selectOne(row.id));
    if (openId === null) return;
    window.clearTimeout(follow.current);
    follow.current = window.setTimeout(() => open(row.id, true), FOLLOW_MS);
  };
  const activeIndex = (): number | undefined =>
    selection.active === null ? undefined : list.indexOf(selection.active);
  const moveBy = (step: number, extend = false): void => {
    const at = activeIndex();
    moveTo(at === undefined ? (step > 0 ? 0 : list.length - 1) : at + step, extend);
  };
  const selectAll = async (): Promise<void> => {
    try {
      const ids = await list.idsBetween(0, list.length - 1, MAX_SELECTED);
      setSelection((now) => ({
        ids: new Set(ids),
        active: now.active ?? ids[0] ?? null,
        anchor: now.anchor ?? ids[0] ?? null,
        isHolding: ids.length > 0,
      }));
      if (list.length > MAX_SELECTED) {
        toast({
          title: `The first ${formatCount(MAX_SELECTED)} requests are selected`,
          text: "To export or clear everything, clear the selection.",
        });
      }
    } catch (error) {
      toast({ tone: "error", title: "Could not select the requests", text: errorText(error) });
    }
  };
  return {
    selection,
    open,
    close,
    onRowClick,
    moveBy,
    moveTo,
    selectAll,
    chooseForMenu: (id: string) => setSelection((now) => selectForMenu(now, id)),
    releaseHold: () => setSelection(releaseHold),
    clear: () => setSelection(NOTHING_SELECTED),
    drop: (ids: readonly string[]) => setSelection((now) => withoutIds(now, ids)),
  };
}
