import { createHash } from "node:crypto";
import { watch, type FSWatcher } from "node:fs";
import { chmod, open, realpath, rename, stat, unlink } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { MAX_DOCUMENT_BYTES } from "./yaml-source.ts";

/** The text of a configuration file, or why it cannot be had, to complete "the file …". */
export type TextOutcome = { readonly ok: true; readonly text: string } | { readonly ok: false; readonly why: string };

/** Reads a configuration file: at most 4 MiB of UTF-8, pipes only where they are allowed. Never rejects. */
export async function readConfigFile(path: string, { allowsPipes = false } = {}): Promise<TextOutcome> {
  try {
    // Waiting for somebody to write into a pipe would be waiting for ever.
    if (!allowsPipes && !(await stat(path)).isFile()) return { ok: false, why: "is not a regular file" };
  } catch (error) {
    return unreadable(error);
  }
  return await readConfigInput(piecesOf(path));
}

/** The same of what comes piece by piece, such as standard input. Never rejects. */
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
  /** After the last change that was noticed, before the file is read. */
  readonly quietMs?: number;
  /** How often the file is read where the system tells of no changes, such as on network drives. */
  readonly pollMs?: number;
}

/** A file that is watched. */
export interface FileWatch {
  /** The file was given this text by whoever watches it: another one than this is a change. */
  expect(text: string): void;
  /** Ends the watch; a call that is under way is waited for. */
  close(): Promise<void>;
}

/**
 * Calls `changed` with the text of a file whenever its content becomes another than it was, one call after the other, and
 * with the reason when it cannot be read any more. Notices writing in place, renaming over it, and the change of a
 * symbolic link anywhere on its path, as editors, deployment tools and Kubernetes do it. `first` is the content that is
 * known already.
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
    // What happened between the first reading and now.
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
      // A directory that is removed, or a system without free watches: the poll remains, and watches again.
      watcher.on("error", forget);
      this.#watchers.set(directory, watcher);
    } catch {
      // As above.
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

  /** The directory that the path names, and the one where the file really is: links lead from one to the other. */
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
 * Replaces a file's content as a whole: whoever reads it, also after a power cut, finds the old or the new. Keeps the
 * mode; a symbolic link stays one, and the file it leads to is replaced. Rejects with the system's error, and then the
 * old content is there.
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
  // The rename itself is only durable with the directory; some systems cannot open one.
  const folder = await open(directory, "r").catch(() => undefined);
  if (folder === undefined) return;
  try {
    await folder.sync();
  } catch {
    // As above.
  } finally {
    await folder.close();
  }
}
