import { useEffect, useReducer, useState } from "react";
import type { ComponentType, ReactNode } from "react";

/** A component whose code is loaded when it is first shown, or by `preload`. */
export interface Later<Props> {
  readonly View: ComponentType<Props>;
  /** Loads the code ahead. Rejects when loading fails. */
  readonly preload: () => Promise<void>;
}

/** Part of the app whose code failed to load; a retry may succeed. */
export class PartMissing extends Error {
  constructor(cause: unknown) {
    super("Could not load this part of the page. Is Weir still running?", { cause });
  }
}

/**
 * Splits a component into a chunk of its own, and shows `waiting` while it loads. React's `lazy` delays content after a
 * fallback by 300 ms; here it appears with the next frame. A load failure is thrown to the nearest boundary, and the
 * next mount retries.
 */
export function later<Props extends object>(
  load: () => Promise<ComponentType<Props>>,
  waiting: ReactNode = null,
): Later<Props> {
  let Loaded: ComponentType<Props> | undefined;
  const preload = async (): Promise<void> => {
    Loaded ??= await load();
  };
  function View(props: Props) {
    const [, redraw] = useReducer((count: number) => count + 1, 0);
    const [failure, setFailure] = useState<PartMissing | null>(null);
    useEffect(() => {
      if (Loaded !== undefined) return undefined;
      let isShown = true;
      preload().then(
        () => isShown && redraw(),
        (reason: unknown) => isShown && setFailure(new PartMissing(reason)),
      );
      return () => {
        isShown = false;
      };
    }, []);
    if (failure !== null) throw failure;
    return Loaded === undefined ? waiting : <Loaded {...props} />;
  }
  return { View, preload };
}
