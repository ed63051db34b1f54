/** An unsaved draft and its original value. */
export interface KeptDraft<D> {
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
