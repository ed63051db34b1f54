import { write, writeSync } from "node:fs";

/** Lines go to the system together, so many characters at a time. */
const CHUNK_CHARACTERS = 16_384;
/** So many may wait for a reader that is slow, or for room on a disk. */
const MAX_CHARACTERS = 4_194_304;
const BUSY_MS = 50;
const RETRY_MS = 1000;
/** For so long what is left is offered to a reader that takes nothing, once the process is to end. */
const LAST_WORDS_MS = 1000;

/** The two calls of the system; tests bring others. */
interface WriteCalls {
  write(descriptor: number, bytes: Buffer, done: (error: NodeJS.ErrnoException | null, written: number) => void): void;
  writeSync(descriptor: number, bytes: Buffer): number;
}

export interface DescriptorLinesOptions {
  /** Open, and somebody else's to close, as standard output is. */
  readonly descriptor: number;
  /** It cannot be written: said once, and again only after it could be. Nothing is said of a reader that went away. */
  readonly onProblem: (error: NodeJS.ErrnoException) => void;
  /** It can be written again; so many lines were lost meanwhile. */
  readonly onRecovered: (lostLines: number) => void;
  readonly calls?: WriteCalls;
}

/**
 * Lines for an open descriptor. Writing never throws and never waits: one write is under way at a time, what comes meanwhile
 * waits in bounded memory, and what has no room is lost. A reader that went away gets nothing any more; whatever else
 * is wrong, a full disk for one, is tried again every second.
 */
export class DescriptorLines {
  readonly #options: DescriptorLinesOptions;
  readonly #calls: WriteCalls;
  /** Whole lines; the last text grows. */
  readonly #waiting: string[] = [];
  #waitingCharacters = 0;
  /** What a write is under way with, or has not taken yet. */
  #begun: Buffer | undefined;
  #isWriting = false;
  #retry: NodeJS.Timeout | undefined;
  #hasProblem = false;
  #isUnread = false;
  #lostLines = 0;

  constructor(options: DescriptorLinesOptions) {
    this.#options = options;
    this.#calls = options.calls ?? { write, writeSync };
  }

  /** Takes a line, its line end included. */
  write(line: string): void {
    if (this.#isUnread) return;
    if (this.#waitingCharacters + line.length > MAX_CHARACTERS) {
      this.#lostLines += 1;
      return;
    }
    this.#waitingCharacters += line.length;
    const last = this.#waiting.length - 1;
    const open = this.#waiting[last];
    if (open === undefined || open.length + line.length > CHUNK_CHARACTERS) this.#waiting.push(line);
    else this.#waiting[last] = open + line;
    if (!this.#isWriting && this.#retry === undefined) this.#pump();
  }

  /** Writes what waits before it returns, as far as anybody takes it within a second. For the end of the process. */
  flushSync(): void {
    const endMs = performance.now() + LAST_WORDS_MS;
    // What a write is under way with may come out yet, and twice would be worse than not.
    while (!this.#isWriting) {
      const bytes = this.#next();
      if (bytes === undefined) return;
      try {
        this.#took(this.#calls.writeSync(this.#options.descriptor, bytes));
      } catch (error) {
        if (!isBusy(error as NodeJS.ErrnoException) || performance.now() >= endMs) return;
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, BUSY_MS);
      }
    }
  }

  #next(): Buffer | undefined {
    if (this.#begun !== undefined) return this.#begun;
    const text = this.#waiting.shift();
    if (text === undefined) return undefined;
    this.#waitingCharacters -= text.length;
    return (this.#begun = Buffer.from(text));
  }

  #took(written: number): void {
    const begun = this.#begun;
    this.#begun = begun === undefined || written >= begun.length ? undefined : begun.subarray(written);
  }

  #pump(): void {
    this.#retry = undefined;
    const bytes = this.#next();
    if (bytes === undefined) return;
    this.#isWriting = true;
    this.#calls.write(this.#options.descriptor, bytes, (error, written) => {
      this.#isWriting = false;
      if (error !== null) return this.#failed(error);
      this.#took(written);
      this.#recovered();
      this.#pump();
    });
  }

  #failed(error: NodeJS.ErrnoException): void {
    if (isUnread(error)) {
      this.#isUnread = true;
      this.#waiting.length = 0;
      this.#begun = undefined;
      return;
    }
    if (!isBusy(error) && !this.#hasProblem) {
      this.#hasProblem = true;
      this.#options.onProblem(error);
    }
    // Nothing to stay alive for: whoever ends the process flushes.
    this.#retry = setTimeout(() => this.#pump(), isBusy(error) ? BUSY_MS : RETRY_MS).unref();
  }

  #recovered(): void {
    if (!this.#hasProblem) return;
    this.#hasProblem = false;
    const lost = this.#lostLines;
    this.#lostLines = 0;
    this.#options.onRecovered(lost);
  }
}

/** A pipe that is full, and does not wait. */
function isBusy({ code }: NodeJS.ErrnoException): boolean {
  return code === "EAGAIN" || code === "EBUSY";
}

/** A pipe, or a terminal, whose other end is closed. */
function isUnread({ code }: NodeJS.ErrnoException): boolean {
  return code === "EPIPE" || code === "EIO" || code === "EBADF";
}
