import { trackExternalMemory } from "@headworks/sockets";
import { FLOW_CONTROL_ERROR, NO_ERROR, PROTOCOL_ERROR, REFUSED_STREAM } from "./codes.ts";
import { MAX_WINDOW_BYTES } from "./peer-settings.ts";
import type { ReceiveWindow } from "./receive-window.ts";

/** Pieces below this are copied together: each would keep a whole read of its socket, and be a thing of its own. */
const SMALL_BYTES = 4096;

const BLOCK_BYTES = 16_384;

/** Content that arrived and nobody takes yet. Its size is bounded by whoever lets it arrive. */
class HeldPieces {
  readonly #pieces: Buffer[] = [];
  /** Memory behind the last piece, if that is one of ours. */
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

/** Told of what comes on a stream, in the order of the wire, from within the reading of the connection. */
export interface StreamHandler {
  /** A field section before the body; of answers also those with a status of 1xx. `isWhole`: nothing follows it. */
  onSection(section: string[], isWhole: boolean): void;
  /** Content; not while the stream is held. */
  onData(piece: Buffer): void;
  onTrailers(section: string[]): void;
  /** Everything was told. Not called behind a section that was whole. */
  onEnd(): void;
  /** What waited to be written has left, after {@link Http2Stream.hasRoom} had said no. */
  onDrain(): void;
  /**
   * It is over, and nothing more is told: both sides ended, or `code` says why not. NO_ERROR then means that the connection
   * is gone, or that the peer wants no more of a body.
   */
  onClose(code: number): void;
}

/** What a stream needs of its connection. */
export interface StreamCarrier {
  /** Sends of its queue what goes. */
  pump(stream: Http2Stream): void;
  /** Sends a field section. */
  sendBlock(stream: Http2Stream, section: readonly string[], isEnd: boolean): void;
  /** Sends the end alone. */
  sendEnd(stream: Http2Stream): void;
  sendReset(stream: Http2Stream, code: number): void;
  /** Its content was taken: the peer may send more of it. */
  widen(stream: Http2Stream, byBytes: number): void;
  /** Neither side sends any more on it. */
  forget(stream: Http2Stream): void;
}

/** A stream of an HTTP/2 connection (RFC 9113, 5). What is written is queued until windows and the socket let it go. */
export class Http2Stream {
  readonly id: number;
  /** Set before anything is told. */
  handler: StreamHandler | undefined;
  /** Bytes that the peer takes of it now (RFC 9113, 6.9); less than 0 when it changed its mind. */
  windowBytes: number;
  /** Bytes that wait to be sent. */
  waitingBytes = 0;
  /** Bytes of content that left it so far. */
  leftBytes = 0;
  /** What was not told yet is of no use once nothing can be answered any more: then it is closed at once. */
  dropsUntold = false;
  /** Kept by the connection: the place of the last DATA frame, and of which hand-over. */
  lastPlace = -1;
  lastHandOver = -1;
  /** Kept by the connection: it is called up when more can be sent. */
  isWaiting = false;
  /** Kept by the connection: the section before the body came. */
  hasHead = false;
  /** Kept by the connection: the peer reset it. */
  wasReset = false;
  /** It carries a tunnel or another protocol, and so nothing but content (RFC 9113, 8.5). */
  carriesTunnel = false;
  /** What the peer did wrong on it, for people, if we ended it for that. */
  problem: string | undefined;
  readonly window: ReceiveWindow;
  readonly #carrier: StreamCarrier;
  readonly #queue: Buffer[] = [];
  /** Sent already of the first piece of the queue. */
  #sentBytes = 0;
  #wantsDrain = false;
  #isEnding = false;
  #trailersToSend: readonly string[] | undefined;
  #hasSentEnd = false;
  /** The code that goes out behind the queue. */
  #resetBehind = -1;
  /** The code that goes out behind the end. */
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

  /** Nothing is told or sent any more. */
  get isClosed(): boolean {
    return this.#closeCode !== undefined;
  }

  /** What it was closed with. */
  get closeCode(): number | undefined {
    return this.#closeCode;
  }

  /** The peer sends nothing more on it. */
  get hasReceivedEnd(): boolean {
    return this.#hasReceivedEnd;
  }

  /** Everything that was to be sent is on its way, the end included. */
  get hasSentEnd(): boolean {
    return this.#hasSentEnd;
  }

  get isHeld(): boolean {
    return this.#isHeld;
  }

  /** Sends a field section; what is in it was judged by whoever made it. */
  sendSection(section: readonly string[], isEnd: boolean): void {
    if (this.#isForgotten || this.#hasSentEnd) return;
    this.#carrier.sendBlock(this, section, isEnd);
    if (isEnd) this.sentEnd();
  }

  /**
   * Sends content, which is not looked at after it left, and not to be changed before. `isShared`: it may be changed after the
   * call, so that what cannot leave at once is copied.
   */
  write(piece: Buffer, isShared = false): void {
    if (this.#isForgotten || this.#isEnding || piece.length === 0) return;
    this.#queue.push(piece);
    this.waitingBytes += piece.length;
    this.#carrier.pump(this);
    if (isShared && this.waitingBytes > 0) this.#keepLast();
  }

  /** Nothing follows what was written but these trailers. */
  end(trailers?: readonly string[]): void {
    if (this.#isForgotten || this.#isEnding) return;
    this.#isEnding = true;
    if (trailers !== undefined && trailers.length > 0) this.#trailersToSend = trailers;
    if (this.waitingBytes === 0) this.#sendEnd();
  }

  /** Whether less than `maxBytes` wait; if not, `onDrain` tells when nothing does any more. */
  hasRoom(maxBytes: number): boolean {
    if (this.waitingBytes < maxBytes) return true;
    this.#wantsDrain = true;
    return false;
  }

  /** Ends both sides at once. */
  reset(code: number): void {
    if (this.isClosed) return;
    if (!this.#isForgotten) {
      this.#carrier.sendReset(this, code);
      this.#forget();
    }
    this.#close(code);
  }

  /** For the connection: ends both sides, since the peer broke the rules on it (RFC 9113, 5.4.2). */
  fail(code: number, problem: string): void {
    if (this.isClosed) return;
    this.problem = problem;
    this.reset(code);
  }

  /** Ends both sides once what was written has left. */
  resetBehind(code: number): void {
    if (this.waitingBytes === 0) this.reset(code);
    else this.#resetBehind = code;
  }

  /** Once the end has left, the peer is told that what was answered was malformed (RFC 9113, 8.1.1). */
  resetBehindEnd(code: number): void {
    this.#resetBehindEnd = code;
  }

  /** The body is to have so many bytes; one that has not ends the stream (RFC 9113, 8.1.1). */
  announce(lengthBytes: number): void {
    this.#missingBytes = lengthBytes;
  }

  /** Tells nothing for now. */
  hold(): void {
    this.#isHeld = true;
  }

  /** Tells what is there, and goes on. */
  release(): void {
    this.#isHeld = false;
    this.#tell();
  }

  /** For the connection: the bytes to send next, at most so many; some wait. */
  next(maxBytes: number): { readonly piece: Buffer; readonly start: number; readonly end: number } {
    const piece = this.#queue[0] ?? NOTHING;
    const start = this.#sentBytes;
    return { piece, start, end: Math.min(piece.length, start + maxBytes) };
  }

  /** For the connection: so many of them were. */
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

  /** For the connection: the end was sent with something else. */
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

  /** For the connection: the peer lets us send more. False: more than a window can be. */
  widened(byBytes: number): boolean {
    this.windowBytes += byBytes;
    if (this.windowBytes > MAX_WINDOW_BYTES) return false;
    if (this.waitingBytes > 0) this.#carrier.pump(this);
    return true;
  }

  /** For the connection: a frame with so many bytes begins, some of which may be padding. False: the stream is over for it. */
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

  /** For the connection: so many bytes need not be told to anybody. */
  taken(sizeBytes: number): void {
    const byBytes = this.window.taken(sizeBytes, !this.#hasReceivedEnd && !this.#isForgotten);
    if (byBytes > 0) this.#carrier.widen(this, byBytes);
  }

  /** For the connection: the peer's side ended. */
  endCame(trailers: string[] | undefined): void {
    if (this.isClosed) return;
    if (this.#missingBytes > 0) return this.fail(PROTOCOL_ERROR, "less content than its content-length says");
    this.#hasReceivedEnd = true;
    this.#trailers = trailers;
    this.#settle();
    this.#tell();
  }

  /** For the connection: a section was whole, so the end need not be told. */
  endedWithSection(): void {
    this.#hasReceivedEnd = true;
    this.#isEndTold = true;
    this.#settle();
  }

  /** For the connection: the peer reset it. */
  resetCame(code: number): void {
    if (this.isClosed) return;
    this.wasReset = true;
    this.#forget();
    // Of an announced body that is there nothing is missing: servers at times reset a stream in place of saying that it ends.
    if (code === NO_ERROR && this.#missingBytes === 0) this.#hasReceivedEnd = true;
    // A server that has said everything, and wants no more of the request (RFC 9113, 8.1).
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

  /** Tells what is held, and the end when nothing is. */
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

  /** Both sides said everything: the connection knows it no more, and once all is told it is over. */
  #settle(): void {
    if (this.isClosed || !this.#hasReceivedEnd) return;
    if (this.#hasSentEnd && !this.#isForgotten) this.#forget();
    if (this.#isForgotten && this.#isEndTold) this.#close(NO_ERROR);
  }

  /** Nothing can be sent any more, but the end may not have been told. */
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
