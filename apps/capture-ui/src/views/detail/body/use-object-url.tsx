import { useEffect, useState } from "react";

/** A fetched body as an address for an element, or why there is none. */
export type ObjectUrl =
  | { readonly state: "loading" }
  | { readonly state: "ready"; readonly url: string; readonly sizeBytes: number }
  | { readonly state: "failed"; readonly problem: string };

/** Pictures and films above this are only offered for download. */
export const MAX_OBJECT_BYTES = 128 * 1024 * 1024;

/** Fetches a body as a blob of exactly the given type. The type is ours, never the captured one as it stands. */
export function useObjectUrl(url: string, type: string): ObjectUrl {
  const [object, setObject] = useState<ObjectUrl>({ state: "loading" });
  useEffect(() => {
    const stop = new AbortController();
    let created: string | null = null;
    const load = async (): Promise<void> => {
      setObject({ state: "loading" });
      try {
        const response = await fetch(url, { signal: stop.signal });
        if (!response.ok) throw new Error(`The service answered ${response.status}`);
        const blob = new Blob([await response.arrayBuffer()], { type });
        if (stop.signal.aborted) return;
        created = URL.createObjectURL(blob);
        setObject({ state: "ready", url: created, sizeBytes: blob.size });
      } catch (error) {
        if (!stop.signal.aborted) {
          setObject({ state: "failed", problem: error instanceof Error ? error.message : String(error) });
        }
      }
    };
    void load();
    return () => {
      stop.abort();
      if (created !== null) URL.revokeObjectURL(created);
    };
  }, [url, type]);
  return object;
}
