import { Duplex } from "node:stream";
import { CANCEL, NO_ERROR } from "./codes.ts";
import type { Http2Stream, StreamHandler } from "./stream.ts";

/** Bytes that wait for the peer's window before the writer is asked to wait. */
const SEND_BUFFER_BYTES = 65_536;

interface StreamSocketOptions {
  /** What a reset of ours says. */
  readonly resetCode?: number;
  /** A reset of the peer's is an error, and not only an end. */
  readonly resetsAreErrors?: boolean;
}

/**
 * A stream as the socket of the protocol that was switched to on it (RFC 8441, 5), or of a tunnel (RFC 9113, 8.5): ending it
 * ends a side. Paused, as sockets are, until somebody reads.
 */
export class StreamSocket extends Duplex implements StreamHandler {
  readonly #stream: Http2Stream;
  readonly #resetCode: number;
  readonly #resetsAreErrors: boolean;
  #written: (() => void) | undefined;
  #hasEnded = false;
  #isReset = false;

  constructor(stream: Http2Stream, { resetCode = CANCEL, resetsAreErrors = false }: StreamSocketOptions = {}) {
    super({ allowHalfOpen: true });
    this.#stream = stream;
    this.#resetCode = resetCode;
    this.#resetsAreErrors = resetsAreErrors;
    stream.handler = this;
    stream.carriesTunnel = true;
    // As over TCP: what was sent before the end is read, whatever becomes of the connection.
    stream.dropsUntold = false;
  }

  onSection(): void {
    // There is no second head.
  }

  onData(piece: Buffer): void {
    if (!this.push(piece)) this.#stream.hold();
  }

  onTrailers(): void {
    // Nothing that is carried has any.
  }

  onEnd(): void {
    this.#hasEnded = true;
    this.push(null);
  }

  onDrain(): void {
    const written = this.#written;
    this.#written = undefined;
    written?.();
  }

  onClose(code: number): void {
    if (this.#hasEnded && code === NO_ERROR) return this.#endWriting();
    // Before its end even a reset without an error is a break.
    this.destroy(this.#resetsAreErrors ? new Error("The other side reset the stream") : undefined);
  }

  /** Ends the writing side and destroys the rest once everything written has left. */
  destroySoon(): void {
    if (this.destroyed) return;
    if (this.writableFinished) return void this.destroy();
    this.once("finish", () => this.destroy());
    if (!this.writableEnded) this.end();
  }

  /** The peer sees a break at once. */
  resetAndDestroy(): void {
    this.#isReset = true;
    this.destroy();
  }

  override _read(): void {
    if (this.#stream.isHeld) this.#stream.release();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, written: () => void): void {
    this.#stream.write(chunk);
    if (this.#stream.isClosed || this.#stream.hasRoom(SEND_BUFFER_BYTES)) written();
    else this.#written = written;
  }

  override _final(finished: () => void): void {
    this.#stream.end();
    this.#whenSent(finished);
  }

  override _destroy(error: Error | null, destroyed: (error: Error | null) => void): void {
    const { hasSentEnd, hasReceivedEnd } = this.#stream;
    const isEnded = hasSentEnd && (hasReceivedEnd || error === null);
    this.#stream.reset(isEnded && !this.#isReset ? NO_ERROR : this.#resetCode);
    destroyed(error);
  }

  /** Nothing that is written arrives any more. What came can still be read; then a writer has to learn of it. */
  #endWriting(): void {
    this.onDrain();
    if (this.#stream.hasSentEnd) return;
    if (this.readableEnded) this.destroy();
    else this.once("end", () => this.destroy());
  }

  /** What waits for the peer's window is not finished yet. */
  #whenSent(finished: () => void): void {
    if (this.#stream.isClosed || this.#stream.hasRoom(1)) finished();
    else this.#written = finished;
  }
}
