/** Pieces from this size on are kept as they came: what else they hold on to is little next to them. */
const LARGE_PIECE_BYTES = 8192;
const FIRST_MEMORY_BYTES = 4096;
const MAX_MEMORY_BYTES = 65_536;

/**
 * The pieces of a body while it streams. Small ones may lie in memory that they share with the bytes of others, 64 KB for a
 * few of them; a stream of events would hold on to a lot of that, for hours. So they gather in memory of their own from the second
 * one on: most bodies come in one piece and are gone with their exchange.
 */
export class KeptPieces {
  #pieces: Buffer[] = [];
  /** Where the last of the pieces lies, if it was gathered; there may be room behind it. */
  #memory: Buffer | undefined;

  /** The bytes so far, in order. */
  get list(): readonly Buffer[] {
    return this.#pieces;
  }

  /** Keeps a piece, by reference or by a copy; it must not be changed afterwards. */
  add(piece: Buffer): void {
    const last = this.#pieces.at(-1);
    if (last === undefined || piece.length >= LARGE_PIECE_BYTES) {
      this.#memory = undefined;
      this.#pieces.push(piece);
      return;
    }
    const memory = this.#memory;
    if (memory !== undefined && last.length + piece.length <= memory.length) this.#append(memory, last.length, piece);
    else if (memory === undefined && last.length < LARGE_PIECE_BYTES) this.#gather(last, piece);
    else this.#begin(piece);
  }

  /** Gives the pieces away. */
  take(): readonly Buffer[] {
    const pieces = this.#pieces;
    this.#pieces = [];
    this.#memory = undefined;
    return pieces;
  }

  #append(memory: Buffer, start: number, piece: Buffer): void {
    piece.copy(memory, start);
    this.#pieces[this.#pieces.length - 1] = memory.subarray(0, start + piece.length);
  }

  #gather(first: Buffer, second: Buffer): void {
    const memory = memoryFor(first.length + second.length, FIRST_MEMORY_BYTES);
    first.copy(memory);
    this.#memory = memory;
    this.#append(memory, first.length, second);
  }

  #begin(piece: Buffer): void {
    const memory = memoryFor(piece.length, 2 * (this.#memory?.length ?? FIRST_MEMORY_BYTES / 2));
    this.#memory = memory;
    this.#pieces.push(memory);
    this.#append(memory, 0, piece);
  }
}

function memoryFor(sizeBytes: number, requestedBytes: number): Buffer {
  return Buffer.allocUnsafeSlow(Math.max(sizeBytes, Math.min(requestedBytes, MAX_MEMORY_BYTES)));
}
