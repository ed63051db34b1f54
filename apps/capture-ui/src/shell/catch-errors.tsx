import { Component } from "react";
import type { ReactNode } from "react";
import { listenLive } from "../live.ts";
import { ErrorState } from "../ui/states.tsx";
import { PartMissing } from "./later.tsx";

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
