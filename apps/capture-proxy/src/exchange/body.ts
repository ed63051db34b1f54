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

/**
 * Sees a body while it streams by. It is called on the way of the bytes: it must be quick, and it can hold nothing back.
 * One that throws is told so once and not called again; the body goes on.
 */
export interface BodyWatcher {
  /** Bytes as they came, still content-coded, without the framing of the transfer; they must not be changed. */
  piece(bytes: Buffer): void;
  /** No more pieces come: the body is complete, or its exchange ended before that. Called once. */
  end(): void;
  /**
   * A rule put another body in the place of this one, nothing of which was passed on: the pieces from here on are those of
   * the new body. Without this method watching ends there.
   */
  replaced?(): void;
  /** One of the methods above threw this. */
  failed?(error: unknown): void;
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
  readonly #pieces = new KeptPieces();
  #spooled: SpooledBody | undefined;
  #givenUp = false;
  #watchers: readonly BodyWatcher[] | undefined;

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
    return this.#pieces.list;
  }

  /** Set when the body went to the spool. */
  get spooled(): SpooledBody | undefined {
    return this.#spooled;
  }

  /** Shows the pieces from here on to `watcher`, stored or not; several may watch. */
  watch(watcher: BodyWatcher): void {
    this.#watchers = this.#watchers === undefined ? [watcher] : [...this.#watchers, watcher];
  }

  /** Takes note of a piece; it is kept by reference and must not be changed afterwards. */
  add(piece: Buffer): void {
    this.sizeBytes += piece.length;
    if (this.#watchers !== undefined) this.#tell((watcher) => watcher.piece(piece));
    if (this.#spool === undefined || this.#givenUp) return;
    const roomBytes = this.#limitBytes - this.storedBytes;
    if (roomBytes <= 0) return;
    const kept = piece.length <= roomBytes ? piece : piece.subarray(0, roomBytes);
    this.storedBytes += kept.length;
    if (this.#spooled === undefined) {
      this.#pieces.add(kept);
      if (this.storedBytes > INLINE_BODY_BYTES) this.#moveToSpool(this.#spool);
      return;
    }
    if (!this.#spooled.write(kept)) this.#giveUp();
  }

  /** The body ended, or its exchange did. */
  end(): void {
    this.#spooled?.end();
    this.#endWatching();
  }

  /** Nothing of this body is wanted any more, and `successor` is to be the body instead: whoever watched it watches that. */
  replaceBy(successor: BodyCapture): void {
    this.discard();
    const watchers = this.#watchers;
    if (watchers === undefined) return;
    this.#watchers = watchers.filter((watcher) => watcher.replaced === undefined);
    this.#endWatching();
    successor.#watchers = watchers.filter((watcher) => watcher.replaced !== undefined);
    successor.#tell((watcher) => watcher.replaced?.());
  }

  /** Nothing of the body is wanted any more. */
  discard(): void {
    this.#spooled?.discard();
    this.#spooled = undefined;
    this.#pieces.take();
  }

  #endWatching(): void {
    if (this.#watchers === undefined) return;
    this.#tell((watcher) => watcher.end());
    this.#watchers = undefined;
  }

  #tell(what: (watcher: BodyWatcher) => void): void {
    for (const watcher of this.#watchers ?? []) {
      try {
        what(watcher);
      } catch (error) {
        this.#watchers = this.#watchers?.filter((other) => other !== watcher);
        tellFault(watcher, error);
      }
    }
  }

  #moveToSpool(spool: BodySpool): void {
    const spooled = spool.open();
    if (spooled === undefined) return this.#giveUp();
    this.#spooled = spooled;
    for (const piece of this.#pieces.take()) if (!spooled.write(piece)) return this.#giveUp();
  }

  #giveUp(): void {
    this.#givenUp = true;
    this.discard();
    this.storedBytes = 0;
  }
}

/** What a watcher does about its own fault may fail as well; that is where it ends. */
function tellFault(watcher: BodyWatcher, error: unknown): void {
  try {
    watcher.failed?.(error);
  } catch {
    // It was told.
  }
}

function memoryFor(sizeBytes: number, requestedBytes: number): Buffer {
  return Buffer.allocUnsafeSlow(Math.max(sizeBytes, Math.min(requestedBytes, MAX_MEMORY_BYTES)));
}
