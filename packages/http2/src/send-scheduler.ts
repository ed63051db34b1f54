import type { FrameBudget } from "./frame-budget.ts";
import { FRAME_BYTES } from "./frame-parser.ts";
import type { FrameWriter } from "./frame-writer.ts";
import { FIRST_WINDOW_BYTES, MAX_WINDOW_BYTES } from "./peer-settings.ts";
import type { Http2Stream } from "./stream.ts";

/** What streams send, as windows and the socket let it go: in turn, a frame each, where not all of it can. */
export class SendScheduler {
  readonly #out: FrameWriter;
  readonly #budget: FrameBudget;
  /** Streams that wait for the socket, or for the connection's window, and whose turn it is. */
  readonly #waiting: Http2Stream[] = [];
  #turn = 0;
  #windowBytes = FIRST_WINDOW_BYTES;

  constructor(out: FrameWriter, budget: FrameBudget) {
    this.#out = out;
    this.#budget = budget;
  }

  /** Sends of one stream what goes. */
  pump(stream: Http2Stream): void {
    while (stream.waitingBytes > 0 && stream.windowBytes > 0) {
      if (!this.#hasRoom) return this.#wait(stream);
      this.#sendFrame(stream);
    }
  }

  /** Sends of all what goes. */
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

  /** Ends the stream, with its last frame if that is not on its way yet. */
  end(stream: Http2Stream): void {
    if (stream.lastHandOver === this.#out.handOvers) this.#out.endAt(stream.lastPlace);
    else this.#out.data(stream.id, undefined, 0, 0);
  }

  /** The peer lets the connection send more. False: more than a window can be. */
  widen(byBytes: number): boolean {
    this.#windowBytes += byBytes;
    if (this.#windowBytes > MAX_WINDOW_BYTES) return false;
    this.pumpAll();
    return true;
  }

  /** Nothing of it is sent any more. */
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
    // Each may be answered by a wider window of the stream and one of the connection, by some peers for each kilobyte.
    this.#budget.earn(2 + ((end - start) >>> 10));
    stream.lastPlace = this.#out.data(stream.id, piece, start, end);
    stream.lastHandOver = this.#out.handOvers;
    stream.sent(end - start);
  }
}
