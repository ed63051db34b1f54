import { randomFillSync } from "node:crypto";
import { closeSync, openSync, rmSync, statfsSync, statSync, writeSync } from "node:fs";

/** Below this much free space a disk is tight. */
const TIGHT_BYTES = 1_073_741_824;
/** A tight disk counts as roomy again above this (hysteresis). */
const ROOMY_BYTES = 1_342_177_280;
const RESERVE_BYTES = 33_554_432;
/** Maximum part of the free space that is reserved. */
const SHARE_OF_FREE = 1 / 8;
const PIECE_BYTES = 131_072;

export type FreeBytes = (path: string) => number;

/**
 * A file that reserves space on a tight disk. Deleting from a database needs space first: without the reserve a full
 * disk could not be cleared.
 */
export class DiskReserve {
  readonly #path: string;
  readonly #freeBytes: FreeBytes;
  #heldBytes: number;
  #isTight = false;

  /** @param path may exist from an earlier run */
  constructor(path: string, freeBytes: FreeBytes = freeBytesAt) {
    this.#path = path;
    this.#freeBytes = freeBytes;
    this.#heldBytes = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  }

  /** As of the last {@link look}. */
  get isTight(): boolean {
    return this.#isTight;
  }

  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** Measures free space; reserves on a tight disk, releases otherwise. */
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

  /** Returns false if nothing was reserved. */
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
    // Grow only when the reserve at least doubles: earlier there may have been almost no free space.
    if (bytes < PIECE_BYTES || bytes < 2 * this.#heldBytes) return;
    this.release();
    // Random bytes are incompressible, also for compressing file systems.
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
      // Less space than reported: keep what was written.
    } finally {
      closeSync(file);
    }
  }
}

function freeBytesAt(path: string): number {
  const { bsize, bavail, blocks } = statfsSync(path);
  // Some file systems report no block counts.
  return blocks === 0 ? Number.POSITIVE_INFINITY : bsize * bavail;
}
