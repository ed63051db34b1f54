import { create } from "zustand";
import { persist } from "zustand/middleware";

interface SavedView {
  readonly name: string;
  readonly q: string;
}

const MAX_VIEWS = 50;
const MAX_HISTORY = 30;
/** Names are usable as presets (`@name`), so they follow the language's syntax. */
const NAME = /^[A-Za-z0-9_.-]{1,40}$/u;

/** Reads stored views, ignoring invalid ones. */
export function readViews(stored: unknown): readonly SavedView[] {
  if (!Array.isArray(stored)) return [];
  return stored
    .flatMap((item: unknown) => {
      const { name, q } = (item ?? {}) as { readonly name?: unknown; readonly q?: unknown };
      return typeof name === "string" && NAME.test(name) && typeof q === "string" && q.trim() !== ""
        ? [{ name, q }]
        : [];
    })
    .slice(0, MAX_VIEWS);
}

/** The error of a name, or undefined. */
export function viewNameProblem(name: string, taken: readonly string[]): string | undefined {
  if (name === "") return "Enter a name.";
  if (!NAME.test(name)) return "Use only letters, digits, dots, dashes and underscores.";
  return taken.includes(name) ? "This name is used by a built-in filter." : undefined;
}

/** Adds a view, or replaces the one of the same name. */
export function saveView(views: readonly SavedView[], view: SavedView): readonly SavedView[] {
  return [...views.filter((other) => other.name !== view.name), view].slice(-MAX_VIEWS);
}

/** Moves a query to the top of the history, without duplicates. */
export function addToHistory(history: readonly string[], q: string): readonly string[] {
  const text = q.trim();
  if (text === "") return history;
  return [text, ...history.filter((other) => other !== text)].slice(0, MAX_HISTORY);
}

/** Reads a stored history, ignoring invalid items. */
export function readHistory(stored: unknown): readonly string[] {
  return Array.isArray(stored)
    ? stored.filter((item): item is string => typeof item === "string").slice(0, MAX_HISTORY)
    : [];
}

export function viewPresets(views: readonly SavedView[]): Readonly<Record<string, string>> {
  return Object.fromEntries(views.map((view) => [view.name, view.q]));
}

/** Replaces `@name` of saved views by their text, except inside quotes; built-in names stay. */
export function expandViews(q: string, views: readonly SavedView[], depth = 0): string {
  if (views.length === 0 || depth > 8) return q;
  return q.replace(/"(?:[^"\\]|\\.)*"|@([A-Za-z0-9_.-]+)/gu, (whole, name: string | undefined) => {
    const view = name === undefined ? undefined : views.find((other) => other.name === name);
    return view === undefined ? whole : `(${expandViews(view.q, views, depth + 1)})`;
  });
}

interface Views {
  readonly views: readonly SavedView[];
  readonly history: readonly string[];
}

/** Saved views and query history, stored in this browser. */
export const useViews = create<Views>()(
  persist((): Views => ({ views: [], history: [] }), {
    name: "weir.views",
    version: 1,
    merge: (stored) => {
      const { views, history } = (stored ?? {}) as { readonly views?: unknown; readonly history?: unknown };
      return { views: readViews(views), history: readHistory(history) };
    },
  }),
);

export function keepView(view: SavedView): void {
  useViews.setState(({ views }) => ({ views: saveView(views, view) }));
}

export function dropView(name: string): void {
  useViews.setState(({ views }) => ({ views: views.filter((view) => view.name !== name) }));
}

export function rememberQuery(q: string): void {
  useViews.setState(({ history }) => ({ history: addToHistory(history, q) }));
}
