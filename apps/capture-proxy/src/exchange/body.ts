/** What became of a body in the store. */
export type BodyState = "none" | "complete" | "truncated" | "not_stored";

/** A body on its way into the store piece by piece, because it is too large to be kept in memory. */
export interface SpooledBody {
  /** Names the body in the store; entries refer to it. */
  readonly id: number;
  /** Takes a piece without waiting. False: the backlog is full, the body is given up and nothing of it will be stored. */
  write(piece: Buffer): boolean;
  /** All pieces were given. */
  end(): void;
  /** The exchange will not be stored; what was written may be removed. */
  discard(): void;
}

/** Where large bodies go while they stream. */
export interface BodySpool {
  /** Undefined when storage is so far behind that another large body cannot be taken. */
  open(): SpooledBody | undefined;
}

/** Bodies up to this size are handed to the store in one piece with their entry. */
export const INLINE_BODY_BYTES = 262_144;

/**
 * Keeps a copy of a body's first `limitBytes` while it streams by. It never delays the stream: small bodies stay
 * in memory, larger ones go to the spool, and when the spool cannot follow, the body is marked as not stored.
 */
export class BodyCapture {
  /** Bytes that flowed, stored or not. */
  sizeBytes = 0;
  /** Bytes that are or will be stored. */
  storedBytes = 0;
  readonly #limitBytes: number;
  readonly #spool: BodySpool | undefined;
  #pieces: Buffer[] = [];
  #spooled: SpooledBody | undefined;
  #givenUp = false;

  /** `spool` undefined: nothing is stored, bytes are only counted. */
  constructor(limitBytes: number, spool: BodySpool | undefined) {
    this.#limitBytes = limitBytes;
    this.#spool = spool;
  }

  get state(): BodyState {
    if (this.sizeBytes === 0) return "none";
    if (this.#givenUp || this.#spool === undefined) return "not_stored";
    return this.storedBytes < this.sizeBytes ? "truncated" : "complete";
  }

  /** The stored bytes of a body that was small enough to stay in memory. */
  get pieces(): readonly Buffer[] {
    return this.#pieces;
  }

  /** Set when the body went to the spool. */
  get spooled(): SpooledBody | undefined {
    return this.#spooled;
  }

  /** Takes note of a piece; it is kept by reference and must not be changed afterwards. */
  add(piece: Buffer): void {
    this.sizeBytes += piece.length;
    if (this.#spool === undefined || this.#givenUp) return;
    const roomBytes = this.#limitBytes - this.storedBytes;
    if (roomBytes <= 0) return;
    const kept = piece.length <= roomBytes ? piece : piece.subarray(0, roomBytes);
    this.storedBytes += kept.length;
    if (this.#spooled === undefined) {
      this.#pieces.push(kept);
      if (this.storedBytes > INLINE_BODY_BYTES) this.#moveToSpool(this.#spool);
      return;
    }
    if (!this.#spooled.write(kept)) this.#giveUp();
  }

  /** The body ended, or its exchange did. */
  end(): void {
    this.#spooled?.end();
  }

  /** Nothing of the body is wanted any more. */
  discard(): void {
    this.#spooled?.discard();
    this.#spooled = undefined;
    this.#pieces = [];
  }

  #moveToSpool(spool: BodySpool): void {
    const spooled = spool.open();
    if (spooled === undefined) return this.#giveUp();
    this.#spooled = spooled;
    const pieces = this.#pieces;
    this.#pieces = [];
    for (const piece of pieces) if (!spooled.write(piece)) return this.#giveUp();
  }

  #giveUp(): void {
    this.#givenUp = true;
    this.discard();
    this.storedBytes = 0;
  }
}
