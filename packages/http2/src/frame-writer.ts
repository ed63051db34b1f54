import { PooledWriter, type ByteSocket } from "@headworks/sockets";
import {
  ACK,
  CONTINUATION,
  DATA,
  END_HEADERS,
  END_STREAM,
  GOAWAY,
  HEADERS,
  PING,
  RST_STREAM,
  SETTINGS,
  WINDOW_UPDATE,
} from "./codes.ts";
import { FRAME_BYTES, FRAME_HEAD_BYTES } from "./frame-parser.ts";
import { PREFACE } from "./preface.ts";

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

  /** Number of flushes to the socket. */
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

  settingsTaken(): void {
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

  /**
   * Writes one DATA frame without END_STREAM, or the end alone; returns its offset, valid until {@link flushCount}
   * changes.
   */
  data(stream: number, piece: Buffer | undefined, start: number, end: number): number {
    const at = this.#begin(DATA, piece === undefined ? END_STREAM : 0, stream, end - start);
    piece?.copy(this.#out.pooledBuffer, at, start, end);
    return at - FRAME_HEAD_BYTES;
  }

  /** Sets END_STREAM on the frame at this offset. */
  endAt(place: number): void {
    this.#out.pooledBuffer[place + 4] = END_STREAM;
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
