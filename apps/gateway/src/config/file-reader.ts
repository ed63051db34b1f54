import { createHash } from "node:crypto";
import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";

/** Maximum size of certificates, keys and CA bundles. */
export const MAX_FILE_BYTES = 16 * 1024 * 1024;

/** The content of a file, or the reason it cannot be read, completing "the file …". */
export type FileOutcome =
  | { readonly ok: true; readonly bytes: Buffer }
  | {
      readonly ok: false;
      readonly why: string;
      /** The file does not exist on this machine or is not readable for this user. */
      readonly isAbsent?: true;
    };

/** Reads each file of a document once, so that one build sees consistent bytes. */
export class FileReader {
  readonly #outcomes: Map<string, FileOutcome>;

  /** `found`: results of another process, used without reading again. */
  constructor(found: ReadonlyMap<string, FileOutcome> = new Map()) {
    this.#outcomes = new Map(found);
  }

  get outcomes(): ReadonlyMap<string, FileOutcome> {
    return this.#outcomes;
  }

  read(path: string, maxBytes: number = MAX_FILE_BYTES): FileOutcome {
    let outcome = this.#outcomes.get(path);
    if (outcome === undefined) this.#outcomes.set(path, (outcome = readWhole(path, MAX_FILE_BYTES)));
    return outcome.ok && outcome.bytes.length > maxBytes ? tooLarge(maxBytes) : outcome;
  }

  /** Adds names and contents of all files read to a hash. */
  digestInto(hash: { update(text: string): unknown }): void {
    for (const [path, outcome] of [...this.#outcomes].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
      const content = outcome.ok ? createHash("sha256").update(outcome.bytes).digest("hex") : null;
      hash.update(JSON.stringify([path, content]));
    }
  }
}

function readWhole(path: string, maxBytes: number): FileOutcome {
  let descriptor: number;
  try {
    // Opening a FIFO without a writer would block.
    descriptor = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  } catch (error) {
    return whyNot(error);
  }
  try {
    if (!fstatSync(descriptor).isFile()) return { ok: false, why: "is not a regular file" };
    return readDescriptor(descriptor, maxBytes);
  } catch (error) {
    return whyNot(error);
  } finally {
    closeSync(descriptor);
  }
}

/** Reads to the end instead of trusting st_size, which is wrong for some special files. */
function readDescriptor(descriptor: number, maxBytes: number): FileOutcome {
  const pieces: Buffer[] = [];
  let total = 0;
  for (;;) {
    const piece = Buffer.allocUnsafe(65_536);
    const read = readSync(descriptor, piece);
    if (read === 0) return { ok: true, bytes: Buffer.concat(pieces) };
    total += read;
    if (total > maxBytes) return tooLarge(maxBytes);
    pieces.push(piece.subarray(0, read));
  }
}

function tooLarge(maxBytes: number): FileOutcome {
  return { ok: false, why: `is larger than ${maxBytes} bytes` };
}

function whyNot(error: unknown): FileOutcome {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  switch (code) {
    case "ENOENT":
    case "ENOTDIR":
      return { ok: false, why: "does not exist", isAbsent: true };
    case "EACCES":
    case "EPERM":
      return { ok: false, why: "may not be read by this process", isAbsent: true };
    case "EISDIR":
      return { ok: false, why: "is a directory" };
    default:
      return { ok: false, why: `cannot be read (${typeof code === "string" ? code : "unknown error"})` };
  }
}
