import { ENHANCE_YOUR_CALM, FLOW_CONTROL_ERROR, FRAME_SIZE_ERROR, PROTOCOL_ERROR } from "./codes.ts";
import { FRAME_BYTES } from "./frame-parser.ts";
import { Http2Error } from "./http2-error.ts";

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

/** The peer's settings. */
export class PeerSettings {
  /** Streams that we may have open concurrently. */
  maxConcurrentStreams = Number.POSITIVE_INFINITY;
  /** Initial send window of a stream. */
  firstWindowBytes = FIRST_WINDOW_BYTES;
  /** Dynamic table size of the peer's decoder. */
  headerTableBytes = 4096;
  /** Extended CONNECT is supported (RFC 8441, 3). */
  takesWebSockets = false;
  readonly #isServer: boolean;

  /** `isServer`: the peer is a server. */
  constructor(isServer: boolean) {
    this.#isServer = isServer;
  }

  /**
   * Applies a SETTINGS frame.
   * @throws Http2Error for an invalid value
   */
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
        if (value > 1 || (value === 0 && this.takesWebSockets)) {
          throw new Http2Error(PROTOCOL_ERROR, "ENABLE_CONNECT_PROTOCOL is not valid");
        }
        this.takesWebSockets = value === 1;
        break;
      default:
    }
  }
}
