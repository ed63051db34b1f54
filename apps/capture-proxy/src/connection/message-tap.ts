import type { Failure } from "#exchange/failure.ts";

/** Where one direction of a tapped relay goes on. */
export interface TapOutlet {
  /** Bytes for the other side. */
  send(bytes: Buffer): void;
  /** What was held is on its way: more may be read. */
  release(): void;
}

/** One direction of a relay whose bytes are looked at, and may be held or changed. */
export interface DirectionTap {
  /** Bytes that came. */
  push(piece: Buffer): void;
  /** Enough is held: nothing more should be read for now. */
  readonly isHolding: boolean;
  /** The sender is done; `done` is called when everything that is held has left. */
  end(done: () => void): void;
}

/** Both directions of a relay. */
export interface MessageTap {
  readonly up: DirectionTap;
  readonly down: DirectionTap;
  /** A decision is waited for: nobody is late. */
  readonly isDeciding: boolean;
  /** The relay is over. */
  closed(failure: Failure | undefined): void;
}

/** Makes the tap of a relay. `end` ends the relay in order. */
export type OpenTap = (up: TapOutlet, down: TapOutlet, end: () => void) => MessageTap | undefined;
