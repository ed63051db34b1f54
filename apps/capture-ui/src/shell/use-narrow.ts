import { useSyncExternalStore } from "react";

const QUERY = typeof matchMedia === "undefined" ? undefined : matchMedia("(max-width: 700px)");

/** Whether the window is as narrow as a phone. */
export function useNarrow(): boolean {
  return useSyncExternalStore(
    (watcher) => {
      QUERY?.addEventListener("change", watcher);
      return () => QUERY?.removeEventListener("change", watcher);
    },
    () => QUERY?.matches ?? false,
  );
}
