import type { ExchangeView } from "#exchange/exchange.ts";

/** In the order of their database codes; append new ones. */
export const STREAM_KINDS = ["websocket", "sse", "json", "grpc"] as const;
export type StreamKind = (typeof STREAM_KINDS)[number];

export const STREAM_STATES = ["connecting", "open", "closing", "closed"] as const;
type StreamState = (typeof STREAM_STATES)[number];

export const STATE_CLOSING = 2;
export const STATE_CLOSED = 3;
export const FRAME_DIRECTIONS = ["send", "receive"] as const;
/** `send` is from the client. */
type FrameDirection = (typeof FRAME_DIRECTIONS)[number];

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
] as const;
type FrameType = (typeof FRAME_TYPES)[number];

/** Code 0 is none. */
export const FRAME_EFFECTS = ["injected", "modified", "dropped"] as const;
/** Absent if the frame passed unchanged. */
type FrameEffect = (typeof FRAME_EFFECTS)[number];

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

/** The bytes must not change after the call. */
export interface FrameRecord {
  readonly direction: FrameDirection;
  readonly type: FrameType;
  /** WebSocket only; otherwise 0. */
  readonly opcode: number;
  readonly isFinal: boolean;
  /** Milliseconds since 1970, wall clock. */
  readonly atMs: number;
  /** Uncompressed; truncated at `max_body_size`. */
  readonly payload: Buffer;
  /** Payload size before truncation. */
  readonly sizeBytes: number;
  /** As received on the wire. */
  readonly wireBytes: number;
  readonly isCompressed: boolean;
  readonly mask?: number;
  readonly effect?: FrameEffect;
  /** The payload before a rule changed it. */
  readonly original?: Buffer;
  /** Additional facts, shown as is: `event`, `id` and `retry` of a server-sent event. */
  readonly attributes?: Readonly<Record<string, string>>;
}

/** Facts that become known while the stream is open. */
export interface StreamFacts {
  readonly state?: StreamState;
  readonly subprotocol?: string;
  readonly closeCode?: number;
  readonly closeReason?: string;
  /** Merged with the known ones. */
  readonly attributes?: Readonly<Record<string, string>>;
}

/** Records one stream. Never blocks or throws. */
export interface StreamRecorder {
  /** Counts the frame as not stored if the backlog is full. Returns its ordinal, from 1. */
  frame(frame: FrameRecord): number;
  change(facts: StreamFacts): void;
  /** Closes the stream; later calls are ignored. */
  end(): void;
}

/** A stored stream; counts include frames that were not stored. */
export interface StreamRow {
  /** Id of its traffic entry. */
  readonly id: string;
  readonly kind: StreamKind;
  readonly sessionId: string;
  readonly state: StreamState;
  readonly method: string;
  readonly url: string;
  readonly host: string;
  /** With query. */
  readonly path: string;
  readonly clientAddress: string | null;
  readonly serverAddress: string | null;
  /** Name, value, name, value in wire order. */
  readonly requestFields: readonly string[];
  /** Null until known. */
  readonly responseFields: readonly string[] | null;
  readonly subprotocol: string | null;
  readonly closeCode: number | null;
  readonly closeReason: string | null;
  readonly attributes: Readonly<Record<string, string>>;
  readonly createdMs: number;
  readonly closedMs: number | null;
  readonly framesSent: number;
  readonly framesReceived: number;
  /** Uncompressed payload bytes. */
  readonly bytesSent: number;
  readonly bytesReceived: number;
  readonly framesNotStored: number;
  readonly framesStored: number;
}

export interface StoredFrame {
  readonly streamId: string;
  readonly kind: StreamKind;
  /** From 1, within the stream. */
  readonly ordinal: number;
  readonly direction: FrameDirection;
  readonly type: FrameType;
  readonly opcode: number;
  readonly isFinal: boolean;
  readonly atMs: number;
  /** Up to the requested bytes. */
  readonly payload: Uint8Array;
  readonly storedBytes: number;
  readonly sizeBytes: number;
  readonly wireBytes: number;
  readonly isCompressed: boolean;
  readonly mask: number | null;
  readonly effect: FrameEffect | null;
  /** The payload before a rule changed it, up to the requested bytes. */
  readonly original: Uint8Array | null;
  readonly attributes: Readonly<Record<string, string>> | null;
}

/** Streams without the attribute do not match. */
export interface AttributeCondition {
  readonly attribute: string;
  /** `name` matches the whole or a suffix after a dot: `v1.Orders` and `Orders` match `shop.v1.Orders`. */
  readonly match: "equals" | "contains" | "name";
  /** Case-insensitive for `contains` and `name`. */
  readonly text: string;
}

export interface StreamQuery {
  readonly kind?: StreamKind | undefined;
  /** Undefined: all sessions. */
  readonly sessionId?: string | undefined;
  /** Conjunction. */
  readonly attributes?: readonly AttributeCondition[] | undefined;
  /** At most a thousand ids. */
  readonly ids?: readonly string[] | undefined;
  readonly limit: number;
  readonly offset: number;
}

export interface FrameQuery {
  readonly kind?: StreamKind | undefined;
  readonly streamId?: string | undefined;
  readonly direction?: FrameDirection | undefined;
  readonly type?: FrameType | undefined;
  /** Conjunction, on the frames' streams. */
  readonly attributes?: readonly AttributeCondition[] | undefined;
  /** Case-insensitive text in the payload. */
  readonly search?: string | undefined;
  /** Only frames after this ordinal. */
  readonly afterOrdinal?: number | undefined;
  readonly limit: number;
  readonly offset: number;
  readonly order: "asc" | "desc";
  /** Maximum bytes per payload; default 64 KiB. */
  readonly payloadBytes?: number | undefined;
}

export interface StreamGroupQuery {
  readonly kind: StreamKind;
  /** Groups streams by its value; streams without it are left out. */
  readonly attribute: string;
  readonly limit: number;
  readonly offset: number;
}

export interface StreamGroup {
  readonly value: string;
  readonly streams: number;
  readonly openStreams: number;
  /** Open streams in state `closing`. */
  readonly closingStreams: number;
  /** Including frames that were not stored. */
  readonly frames: number;
  readonly bytes: number;
  /** Of the first stream. */
  readonly createdMs: number;
  /** Time of the last activity. */
  readonly lastMs: number;
  /** Of the newest stream. */
  readonly host: string;
  readonly clientAddress: string | null;
  readonly serverAddress: string | null;
}

/** Totals of a kind. */
export interface StreamStats {
  readonly streams: number;
  readonly openStreams: number;
  readonly framesSent: number;
  readonly framesReceived: number;
  readonly bytesSent: number;
  readonly bytesReceived: number;
  readonly framesNotStored: number;
  readonly framesStored: number;
  readonly storedBytes: number;
  readonly byType: Readonly<Partial<Record<FrameType, number>>>;
}

/** A frame was just recorded. */
export type FrameListener = (stream: { id: string; kind: StreamKind }, ordinal: number, frame: FrameRecord) => void;

/**
 * Frames of all streams. Recording never blocks: batches are committed within 250 ms and survive the process. A stream
 * belongs to the traffic entry of its exchange and is removed with it.
 */
export interface StreamStore {
  /** Returns a recorder that drops everything if the exchange is not recorded. */
  open(exchange: ExchangeView, kind: StreamKind): StreamRecorder;
  /** Newest first. */
  listStreams(query: StreamQuery, signal?: AbortSignal): Promise<{ streams: StreamRow[]; total: number }>;
  getStream(id: string): Promise<StreamRow | undefined>;
  /** Newest stream first. */
  listGroups(query: StreamGroupQuery, signal?: AbortSignal): Promise<{ groups: StreamGroup[]; total: number }>;
  listFrames(query: FrameQuery, signal?: AbortSignal): Promise<{ frames: StoredFrame[]; total: number }>;
  /** The full payload. */
  frameBytes(streamId: string, ordinal: number): Promise<Buffer | undefined>;
  /** Removes frames and closed streams. */
  clear(kind: StreamKind): Promise<void>;
  stats(kind: StreamKind): Promise<StreamStats>;
  /** Called when a recorded exchange becomes a stream; must not throw. */
  onOpened(listener: (exchange: ExchangeView) => void): void;
  /** Called for each recorded frame on the hot path; must not throw. */
  onFrame(listener: FrameListener): void;
}
