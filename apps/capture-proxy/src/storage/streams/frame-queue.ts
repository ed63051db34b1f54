import { exchangeUrl, type ExchangeView } from "#exchange/exchange.ts";
import {
  FLAG_COMPRESSED,
  FLAG_FINAL,
  FRAME_DIRECTIONS,
  FRAME_EFFECTS,
  FRAME_TYPES,
  type FrameBatch,
  type FrameListener,
  type FrameRecord,
  type FrameTuple,
  STATE_CLOSED,
  STREAM_KINDS,
  STREAM_STATES,
  type StreamFacts,
  type StreamKind,
  type StreamOpening,
  type StreamProgress,
  type StreamRecorder,
} from "./stream-store.ts";

/** Maximum delay before a batch is sent, well within the promised 250 ms. */
const BATCH_MS = 40;
const BATCH_FRAMES = 2048;
const BATCH_BYTES = 4_194_304;
/** Estimated memory overhead of a queued frame. */
const FRAME_BYTES = 96;

interface FrameOutlet {
  send(batch: FrameBatch): void;
  /** Whether the backlog has room for these bytes. */
  hasRoomFor(bytes: number): boolean;
  /** False if a frame of this size exceeds the store's limit. */
  fits(bytes: number): boolean;
  nextStream(): number;
  /** Session number for new streams. */
  activeSession(): number;
}

/** Batches frames into one message with one buffer. */
export class FrameQueue {
  readonly #outlet: FrameOutlet;
  readonly frameListeners: FrameListener[] = [];
  readonly openedListeners: ((exchange: ExchangeView) => void)[] = [];
  #openings: StreamOpening[] = [];
  #changed = new Set<LiveStream>();
  #frames: FrameTuple[] = [];
  #pieces: Buffer[] = [];
  #payloadBytes = 0;
  #bytes = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(outlet: FrameOutlet) {
    this.#outlet = outlet;
  }

  open(exchange: ExchangeView, kind: StreamKind): StreamRecorder {
    if (!exchange.isRecorded) return NO_RECORDER;
    const { request } = exchange;
    const number = this.#outlet.nextStream();
    const stream = new LiveStream(this, number, kind, exchange);
    const requestFields = JSON.stringify(request.fields);
    this.#openings.push({
      number,
      id: exchange.id,
      session: exchange.client.session ?? this.#outlet.activeSession(),
      kind: STREAM_KINDS.indexOf(kind),
      method: request.method,
      url: exchangeUrl(request),
      host: request.host,
      path: request.path,
      clientAddress: exchange.client.address ?? null,
      createdMs: Date.now(),
      requestFields,
    });
    this.#bytes += requestFields.length + request.path.length * 2 + FRAME_BYTES;
    this.changed(stream);
    for (const opened of this.openedListeners) opened(exchange);
    return stream;
  }

  /** Includes the stream's state in the next batch. */
  changed(stream: LiveStream): void {
    this.#changed.add(stream);
    this.#timer ??= setTimeout(() => this.flush(), BATCH_MS);
  }

  /** False if the frame is not stored for lack of room. */
  add(stream: LiveStream, ordinal: number, frame: FrameRecord): boolean {
    const originalBytes = frame.original === undefined ? -1 : frame.original.length;
    const payloadBytes = frame.payload.length + Math.max(0, originalBytes);
    const bytes = FRAME_BYTES + payloadBytes;
    if (!this.#outlet.fits(payloadBytes) || !this.#outlet.hasRoomFor(this.#bytes + bytes)) return false;
    this.#bytes += bytes;
    this.#frames.push([
      stream.number,
      ordinal,
      FRAME_DIRECTIONS.indexOf(frame.direction),
      FRAME_TYPES.indexOf(frame.type),
      frame.opcode,
      (frame.isFinal ? FLAG_FINAL : 0) | (frame.isCompressed ? FLAG_COMPRESSED : 0),
      frame.effect === undefined ? 0 : FRAME_EFFECTS.indexOf(frame.effect) + 1,
      frame.atMs,
      frame.sizeBytes,
      frame.wireBytes,
      frame.mask ?? null,
      frame.payload.length,
      originalBytes,
      frame.attributes === undefined ? null : JSON.stringify(frame.attributes),
    ]);
    this.#addPiece(frame.payload);
    if (frame.original !== undefined) this.#addPiece(frame.original);
    return true;
  }

  /** Notifies live listeners, and sends the batch if it is full. */
  added(stream: LiveStream, ordinal: number, frame: FrameRecord): void {
    for (const listener of this.frameListeners) listener(stream, ordinal, frame);
    this.changed(stream);
    if (this.#frames.length >= BATCH_FRAMES || this.#bytes >= BATCH_BYTES) this.flush();
  }

  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#changed.size === 0) return;
    const payloads = new ArrayBuffer(this.#payloadBytes);
    const target = new Uint8Array(payloads);
    let offset = 0;
    for (const piece of this.#pieces) {
      target.set(piece, offset);
      offset += piece.length;
    }
    const progress = Array.from(this.#changed, (stream) => stream.progress());
    const text = JSON.stringify({ openings: this.#openings, progress, frames: this.#frames });
    const batch = {
      kind: "frames",
      frames: this.#frames.length,
      bytes: text.length + offset,
      text,
      payloads,
    } as const;
    this.#openings = [];
    this.#changed = new Set();
    this.#frames = [];
    this.#pieces = [];
    this.#payloadBytes = 0;
    this.#bytes = 0;
    this.#outlet.send(batch);
  }

  #addPiece(piece: Buffer): void {
    if (piece.length === 0) return;
    this.#pieces.push(piece);
    this.#payloadBytes += piece.length;
  }
}

/** An open stream with its counters and state. */
class LiveStream implements StreamRecorder {
  readonly number: number;
  readonly id: string;
  readonly kind: StreamKind;
  readonly #queue: FrameQueue;
  readonly #exchange: ExchangeView;
  #attributes: Readonly<Record<string, string>> = {};
  #state = 0;
  #isFinished = false;
  #hasSentResponse = false;
  #subprotocol: string | null = null;
  #closeCode: number | null = null;
  #closeReason: string | null = null;
  #closedMs: number | null = null;
  #framesSent = 0;
  #framesReceived = 0;
  #bytesSent = 0;
  #bytesReceived = 0;
  #framesNotStored = 0;
  #ordinal = 0;

  constructor(queue: FrameQueue, number: number, kind: StreamKind, exchange: ExchangeView) {
    this.#queue = queue;
    this.#exchange = exchange;
    this.number = number;
    this.kind = kind;
    this.id = exchange.id;
  }

  frame(frame: FrameRecord): number {
    if (this.#isFinished) return this.#ordinal;
    const ordinal = ++this.#ordinal;
    if (frame.direction === "send") {
      this.#framesSent += 1;
      this.#bytesSent += frame.sizeBytes;
    } else {
      this.#framesReceived += 1;
      this.#bytesReceived += frame.sizeBytes;
    }
    if (!this.#queue.add(this, ordinal, frame)) this.#framesNotStored += 1;
    this.#queue.added(this, ordinal, frame);
    return ordinal;
  }

  change(facts: StreamFacts): void {
    if (this.#isFinished) return;
    if (facts.state !== undefined) this.#state = STREAM_STATES.indexOf(facts.state);
    if (this.#state === STATE_CLOSED) this.#closedMs ??= Date.now();
    this.#subprotocol = facts.subprotocol ?? this.#subprotocol;
    this.#closeCode = facts.closeCode ?? this.#closeCode;
    this.#closeReason = facts.closeReason ?? this.#closeReason;
    if (facts.attributes !== undefined) this.#attributes = { ...this.#attributes, ...facts.attributes };
    this.#queue.changed(this);
  }

  end(): void {
    this.change({ state: "closed" });
    this.#isFinished = true;
  }

  /** Current state; includes the response fields only the first time. */
  progress(): StreamProgress {
    const { response } = this.#exchange;
    const responseFields = response === undefined || this.#hasSentResponse ? null : JSON.stringify(response.fields);
    if (responseFields !== null) this.#hasSentResponse = true;
    return {
      number: this.number,
      state: this.#state,
      serverAddress: this.#exchange.serverAddress ?? null,
      responseFields,
      subprotocol: this.#subprotocol,
      closeCode: this.#closeCode,
      closeReason: this.#closeReason,
      attributes: JSON.stringify(this.#attributes),
      closedMs: this.#closedMs,
      lastMs: Date.now(),
      framesSent: this.#framesSent,
      framesReceived: this.#framesReceived,
      bytesSent: this.#bytesSent,
      bytesReceived: this.#bytesReceived,
      framesNotStored: this.#framesNotStored,
      lastOrdinal: this.#ordinal,
    };
  }
}

const NO_RECORDER: StreamRecorder = {
  frame: () => 0,
  change: () => undefined,
  end: () => undefined,
};
