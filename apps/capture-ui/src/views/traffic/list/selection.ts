/** Chosen entries and the one the keyboard is on. */
export interface Selection {
  readonly ids: ReadonlySet<string>;
  /** The row that has the focus ring and that Enter opens. */
  readonly active: string | null;
  /** Where a range selection starts. */
  readonly anchor: string | null;
  /** Somebody is choosing: rows stay where they are. What is left when an entry was closed holds nothing. */
  readonly isHolding: boolean;
}

export const NOTHING_SELECTED: Selection = { ids: new Set(), active: null, anchor: null, isHolding: false };

/** A plain click or an arrow key. */
export function selectOne(id: string): Selection {
  return { ids: new Set([id]), active: id, anchor: id, isHolding: true };
}

/** Ctrl-click: in or out. */
export function toggleOne(selection: Selection, id: string): Selection {
  const ids = new Set(selection.ids);
  if (!ids.delete(id)) ids.add(id);
  return { ids, active: id, anchor: id, isHolding: ids.size > 0 };
}

/** Shift-click or Shift with an arrow: everything from the anchor, which stays; `range` are the ids in between. */
export function selectRange(selection: Selection, id: string, range: readonly string[]): Selection {
  return { ids: new Set(range), active: id, anchor: selection.anchor ?? id, isHolding: true };
}

/** For a menu, which holds the rows itself while it is open: a row that is chosen already stays as it was chosen. */
export function selectForMenu(selection: Selection, id: string): Selection {
  return selection.ids.has(id) ? selection : letGo(selectOne(id));
}

/** After an entry was closed. Several chosen ones are still wanted for something. */
export function afterClosing(selection: Selection): Selection {
  return selection.ids.size > 1 ? selection : letGo(selection);
}

/** Rows may move again; the same ones stay chosen. */
export function letGo(selection: Selection): Selection {
  return { ...selection, isHolding: false };
}

/** After entries were deleted. */
export function withoutIds(selection: Selection, gone: readonly string[]): Selection {
  const ids = new Set(selection.ids);
  for (const id of gone) ids.delete(id);
  const has = (id: string | null): string | null => (id !== null && gone.includes(id) ? null : id);
  const isHolding = selection.isHolding && ids.size > 0;
  return { ids, active: has(selection.active), anchor: has(selection.anchor), isHolding };
}
