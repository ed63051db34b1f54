import { ENHANCE_YOUR_CALM, FLOW_CONTROL_ERROR, FRAME_SIZE_ERROR, Http2Error, PROTOCOL_ERROR } from "./codes.ts";
import { FRAME_BYTES } from "./frames.ts";

/** Settings (RFC 9113, 6.5.2 and RFC 8441, 3). */
export const SETTING = {
  headerTableBytes: 1,
  enablePush: 2,
  maxConcurrentStreams: 3,
  firstWindowBytes: 4,
  frameBytes: 5,
  headerListBytes: 6,
  enableConnectProtocol: 8,
} as const;

/** Maximum flow-control window (RFC 9113, 6.9.1). */
export const MAX_WINDOW_BYTES = 2 ** 31 - 1;

/** Initial window of streams and connections. */
export const FIRST_WINDOW_BYTES = 65_535;
const MAX_FRAME_BYTES = 2 ** 24 - 1;
const SETTING_BYTES = 6;

/** Maximum number of settings accepted in one SETTINGS frame. */
const MAX_SETTINGS_PER_FRAME = 32;

export class PeerSettings {
  /** Streams that we may have open concurrently. */
  maxConcurrentStreams = Number.POSITIVE_INFINITY;
  /** Initial send window of a stream. */
  firstWindowBytes = FIRST_WINDOW_BYTES;
  /** Dynamic table size of the peer's decoder. */
  headerTableBytes = 4096;
  /** Extended CONNECT is supported (RFC 8441, 3). */
  acceptsWebSockets = false;
  readonly #isServer: boolean;

  /** `isServer`: the peer is a server. */
  constructor(isServer: boolean) {
    this.#isServer = isServer;
  }

  /** Applies a SETTINGS frame. Throws Http2Error for an invalid value. */
  read(content: Buffer): void {
    if (content.length % SETTING_BYTES !== 0) throw new Http2Error(FRAME_SIZE_ERROR, "SETTINGS is cut off");
    if (content.length > MAX_SETTINGS_PER_FRAME * SETTING_BYTES) {
      throw new Http2Error(ENHANCE_YOUR_CALM, `More than ${MAX_SETTINGS_PER_FRAME} settings in one frame`);
    }
    for (let at = 0; at < content.length; at += SETTING_BYTES) {
      this.#set(content.readUInt16BE(at), content.readUInt32BE(at + 2));
    }
  }

  #set(id: number, value: number): void {
    switch (id) {
      case SETTING.headerTableBytes:
        this.headerTableBytes = value;
        break;
      case SETTING.enablePush:
        // From a server only 0 is valid (RFC 9113, 6.5.2).
        if (value > (this.#isServer ? 0 : 1)) throw new Http2Error(PROTOCOL_ERROR, "ENABLE_PUSH is not valid");
        break;
      case SETTING.maxConcurrentStreams:
        this.maxConcurrentStreams = value;
        break;
      case SETTING.firstWindowBytes:
        if (value > MAX_WINDOW_BYTES) throw new Http2Error(FLOW_CONTROL_ERROR, "INITIAL_WINDOW_SIZE is too large");
        this.firstWindowBytes = value;
        break;
      case SETTING.frameBytes:
        if (value < FRAME_BYTES || value > MAX_FRAME_BYTES) {
          throw new Http2Error(PROTOCOL_ERROR, "MAX_FRAME_SIZE is not valid");
        }
        break;
      case SETTING.enableConnectProtocol:
        // RFC 8441, 3: it may not be revoked.
        if (value > 1 || (value === 0 && this.acceptsWebSockets)) {
          throw new Http2Error(PROTOCOL_ERROR, "ENABLE_CONNECT_PROTOCOL is not valid");
        }
        this.acceptsWebSockets = value === 1;
        break;
      default:
    }
  }
}

/** Receive window of a connection. */
export const CONNECTION_WINDOW_BYTES = 16_777_216;

/** Limits on body bytes in flight or unread. */
export interface BodyLimits {
  /** Maximum window of a body that is read as fast as it arrives; at least the initial window. */
  readonly maxWindowBytes: number;
  /** For all bodies of a connection together, beyond their initial windows. */
  readonly sharedBytes: number;
}

const DEFAULT_LIMITS: BodyLimits = { maxWindowBytes: 1_048_576, sharedBytes: 4_194_304 };

/** The shared allowance of body windows beyond their initial size. */
export class WindowShare {
  readonly maxWindowBytes: number;
  #leftBytes: number;

  constructor({ maxWindowBytes, sharedBytes } = DEFAULT_LIMITS) {
    this.maxWindowBytes = Math.max(maxWindowBytes, FIRST_WINDOW_BYTES);
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
  receive(sizeBytes: number): boolean {
    this.#leftBytes -= sizeBytes;
    return this.#leftBytes >= 0;
  }

  /** Accounts for read bytes. Returns the WINDOW_UPDATE increment to send. */
  consume(sizeBytes: number, isOpen: boolean): number {
    this.#takenBytes += sizeBytes;
    if (!isOpen || this.#takenBytes < this.#widthBytes / 2) return 0;
    const moreBytes = this.#share.take(Math.min(this.#widthBytes, this.#share.maxWindowBytes - this.#widthBytes));
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

/** A connection's receive window, credited at once: one unread body must not block the others. */
export class ConnectionWindow {
  #leftBytes = CONNECTION_WINDOW_BYTES;

  /** Accounts for received bytes; returns the WINDOW_UPDATE increment. Throws Http2Error beyond the window. */
  receive(sizeBytes: number): number {
    this.#leftBytes -= sizeBytes;
    if (this.#leftBytes < 0) throw new Http2Error(FLOW_CONTROL_ERROR, "More than the connection's window");
    if (this.#leftBytes > CONNECTION_WINDOW_BYTES / 2) return 0;
    const byBytes = CONNECTION_WINDOW_BYTES - this.#leftBytes;
    this.#leftBytes = CONNECTION_WINDOW_BYTES;
    return byBytes;
  }
}
