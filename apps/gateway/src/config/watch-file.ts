import { createHash } from "node:crypto";
import { type FSWatcher, watch } from "node:fs";
import { chmod, open, realpath, rename, stat, unlink } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { MAX_DOCUMENT_BYTES } from "./yaml-source.ts";

/** The text of a configuration file, or the reason it cannot be read, completing "the file …". */
type TextOutcome = { readonly ok: true; readonly text: string } | { readonly ok: false; readonly why: string };

/** Reads a configuration file: at most 4 MiB of UTF-8; pipes only if allowed. Never rejects. */
export async function readConfigFile(path: string, { allowsPipes = false } = {}): Promise<TextOutcome> {
  try {
    // A pipe without a writer would block forever.
    if (!allowsPipes && !(await stat(path)).isFile()) return { ok: false, why: "is not a regular file" };
  } catch (error) {
    return unreadable(error);
  }
  return await readConfigInput(piecesOf(path));
}

/** Reads a stream such as standard input. Never rejects. */
export async function readConfigInput(input: AsyncIterable<Uint8Array>): Promise<TextOutcome> {
  try {
    const pieces: Uint8Array[] = [];
    let total = 0;
    for await (const piece of input) {
      total += piece.length;
      if (total > MAX_DOCUMENT_BYTES) return { ok: false, why: `is larger than ${MAX_DOCUMENT_BYTES} bytes` };
      pieces.push(piece);
    }
    return { ok: true, text: new TextDecoder("utf-8", { fatal: true }).decode(Buffer.concat(pieces)) };
  } catch (error) {
    return unreadable(error);
  }
}

function unreadable(error: unknown): TextOutcome {
  if (error instanceof TypeError) return { ok: false, why: "is not UTF-8" };
  const code = error instanceof Error && "code" in error ? String(error.code) : "unknown error";
  return { ok: false, why: code === "ENOENT" ? "does not exist" : `cannot be read (${code})` };
}

async function* piecesOf(path: string): AsyncGenerator<Uint8Array> {
  const file = await open(path, "r");
  try {
    for (;;) {
      const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(65_536), 0, 65_536, null);
      if (bytesRead === 0) return;
      yield buffer.subarray(0, bytesRead);
    }
  } finally {
    await file.close();
  }
}

export interface WatchOptions {
  /** Delay between the last change notification and reading the file. */
  readonly quietMs?: number;
  /** Poll interval for file systems without change notifications, such as network drives. */
  readonly pollMs?: number;
}

export interface FileWatch {
  /** Registers a text written by the caller, which is not reported as a change. */
  expect(text: string): void;
  /** Stops watching after the current callback completes. */
  close(): Promise<void>;
}

/**
 * Calls `changed`, one call at a time, with each new content of a file, or with the reason it became unreadable.
 * Detects in-place writes, renames over the file, and changed symbolic links anywhere on its path, as editors,
 * deployment tools and Kubernetes make them. `first` is the content already known.
 */
export function watchFile(
  path: string,
  first: string | undefined,
  changed: (outcome: TextOutcome) => Promise<void>,
  { quietMs = 100, pollMs = 5000 }: WatchOptions = {},
): FileWatch {
  return new Watch(path, first, changed, quietMs, pollMs);
}

class Watch implements FileWatch {
  readonly #path: string;
  readonly #changed: (outcome: TextOutcome) => Promise<void>;
  readonly #quietMs: number;
  readonly #poll: NodeJS.Timeout;
  readonly #watchers = new Map<string, FSWatcher>();
  #quiet: NodeJS.Timeout | undefined;
  #known: string;
  #looking: Promise<void> | undefined;
  #isStale = false;
  #isClosed = false;

  constructor(
    path: string,
    first: string | undefined,
    changed: (outcome: TextOutcome) => Promise<void>,
    quietMs: number,
    pollMs: number,
  ) {
    this.#path = path;
    this.#changed = changed;
    this.#quietMs = quietMs;
    this.#known = first === undefined ? "" : fingerprint({ ok: true, text: first });
    this.#poll = setInterval(() => this.#look(), pollMs);
    this.#poll.unref();
    this.#watchDirectory(dirname(path));
    // Detects changes since the first read.
    this.#look();
  }

  expect(text: string): void {
    this.#known = fingerprint({ ok: true, text });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#poll);
    clearTimeout(this.#quiet);
    for (const watcher of this.#watchers.values()) watcher.close();
    this.#watchers.clear();
    await this.#looking;
  }

  #watchDirectory(directory: string): void {
    if (this.#watchers.has(directory) || this.#isClosed) return;
    try {
      const watcher = watch(directory, { persistent: false }, () => this.#noticed());
      const forget = (): void => {
        watcher.close();
        if (this.#watchers.get(directory) === watcher) this.#watchers.delete(directory);
      };
      // Directory removed or watch limit reached: polling continues and watches again.
      watcher.on("error", forget);
      this.#watchers.set(directory, watcher);
    } catch {
      // Same as above.
    }
  }

  #noticed(): void {
    if (this.#isClosed) return;
    clearTimeout(this.#quiet);
    this.#quiet = setTimeout(() => this.#look(), this.#quietMs);
    this.#quiet.unref();
  }

  #look(): void {
    if (this.#looking !== undefined) {
      this.#isStale = true;
      return;
    }
    this.#looking = this.#lookNow().finally(() => {
      this.#looking = undefined;
      if (!this.#isStale || this.#isClosed) return;
      this.#isStale = false;
      this.#look();
    });
  }

  async #lookNow(): Promise<void> {
    await this.#watchOnTheWay();
    const outcome = await readConfigFile(this.#path);
    const print = fingerprint(outcome);
    if (print === this.#known || this.#isClosed) return;
    this.#known = print;
    await this.#changed(outcome);
  }

  /** Watches the named directory and the one that contains the link's target. */
  async #watchOnTheWay(): Promise<void> {
    const wanted = new Set([dirname(this.#path)]);
    const real = await realpath(this.#path).catch(() => undefined);
    if (real !== undefined) wanted.add(dirname(real));
    for (const [directory, watcher] of this.#watchers) {
      if (wanted.has(directory)) continue;
      watcher.close();
      this.#watchers.delete(directory);
    }
    for (const directory of wanted) this.#watchDirectory(directory);
  }
}

function fingerprint(outcome: TextOutcome): string {
  return createHash("sha256")
    .update(outcome.ok ? `text ${outcome.text}` : `why ${outcome.why}`)
    .digest("hex");
}

/**
 * Replaces a file atomically and durably. Keeps the mode; a symbolic link is preserved and its target replaced. On a
 * system error it rejects and the old content remains.
 */
export async function replaceFile(path: string, text: string): Promise<void> {
  const target = await realpath(path).catch(() => path);
  const directory = dirname(target);
  const mode = await stat(target).then(
    (found) => found.mode & 0o7777,
    () => 0o600,
  );
  const temporary = join(directory, `.${basename(target)}.${process.pid}.${performance.now()}.tmp`);
  try {
    const file = await open(temporary, "wx", 0o600);
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    await chmod(temporary, mode);
    await rename(temporary, target);
  } catch (error) {
    await unlink(temporary).catch(() => undefined);
    throw error;
  }
  // The rename is durable only after fsync of the directory; some systems cannot open one.
  const folder = await open(directory, "r").catch(() => undefined);
  if (folder === undefined) return;
  try {
    await folder.sync();
  } catch {
    // Same as above.
  } finally {
    await folder.close();
  }
}

/** Serializes reloads. Queued requests are merged into one that reads the newest document. */
export class ReloadRequests<Outcome> {
  readonly #run: (force: boolean) => Promise<Outcome>;
  #last: Promise<unknown> = Promise.resolve();
  #waiting: { force: boolean; readonly outcome: Promise<Outcome> } | undefined;

  constructor(run: (force: boolean) => Promise<Outcome>) {
    this.#run = run;
  }

  /** Resolves with the outcome of the reload that covers this request; it is forced if any merged request is. */
  async request(force: boolean): Promise<Outcome> {
    if (this.#waiting !== undefined) {
      this.#waiting.force ||= force;
      return await this.#waiting.outcome;
    }
    const outcome = this.#last.then(async () => {
      const isForced = this.#waiting?.force ?? force;
      this.#waiting = undefined;
      return await this.#run(isForced);
    });
    this.#last = outcome.catch(() => undefined);
    this.#waiting = { force, outcome };
    return await outcome;
  }
}
