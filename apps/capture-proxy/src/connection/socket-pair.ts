import { Duplex } from "node:stream";
import type { ByteSocket } from "@headworks/sockets";

/**
 * Two ends in memory that behave as the two ends of a TCP connection: half-closed ends, backpressure, a break when one
 * is destroyed before it was ended. Bytes never arrive within the call that wrote them.
 */
export function socketPair(): [ByteSocket, ByteSocket] {
  const one = new PairEnd();
  const other = new PairEnd();
  one.join(other);
  other.join(one);
  return [one, other];
}

class PairEnd extends Duplex implements ByteSocket {
  #peer: PairEnd | undefined;
  /** The peer's write that waits until this end is read. */
  #written: (() => void) | undefined;
  #isBroken = false;

  constructor() {
    super({ allowHalfOpen: true });
  }

  /** To be called once, before anything is written. */
  join(peer: PairEnd): void {
    this.#peer = peer;
  }

  destroySoon(): void {
    if (this.writable) this.end();
    if (this.writableFinished) this.destroy();
    else this.once("finish", () => this.destroy());
  }

  resetAndDestroy(): void {
    this.#isBroken = true;
    this.destroy();
  }

  override _read(): void {
    const written = this.#written;
    this.#written = undefined;
    written?.();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    setImmediate(() => {
      if (this.#peer?.destroyed === false) return this.#peer.deliver(chunk, done);
      done();
      // Nobody is there any more, which a network would tell by a reset.
      this.destroy();
    });
  }

  override _final(done: () => void): void {
    setImmediate(() => {
      if (this.#peer?.destroyed === false) this.#peer.push(null);
      done();
    });
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    const isWhole = this.writableFinished && !this.#isBroken;
    this._read();
    if (!isWhole) setImmediate(() => this.#peer?.destroy());
    done(error);
  }

  /** Bytes of the peer; `done` is called when there is room for more. */
  deliver(chunk: Buffer, done: () => void): void {
    if (this.push(chunk)) done();
    else this.#written = done;
  }
}
