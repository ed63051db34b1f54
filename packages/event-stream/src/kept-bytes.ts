import { Buffer } from "node:buffer";

const EMPTY = Buffer.alloc(0);
const FIRST_ROOM_BYTES = 1024;

/** Bytes of something that arrives in pieces, the first `limitBytes` of them kept. */
export class KeptBytes {
  /** Bytes that came, kept or not. */
  sizeBytes = 0;
  readonly #limitBytes: number;
  /** A single piece is referred to; more are copied here, so that many tiny ones cost what they hold. */
  #bytes: Buffer = EMPTY;
  #keptBytes = 0;
  #isOwn = false;

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  get isCut(): boolean {
    return this.#keptBytes < this.sizeBytes;
  }

  add(piece: Buffer): void {
    this.sizeBytes += piece.length;
    const keptBytes = Math.min(piece.length, this.#limitBytes - this.#keptBytes);
    if (keptBytes <= 0) return;
    const kept = keptBytes === piece.length ? piece : piece.subarray(0, keptBytes);
    if (this.#keptBytes === 0) {
      this.#bytes = kept;
      this.#isOwn = false;
    } else {
      this.#append(kept);
    }
    this.#keptBytes += keptBytes;
  }

  /** Returns the kept bytes and starts over. */
  take(): Buffer {
    const bytes = this.#isOwn ? this.#bytes.subarray(0, this.#keptBytes) : this.#bytes;
    this.#bytes = EMPTY;
    this.#isOwn = false;
    this.#keptBytes = 0;
    this.sizeBytes = 0;
    return bytes;
  }

  #append(piece: Buffer): void {
    const neededBytes = this.#keptBytes + piece.length;
    if (!this.#isOwn || neededBytes > this.#bytes.length) {
      const roomBytes = Math.min(Math.max(FIRST_ROOM_BYTES, 2 * neededBytes), this.#limitBytes);
      const grown = Buffer.allocUnsafe(roomBytes);
      this.#bytes.copy(grown, 0, 0, this.#keptBytes);
      this.#bytes = grown;
      this.#isOwn = true;
    }
    piece.copy(this.#bytes, this.#keptBytes);
  }
}
