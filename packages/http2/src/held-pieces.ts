/** Pieces below this are copied together: each would keep a whole read of its socket, and be a thing of its own. */
const SMALL_BYTES = 4096;
const BLOCK_BYTES = 16_384;

/** Content that arrived and nobody takes yet. Its size is bounded by whoever lets it arrive. */
export class HeldPieces {
  readonly #pieces: Buffer[] = [];
  /** Memory behind the last piece, if that is one of ours. */
  #spare: Buffer | undefined;

  get isEmpty(): boolean {
    return this.#pieces.length === 0;
  }

  push(piece: Buffer): void {
    if (piece.length >= SMALL_BYTES) {
      this.#pieces.push(piece);
      this.#spare = undefined;
      return;
    }
    if (this.#spare === undefined || this.#spare.length < piece.length) {
      this.#spare = Buffer.allocUnsafeSlow(BLOCK_BYTES);
      this.#pieces.push(this.#spare.subarray(0, 0));
    }
    piece.copy(this.#spare);
    const last = this.#pieces.length - 1;
    const { buffer, byteOffset, length } = this.#pieces[last] ?? this.#spare;
    this.#pieces[last] = Buffer.from(buffer, byteOffset, length + piece.length);
    this.#spare = this.#spare.subarray(piece.length);
  }

  shift(): Buffer | undefined {
    const piece = this.#pieces.shift();
    if (this.isEmpty) this.#spare = undefined;
    return piece;
  }

  clear(): void {
    this.#pieces.length = 0;
    this.#spare = undefined;
  }
}
