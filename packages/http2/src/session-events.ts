import type { SectionLimits } from "./hpack/hpack-decoder.ts";
import type { BodyLimits } from "./receive-window.ts";
import type { Http2Stream } from "./stream.ts";

/** What a connection is to be. */
export interface SessionOptions {
  readonly role: "client" | "server";
  /** Streams that the peer may have open at a time; a server's. */
  readonly maxConcurrentStreams?: number;
  /** Of one field section. */
  readonly section: SectionLimits;
  /** Says that WebSockets on streams are taken (RFC 8441, 3); a server's. */
  readonly takesWebSockets?: boolean;
  /** What bodies of the peer may have on their way, or wait unread. */
  readonly bodies?: BodyLimits;
}

/** Told of a connection, from within its reading. */
export interface SessionEvents {
  /** A client began a stream, whose handler is to be set now. `isWhole`: nothing follows the section. */
  onStream?(stream: Http2Stream, section: string[], isWhole: boolean): void;
  /**
   * As `onStream`, for a section beyond the limits: `section` is as much of it as they allow. The stream is to be answered,
   * and nothing else; without this it is reset.
   */
  onOverlongStream?(stream: Http2Stream, section: string[], isWhole: boolean): void;
  /** The peer said what it allows, for the first time or anew. */
  onSettings?(): void;
  /** The peer takes no new streams (RFC 9113, 6.8). */
  onGoaway?(code: number): void;
  /** The peer ended its side of the socket. */
  onPeerEnd?(): void;
  /** Something that was called from within its reading threw, which has ended it; without this, `onClose` alone tells. */
  onDefect?(error: Error): void;
  /** It is over, and all its streams are; `error` says what broke it, if something did. */
  onClose(error: Error | undefined): void;
}
