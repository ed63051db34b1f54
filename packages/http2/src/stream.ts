import { trackExternalMemory } from "@headworks/sockets";
import { FLOW_CONTROL_ERROR, NO_ERROR, PROTOCOL_ERROR, REFUSED_STREAM } from "./codes.ts";
import { MAX_WINDOW_BYTES } from "./peer-settings.ts";
import type { ReceiveWindow } from "./receive-window.ts";

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

const NOTHING = Buffer.alloc(0);

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
  /**
   * The stream is closed: both sides ended, or `code` is the reason. With NO_ERROR before the end, the connection is
   * gone or the peer wants no more of a body.
   */
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
  forget(stream: Http2Stream): void;
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
  leftBytes = 0;
  /** Drop undelivered data on a connection loss, as no response is possible any more. */
  dropsUntold = false;
  /** Kept by the connection: offset of the last DATA frame, and its flush count. */
  lastPlace = -1;
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
  /** Reset code to send after the queue. */
  #resetBehind = -1;
  /** Reset code to send after the end. */
  #resetBehindEnd = -1;
  #held: HeldPieces | undefined;
  #isHeld = false;
  #isTelling = false;
  #trailers: string[] | undefined;
  #hasReceivedEnd = false;
  #isEndTold = false;
  #missingBytes = -1;
  #isForgotten = false;
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
    if (this.#isForgotten || this.#hasSentEnd) return;
    this.#carrier.sendBlock(this, section, isEnd);
    if (isEnd) this.sentEnd();
  }

  /**
   * Queues content by reference; it must not be changed until it was sent. `isShared`: it may be changed after the
   * call, so whatever cannot be sent at once is copied.
   */
  write(piece: Buffer, isShared = false): void {
    if (this.#isForgotten || this.#isEnding || piece.length === 0) return;
    this.#queue.push(piece);
    this.waitingBytes += piece.length;
    this.#carrier.pump(this);
    if (isShared && this.waitingBytes > 0) this.#keepLast();
  }

  /** Ends the writing side, optionally with trailers. */
  end(trailers?: readonly string[]): void {
    if (this.#isForgotten || this.#isEnding) return;
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

  /** Resets the stream at once. */
  reset(code: number): void {
    if (this.isClosed) return;
    if (!this.#isForgotten) {
      this.#carrier.sendReset(this, code);
      this.#forget();
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
  resetBehind(code: number): void {
    if (this.waitingBytes === 0) this.reset(code);
    else this.#resetBehind = code;
  }

  /** After the end, reports the request as malformed (RFC 9113, 8.1.1). */
  resetBehindEnd(code: number): void {
    this.#resetBehindEnd = code;
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
    this.#tell();
  }

  /** For the connection: up to `maxBytes` of the queue, which is not empty. */
  next(maxBytes: number): { readonly piece: Buffer; readonly start: number; readonly end: number } {
    const piece = this.#queue[0] ?? NOTHING;
    const start = this.#sentBytes;
    return { piece, start, end: Math.min(piece.length, start + maxBytes) };
  }

  /** For the connection: accounts for sent bytes. */
  sent(sizeBytes: number): void {
    this.windowBytes -= sizeBytes;
    this.waitingBytes -= sizeBytes;
    this.leftBytes += sizeBytes;
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
    if (this.#resetBehindEnd === -1) return this.#settle();
    if (!this.#isForgotten) {
      this.#carrier.sendReset(this, this.#resetBehindEnd);
      this.#forget();
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
  frameCame(sizeBytes: number): boolean {
    if (this.window.came(sizeBytes)) return true;
    this.fail(FLOW_CONTROL_ERROR, "more content than its window allows");
    return false;
  }

  /** For the connection: content. */
  pieceCame(piece: Buffer): void {
    if (this.isClosed) return;
    if (this.#missingBytes !== -1) {
      this.#missingBytes -= piece.length;
      if (this.#missingBytes < 0) return this.fail(PROTOCOL_ERROR, "more content than its content-length says");
    }
    if (this.#isHeld || this.#isTelling || this.#held?.isEmpty === false) {
      this.#held ??= new HeldPieces();
      this.#held.push(piece);
      return;
    }
    this.#tellPiece(piece);
  }

  /** For the connection: bytes that will not be delivered. */
  taken(sizeBytes: number): void {
    const byBytes = this.window.taken(sizeBytes, !this.#hasReceivedEnd && !this.#isForgotten);
    if (byBytes > 0) this.#carrier.widen(this, byBytes);
  }

  /** For the connection: the peer ended its side. */
  endCame(trailers: string[] | undefined): void {
    if (this.isClosed) return;
    if (this.#missingBytes > 0) return this.fail(PROTOCOL_ERROR, "less content than its content-length says");
    this.#hasReceivedEnd = true;
    this.#trailers = trailers;
    this.#settle();
    this.#tell();
  }

  /** For the connection: the section was whole, so no end event follows. */
  endedWithSection(): void {
    this.#hasReceivedEnd = true;
    this.#isEndTold = true;
    this.#settle();
  }

  /** For the connection: the peer reset the stream. */
  resetCame(code: number): void {
    if (this.isClosed) return;
    this.wasReset = true;
    this.#forget();
    // The announced body is complete: some servers send a reset instead of END_STREAM.
    if (code === NO_ERROR && this.#missingBytes === 0) this.#hasReceivedEnd = true;
    // The response is complete, and the server wants no more of the request (RFC 9113, 8.1).
    if (this.#hasReceivedEnd && code === NO_ERROR && !this.dropsUntold) this.#finish();
    else this.#close(code);
  }

  /** For the connection: it is gone. */
  lost(code: number): void {
    if (this.isClosed) return;
    this.#forget();
    if (this.#hasReceivedEnd && code !== REFUSED_STREAM && !this.dropsUntold) this.#finish();
    else this.#close(code);
  }

  #keepLast(): void {
    const last = this.#queue.length - 1;
    const piece = this.#queue[last] ?? NOTHING;
    const start = last === 0 ? this.#sentBytes : 0;
    this.#queue[last] = Buffer.from(piece.subarray(start));
    if (last === 0) this.#sentBytes = 0;
    trackExternalMemory(piece.length - start);
  }

  #drained(): void {
    if (this.#resetBehind !== -1) return this.reset(this.#resetBehind);
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

  #tellPiece(piece: Buffer): void {
    this.#isTelling = true;
    try {
      this.handler?.onData(piece);
    } finally {
      this.#isTelling = false;
    }
    this.taken(piece.length);
  }

  /** Delivers buffered content, then the end. */
  #tell(): void {
    if (this.#isTelling) return;
    while (!this.#isHeld && !this.isClosed) {
      const piece = this.#held?.shift();
      if (piece === undefined) break;
      this.#tellPiece(piece);
    }
    if (this.#isHeld || this.isClosed || !this.#hasReceivedEnd || this.#isEndTold) return;
    this.#isEndTold = true;
    const trailers = this.#trailers;
    this.#trailers = undefined;
    if (trailers !== undefined) this.handler?.onTrailers(trailers);
    if (!this.isClosed) this.handler?.onEnd();
    this.#settle();
  }

  /** Closes the stream when both sides have ended and everything was delivered. */
  #settle(): void {
    if (this.isClosed || !this.#hasReceivedEnd) return;
    if (this.#hasSentEnd && !this.#isForgotten) this.#forget();
    if (this.#isForgotten && this.#isEndTold) this.#close(NO_ERROR);
  }

  /** Output is impossible, but the end may still have to be delivered. */
  #finish(): void {
    this.#tell();
    if (this.#isEndTold) this.#close(NO_ERROR);
  }

  #forget(): void {
    if (this.#isForgotten) return;
    this.#isForgotten = true;
    this.#queue.length = 0;
    this.waitingBytes = 0;
    this.#carrier.forget(this);
  }

  #close(code: number): void {
    if (this.isClosed) return;
    this.#closeCode = code;
    this.#held?.clear();
    this.window.close();
    this.handler?.onClose(code);
  }
}
