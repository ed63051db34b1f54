import { randomFillSync } from "node:crypto";
import { closeSync, openSync, rmSync, statfsSync, statSync, writeSync } from "node:fs";

/** A disk with less free space is tight; */
const TIGHT_BYTES = 1_073_741_824;
/** until it has as much as this again. */
const ROOMY_BYTES = 1_342_177_280;
/** The most that is set aside, */
const RESERVE_BYTES = 33_554_432;
/** and at most this part of what is free. */
const SHARE_OF_FREE = 1 / 8;
const PIECE_BYTES = 131_072;

/** How much of a file system is free for whoever asks. */
export type FreeBytes = (path: string) => number;

/**
 * Space that is set aside while a disk is tight, in a file of its own. Removing anything from a database needs space first:
 * on a disk that is full nothing could be cleared without it, and it would stay full.
 */
export class DiskReserve {
  readonly #path: string;
  readonly #freeBytes: FreeBytes;
  #heldBytes: number;
  #isTight = false;

  /** @param path  of the file; it may be there from an earlier run */
  constructor(path: string, freeBytes: FreeBytes = freeBytesAt) {
    this.#path = path;
    this.#freeBytes = freeBytes;
    this.#heldBytes = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  }

  /** Whether the disk was tight when last looked at. */
  get isTight(): boolean {
    return this.#isTight;
  }

  /** What is set aside now. */
  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** Looks at the disk: sets space aside while it is tight, and gives it back otherwise. */
  look(directory: string): void {
    let free: number;
    try {
      free = this.#freeBytes(directory);
    } catch {
      return;
    }
    this.#isTight = free < (this.#isTight ? ROOMY_BYTES : TIGHT_BYTES);
    if (!this.#isTight) this.release();
    else this.#hold(Math.min(RESERVE_BYTES, (free + this.#heldBytes) * SHARE_OF_FREE));
  }

  /** Gives back what is set aside; false when there was nothing. */
  release(): boolean {
    if (this.#heldBytes === 0) return false;
    try {
      rmSync(this.#path, { force: true });
    } catch {
      return false;
    }
    this.#heldBytes = 0;
    return true;
  }

  #hold(bytes: number): void {
    // What was set aside when there was next to nothing can be more by now.
    if (bytes < PIECE_BYTES || bytes < 2 * this.#heldBytes) return;
    this.release();
    // Bytes that no file system can make smaller.
    const piece = randomFillSync(Buffer.allocUnsafe(PIECE_BYTES));
    let file: number;
    try {
      file = openSync(this.#path, "w", 0o600);
    } catch {
      return;
    }
    try {
      while (this.#heldBytes + PIECE_BYTES <= bytes) this.#heldBytes += writeSync(file, piece);
    } catch {
      // There is less than was told: what could be had is kept.
    } finally {
      closeSync(file);
    }
  }
}

function freeBytesAt(path: string): number {
  const { bsize, bavail, blocks } = statfsSync(path);
  // Some file systems do not tell.
  return blocks === 0 ? Number.POSITIVE_INFINITY : bsize * bavail;
}
