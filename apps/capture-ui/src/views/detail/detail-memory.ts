import { create } from "zustand";
import { persist } from "zustand/middleware";
import type { BodyKind, BodyViewName } from "./body/body-format.ts";

export const DETAIL_TABS = ["overview", "messages", "stream", "params", "cookies", "timing"] as const;
export type DetailTab = (typeof DETAIL_TABS)[number];

/** What this browser remembers about how details are looked at. */
export interface DetailMemory {
  readonly tab: DetailTab;
  /** View chosen for each kind of body. */
  readonly views: Readonly<Partial<Record<BodyKind, BodyViewName>>>;
  readonly wrap: boolean;
  readonly groupHeaders: boolean;
  readonly decodedParams: boolean;
  /** Header fields are shown; folded away they leave their room to the body. */
  readonly fieldsOpen: boolean;
}

export const useDetailMemory = create<DetailMemory>()(
  persist(
    (): DetailMemory => ({
      tab: "messages",
      views: {},
      wrap: true,
      groupHeaders: false,
      decodedParams: true,
      fieldsOpen: true,
    }),
    { name: "weir.detail", version: 1 },
  ),
);

/** The tab beside `tab` among those that are shown, round at the ends. */
export function neighbourTab(tab: DetailTab, shown: readonly DetailTab[], step: 1 | -1): DetailTab {
  const index = Math.max(0, shown.indexOf(tab));
  return shown[(index + step + shown.length) % shown.length] ?? tab;
}

/** The remembered tab if this entry has it, else the first one. */
export function usableTab(tab: DetailTab, shown: readonly DetailTab[]): DetailTab {
  return shown.includes(tab) ? tab : (shown[0] ?? "overview");
}
