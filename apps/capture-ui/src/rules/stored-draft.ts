import { useEffect, useState } from "react";

/** An unsaved draft and its original value. */
interface KeptDraft<D> {
  readonly base: D;
  readonly draft: D;
}

/** Drafts by name. They outlive their editors, so that navigating away loses nothing. */
const kept = new Map<string, KeptDraft<unknown>>();

/** The stored draft, or undefined. Reads of a name must use the type it was stored with. */
export function keptDraft<D>(name: string): KeptDraft<D> | undefined {
  return kept.get(name) as KeptDraft<D> | undefined;
}

/** Whether an unsaved draft exists under a name. */
export function isKept(name: string): boolean {
  return kept.has(name);
}

/** Stores a draft until it is saved or discarded; null removes it. */
export function keepDraft<D>(name: string, draft: KeptDraft<D> | null): void {
  if (draft === null) kept.delete(name);
  else kept.set(name, draft);
}

/** The names of all drafts that begin with `prefix`, oldest first. */
export function keptNames(prefix: string): string[] {
  return [...kept.keys()].filter((name) => name.startsWith(prefix));
}

/** Asks for confirmation before a window with unsaved drafts closes or reloads. Called once, by the entry point. */
export function askBeforeUnload(): void {
  addEventListener("beforeunload", (event) => {
    if (kept.size > 0) event.preventDefault();
  });
}

/** Whether two drafts are equal, ignoring the numeric keys that identify lines of an editor. */
export function isSameDraft(left: unknown, right: unknown): boolean {
  return left === right || written(left) === written(right);
}

function written(draft: unknown): string {
  return JSON.stringify(draft, (name, value: unknown) =>
    name === "key" && typeof value === "number" ? undefined : value,
  );
}

/** A draft of a stored or new item. */
export interface StoredDraft<D> {
  readonly draft: D;
  /** Original value of the draft. */
  readonly before: D;
  readonly isChanged: boolean;
  /** The stored item was changed by another client since the draft was begun. */
  readonly isOutdated: boolean;
  /** Increases when the draft restarts, for components that keep their initial props. */
  readonly revision: number;
  readonly set: (draft: D) => void;
  readonly discard: () => void;
  /** Marks the draft as saved before it is fetched again, so that closing needs no confirmation. */
  readonly release: () => void;
  /**
   * Marks `sent` as saved. `before` is what was stored when it was sent; it is no longer followed, so that the draft of a
   * new item does not start again before its editor gets the stored item.
   */
  readonly settle: (sent: D, before?: D) => void;
}

/**
 * Holds a draft of a stored item. An unchanged draft follows the store, so that no window overwrites newer state; a
 * changed draft is never replaced, and is kept under `name` when its editor unmounts. `stored` must be the same object
 * until the store changes.
 */
export function useStoredDraft<D>(name: string, stored: D): StoredDraft<D> {
  const [state, setState] = useState<KeptDraft<D> & { readonly revision: number; readonly replaced?: D }>(() => ({
    ...(keptDraft<D>(name) ?? { base: stored, draft: stored }),
    revision: 0,
  }));
  const { base, draft } = state;
  const isChanged = !isSameDraft(draft, base);
  const isMoved = stored !== state.replaced && !isSameDraft(stored, base);
  const begin = (): void => setState({ base: stored, draft: stored, revision: state.revision + 1 });
  if (isMoved && !isChanged) begin();
  // The other client made the same change.
  else if (isMoved && isSameDraft(draft, stored)) setState({ ...state, base: stored });
  useEffect(() => keepDraft(name, isChanged ? { base, draft } : null), [name, isChanged, base, draft]);
  return {
    draft,
    before: base,
    isChanged,
    isOutdated: isMoved && isChanged,
    revision: state.revision,
    set: (next) => setState({ ...state, draft: next }),
    discard: () => {
      keepDraft(name, null);
      begin();
    },
    release: () => keepDraft(name, null),
    settle: (sent, before) => {
      // Immediately, because the editor of a new item unmounts on its first save.
      keepDraft(name, null);
      setState((now) => ({ ...now, base: sent, ...(before === undefined ? {} : { replaced: before }) }));
    },
  };
}
