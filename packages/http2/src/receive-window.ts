import { FLOW_CONTROL_ERROR } from "./codes.ts";
import { Http2Error } from "./http2-error.ts";
import { FIRST_WINDOW_BYTES } from "./peer-settings.ts";

/** Receive window of a connection. */
export const CONNECTION_WINDOW_BYTES = 16_777_216;

/** Limits on body bytes in flight or unread. */
export interface BodyLimits {
  /** Maximum window of a body that is read as fast as it arrives; at least the initial window. */
  readonly widestBytes: number;
  /** For all bodies of a connection together, beyond their initial windows. */
  readonly sharedBytes: number;
}

const DEFAULT_LIMITS: BodyLimits = { widestBytes: 1_048_576, sharedBytes: 4_194_304 };

/** The shared allowance of body windows beyond their initial size. */
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
 * The receive window of a body (RFC 9113, 5.2). It starts small, since many bodies may arrive unread, and doubles each
 * time half of it was read. Unread bytes are never credited.
 */
export class ReceiveWindow {
  readonly #share: WindowShare;
  #widthBytes = FIRST_WINDOW_BYTES;
  /** Bytes that the peer may still send. */
  #leftBytes = FIRST_WINDOW_BYTES;
  /** Read, but not yet credited to the peer. */
  #takenBytes = 0;

  constructor(share: WindowShare) {
    this.#share = share;
  }

  /** Accounts for received bytes; false if they exceed the window. */
  came(sizeBytes: number): boolean {
    this.#leftBytes -= sizeBytes;
    return this.#leftBytes >= 0;
  }

  /** Accounts for read bytes. Returns the WINDOW_UPDATE increment to send. */
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

  close(): void {
    this.#share.giveBack(this.#widthBytes - FIRST_WINDOW_BYTES);
    this.#widthBytes = FIRST_WINDOW_BYTES;
  }
}

/**
 * The receive window of a connection. Received bytes are credited at once: an unread body is stopped by its own window
 * and must not block others.
 */
export class ConnectionWindow {
  #leftBytes = CONNECTION_WINDOW_BYTES;

  /**
   * Accounts for received bytes. Returns the WINDOW_UPDATE increment to send.
   * @throws Http2Error if they exceed the window
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
