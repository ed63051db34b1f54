import { Component } from "react";
import type { ReactNode } from "react";
import { ErrorState } from "../ui/states.tsx";

/** Keeps the frame alive when a screen breaks, and lets it try again. */
export class CatchErrors extends Component<{ readonly children: ReactNode }, { readonly error: unknown }> {
  override state = { error: undefined as unknown };

  static getDerivedStateFromError(error: unknown): { readonly error: unknown } {
    return { error: error ?? new Error("The screen broke") };
  }

  override render(): ReactNode {
    const { error } = this.state;
    if (error === undefined) return this.props.children;
    return <ErrorState title="This screen broke" error={error} onRetry={() => this.setState({ error: undefined })} />;
  }
}
