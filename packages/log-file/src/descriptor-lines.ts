import { write, writeSync } from "node:fs";

/** Characters per write. */
const CHUNK_CHARACTERS = 16_384;
/** Maximum characters buffered for a slow reader or a full disk. */
const MAX_CHARACTERS = 4_194_304;
const BUSY_MS = 50;
const RETRY_MS = 1000;
/** Maximum time to write remaining lines to a blocked reader at the end of the process. */
const LAST_WORDS_MS = 1000;

/** System calls, replaceable in tests. */
interface WriteCalls {
  write(descriptor: number, bytes: Buffer, done: (error: NodeJS.ErrnoException | null, written: number) => void): void;
  writeSync(descriptor: number, bytes: Buffer): number;
}

export interface DescriptorLinesOptions {
  /** Open; not closed here, like standard output. */
  readonly descriptor: number;
  /** Called once per outage. A closed reader is not reported. */
  readonly onProblem: (error: NodeJS.ErrnoException) => void;
  /** Called when writing works again, with the number of lines lost. */
  readonly onRecovered: (lostLines: number) => void;
  readonly calls?: WriteCalls;
}

/**
 * Writes lines to an open descriptor. Never throws or blocks: one write is in flight, further lines are buffered up to
 * a limit and then lost. A closed reader gets nothing more; other errors, such as a full disk, are retried every
 * second.
 */
export class DescriptorLines {
  readonly #options: DescriptorLinesOptions;
  readonly #calls: WriteCalls;
  /** Whole lines; the last element grows. */
  readonly #waiting: string[] = [];
  #waitingCharacters = 0;
  /** Bytes in flight, or left over from a partial write. */
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

  /** The line includes its line end. */
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

  /** Writes the buffer synchronously for at most a second, at the end of the process. */
  flushSync(): void {
    const endMs = performance.now() + LAST_WORDS_MS;
    // A write in flight may still succeed: losing it is better than writing it twice.
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
    // Unreferenced: the process flushes at its end.
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

/** A full non-blocking pipe. */
function isBusy({ code }: NodeJS.ErrnoException): boolean {
  return code === "EAGAIN" || code === "EBUSY";
}

/** A pipe or terminal with a closed reader. */
function isUnread({ code }: NodeJS.ErrnoException): boolean {
  return code === "EPIPE" || code === "EIO" || code === "EBADF";
}
