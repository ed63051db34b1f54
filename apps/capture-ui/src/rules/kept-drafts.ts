/** What somebody wrote and did not save, and what it was when they began. */
export interface KeptDraft<D> {
  readonly base: D;
  readonly draft: D;
}

/** Drafts by what they are of. They outlive their editors, so that going elsewhere loses nothing. */
const kept = new Map<string, KeptDraft<unknown>>();

/** The draft that was left, or undefined. Whoever keeps something under a name asks for it with the same type. */
export function keptDraft<D>(name: string): KeptDraft<D> | undefined {
  return kept.get(name) as KeptDraft<D> | undefined;
}

/** Whether something unsaved was left under a name. */
export function isKept(name: string): boolean {
  return kept.has(name);
}

/** Keeps a draft until it is saved or discarded; null lets it go. */
export function keepDraft<D>(name: string, draft: KeptDraft<D> | null): void {
  if (draft === null) kept.delete(name);
  else kept.set(name, draft);
}

/** The names of all drafts that begin with `prefix`, oldest first. */
export function keptNames(prefix: string): string[] {
  return [...kept.keys()].filter((name) => name.startsWith(prefix));
}

/** Lets the browser ask before a window with unsaved drafts closes or loads anew. Called once, by the entry point. */
export function askBeforeUnload(): void {
  addEventListener("beforeunload", (event) => {
    if (kept.size > 0) event.preventDefault();
  });
}

/** Whether two drafts say the same. The numbers that tell lines of an editor apart say nothing. */
export function isSameDraft(left: unknown, right: unknown): boolean {
  return left === right || written(left) === written(right);
}

function written(draft: unknown): string {
  return JSON.stringify(draft, (name, value: unknown) =>
    name === "key" && typeof value === "number" ? undefined : value,
  );
}
