import {
  ACK,
  CONTINUATION,
  DATA,
  FRAME_SIZE_ERROR,
  PADDED,
  PROTOCOL_ERROR,
  SETTINGS,
  WITH_PRIORITY,
  type HEADERS,
} from "./codes.ts";
import { Http2Error } from "./http2-error.ts";
import { PREFACE } from "./preface.ts";

/** Maximum frame payload sent and accepted, which every peer must support (RFC 9113, 4.2). */
export const FRAME_BYTES = 16_384;
/** Frame header size: length, type, flags and stream id (RFC 9113, 4.1). */
export const FRAME_HEAD_BYTES = 9;

const NOTHING = Buffer.alloc(0);

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

/**
 * Splits a peer's input into frames (RFC 9113, 4.1). DATA content is passed on as it arrives, other frames once they
 * are complete.
 */
export class FrameParser {
  readonly #sink: FrameSink;
  #prefaceAt: number;
  #hasSettings = false;
  /** The start of an incomplete frame. */
  #held = NOTHING;
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

  /**
   * Parses input.
   * @throws Http2Error for invalid frames
   */
  read(chunk: Buffer): void {
    let bytes = chunk;
    if (this.#held.length > 0) {
      bytes = Buffer.concat([this.#held, chunk]);
      this.#held = NOTHING;
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

  /**
   * Parses one frame, or the header of a DATA frame; returns the offset of the next one, or -1 if more input is
   * needed.
   */
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

/**
 * The field block fragment of a HEADERS or CONTINUATION frame (RFC 9113, 6.2).
 * @throws Http2Error if padding or priority exceed the frame
 */
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

/** The same for a HEADERS frame. */
export function headersDependOnThemselves(flags: number, stream: number, content: Buffer): boolean {
  return (flags & WITH_PRIORITY) !== 0 && dependsOnItself(stream, content, (flags & PADDED) === 0 ? 0 : 1);
}
