export interface Selection {
  readonly ids: ReadonlySet<string>;
  /** The row with the focus ring, opened by Enter. */
  readonly active: string | null;
  /** Start of a range selection. */
  readonly anchor: string | null;
  /** Keeps rows in place while the user selects. The selection left after closing an entry does not. */
  readonly isHolding: boolean;
}

export const NOTHING_SELECTED: Selection = { ids: new Set(), active: null, anchor: null, isHolding: false };

/** A plain click or an arrow key. */
export function selectOne(id: string): Selection {
  return { ids: new Set([id]), active: id, anchor: id, isHolding: true };
}

/** Ctrl-click: toggles a row. */
export function toggleOne(selection: Selection, id: string): Selection {
  const ids = new Set(selection.ids);
  if (!ids.delete(id)) ids.add(id);
  return { ids, active: id, anchor: id, isHolding: ids.size > 0 };
}

/** Shift-click or Shift with an arrow: selects from the anchor, which stays; `range` are the ids in between. */
export function selectRange(selection: Selection, id: string, range: readonly string[]): Selection {
  return { ids: new Set(range), active: id, anchor: selection.anchor ?? id, isHolding: true };
}

/** For a context menu, which holds rows itself while open: a selected row keeps the selection. */
export function selectForMenu(selection: Selection, id: string): Selection {
  return selection.ids.has(id) ? selection : releaseHold(selectOne(id));
}

/** After an entry was closed; a multiple selection is kept. */
export function afterClosing(selection: Selection): Selection {
  return selection.ids.size > 1 ? selection : releaseHold(selection);
}

/** Releases the hold, keeping the selection. */
export function releaseHold(selection: Selection): Selection {
  return { ...selection, isHolding: false };
}

export function withoutIds(selection: Selection, gone: readonly string[]): Selection {
  const ids = new Set(selection.ids);
  for (const id of gone) ids.delete(id);
  const has = (id: string | null): string | null => (id !== null && gone.includes(id) ? null : id);
  const isHolding = selection.isHolding && ids.size > 0;
  return { ids, active: has(selection.active), anchor: has(selection.anchor), isHolding };
}
