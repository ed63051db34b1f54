import type { Failure } from "#exchange/failure.ts";

/** Output of one direction of a tapped relay. */
export interface TapOutlet {
  send(bytes: Buffer): void;
  /** Buffered messages were sent: reading may resume. */
  release(): void;
}

/** One direction of a relay whose bytes are inspected and may be delayed or changed. */
export interface DirectionTap {
  push(piece: Buffer): void;
  /** The buffer is full: reading must pause. */
  readonly isHolding: boolean;
  /** The sender closed its side; `done` is called when everything buffered was sent. */
  end(done: () => void): void;
}

export interface MessageTap {
  readonly up: DirectionTap;
  readonly down: DirectionTap;
  /** A rule's decision is pending; timeouts are suspended. */
  readonly isDeciding: boolean;
  closed(failure: Failure | undefined): void;
}

/** Creates the tap of a relay. `end` closes the relay gracefully. */
export type OpenTap = (up: TapOutlet, down: TapOutlet, end: () => void) => MessageTap | undefined;
