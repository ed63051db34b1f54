import { create } from "zustand";
import { persist } from "zustand/middleware";
import { addToHistory, readHistory, readViews, saveView, type SavedView } from "./saved-views.ts";

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

/** Adds a query to the history. */
export function rememberQuery(q: string): void {
  useViews.setState(({ history }) => ({ history: addToHistory(history, q) }));
}
