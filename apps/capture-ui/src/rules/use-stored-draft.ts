import { useEffect, useState } from "react";
import { isSameDraft, keepDraft, keptDraft, type KeptDraft } from "./kept-drafts.ts";

/** A draft of something that is stored, or will be. */
export interface StoredDraft<D> {
  readonly draft: D;
  /** What the draft began with. */
  readonly before: D;
  readonly isChanged: boolean;
  /** What is stored became something else, by another hand, since the draft was begun. */
  readonly isOutdated: boolean;
  /** Goes up when the draft begins anew: for parts that hold what they were first given. */
  readonly revision: number;
  readonly set: (draft: D) => void;
  /** Gives the draft up for what is stored now. */
  readonly discard: () => void;
  /** It is stored, though not yet fetched again: a window may close without a question. */
  readonly release: () => void;
  /** What was stored is no longer unsaved. */
  readonly settle: (stored: D) => void;
}

/**
 * Holds what somebody writes about something stored. While nothing is changed it follows the store, so that no window
 * writes an old state over a new one; a changed draft is never replaced, and waits under `name` when its editor goes.
 * `stored` has to be the same object until the store changes.
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
  // Somebody else came to the same.
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
      // At once, for the editor of something new ends with its first save.
      keepDraft(name, null);
      setState((now) => ({ ...now, base: next }));
    },
  };
}
