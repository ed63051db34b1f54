/** Pieces of at least this size are kept by reference: the rest of the memory they pin is comparatively small. */
const LARGE_PIECE_BYTES = 8192;
const FIRST_MEMORY_BYTES = 4096;
const MAX_MEMORY_BYTES = 65_536;

/**
 * The pieces of a streaming body. Small pieces may be slices of a shared 64 KB block, which a long event stream would
 * pin for hours, so from the second one on they are copied into memory of their own. Most bodies have one piece and
 * end with their exchange.
 */
export class KeptPieces {
  #pieces: Buffer[] = [];
  /** Memory of the last piece, if it was copied; it may have room left. */
  #memory: Buffer | undefined;

  get list(): readonly Buffer[] {
    return this.#pieces;
  }

  /** Keeps a piece by reference or copy; it must not be changed afterwards. */
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

  /** Removes and returns the pieces. */
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

/** The destination of a queue of body bytes. */
export interface Receiver {
  /** Writes bytes; false on backpressure, until {@link BodyQueue.resume}. */
  take(piece: Buffer): boolean;
  /** Bytes left the queue, which may be low or empty now. */
  moved(): void;
}

/** A queue of body bytes on their way to a receiver, in order. */
export interface BodyQueue {
  readonly isEmpty: boolean;
  /** The source should supply more. */
  readonly isLow: boolean;
  /** Queues bytes by reference. */
  add(piece: Buffer): void;
  /** The receiver drained. */
  resume(): void;
  /** Discards the queue. */
  close(): void;
}

/**
 * Changes, delays or drops what passes it. Within `add` and `end` it may call `take`, but not `moved`: the caller looks
 * itself.
 */
export interface BodyFilter extends BodyQueue {
  /** It waits for a decision, and neither for the source nor for the receiver. */
  readonly isDeciding: boolean;
  /** The source supplied everything. */
  end(): void;
}

export interface FilterReceiver extends Receiver {
  /** Ends the exchange because of a defect. */
  failed(error: unknown): void;
}

export type OpenFilter = (to: FilterReceiver) => BodyFilter;

export type BodyState = "none" | "complete" | "truncated" | "not_stored";

/** A body written to the store piece by piece, because it is too large for memory. */
export interface SpooledBody {
  /** Id of the body in the store, referenced by entries. */
  readonly id: number;
  /** Queues a piece. False: the backlog is full and the body is dropped. */
  write(piece: Buffer): boolean;
  end(): void;
  /** The exchange will not be stored; written pieces may be deleted. */
  discard(): void;
}

/** Stores large bodies while they stream. */
export interface BodySpool {
  /** Undefined when the store is too far behind for another large body. */
  open(): SpooledBody | undefined;
}

/**
 * Observes a body while it streams. It is called on the data path: it must be quick and cannot delay the body. After
 * an exception it is not called again; the body continues.
 */
export interface BodyWatcher {
  /** Content-coded bytes without transfer coding; they must not be changed. */
  piece(bytes: Buffer): void;
  /** Called once: the body is complete, or its exchange ended early. */
  end(): void;
  /** A rule replaced the body before it was forwarded. Without this method, watching ends here. */
  replaced?(): void;
  /** One of the methods above threw this error. */
  failed?(error: unknown): void;
}

/** Bodies up to this size are stored together with their entry. */
export const INLINE_BODY_BYTES = 262_144;

/**
 * Captures the first `limitBytes` of a body without delaying it: small bodies stay in memory, larger ones go to the
 * spool, and if the spool cannot keep up the body is marked as not stored.
 */
export class BodyCapture {
  /** All bytes, stored or not. */
  sizeBytes = 0;
  storedBytes = 0;
  readonly #limitBytes: number;
  readonly #spool: BodySpool | undefined;
  readonly #pieces = new KeptPieces();
  #spooled: SpooledBody | undefined;
  #givenUp = false;
  #watchers: readonly BodyWatcher[] | undefined;

  /** Without `spool` bytes are only counted. */
  constructor(limitBytes: number, spool: BodySpool | undefined) {
    this.#limitBytes = limitBytes;
    this.#spool = spool;
  }

  get state(): BodyState {
    if (this.sizeBytes === 0) return "none";
    if (this.#givenUp || this.#spool === undefined) return "not_stored";
    return this.storedBytes < this.sizeBytes ? "truncated" : "complete";
  }

  /** The stored bytes of a body kept in memory. */
  get pieces(): readonly Buffer[] {
    return this.#pieces.list;
  }

  get spooled(): SpooledBody | undefined {
    return this.#spooled;
  }

  /** Adds a watcher for the pieces from here on, stored or not. */
  watch(watcher: BodyWatcher): void {
    this.#watchers = this.#watchers === undefined ? [watcher] : [...this.#watchers, watcher];
  }

  /** Adds a piece by reference; it must not be changed afterwards. */
  add(piece: Buffer): void {
    this.sizeBytes += piece.length;
    if (this.#watchers !== undefined) this.#notify((watcher) => watcher.piece(piece));
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
    if (!this.#spooled.write(kept)) this.#truncate();
  }

  /** The body or its exchange ended. */
  end(): void {
    this.#spooled?.end();
    this.#endWatching();
  }

  /** Discards this capture and moves its watchers to `successor`. */
  replaceBy(successor: BodyCapture): void {
    this.discard();
    const watchers = this.#watchers;
    if (watchers === undefined) return;
    this.#watchers = watchers.filter((watcher) => watcher.replaced === undefined);
    this.#endWatching();
    successor.#watchers = watchers.filter((watcher) => watcher.replaced !== undefined);
    successor.#notify((watcher) => watcher.replaced?.());
  }

  discard(): void {
    this.#spooled?.discard();
    this.#spooled = undefined;
    this.#pieces.take();
  }

  #endWatching(): void {
    if (this.#watchers === undefined) return;
    this.#notify((watcher) => watcher.end());
    this.#watchers = undefined;
  }

  #notify(what: (watcher: BodyWatcher) => void): void {
    for (const watcher of this.#watchers ?? []) {
      try {
        what(watcher);
      } catch (error) {
        this.#watchers = this.#watchers?.filter((other) => other !== watcher);
        reportFault(watcher, error);
      }
    }
  }

  #moveToSpool(spool: BodySpool): void {
    const spooled = spool.open();
    if (spooled === undefined) return this.#truncate();
    this.#spooled = spooled;
    for (const piece of this.#pieces.take()) if (!spooled.write(piece)) return this.#truncate();
  }

  #truncate(): void {
    this.#givenUp = true;
    this.discard();
    this.storedBytes = 0;
  }
}

/** A watcher's error handler may fail as well; that error is ignored. */
function reportFault(watcher: BodyWatcher, error: unknown): void {
  try {
    watcher.failed?.(error);
  } catch {}
}

function memoryFor(sizeBytes: number, requestedBytes: number): Buffer {
  return Buffer.allocUnsafeSlow(Math.max(sizeBytes, Math.min(requestedBytes, MAX_MEMORY_BYTES)));
}
