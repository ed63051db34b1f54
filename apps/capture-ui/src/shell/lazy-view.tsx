import { Component, type ComponentType, type ReactNode, useEffect, useReducer, useState } from "react";
import { listenLive } from "../live.ts";
import { ErrorState } from "../ui/states.tsx";

/** A component whose code is loaded when it is first shown, or by `preload`. */
export interface LazyView<Props> {
  readonly View: ComponentType<Props>;
  /** Loads the code ahead. Rejects when loading fails. */
  readonly preload: () => Promise<void>;
}

/** Part of the app whose code failed to load; a retry may succeed. */
class PartMissing extends Error {
  constructor(cause: unknown) {
    super("Could not load this part of the page. Is Weir still running?", { cause });
  }
}

/**
 * Splits a component into a chunk of its own, and shows `waiting` while it loads. React's `lazy` delays content after a
 * fallback by 300 ms; here it appears with the next frame. A load failure is thrown to the nearest boundary, and the
 * next mount retries.
 */
export function lazyView<Props extends object>(
  load: () => Promise<ComponentType<Props>>,
  waiting: ReactNode = null,
): LazyView<Props> {
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

interface Props {
  readonly children: ReactNode;
  readonly title?: string;
}

/**
 * An error boundary with a retry button. Code that failed to load is retried automatically when the service is back.
 */
export class CatchErrors extends Component<Props, { readonly error: unknown }> {
  override state = { error: undefined as unknown };

  static getDerivedStateFromError(error: unknown): { readonly error: unknown } {
    return { error: error ?? new Error("The screen broke") };
  }

  readonly #again = (): void => this.setState({ error: undefined });
  #stop: (() => void) | undefined;

  override componentDidMount(): void {
    this.#stop = listenLive({
      resync: () => {
        if (this.state.error instanceof PartMissing) this.#again();
      },
    });
  }

  override componentWillUnmount(): void {
    this.#stop?.();
  }

  override render(): ReactNode {
    const { error } = this.state;
    if (error === undefined) return this.props.children;
    const {
      title = error instanceof PartMissing ? "Could not show this screen" : "Something went wrong on this screen",
    } = this.props;
    return <ErrorState title={title} error={error} onRetry={this.#again} />;
  }
}

const KEY = "weir.reloaded";
/** A chunk still missing after a recent reload has another cause. */
const RELOAD_GAP_MS = 15_000;

/**
 * Reloads the page once when a chunk is missing because the service was updated. Does not reload while the service is
 * unreachable, when the browser would have nothing to show.
 */
export function reloadAfterUpdate(): void {
  addEventListener("vite:preloadError", () => void reloadIfUpdated());
}

async function reloadIfUpdated(): Promise<void> {
  const before = Number(sessionStorage.getItem(KEY) ?? 0);
  if (Date.now() - before < RELOAD_GAP_MS || !(await servesAnotherApp())) return;
  sessionStorage.setItem(KEY, String(Date.now()));
  location.reload();
}

/** Whether the service is reachable and serves another entry script. */
async function servesAnotherApp(): Promise<boolean> {
  const own = document.querySelector('script[type="module"][src]')?.getAttribute("src");
  if (own == null) return false;
  try {
    const response = await fetch("/", { cache: "no-store", headers: { accept: "text/html" } });
    return response.ok && !(await response.text()).includes(own);
  } catch {
    return false;
  }
}
