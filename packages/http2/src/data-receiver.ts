import { END_STREAM, PROTOCOL_ERROR, STREAM_CLOSED } from "./codes.ts";
import type { FrameBudget } from "./frame-budget.ts";
import type { FrameWriter } from "./frame-writer.ts";
import { ConnectionWindow } from "./receive-window.ts";
import type { Http2Stream } from "./stream.ts";

/** Takes DATA frames in (RFC 9113, 6.1): counts them against windows, and gives their content to their streams. */
export class DataReceiver {
  readonly #out: FrameWriter;
  readonly #budget: FrameBudget;
  readonly #isServer: boolean;
  readonly #window = new ConnectionWindow();
  /** The stream of the frame under way, whether it ends there, and how much of it is no content. */
  #stream: Http2Stream | undefined;
  #isLast = false;
  #restBytes = 0;

  constructor(out: FrameWriter, budget: FrameBudget, isServer: boolean) {
    this.#out = out;
    this.#budget = budget;
    this.#isServer = isServer;
  }

  /**
   * A frame begins; `stream` is undefined when it is over.
   * @throws Http2Error when it is more than the connection's window
   */
  begin(stream: Http2Stream | undefined, flags: number, sizeBytes: number): void {
    const byBytes = this.#window.came(sizeBytes);
    if (byBytes > 0) this.#out.widen(0, byBytes);
    if (stream?.hasReceivedEnd === true) stream.fail(STREAM_CLOSED, "DATA behind its end");
    const isLast = (flags & END_STREAM) !== 0;
    // Of a stream that is over nothing is moved, but its peer may not know yet.
    if (sizeBytes === 0 && (!isLast || stream === undefined)) this.#budget.spend(1, "empty DATA");
    else if (stream !== undefined) this.#budget.earn(1);
    const isTaken = stream !== undefined && !stream.hasReceivedEnd && stream.frameCame(sizeBytes);
    this.#stream = isTaken ? stream : undefined;
    this.#isLast = isLast;
    this.#restBytes = sizeBytes;
  }

  piece(piece: Buffer): void {
    const stream = this.#stream;
    if (stream === undefined) return;
    this.#restBytes -= piece.length;
    if (!this.#isServer && !stream.hasHead) return stream.fail(PROTOCOL_ERROR, "DATA before a final response");
    stream.pieceCame(piece);
  }

  end(): void {
    const stream = this.#stream;
    this.#stream = undefined;
    if (stream === undefined) return;
    if (this.#restBytes > 0) stream.taken(this.#restBytes);
    if (!this.#isLast) return;
    if (!this.#isServer && !stream.hasHead) stream.fail(PROTOCOL_ERROR, "DATA before a final response");
    else stream.endCame(undefined);
  }
}
