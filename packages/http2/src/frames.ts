import { type ByteSocket, PooledWriter } from "@headworks/sockets";
import {
  ACK,
  CONTINUATION,
  DATA,
  END_HEADERS,
  END_STREAM,
  FRAME_SIZE_ERROR,
  GOAWAY,
  HEADERS,
  Http2Error,
  PADDED,
  PING,
  PROTOCOL_ERROR,
  RST_STREAM,
  SETTINGS,
  WINDOW_UPDATE,
  WITH_PRIORITY,
} from "./codes.ts";

/** The client connection preface (RFC 9113, 3.4); no valid HTTP/1.1 request begins like this. */
const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");

/** Whether the input begins with the preface; `maybe`: it is a prefix of it. */
export function beginsAsHttp2(first: Buffer): "yes" | "no" | "maybe" {
  if (first.length === 0) return "maybe";
  // The first byte decides for nearly all HTTP/1.1 requests.
  if (first[0] !== PREFACE[0]) return "no";
  const common = Math.min(first.length, PREFACE.length);
  if (first.compare(PREFACE, 0, common, 0, common) !== 0) return "no";
  return common === PREFACE.length ? "yes" : "maybe";
}

/** Maximum frame payload sent and accepted, which every peer must support (RFC 9113, 4.2). */
export const FRAME_BYTES = 16_384;

/** Frame header size: length, type, flags and stream id (RFC 9113, 4.1). */
const FRAME_HEAD_BYTES = 9;
const NO_BYTES = Buffer.alloc(0);

/** Receives frames in order. An exception ends parsing. */
export interface FrameSink {
  /** No more frames are wanted. */
  readonly isFinished: boolean;
  /** A DATA frame begins; `sizeBytes` counts against flow-control windows, padding included. */
  onDataFrame(stream: number, flags: number, sizeBytes: number): void;
  /** Part of its content, in the receiver's own memory. */
  onDataPiece(piece: Buffer): void;
  onDataFrameEnd(): void;
  /** Any other frame, complete; `content` is not used by the parser again. */
  onFrame(type: number, flags: number, stream: number, content: Buffer): void;
}

/** Splits input into frames (RFC 9113, 4.1). DATA is passed on as it arrives, other frames once complete. */
export class FrameParser {
  readonly #sink: FrameSink;
  #prefaceAt: number;
  #hasSettings = false;
  /** The start of an incomplete frame. */
  #held = NO_BYTES;
  /** State of the current DATA frame. */
  #isInData = false;
  #contentLeft = 0;
  #paddingLeft = 0;
  /** The next byte is the padding length. */
  #isPaddingNext = false;

  /** `expectsPreface`: the peer is a client. */
  constructor(sink: FrameSink, expectsPreface: boolean) {
    this.#sink = sink;
    this.#prefaceAt = expectsPreface ? 0 : PREFACE.length;
  }

  /** Parses input. Throws Http2Error for invalid frames. */
  read(chunk: Buffer): void {
    let bytes = chunk;
    if (this.#held.length > 0) {
      bytes = Buffer.concat([this.#held, chunk]);
      this.#held = NO_BYTES;
    }
    let at = this.#prefaceAt < PREFACE.length ? this.#readPreface(bytes) : 0;
    while (at < bytes.length && !this.#sink.isFinished) {
      const next = this.#isInData ? this.#readData(bytes, at) : this.#readFrame(bytes, at);
      if (next === -1) break;
      at = next;
    }
    // A slice would retain the whole read buffer.
    if (at < bytes.length && !this.#sink.isFinished) this.#held = Buffer.from(bytes.subarray(at));
  }

  #readPreface(bytes: Buffer): number {
    const sizeBytes = Math.min(bytes.length, PREFACE.length - this.#prefaceAt);
    if (bytes.compare(PREFACE, this.#prefaceAt, this.#prefaceAt + sizeBytes, 0, sizeBytes) !== 0) {
      throw new Http2Error(PROTOCOL_ERROR, "The client does not begin with the preface of HTTP/2");
    }
    this.#prefaceAt += sizeBytes;
    return sizeBytes;
  }

  /** Parses a frame, or the header of a DATA frame; returns the next offset, or -1 for more input. */
  #readFrame(bytes: Buffer, at: number): number {
    if (bytes.length - at < FRAME_HEAD_BYTES) return -1;
    const sizeBytes = ((bytes[at] ?? 0) << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0);
    const type = bytes[at + 3] ?? 0;
    const flags = bytes[at + 4] ?? 0;
    const stream = bytes.readUInt32BE(at + 5) & 0x7fffffff;
    if (sizeBytes > FRAME_BYTES) {
      throw new Http2Error(FRAME_SIZE_ERROR, `A frame of ${sizeBytes} bytes, at most ${FRAME_BYTES} are allowed`);
    }
    if (!this.#hasSettings) {
      const isGreeting = type === SETTINGS && (flags & ACK) === 0;
      if (!isGreeting) throw new Http2Error(PROTOCOL_ERROR, "SETTINGS is not the first frame");
      this.#hasSettings = true;
    }
    const start = at + FRAME_HEAD_BYTES;
    if (type === DATA) {
      this.#beginData(stream, flags, sizeBytes);
      return start;
    }
    if (bytes.length - start < sizeBytes) return -1;
    this.#sink.onFrame(type, flags, stream, bytes.subarray(start, start + sizeBytes));
    return start + sizeBytes;
  }

  #beginData(stream: number, flags: number, sizeBytes: number): void {
    this.#contentLeft = sizeBytes;
    this.#paddingLeft = 0;
    this.#isPaddingNext = (flags & PADDED) !== 0;
    if (this.#isPaddingNext && sizeBytes === 0) {
      throw new Http2Error(FRAME_SIZE_ERROR, "A padded frame has no length of its padding");
    }
    this.#sink.onDataFrame(stream, flags, sizeBytes);
    this.#isInData = sizeBytes > 0;
    if (!this.#isInData) this.#sink.onDataFrameEnd();
  }

  #readData(bytes: Buffer, start: number): number {
    let at = start;
    if (this.#isPaddingNext) {
      this.#isPaddingNext = false;
      this.#paddingLeft = bytes[at] ?? 0;
      this.#contentLeft -= 1 + this.#paddingLeft;
      at += 1;
      if (this.#contentLeft < 0) throw new Http2Error(PROTOCOL_ERROR, "Padding is longer than its frame");
    }
    const contentEnd = Math.min(bytes.length, at + this.#contentLeft);
    if (contentEnd > at) {
      this.#contentLeft -= contentEnd - at;
      this.#sink.onDataPiece(bytes.subarray(at, contentEnd));
    }
    const end = this.#contentLeft > 0 ? contentEnd : Math.min(bytes.length, contentEnd + this.#paddingLeft);
    this.#paddingLeft -= end - contentEnd;
    if (this.#contentLeft === 0 && this.#paddingLeft === 0) {
      this.#isInData = false;
      this.#sink.onDataFrameEnd();
    }
    return end;
  }
}

/** The fragment of a HEADERS or CONTINUATION frame (RFC 9113, 6.2). Throws Http2Error. */
export function blockOf(type: typeof HEADERS | typeof CONTINUATION, flags: number, content: Buffer): Buffer {
  if (type === CONTINUATION) return content;
  let start = 0;
  let end = content.length;
  if ((flags & PADDED) !== 0) {
    if (end === 0) throw new Http2Error(FRAME_SIZE_ERROR, "A padded frame has no length of its padding");
    end -= content[0] ?? 0;
    start = 1;
  }
  if ((flags & WITH_PRIORITY) !== 0) {
    if (content.length < start + 5) throw new Http2Error(FRAME_SIZE_ERROR, "HEADERS is too short for its priority");
    start += 5;
  }
  if (start > end) throw new Http2Error(PROTOCOL_ERROR, "Padding is longer than its frame");
  return content.subarray(start, end);
}

/** Whether the priority in a PRIORITY frame, or in HEADERS after `start`, makes the stream depend on itself. */
export function dependsOnItself(stream: number, content: Buffer, start = 0): boolean {
  return content.length >= start + 4 && (content.readUInt32BE(start) & 0x7fffffff) === stream;
}

export function headersDependOnThemselves(flags: number, stream: number, content: Buffer): boolean {
  return (flags & WITH_PRIORITY) !== 0 && dependsOnItself(stream, content, (flags & PADDED) === 0 ? 0 : 1);
}

/** Writes frames (RFC 9113, 6), batched per turn of the event loop. */
export class FrameWriter {
  readonly #out: PooledWriter;

  constructor(socket: ByteSocket) {
    this.#out = new PooledWriter(socket);
  }

  /** Backpressure from the socket. */
  get isFull(): boolean {
    return this.#out.isFull;
  }

  get flushCount(): number {
    return this.#out.flushCount;
  }

  flush(): void {
    this.#out.flush();
  }

  preface(): void {
    const at = this.#out.reserve(PREFACE.length);
    PREFACE.copy(this.#out.pooledBuffer, at);
  }

  settings(pairs: readonly (readonly [id: number, value: number])[]): void {
    let at = this.#begin(SETTINGS, 0, 0, pairs.length * 6);
    for (const [id, value] of pairs) {
      this.#out.pooledBuffer.writeUInt16BE(id, at);
      this.#out.pooledBuffer.writeUInt32BE(value, at + 2);
      at += 6;
    }
  }

  acknowledgeSettings(): void {
    this.#begin(SETTINGS, ACK, 0, 0);
  }

  ping(payload: Buffer, isResponse: boolean): void {
    const at = this.#begin(PING, isResponse ? ACK : 0, 0, payload.length);
    payload.copy(this.#out.pooledBuffer, at);
  }

  goaway(lastStream: number, code: number): void {
    this.#numbers(GOAWAY, 0, lastStream, code);
  }

  reset(stream: number, code: number): void {
    this.#numbers(RST_STREAM, stream, code);
  }

  /** Sends WINDOW_UPDATE for a stream, or for the connection with 0. */
  widen(stream: number, byBytes: number): void {
    this.#numbers(WINDOW_UPDATE, stream, byBytes);
  }

  /** Sends a field block in as many frames as needed (RFC 9113, 6.10). */
  block(stream: number, block: Buffer, isEnd: boolean): void {
    let type = HEADERS;
    let start = 0;
    do {
      const end = Math.min(block.length, start + FRAME_BYTES);
      const isLast = end === block.length;
      const flags = (isLast ? END_HEADERS : 0) | (isEnd && type === HEADERS ? END_STREAM : 0);
      const at = this.#begin(type, flags, stream, end - start);
      block.copy(this.#out.pooledBuffer, at, start, end);
      start = end;
      type = CONTINUATION;
    } while (start < block.length);
  }

  /** Writes one DATA frame without END_STREAM, or the end; its offset is valid until {@link flushCount} changes. */
  data(stream: number, piece: Buffer | undefined, start: number, end: number): number {
    const at = this.#begin(DATA, piece === undefined ? END_STREAM : 0, stream, end - start);
    piece?.copy(this.#out.pooledBuffer, at, start, end);
    return at - FRAME_HEAD_BYTES;
  }

  /** Sets END_STREAM on the frame at this offset. */
  endAt(offset: number): void {
    this.#out.pooledBuffer[offset + 4] = END_STREAM;
  }

  #numbers(type: number, stream: number, first: number, second?: number): void {
    const at = this.#begin(type, 0, stream, second === undefined ? 4 : 8);
    this.#out.pooledBuffer.writeUInt32BE(first, at);
    if (second !== undefined) this.#out.pooledBuffer.writeUInt32BE(second, at + 4);
  }

  /** Writes a frame header; returns the offset of its content. */
  #begin(type: number, flags: number, stream: number, sizeBytes: number): number {
    const at = this.#out.reserve(FRAME_HEAD_BYTES + sizeBytes);
    const { pooledBuffer } = this.#out;
    pooledBuffer[at] = sizeBytes >>> 16;
    pooledBuffer[at + 1] = sizeBytes >>> 8;
    pooledBuffer[at + 2] = sizeBytes;
    pooledBuffer[at + 3] = type;
    pooledBuffer[at + 4] = flags;
    pooledBuffer[at + 5] = stream >>> 24;
    pooledBuffer[at + 6] = stream >>> 16;
    pooledBuffer[at + 7] = stream >>> 8;
    pooledBuffer[at + 8] = stream;
    return at + FRAME_HEAD_BYTES;
  }
}
