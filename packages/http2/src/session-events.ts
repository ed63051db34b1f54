import type { SectionLimits } from "./hpack/hpack-decoder.ts";
import type { BodyLimits } from "./receive-window.ts";
import type { Http2Stream } from "./stream.ts";

export interface SessionOptions {
  readonly role: "client" | "server";
  /** Maximum concurrent streams of the peer; servers only. */
  readonly maxConcurrentStreams?: number;
  /** Limits of one field section. */
  readonly section: SectionLimits;
  /** Advertises extended CONNECT (RFC 8441, 3); servers only. */
  readonly takesWebSockets?: boolean;
  /** Limits on body bytes in flight or unread. */
  readonly bodies?: BodyLimits;
}

/** Callbacks of a connection, called synchronously while it reads. */
export interface SessionEvents {
  /** A client opened a stream; set its handler now. `isWhole`: nothing follows the section. */
  onStream?(stream: Http2Stream, section: string[], isWhole: boolean): void;
  /**
   * Like `onStream`, for a section over the limits, truncated to them. The stream must only be answered; without this
   * callback it is reset.
   */
  onOverlongStream?(stream: Http2Stream, section: string[], isWhole: boolean): void;
  /** The peer sent SETTINGS. */
  onSettings?(): void;
  /** The peer accepts no new streams (RFC 9113, 6.8). */
  onGoaway?(code: number): void;
  /** The peer closed its side of the socket. */
  onPeerEnd?(): void;
  /** A callback threw, which ended the connection; without this callback only `onClose` reports it. */
  onDefect?(error: Error): void;
  /** The connection and all its streams are closed; `error` is the cause, if any. */
  onClose(error: Error | undefined): void;
}
