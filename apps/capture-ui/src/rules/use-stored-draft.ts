import { useEffect, useState } from "react";
import { isSameDraft, keepDraft, keptDraft, type KeptDraft } from "./kept-drafts.ts";

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
  /** Discards the draft in favour of the stored item. */
  readonly discard: () => void;
  /** Marks the draft as saved before it is fetched again, so that closing does not ask. */
  readonly release: () => void;
  /** Marks `stored` as saved. */
  readonly settle: (stored: D) => void;
}

/**
 * Holds a draft of a stored item. An unchanged draft follows the store, so that no window overwrites newer state; a
 * changed draft is never replaced, and is kept under `name` when its editor unmounts. `stored` must be the same object
 * until the store changes.
 */
export function useStoredDraft<D>(name: string, stored: D): StoredDraft<D> {
  const [state, setState] = useState<KeptDraft<D> & { readonly revision: number }>(() => ({
    ...(keptDraft<D>(name) ?? { base: stored, draft: stored }),
    revision: 0,
  }));
  const { base, draft } = state;
  const isChanged = !isSameDraft(draft, base);
  const isMoved = !isSameDraft(stored, base);
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
    settle: (next) => {
      // Immediately, because the editor of a new item unmounts on its first save.
      keepDraft(name, null);
      setState((now) => ({ ...now, base: next }));
    },
  };
}
