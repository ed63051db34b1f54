import { CR, FIELD_VALUE, LF, SP } from "./characters.ts";

const MAX_BYTES = 65_536;

const BLOCK_BYTES = 2_048;

const memory = new ArrayBuffer(MAX_BYTES + 4);

const bytes = Buffer.from(memory);

const words = new Int32Array(memory);

const MIN_HOLD_BYTES = 512;

/**
 * Finds the end of a head or trailer section in arbitrarily split input. In the usual case, a whole head inside one
 * chunk, this costs one pass over its words; a split head is copied and each byte examined once, so total work is
 * linear for any split.
 */
export class HeadCollector {
  /**
   * The collected bytes as latin1, set when a call returned an offset: up to the empty line or, in strict mode, up to
   * the first byte invalid in any head. The latter does not end with an empty line, so parsing fails at the first
   * error in reading order without waiting for the rest.
   */
  text = "";
  /** The text contains only field-value characters and CR LF pairs. */
  isClean = false;
  /** The limit was exceeded before the end was found. */
  overflowed = false;
  readonly #limitBytes: number;
  readonly #toleratesLines: boolean;
  #held: Buffer | undefined;
  #heldBytes = 0;
  #lineBytes = 0;
  #afterCr = false;

  /** @param toleratesLines  LF alone ends a line, and control characters are left to the parser */
  constructor(limitBytes: number, toleratesLines: boolean) {
    this.#limitBytes = limitBytes;
    this.#toleratesLines = toleratesLines;
  }

  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** The buffered byte at `index`, or -1. */
  heldByte(index: number): number {
    return index < this.#heldBytes ? (this.#held?.[index] ?? -1) : -1;
  }

  /** Everything received of the current head, in latin1. */
  get seen(): string {
    return this.text === "" ? (this.#held?.toString("latin1", 0, this.#heldBytes) ?? "") : this.text;
  }

  reset(): void {
    this.text = "";
    this.isClean = false;
    this.overflowed = false;
    this.#held = undefined;
    this.#heldBytes = 0;
    this.#lineBytes = 0;
    this.#afterCr = false;
  }

  /**
   * Fast path without buffered bytes: takes a whole clean head from `offset`. Returns the offset behind it with `text`
   * set, or -1 with nothing taken.
   */
  takeClean(chunk: Buffer, offset: number): number {
    const end = cleanHeadEnd(chunk, offset, this.#limitBytes);
    if (end < 0) return -1;
    this.text = chunk.toString("latin1", offset, end);
    this.isClean = true;
    return end;
  }

  /**
   * Slow path: takes bytes up to the first empty line. Returns the offset behind it with `text` set, or -1 if more
   * input is needed or the limit was exceeded (`overflowed`).
   */
  take(chunk: Buffer, offset: number): number {
    const stop = Math.min(chunk.length, offset + this.#limitBytes - this.#heldBytes);
    const end = this.#toleratesLines ? this.#scanTolerant(chunk, offset, stop) : this.#scanStrict(chunk, offset, stop);
    if (end < 0) {
      this.#hold(chunk, offset, stop);
      this.overflowed = stop < chunk.length;
      return -1;
    }
    if (this.#heldBytes === 0) {
      this.text = chunk.toString("latin1", offset, end);
    } else {
      this.#hold(chunk, offset, end);
      this.text = this.#held?.toString("latin1", 0, this.#heldBytes) ?? "";
    }
    return end;
  }

  #scanStrict(chunk: Buffer, offset: number, stop: number): number {
    for (let at = offset; at < stop; at++) {
      const byte = chunk[at] ?? 0;
      if (this.#afterCr) {
        this.#afterCr = false;
        this.isClean = byte === LF;
        if (!this.isClean || this.#lineBytes === 0) return at + 1;
        this.#lineBytes = 0;
      } else if (byte === CR) {
        this.#afterCr = true;
      } else if (FIELD_VALUE[byte] === 1) {
        this.#lineBytes++;
      } else {
        this.isClean = false;
        return at + 1;
      }
    }
    return -1;
  }

  #scanTolerant(chunk: Buffer, offset: number, stop: number): number {
    for (let at = offset; at < stop; at++) {
      const byte = chunk[at];
      if (byte === LF) {
        if (this.#lineBytes === 0) return at + 1;
        this.#lineBytes = 0;
      } else if (byte !== CR) {
        this.#lineBytes++;
      }
    }
    return -1;
  }

  #hold(chunk: Buffer, from: number, to: number): void {
    const neededBytes = this.#heldBytes + to - from;
    let held = this.#held;
    if (held === undefined || held.length < neededBytes) {
      const grown = Buffer.allocUnsafeSlow(Math.max(MIN_HOLD_BYTES, neededBytes, 2 * this.#heldBytes));
      held?.copy(grown, 0, 0, this.#heldBytes);
      held = grown;
      this.#held = grown;
    }
    chunk.copy(held, this.#heldBytes, from, to);
    this.#heldBytes = neededBytes;
  }
}

/**
 * Finds a head that lies whole in `chunk` from `start` and is clean: only field-value characters and CR LF pairs up to
 * the first empty line. Returns the offset behind that line, or -1 if the head is not whole, not clean, or longer than
 * `maxBytes` (or 64 KiB). In a clean head the parser can search for line ends natively, which halves its cost. Four
 * bytes are tested at a time: the expression is zero exactly if none is below 0x20 or equal to 0x7f. Only words with a
 * line end (or a tab, or worse) are examined byte by byte.
 */
export function cleanHeadEnd(chunk: Buffer, start: number, maxBytes: number): number {
  const available = Math.min(chunk.length - start, maxBytes, MAX_BYTES);
  let copied = 0;
  let wordIndex = 0;
  let lineStart = 0;
  let lastCr = -1;
  while (copied < available) {
    const size = Math.min(available - copied, BLOCK_BYTES);
    chunk.copy(bytes, copied, start + copied, start + copied + size);
    copied += size;
    for (let padding = copied; padding < copied + 3; padding++) bytes[padding] = SP;
    for (const wordEnd = (copied + 3) >> 2; wordIndex < wordEnd; wordIndex++) {
      const word = words[wordIndex] ?? 0;
      const deletes = word ^ 0x7f7f7f7f;
      const flags = ((word - 0x20202020) & ~word) | ((deletes - 0x01010101) & ~deletes);
      if ((flags & 0x80808080) === 0) continue;
      const behind = 4 * wordIndex + 4;
      for (let at = behind - 4; at < behind; at++) {
        const byte = bytes[at] ?? 0;
        if (FIELD_VALUE[byte] === 1) continue;
        if (byte === CR && lastCr < lineStart) {
          lastCr = at;
        } else if (byte === LF && lastCr >= lineStart && lastCr === at - 1) {
          if (lastCr === lineStart) return start + at + 1;
          lineStart = at + 1;
        } else {
          return -1;
        }
      }
    }
  }
  return -1;
}
