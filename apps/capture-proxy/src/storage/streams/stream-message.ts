import type { FrameDirection, FrameEffect, FrameType, StreamKind, StreamState } from "./stream-store.ts";

/** In the order of their codes in the database; new ones go to the end. */
export const STREAM_KINDS = ["websocket", "sse", "json", "grpc"] as const satisfies readonly StreamKind[];
export const STREAM_STATES = ["connecting", "open", "closing", "closed"] as const satisfies readonly StreamState[];
export const STATE_CLOSING = 2;
export const STATE_CLOSED = 3;
export const FRAME_DIRECTIONS = ["send", "receive"] as const satisfies readonly FrameDirection[];
export const FRAME_TYPES = [
  "text",
  "binary",
  "ping",
  "pong",
  "close",
  "continuation",
  "event",
  "item",
  "message",
  "trailer",
] as const satisfies readonly FrameType[];
/** Code 0 is none. */
export const FRAME_EFFECTS = ["injected", "modified", "dropped"] as const satisfies readonly FrameEffect[];
export const FLAG_FINAL = 1;
export const FLAG_COMPRESSED = 2;

/** A stream that begins, as it crosses to the writer. */
export interface StreamOpening {
  readonly number: number;
  readonly id: string;
  /** The session that is active when it opens. */
  readonly session: number;
  readonly kind: number;
  readonly method: string;
  readonly url: string;
  readonly host: string;
  readonly path: string;
  readonly clientAddress: string | null;
  readonly createdMs: number;
  /** Of `request_fields`, as JSON text. */
  readonly requestFields: string;
}

/** What is known of a stream at the end of a batch; sums are from its beginning on. */
export interface StreamProgress {
  readonly number: number;
  readonly state: number;
  readonly serverAddress: string | null;
  /** JSON text; null: as before. */
  readonly responseFields: string | null;
  readonly subprotocol: string | null;
  readonly closeCode: number | null;
  readonly closeReason: string | null;
  readonly attributes: string;
  readonly closedMs: number | null;
  readonly lastMs: number;
  readonly framesSent: number;
  readonly framesReceived: number;
  readonly bytesSent: number;
  readonly bytesReceived: number;
  readonly framesNotStored: number;
  readonly lastOrdinal: number;
}

/**
 * One frame in a batch: stream, ordinal, direction, type, opcode, flags, effect, moment, size, wire size, mask,
 * bytes of payload, bytes of original (-1: none), attributes as JSON text.
 */
export type FrameTuple = readonly [
  stream: number,
  ordinal: number,
  direction: number,
  type: number,
  opcode: number,
  flags: number,
  effect: number,
  atMs: number,
  sizeBytes: number,
  wireBytes: number,
  mask: number | null,
  payloadBytes: number,
  originalBytes: number,
  attributes: string | null,
];

/** What goes to the writer in one transaction. Openings come first, then progress, then frames. */
export interface FrameBatch {
  readonly kind: "frames";
  readonly frames: number;
  /** Of the whole message, for the backlog. */
  readonly bytes: number;
  /** JSON of a {@link FrameBatchText}. */
  readonly text: string;
  /** Payloads and originals, one after the other in the order of the frames. */
  readonly payloads: ArrayBuffer;
  /** It comes from a file: its streams belong to entries of their session, whose ids may have been taken. */
  readonly isImported?: true;
}

export interface FrameBatchText {
  readonly openings: readonly StreamOpening[];
  readonly progress: readonly StreamProgress[];
  readonly frames: readonly FrameTuple[];
}
