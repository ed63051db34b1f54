import { FLOW_CONTROL_ERROR } from "./codes.ts";
import { Http2Error } from "./http2-error.ts";
import { FIRST_WINDOW_BYTES } from "./peer-settings.ts";

/** What a connection may have on its way. */
export const CONNECTION_WINDOW_BYTES = 16_777_216;

/** What bodies may have on their way, or wait unread. */
export interface BodyLimits {
  /** Of one body that is read as fast as it comes; a first window at least. */
  readonly widestBytes: number;
  /** Of all bodies of a connection together, beyond their first windows. */
  readonly sharedBytes: number;
}

const DEFAULT_LIMITS: BodyLimits = { widestBytes: 1_048_576, sharedBytes: 4_194_304 };

/** What the bodies of a connection may have on their way, or wait unread, beyond their first windows. */
export class WindowShare {
  readonly widestBytes: number;
  #leftBytes: number;

  constructor({ widestBytes, sharedBytes } = DEFAULT_LIMITS) {
    this.widestBytes = Math.max(widestBytes, FIRST_WINDOW_BYTES);
    this.#leftBytes = sharedBytes;
  }

  take(requestedBytes: number): number {
    const takenBytes = Math.min(requestedBytes, this.#leftBytes);
    this.#leftBytes -= takenBytes;
    return takenBytes;
  }

  giveBack(sizeBytes: number): void {
    this.#leftBytes += sizeBytes;
  }
}

/**
 * How much the peer may send of a body (RFC 9113, 5.2). Begins narrow, as many bodies may come that nobody reads, and is
 * doubled each time half of it was read. What nobody takes is never given back.
 */
export class ReceiveWindow {
  readonly #share: WindowShare;
  #widthBytes = FIRST_WINDOW_BYTES;
  /** The peer may send so many bytes. */
  #leftBytes = FIRST_WINDOW_BYTES;
  /** Taken, and not told to the peer. */
  #takenBytes = 0;

  constructor(share: WindowShare) {
    this.#share = share;
  }

  /** So many bytes came; false when that is more than was allowed. */
  came(sizeBytes: number): boolean {
    this.#leftBytes -= sizeBytes;
    return this.#leftBytes >= 0;
  }

  /** So many bytes were taken. Gives by how many bytes the peer is to be told that its window is wider. */
  taken(sizeBytes: number, goesOn: boolean): number {
    this.#takenBytes += sizeBytes;
    if (!goesOn || this.#takenBytes < this.#widthBytes / 2) return 0;
    const moreBytes = this.#share.take(Math.min(this.#widthBytes, this.#share.widestBytes - this.#widthBytes));
    this.#widthBytes += moreBytes;
    const byBytes = this.#takenBytes + moreBytes;
    this.#takenBytes = 0;
    this.#leftBytes += byBytes;
    return byBytes;
  }

  /** Nothing comes any more. */
  close(): void {
    this.#share.giveBack(this.#widthBytes - FIRST_WINDOW_BYTES);
    this.#widthBytes = FIRST_WINDOW_BYTES;
  }
}

/**
 * How much the peer may send on a connection. What came is given back at once: a body that nobody reads is stopped by its own
 * window, and must not stop others.
 */
export class ConnectionWindow {
  #leftBytes = CONNECTION_WINDOW_BYTES;

  /**
   * So many bytes came. Gives by how many the peer is to be told that the window is wider.
   * @throws Http2Error when that is more than was allowed
   */
  came(sizeBytes: number): number {
    this.#leftBytes -= sizeBytes;
    if (this.#leftBytes < 0) throw new Http2Error(FLOW_CONTROL_ERROR, "More than the connection's window");
    if (this.#leftBytes > CONNECTION_WINDOW_BYTES / 2) return 0;
    const byBytes = CONNECTION_WINDOW_BYTES - this.#leftBytes;
    this.#leftBytes = CONNECTION_WINDOW_BYTES;
    return byBytes;
  }
}
