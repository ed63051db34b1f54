import type { ExchangeView } from "#exchange/exchange.ts";

/** What a stream's frames are made of. */
export type StreamKind = "websocket" | "sse" | "json" | "grpc";
/** `send` is from the client. */
export type FrameDirection = "send" | "receive";
export type FrameType =
  | "text"
  | "binary"
  | "ping"
  | "pong"
  | "close"
  | "continuation"
  | "event"
  | "item"
  | "message"
  | "trailer";
/** What Weir did to a frame; without one it passed as it came. */
export type FrameEffect = "injected" | "modified" | "dropped";
export type StreamState = "connecting" | "open" | "closing" | "closed";

/** One frame as it is handed over. Its bytes must not change afterwards. */
export interface FrameRecord {
  readonly direction: FrameDirection;
  readonly type: FrameType;
  /** Of WebSocket; else 0. */
  readonly opcode: number;
  readonly isFinal: boolean;
  /** Wall clock, milliseconds since 1970. */
  readonly atMs: number;
  /** Uncompressed; cut at `max_body_size`. */
  readonly payload: Buffer;
  /** Of the payload before it was cut. */
  readonly sizeBytes: number;
  /** On the wire, as it came. */
  readonly wireBytes: number;
  readonly isCompressed: boolean;
  /** The masking key as a number, where the frame was masked. */
  readonly mask?: number;
  readonly effect?: FrameEffect;
  /** The payload before a rule changed it. */
  readonly original?: Buffer;
  /** Further facts, shown as they are: `event`, `id` and `retry` of a server-sent event. */
  readonly attributes?: Readonly<Record<string, string>>;
}

/** What may become known of a stream while it runs. */
export interface StreamFacts {
  readonly state?: StreamState;
  readonly subprotocol?: string;
  readonly closeCode?: number;
  readonly closeReason?: string;
  /** Added to those known. */
  readonly attributes?: Readonly<Record<string, string>>;
}

/** Takes what happens on one stream. Nothing here waits or throws. */
export interface StreamRecorder {
  /** Over a bounded backlog the frame is counted as not stored. Gives its number in the stream, from 1 on. */
  frame(frame: FrameRecord): number;
  change(facts: StreamFacts): void;
  /** The stream is closed; what comes afterwards is ignored. */
  end(): void;
}

/** A stream as it is stored; counts are of what flowed, stored or not. */
export interface StreamRow {
  /** That of its traffic entry. */
  readonly id: string;
  readonly kind: StreamKind;
  readonly sessionId: string;
  readonly state: StreamState;
  readonly method: string;
  readonly url: string;
  readonly host: string;
  /** Path and query. */
  readonly path: string;
  readonly clientAddress: string | null;
  readonly serverAddress: string | null;
  /** Name, value, name, value in wire order. */
  readonly requestFields: readonly string[];
  /** null: not known yet. */
  readonly responseFields: readonly string[] | null;
  readonly subprotocol: string | null;
  readonly closeCode: number | null;
  readonly closeReason: string | null;
  readonly attributes: Readonly<Record<string, string>>;
  readonly createdMs: number;
  readonly closedMs: number | null;
  readonly framesSent: number;
  readonly framesReceived: number;
  /** Of payloads, uncompressed. */
  readonly bytesSent: number;
  readonly bytesReceived: number;
  readonly framesNotStored: number;
  readonly framesStored: number;
}

/** A frame as it is stored. */
export interface StoredFrame {
  readonly streamId: string;
  readonly kind: StreamKind;
  /** Number in its stream, from 1 on. */
  readonly ordinal: number;
  readonly direction: FrameDirection;
  readonly type: FrameType;
  readonly opcode: number;
  readonly isFinal: boolean;
  readonly atMs: number;
  /** Up to the bytes that were asked for. */
  readonly payload: Uint8Array;
  /** What is stored of the payload. */
  readonly storedBytes: number;
  readonly sizeBytes: number;
  readonly wireBytes: number;
  readonly isCompressed: boolean;
  readonly mask: number | null;
  readonly effect: FrameEffect | null;
  /** The payload before a rule changed it, up to the bytes that were asked for. */
  readonly original: Uint8Array | null;
  readonly attributes: Readonly<Record<string, string>> | null;
}

/** A condition on an attribute of streams; those that do not have it do not match. */
export interface AttributeCondition {
  readonly attribute: string;
  /** `name` matches all of it, or its last parts after a dot: `v1.Orders` and `Orders` match `shop.v1.Orders`. */
  readonly match: "equals" | "contains" | "name";
  /** `contains` and `name` take upper and lower case alike. */
  readonly text: string;
}

export interface StreamQuery {
  readonly kind?: StreamKind | undefined;
  /** Without it, streams of all sessions. */
  readonly sessionId?: string | undefined;
  /** All of them must match. */
  readonly attributes?: readonly AttributeCondition[] | undefined;
  /** Only these, at most a thousand. */
  readonly ids?: readonly string[] | undefined;
  readonly limit: number;
  readonly offset: number;
}

export interface FrameQuery {
  readonly kind?: StreamKind | undefined;
  readonly streamId?: string | undefined;
  readonly direction?: FrameDirection | undefined;
  readonly type?: FrameType | undefined;
  /** Of the frames' streams; all of them must match. */
  readonly attributes?: readonly AttributeCondition[] | undefined;
  /** Text in the payload, upper and lower case alike. */
  readonly search?: string | undefined;
  /** Only frames after this number of their stream. */
  readonly afterOrdinal?: number | undefined;
  readonly limit: number;
  readonly offset: number;
  readonly order: "asc" | "desc";
  /** Bytes of each payload that are given; 64 KiB when undefined. */
  readonly payloadBytes?: number | undefined;
}

export interface StreamGroupQuery {
  readonly kind: StreamKind;
  /** Streams with the same value of it make a group; those without it are in none. */
  readonly attribute: string;
  readonly limit: number;
  readonly offset: number;
}

/** Streams that have one attribute in common. */
export interface StreamGroup {
  readonly value: string;
  readonly streams: number;
  readonly openStreams: number;
  /** Those of the open ones that are `closing`. */
  readonly closingStreams: number;
  /** Stored and not. */
  readonly frames: number;
  readonly bytes: number;
  /** Of its first stream. */
  readonly createdMs: number;
  /** When something last happened in it. */
  readonly lastMs: number;
  /** Of its newest stream. */
  readonly host: string;
  readonly clientAddress: string | null;
  readonly serverAddress: string | null;
}

/** Sums over the streams of a kind. */
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
  /** Stored frames by their type. */
  readonly byType: Readonly<Partial<Record<FrameType, number>>>;
}

/** A frame that was just recorded, for those who watch. */
export type FrameListener = (stream: { id: string; kind: StreamKind }, ordinal: number, frame: FrameRecord) => void;

/**
 * Frames of everything that streams. Writing never waits: frames are committed in batches within 250 ms and outlive the
 * process. A stream belongs to the traffic entry of its exchange and goes with it.
 */
export interface StreamStore {
  /** For exchanges that are recorded; a recorder that drops everything otherwise. */
  open(exchange: ExchangeView, kind: StreamKind): StreamRecorder;
  /** Newest first. */
  listStreams(query: StreamQuery, signal?: AbortSignal): Promise<{ streams: StreamRow[]; total: number }>;
  getStream(id: string): Promise<StreamRow | undefined>;
  /** Those with the newest stream first. */
  listGroups(query: StreamGroupQuery, signal?: AbortSignal): Promise<{ groups: StreamGroup[]; total: number }>;
  listFrames(query: FrameQuery, signal?: AbortSignal): Promise<{ frames: StoredFrame[]; total: number }>;
  /** A whole payload. */
  frameBytes(streamId: string, ordinal: number): Promise<Buffer | undefined>;
  /** Removes frames, and streams that are closed. */
  clear(kind: StreamKind): Promise<void>;
  stats(kind: StreamKind): Promise<StreamStats>;
  /** Called with each recorded exchange that becomes a stream; it must not throw. */
  onOpened(listener: (exchange: ExchangeView) => void): void;
  /** Called with each recorded frame on the hot path; it must not throw. */
  onFrame(listener: FrameListener): void;
}
