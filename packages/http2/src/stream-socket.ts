import { Duplex } from "node:stream";
import { CANCEL, NO_ERROR } from "./codes.ts";
import type { Http2Stream, StreamHandler } from "./stream.ts";

/** Bytes buffered for the peer's window before writers see backpressure. */
const SEND_BUFFER_BYTES = 65_536;

interface StreamSocketOptions {
  /** Code of our resets. */
  readonly resetCode?: number;
  /** A reset by the peer is an error rather than an end. */
  readonly resetsAreErrors?: boolean;
}

/** A stream as a socket, for a switched protocol (RFC 8441, 5) or a tunnel (RFC 9113, 8.5). Starts paused. */
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
    // Like TCP: data sent before the end is readable even after the connection is gone.
    stream.dropsUndelivered = false;
  }

  onSection(): void {
    // There is no second head.
  }

  onData(piece: Buffer): void {
    if (!this.push(piece)) this.#stream.hold();
  }

  onTrailers(): void {
    // Tunnels have no trailers.
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
    // Before its end even a reset without error is a failure.
    this.destroy(this.#resetsAreErrors ? new Error("The other side reset the stream") : undefined);
  }

  /** Ends the writing side and destroys the socket once everything written was sent. */
  destroySoon(): void {
    if (this.destroyed) return;
    if (this.writableFinished) return void this.destroy();
    this.once("finish", () => this.destroy());
    if (!this.writableEnded) this.end();
  }

  /** Closes with a reset. */
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

  /** Further writes fail. Received data stays readable; then writers see an error. */
  #endWriting(): void {
    this.onDrain();
    if (this.#stream.hasSentEnd) return;
    if (this.readableEnded) this.destroy();
    else this.once("end", () => this.destroy());
  }

  /** Delays completion while bytes wait for the peer's window. */
  #whenSent(finished: () => void): void {
    if (this.#stream.isClosed || this.#stream.hasRoom(1)) finished();
    else this.#written = finished;
  }
}
