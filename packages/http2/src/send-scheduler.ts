import type { FrameBudget } from "./frame-budget.ts";
import { FRAME_BYTES } from "./frame-parser.ts";
import type { FrameWriter } from "./frame-writer.ts";
import { FIRST_WINDOW_BYTES, MAX_WINDOW_BYTES } from "./peer-settings.ts";
import type { Http2Stream } from "./stream.ts";

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
        this.forget(stream);
      }
    }
  }

  /** Ends the stream, on its last DATA frame if that is still buffered. */
  end(stream: Http2Stream): void {
    if (stream.lastFlushCount === this.#out.flushCount) this.#out.endAt(stream.lastPlace);
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
  forget(stream: Http2Stream): void {
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
    stream.lastPlace = this.#out.data(stream.id, piece, start, end);
    stream.lastFlushCount = this.#out.flushCount;
    stream.sent(end - start);
  }
}
