import { Component } from "react";
import type { ReactNode } from "react";
import { listenLive } from "../live.ts";
import { ErrorState } from "../ui/states.tsx";
import { PartMissing } from "./later.tsx";

interface Props {
  readonly children: ReactNode;
  /** What is said in place of what broke. */
  readonly title?: string;
}

/**
 * Keeps what is around a part of the page alive when that breaks, and lets it try again. What could not be fetched is
 * tried again without being told when the service is back.
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
