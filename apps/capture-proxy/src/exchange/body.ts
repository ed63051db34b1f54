import { KeptPieces } from "./kept-pieces.ts";

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
