import { create } from "zustand";
import { persist } from "zustand/middleware";

export type Theme = "system" | "light" | "dark";
export type Density = "compact" | "normal" | "comfortable";
/** Local time of day, time since, or UTC. */
export type TimeFormat = "local" | "relative" | "utc";

/** Display preferences stored in this browser. */
export interface Preferences {
  readonly theme: Theme;
  readonly density: Density;
  readonly timeFormat: TimeFormat;
  readonly detailLayout: "right" | "bottom";
  /** Share of the split taken by the list, 0 to 1. */
  readonly detailShare: number;
  /** Dims rows that match no focus pattern. */
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

/** Changes preferences and stores them in this browser. */
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
