import type { FrameDirection, FrameEffect, FrameType, StreamKind, StreamState } from "./stream-store.ts";

/** In the order of their database codes; append new ones. */
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

/** An opened stream as sent to the writer. */
export interface StreamOpening {
  readonly number: number;
  readonly id: string;
  /** Active session at the opening. */
  readonly session: number;
  readonly kind: number;
  readonly method: string;
  readonly url: string;
  readonly host: string;
  readonly path: string;
  readonly clientAddress: string | null;
  readonly createdMs: number;
  /** JSON of `request_fields`. */
  readonly requestFields: string;
}

/** Stream state at the end of a batch; sums are cumulative. */
export interface StreamProgress {
  readonly number: number;
  readonly state: number;
  readonly serverAddress: string | null;
  /** JSON; null means unchanged. */
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
 * A frame in a batch: stream, ordinal, direction, type, opcode, flags, effect, moment, size, wire size, mask, payload
 * bytes, original bytes (-1: none), attributes as JSON.
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

/** One transaction: openings, then progress, then frames. */
export interface FrameBatch {
  readonly kind: "frames";
  readonly frames: number;
  /** Total size, for the backlog. */
  readonly bytes: number;
  /** JSON of a {@link FrameBatchText}. */
  readonly text: string;
  /** Payloads and originals concatenated in frame order. */
  readonly payloads: ArrayBuffer;
  /** Imported: its streams belong to entries of their session, whose ids may have been replaced. */
  readonly isImported?: true;
}

export interface FrameBatchText {
  readonly openings: readonly StreamOpening[];
  readonly progress: readonly StreamProgress[];
  readonly frames: readonly FrameTuple[];
}
