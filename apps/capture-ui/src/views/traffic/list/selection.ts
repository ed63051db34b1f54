/** Chosen entries and the one the keyboard is on. */
export interface Selection {
  readonly ids: ReadonlySet<string>;
  /** The row that has the focus ring and that Enter opens. */
  readonly active: string | null;
  /** Where a range selection starts. */
  readonly anchor: string | null;
}

export const NOTHING_SELECTED: Selection = { ids: new Set(), active: null, anchor: null };

/** A plain click or an arrow key. */
export function selectOne(id: string): Selection {
  return { ids: new Set([id]), active: id, anchor: id };
}

/** Ctrl-click: in or out. */
export function toggleOne(selection: Selection, id: string): Selection {
  const ids = new Set(selection.ids);
  if (!ids.delete(id)) ids.add(id);
  return { ids, active: id, anchor: id };
}

/** Shift-click or Shift with an arrow: everything from the anchor, which stays; `range` are the ids in between. */
export function selectRange(selection: Selection, id: string, range: readonly string[]): Selection {
  return { ids: new Set(range), active: id, anchor: selection.anchor ?? id };
}

/** After entries were deleted. */
export function withoutIds(selection: Selection, gone: readonly string[]): Selection {
  const ids = new Set(selection.ids);
  for (const id of gone) ids.delete(id);
  const has = (id: string | null): string | null => (id !== null && gone.includes(id) ? null : id);
  return { ids, active: has(selection.active), anchor: has(selection.anchor) };
}
