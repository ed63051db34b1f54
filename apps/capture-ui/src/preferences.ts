import { create } from "zustand";
import { persist } from "zustand/middleware";

export type Theme = "system" | "light" | "dark";
export type Density = "compact" | "normal" | "comfortable";
/** Local time of day, time since, or UTC. */
export type TimeFormat = "local" | "relative" | "utc";

/** What this browser remembers about the person's taste. */
export interface Preferences {
  readonly theme: Theme;
  readonly density: Density;
  readonly timeFormat: TimeFormat;
  readonly detailLayout: "right" | "bottom";
  /** Part of the split that the list takes, 0 to 1. */
  readonly detailShare: number;
  /** Dim rows that no focus pattern names. */
  readonly focusOnly: boolean;
  readonly overview: boolean;
}

export const usePreferences = create<Preferences>()(
  persist(
    (): Preferences => ({
      theme: "system",
      density: "normal",
      timeFormat: "local",
      detailLayout: "right",
      detailShare: 0.52,
      focusOnly: false,
      overview: true,
    }),
    { name: "weir.preferences", version: 1 },
  ),
);

/** Changes some preferences; they are kept in this browser. */
export function setPreferences(change: Partial<Preferences>): void {
  usePreferences.setState(change);
}

/** Puts theme and density on the root element, now and whenever they change. Called once, before the first render. */
export function applyPreferences(root: HTMLElement): void {
  const apply = ({ theme, density }: Preferences): void => {
    if (theme === "system") delete root.dataset["theme"];
    else root.dataset["theme"] = theme;
    root.dataset["density"] = density;
  };
  apply(usePreferences.getState());
  usePreferences.subscribe(apply);
}
