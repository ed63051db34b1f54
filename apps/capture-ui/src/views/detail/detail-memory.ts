import { create } from "zustand";
import { persist } from "zustand/middleware";
import type { BodyKind, BodyViewName } from "./body/body-format.ts";

export const DETAIL_TABS = ["overview", "messages", "stream", "params", "cookies", "timing"] as const;
export type DetailTab = (typeof DETAIL_TABS)[number];

/** Display choices of the details pane, stored in this browser. */
export interface DetailMemory {
  readonly tab: DetailTab;
  /** Selected view per kind of body. */
  readonly views: Readonly<Partial<Record<BodyKind, BodyViewName>>>;
  readonly wrap: boolean;
  readonly groupHeaders: boolean;
  readonly decodedParams: boolean;
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

/** The tab next to `tab` among the shown ones, wrapping at the ends. */
export function neighbourTab(tab: DetailTab, shown: readonly DetailTab[], step: 1 | -1): DetailTab {
  const index = Math.max(0, shown.indexOf(tab));
  return shown[(index + step + shown.length) % shown.length] ?? tab;
}

/** The remembered tab if available, else the first. */
export function usableTab(tab: DetailTab, shown: readonly DetailTab[]): DetailTab {
  return shown.includes(tab) ? tab : (shown[0] ?? "overview");
}
