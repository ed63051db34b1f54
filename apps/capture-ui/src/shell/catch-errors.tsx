import { Component } from "react";
import type { ReactNode } from "react";
import { ErrorState } from "../ui/states.tsx";

interface Props {
  readonly children: ReactNode;
  /** What is said in place of what broke. */
  readonly title?: string;
}

/** Keeps what is around a part of the page alive when that breaks, and lets it try again. */
export class CatchErrors extends Component<Props, { readonly error: unknown }> {
  override state = { error: undefined as unknown };

  static getDerivedStateFromError(error: unknown): { readonly error: unknown } {
    return { error: error ?? new Error("The screen broke") };
  }

  override render(): ReactNode {
    const { error } = this.state;
    if (error === undefined) return this.props.children;
    const { title = "This screen broke" } = this.props;
    return <ErrorState title={title} error={error} onRetry={() => this.setState({ error: undefined })} />;
  }
}
