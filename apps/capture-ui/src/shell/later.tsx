import { useEffect, useReducer, useState } from "react";
import type { ComponentType, ReactNode } from "react";

/** A component whose code is fetched when it is first shown, or before that by `preload`. */
export interface Later<Props> {
  readonly View: ComponentType<Props>;
  /** Fetches the code ahead, so that the component appears at once. Rejects when it cannot be had. */
  readonly preload: () => Promise<void>;
}

/** A part of the app that could not be fetched. It may come when it is asked for again. */
export class PartMissing extends Error {
  constructor(cause: unknown) {
    super("Could not load this part of the page. Is Weir still running?", { cause });
  }
}

/**
 * Splits a component off into a file of its own, and shows `waiting` until that has come. React's own `lazy` would hold
 * back whatever follows a fallback until 300 ms have gone by; here it is shown with the next frame. A failure to load is
 * thrown to the nearest boundary, and the next mount tries again.
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
