import { create } from "zustand";
import { persist } from "zustand/middleware";
import { addToHistory, readHistory, readViews, saveView, type SavedView } from "./saved-views.ts";

interface Views {
  readonly views: readonly SavedView[];
  readonly history: readonly string[];
}

/** Saved views and the history of queries of this browser. */
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

/** Keeps a view under its name. */
export function keepView(view: SavedView): void {
  useViews.setState(({ views }) => ({ views: saveView(views, view) }));
}

/** Forgets a view. */
export function dropView(name: string): void {
  useViews.setState(({ views }) => ({ views: views.filter((view) => view.name !== name) }));
}

/** Remembers that a query was used. */
export function rememberQuery(q: string): void {
  useViews.setState(({ history }) => ({ history: addToHistory(history, q) }));
}
