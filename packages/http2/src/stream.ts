import { type SharedBytes, trackExternalMemory } from "@headworks/sockets";
import { FLOW_CONTROL_ERROR, NO_ERROR, PROTOCOL_ERROR, REFUSED_STREAM } from "./codes.ts";
import { FIRST_WINDOW_BYTES, MAX_WINDOW_BYTES, type ReceiveWindow } from "./flow-control.ts";
import type { FrameBudget } from "./flood-limits.ts";
import { FRAME_BYTES, type FrameWriter } from "./frames.ts";

/** Smaller pieces are copied together: each would retain a whole read buffer. */
const SMALL_BYTES = 4096;
const BLOCK_BYTES = 16_384;

/** Content that was received but not read. Its size is bounded by flow control. */
class HeldPieces {
  readonly #pieces: Buffer[] = [];
  /** Free memory after the last copied piece. */
  #spare: Buffer | undefined;

  get isEmpty(): boolean {
    return this.#pieces.length === 0;
  }

  push(piece: Buffer): void {
    if (piece.length >= SMALL_BYTES) {
      this.#pieces.push(piece);
      this.#spare = undefined;
      return;
    }
    if (this.#spare === undefined || this.#spare.length < piece.length) {
      this.#spare = Buffer.allocUnsafeSlow(BLOCK_BYTES);
      this.#pieces.push(this.#spare.subarray(0, 0));
    }
    piece.copy(this.#spare);
    const last = this.#pieces.length - 1;
    const { buffer, byteOffset, length } = this.#pieces[last] ?? this.#spare;
    this.#pieces[last] = Buffer.from(buffer, byteOffset, length + piece.length);
    this.#spare = this.#spare.subarray(piece.length);
  }

  shift(): Buffer | undefined {
    const piece = this.#pieces.shift();
    if (this.isEmpty) this.#spare = undefined;
    return piece;
  }

  clear(): void {
    this.#pieces.length = 0;
    this.#spare = undefined;
  }
}

const NO_BYTES = Buffer.alloc(0);

/** Receives the events of a stream in wire order, synchronously while the connection reads. */
export interface StreamHandler {
  /** A field section before the body, including 1xx responses. `isWhole`: nothing follows. */
  onSection(section: string[], isWhole: boolean): void;
  /** Content; not while the stream is held. */
  onData(piece: Buffer): void;
  onTrailers(section: string[]): void;
  /** All data was delivered. Not called after a whole section. */
  onEnd(): void;
  /** The queue is empty after {@link Http2Stream.hasRoom} returned false. */
  onDrain(): void;
  /** The stream is closed: both sides ended, or `code` is the reason. NO_ERROR: not wanted or gone. */
  onClose(code: number): void;
}

export interface StreamCarrier {
  /** Sends queued data as far as possible. */
  pump(stream: Http2Stream): void;
  sendBlock(stream: Http2Stream, section: readonly string[], isEnd: boolean): void;
  sendEnd(stream: Http2Stream): void;
  sendReset(stream: Http2Stream, code: number): void;
  /** Content was read: widens the receive window. */
  widen(stream: Http2Stream, byBytes: number): void;
  /** Both sides have ended. */
  detach(stream: Http2Stream): void;
}

/** A stream of an HTTP/2 connection (RFC 9113, 5). Writes are queued until windows and socket allow them. */
export class Http2Stream {
  readonly id: number;
  /** Set before the first event. */
  handler: StreamHandler | undefined;
  /** Send window (RFC 9113, 6.9); negative after the peer reduced its initial window. */
  windowBytes: number;
  waitingBytes = 0;
  /** Content bytes sent. */
  sentBodyBytes = 0;
  /** Drop undelivered data on a connection loss, as no response is possible any more. */
  dropsUndelivered = false;
  /** Kept by the connection: offset of the last DATA frame, and its flush count. */
  lastFrameOffset = -1;
  lastFlushCount = -1;
  /** Kept by the connection: the stream is in the send queue. */
  isWaiting = false;
  /** Kept by the connection: the section before the body was received. */
  hasHead = false;
  /** Kept by the connection: the peer reset the stream. */
  wasReset = false;
  /** It carries a tunnel or another protocol, and so DATA only (RFC 9113, 8.5). */
  carriesTunnel = false;
  /** The peer's protocol violation, if we ended the stream for it. */
  problem: string | undefined;
  readonly window: ReceiveWindow;
  readonly #carrier: StreamCarrier;
  readonly #queue: Buffer[] = [];
  /** Bytes already sent of the queue's first piece. */
  #sentBytes = 0;
  #wantsDrain = false;
  #isEnding = false;
  #trailersToSend: readonly string[] | undefined;
  #hasSentEnd = false;
  #resetAfterQueue = -1;
  /** Reset code to send after the end. */
  #resetAfterEnd = -1;
  #held: HeldPieces | undefined;
  #isHeld = false;
  #isDelivering = false;
  #trailers: string[] | undefined;
  #hasReceivedEnd = false;
  #isEndDelivered = false;
  #missingBytes = -1;
  #isDetached = false;
  #closeCode: number | undefined;

  constructor(id: number, carrier: StreamCarrier, windowBytes: number, window: ReceiveWindow) {
    this.id = id;
    this.#carrier = carrier;
    this.windowBytes = windowBytes;
    this.window = window;
  }

  /** No more events or output. */
  get isClosed(): boolean {
    return this.#closeCode !== undefined;
  }

  get closeCode(): number | undefined {
    return this.#closeCode;
  }

  get hasReceivedEnd(): boolean {
    return this.#hasReceivedEnd;
  }

  /** Everything was sent, including the end. */
  get hasSentEnd(): boolean {
    return this.#hasSentEnd;
  }

  get isHeld(): boolean {
    return this.#isHeld;
  }

  /** Sends a field section, which the caller has validated. */
  sendSection(section: readonly string[], isEnd: boolean): void {
    if (this.#isDetached || this.#hasSentEnd) return;
    this.#carrier.sendBlock(this, section, isEnd);
    if (isEnd) this.sentEnd();
  }

  /** Queues content by reference; it must not be changed until it was sent. */
  write(piece: Buffer): void {
    if (this.#isDetached || this.#isEnding || piece.length === 0) return;
    this.#queue.push(piece);
    this.waitingBytes += piece.length;
    this.#carrier.pump(this);
  }

  /** Sends content and copies the part that cannot be sent at once. */
  writeShared(piece: SharedBytes): void {
    if (this.#isDetached || this.#isEnding) return;
    this.write(piece as Buffer);
    if (this.waitingBytes > 0) this.#keepLast();
  }

  /** Ends the writing side, optionally with trailers. */
  end(trailers?: readonly string[]): void {
    if (this.#isDetached || this.#isEnding) return;
    this.#isEnding = true;
    if (trailers !== undefined && trailers.length > 0) this.#trailersToSend = trailers;
    if (this.waitingBytes === 0) this.#sendEnd();
  }

  /** Whether fewer than `maxBytes` are queued; if not, `onDrain` is called when the queue is empty. */
  hasRoom(maxBytes: number): boolean {
    if (this.waitingBytes < maxBytes) return true;
    this.#wantsDrain = true;
    return false;
  }

  reset(code: number): void {
    if (this.isClosed) return;
    if (!this.#isDetached) {
      this.#carrier.sendReset(this, code);
      this.#detach();
    }
    this.#close(code);
  }

  /** For the connection: a stream error of the peer (RFC 9113, 5.4.2). */
  fail(code: number, problem: string): void {
    if (this.isClosed) return;
    this.problem = problem;
    this.reset(code);
  }

  /** Resets the stream after the queue was sent. */
  resetAfterQueue(code: number): void {
    if (this.waitingBytes === 0) this.reset(code);
    else this.#resetAfterQueue = code;
  }

  /** After the end, reports the request as malformed (RFC 9113, 8.1.1). */
  resetAfterEnd(code: number): void {
    this.#resetAfterEnd = code;
  }

  /** Sets the announced body length; a different length is a stream error (RFC 9113, 8.1.1). */
  announce(lengthBytes: number): void {
    this.#missingBytes = lengthBytes;
  }

  /** Suspends events. */
  hold(): void {
    this.#isHeld = true;
  }

  /** Delivers buffered events and resumes. */
  release(): void {
    this.#isHeld = false;
    this.#deliver();
  }

  /** For the connection: up to `maxBytes` of the queue, which is not empty. */
  next(maxBytes: number): { readonly piece: Buffer; readonly start: number; readonly end: number } {
    const piece = this.#queue[0] ?? NO_BYTES;
    const start = this.#sentBytes;
    return { piece, start, end: Math.min(piece.length, start + maxBytes) };
  }

  /** For the connection: accounts for sent bytes. */
  sent(sizeBytes: number): void {
    this.windowBytes -= sizeBytes;
    this.waitingBytes -= sizeBytes;
    this.sentBodyBytes += sizeBytes;
    this.#sentBytes += sizeBytes;
    if (this.#sentBytes < (this.#queue[0]?.length ?? 0)) return;
    this.#sentBytes = 0;
    this.#queue.shift();
    if (this.#queue.length === 0) this.#drained();
  }

  /** For the connection: the end was sent with another frame. */
  sentEnd(): void {
    this.#isEnding = true;
    this.#hasSentEnd = true;
    if (this.#resetAfterEnd === -1) return this.#settle();
    if (!this.#isDetached) {
      this.#carrier.sendReset(this, this.#resetAfterEnd);
      this.#detach();
    }
    this.#close(NO_ERROR);
  }

  /** For the connection: the send window was widened. False: overflow. */
  widened(byBytes: number): boolean {
    this.windowBytes += byBytes;
    if (this.windowBytes > MAX_WINDOW_BYTES) return false;
    if (this.waitingBytes > 0) this.#carrier.pump(this);
    return true;
  }

  /** For the connection: a DATA frame of this size, padding included, begins. False: the stream has ended. */
  receiveFrame(sizeBytes: number): boolean {
    if (this.window.receive(sizeBytes)) return true;
    this.fail(FLOW_CONTROL_ERROR, "more content than its window allows");
    return false;
  }

  /** For the connection: content. */
  receivePiece(piece: Buffer): void {
    if (this.isClosed) return;
    if (this.#missingBytes !== -1) {
      this.#missingBytes -= piece.length;
      if (this.#missingBytes < 0) return this.fail(PROTOCOL_ERROR, "more content than its content-length says");
    }
    if (this.#isHeld || this.#isDelivering || this.#held?.isEmpty === false) {
      this.#held ??= new HeldPieces();
      this.#held.push(piece);
      return;
    }
    this.#deliverPiece(piece);
  }

  /** For the connection: bytes that will not be delivered. */
  consume(sizeBytes: number): void {
    const byBytes = this.window.consume(sizeBytes, !this.#hasReceivedEnd && !this.#isDetached);
    if (byBytes > 0) this.#carrier.widen(this, byBytes);
  }

  /** For the connection: the peer ended its side. */
  receiveEnd(trailers: string[] | undefined): void {
    if (this.isClosed) return;
    if (this.#missingBytes > 0) return this.fail(PROTOCOL_ERROR, "less content than its content-length says");
    this.#hasReceivedEnd = true;
    this.#trailers = trailers;
    this.#settle();
    this.#deliver();
  }

  /** For the connection: the section was whole, so no end event follows. */
  endedWithSection(): void {
    this.#hasReceivedEnd = true;
    this.#isEndDelivered = true;
    this.#settle();
  }

  /** For the connection: the peer reset the stream. */
  receiveReset(code: number): void {
    if (this.isClosed) return;
    this.wasReset = true;
    this.#detach();
    // The announced body is complete: some servers send a reset instead of END_STREAM.
    if (code === NO_ERROR && this.#missingBytes === 0) this.#hasReceivedEnd = true;
    // The response is complete, and the server wants no more of the request (RFC 9113, 8.1).
    if (this.#hasReceivedEnd && code === NO_ERROR && !this.dropsUndelivered) this.#finish();
    else this.#close(code);
  }

  /** For the connection: it is gone. */
  lost(code: number): void {
    if (this.isClosed) return;
    this.#detach();
    if (this.#hasReceivedEnd && code !== REFUSED_STREAM && !this.dropsUndelivered) this.#finish();
    else this.#close(code);
  }

  #keepLast(): void {
    const last = this.#queue.length - 1;
    const piece = this.#queue[last] ?? NO_BYTES;
    const start = last === 0 ? this.#sentBytes : 0;
    this.#queue[last] = Buffer.from(piece.subarray(start));
    if (last === 0) this.#sentBytes = 0;
    trackExternalMemory(piece.length - start);
  }

  #drained(): void {
    if (this.#resetAfterQueue !== -1) return this.reset(this.#resetAfterQueue);
    if (this.#isEnding) this.#sendEnd();
    if (!this.#wantsDrain || this.isClosed) return;
    this.#wantsDrain = false;
    this.handler?.onDrain();
  }

  #sendEnd(): void {
    if (this.#hasSentEnd) return;
    if (this.#trailersToSend === undefined) this.#carrier.sendEnd(this);
    else this.#carrier.sendBlock(this, this.#trailersToSend, true);
    this.sentEnd();
  }

  #deliverPiece(piece: Buffer): void {
    this.#isDelivering = true;
    try {
      this.handler?.onData(piece);
    } finally {
      this.#isDelivering = false;
    }
    this.consume(piece.length);
  }

  /** Delivers buffered content, then the end. */
  #deliver(): void {
    if (this.#isDelivering) return;
    while (!this.#isHeld && !this.isClosed) {
      const piece = this.#held?.shift();
      if (piece === undefined) break;
      this.#deliverPiece(piece);
    }
    if (this.#isHeld || this.isClosed || !this.#hasReceivedEnd || this.#isEndDelivered) return;
    this.#isEndDelivered = true;
    const trailers = this.#trailers;
    this.#trailers = undefined;
    if (trailers !== undefined) this.handler?.onTrailers(trailers);
    if (!this.isClosed) this.handler?.onEnd();
    this.#settle();
  }

  /** Closes the stream when both sides have ended and everything was delivered. */
  #settle(): void {
    if (this.isClosed || !this.#hasReceivedEnd) return;
    if (this.#hasSentEnd && !this.#isDetached) this.#detach();
    if (this.#isDetached && this.#isEndDelivered) this.#close(NO_ERROR);
  }

  /** Output is impossible, but the end may still have to be delivered. */
  #finish(): void {
    this.#deliver();
    if (this.#isEndDelivered) this.#close(NO_ERROR);
  }

  #detach(): void {
    if (this.#isDetached) return;
    this.#isDetached = true;
    this.#queue.length = 0;
    this.waitingBytes = 0;
    this.#carrier.detach(this);
  }

  #close(code: number): void {
    if (this.isClosed) return;
    this.#closeCode = code;
    this.#held?.clear();
    this.window.close();
    this.handler?.onClose(code);
  }
}

/**
 * The open streams of a connection, a list ordered by id, as streams are opened in that order. A Map under such use
 * would retain closed streams (decision 015).
 */
export class StreamTable {
  readonly #streams: Http2Stream[] = [];

  get size(): number {
    return this.#streams.length;
  }

  get(id: number): Http2Stream | undefined {
    const stream = this.#streams[this.#indexOf(id)];
    return stream?.id === id ? stream : undefined;
  }

  /** Adds a stream with the highest id so far. */
  add(stream: Http2Stream): void {
    this.#streams.push(stream);
  }

  remove(stream: Http2Stream): void {
    const index = this.#indexOf(stream.id);
    if (this.#streams[index] === stream) this.#streams.splice(index, 1);
  }

  /** A copy of the list. */
  all(): Http2Stream[] {
    return this.#streams.slice();
  }

  /** The index of the stream id, or where it would be inserted. */
  #indexOf(id: number): number {
    let low = 0;
    let high = this.#streams.length - 1;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#streams[middle]?.id ?? 0) < id) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/**
 * How a closed stream ended for its peer. `ended`: the peer sent END_STREAM. `reset`: the peer reset it. `left`: we
 * ended it, and the peer may not know yet. `unknown`: no longer remembered.
 */
type Ending = "ended" | "reset" | "left" | "unknown";

const ENDINGS: readonly Ending[] = ["unknown", "ended", "reset", "left"];

/** Number of endings remembered; a peer does not return to older streams by mistake. */
const MAX_ENDINGS = 128;

/** Number of skipped id ranges remembered; further skipped ids count as used. */
const MAX_GAPS = 32;

/** The closed streams of a connection, as far as needed to judge late frames (RFC 9113, 5.1). */
export class ClosedStreams {
  #ids: Uint32Array | undefined;
  #endings: Uint8Array | undefined;
  #next = 0;
  /** First and last id of each gap. */
  readonly #gaps: number[] = [];

  note(id: number, ending: Exclude<Ending, "unknown">): void {
    this.#ids ??= new Uint32Array(MAX_ENDINGS);
    this.#endings ??= new Uint8Array(MAX_ENDINGS);
    this.#ids[this.#next] = id;
    this.#endings[this.#next] = ENDINGS.indexOf(ending);
    this.#next = (this.#next + 1) % MAX_ENDINGS;
  }

  endingOf(id: number): Ending {
    const at = this.#ids?.lastIndexOf(id) ?? -1;
    return ENDINGS[this.#endings?.[at] ?? 0] ?? "unknown";
  }

  /** A client opened stream `id` after stream `last`: the ids between are skipped and can no longer be used (5.1.1). */
  opened(id: number, last: number): void {
    if (id <= last + 2 || id === 1 || this.#gaps.length >= 2 * MAX_GAPS) return;
    this.#gaps.push(last + 1, id - 1);
  }

  /** Whether the stream id was skipped. */
  wasSkipped(id: number): boolean {
    for (let at = 0; at < this.#gaps.length; at += 2) {
      if (id >= (this.#gaps[at] ?? 0) && id <= (this.#gaps[at + 1] ?? 0)) return true;
    }
    return false;
  }
}

/** Sends queued stream data as windows and socket allow: round-robin, one frame each, under contention. */
export class SendScheduler {
  readonly #out: FrameWriter;
  readonly #budget: FrameBudget;
  /** Streams waiting for the socket or the connection window, in turn. */
  readonly #waiting: Http2Stream[] = [];
  #turn = 0;
  #windowBytes = FIRST_WINDOW_BYTES;

  constructor(out: FrameWriter, budget: FrameBudget) {
    this.#out = out;
    this.#budget = budget;
  }

  /** Sends what is possible of one stream. */
  pump(stream: Http2Stream): void {
    while (stream.waitingBytes > 0 && stream.windowBytes > 0) {
      if (!this.#hasRoom) return this.#wait(stream);
      this.#sendFrame(stream);
    }
  }

  /** Sends what is possible of all streams. */
  pumpAll(): void {
    while (this.#hasRoom) {
      const stream = this.#waiting[this.#turn] ?? this.#waiting[0];
      if (stream === undefined) return;
      if (stream.waitingBytes > 0 && stream.windowBytes > 0) {
        this.#turn = (this.#turn + 1) % this.#waiting.length;
        this.#sendFrame(stream);
      } else {
        this.detach(stream);
      }
    }
  }

  /** Ends the stream, on its last DATA frame if that is still buffered. */
  end(stream: Http2Stream): void {
    if (stream.lastFlushCount === this.#out.flushCount) this.#out.endAt(stream.lastFrameOffset);
    else this.#out.data(stream.id, undefined, 0, 0);
  }

  /** The peer widened the connection window. False: overflow. */
  widen(byBytes: number): boolean {
    this.#windowBytes += byBytes;
    if (this.#windowBytes > MAX_WINDOW_BYTES) return false;
    this.pumpAll();
    return true;
  }

  /** Drops the stream. */
  detach(stream: Http2Stream): void {
    if (!stream.isWaiting) return;
    stream.isWaiting = false;
    this.#waiting.splice(this.#waiting.indexOf(stream), 1);
  }

  #wait(stream: Http2Stream): void {
    if (stream.isWaiting) return;
    stream.isWaiting = true;
    this.#waiting.push(stream);
  }

  get #hasRoom(): boolean {
    return this.#windowBytes > 0 && !this.#out.isFull;
  }

  #sendFrame(stream: Http2Stream): void {
    const maxBytes = Math.min(FRAME_BYTES, this.#windowBytes, stream.windowBytes);
    const { piece, start, end } = stream.next(maxBytes);
    this.#windowBytes -= end - start;
    // Peers may respond with WINDOW_UPDATE for stream and connection, some for each kilobyte.
    this.#budget.earn(2 + ((end - start) >>> 10));
    stream.lastFrameOffset = this.#out.data(stream.id, piece, start, end);
    stream.lastFlushCount = this.#out.flushCount;
    stream.sent(end - start);
  }
}
