import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { makeDirectorySync } from "@headworks/files";
import { createContentDecoder, decodeText } from "@headworks/http-fields/content-coding";
import { parseMediaType } from "@headworks/http-fields";
import { StorageError, storageErrorReason } from "../database.ts";
import { readFilePart } from "../stored-bodies.ts";

/** Larger results go to a file. */
const MEMORY_BYTES = 1_048_576;
/** Decoding stops here: larger results are decompression bombs or of no use. */
const MAX_DECODED_BYTES = 2_147_483_648;
const PIECE_BYTES = 1_048_576;
/** Decoded bodies cached for range requests. */
const MAX_CACHED_BODIES = 8;

export interface DecodedForm {
  readonly totalBytes: number;
  /** Why decoding is incomplete; `as-sent`: a coding remains, no byte is missing. */
  readonly problem: DecodingProblem | undefined;
  read(start: number, end: number): Uint8Array;
}

export type DecodingProblem = "partial" | "as-sent";

export interface DecodingRequest {
  /** Identifies the body and its requested form. */
  readonly key: string;
  /** Bytes or a file path. */
  readonly source: Uint8Array | string;
  /** Content-Encoding values; empty to keep the codings. */
  readonly contentEncoding: readonly string[];
  /** Charset to convert to UTF-8 from. */
  readonly toUtf8From: string | undefined;
}

/** Decodes bodies. Large results are decoded once into a file, which range requests read from. */
export class DecodedBodies {
  readonly #parent: string;
  /** Created with the first file, so that small bodies work on a read-only disk. */
  #folder: string | undefined;
  readonly #cached = new Map<string, { readonly form: Promise<DecodedForm>; path: string | undefined }>();
  #nextFile = 1;

  /** @param parent contains the folder for the files, which `close` removes */
  constructor(parent: string) {
    this.#parent = parent;
  }

  /** Rejects with {@link StorageError} if a file cannot be written. */
  async get(request: DecodingRequest): Promise<DecodedForm> {
    const known = this.#cached.get(request.key);
    if (known !== undefined) return await known.form;
    const cached = {
      form: this.#decode(request, (path) => (cached.path = path)),
      path: undefined as string | undefined,
    };
    this.#cached.set(request.key, cached);
    const [oldest] = this.#cached.keys();
    if (this.#cached.size > MAX_CACHED_BODIES && oldest !== undefined) this.#forget(oldest);
    try {
      return await cached.form;
    } catch (error) {
      this.#forget(request.key);
      throw error;
    }
  }

  close(): void {
    if (this.#folder !== undefined) remove(this.#folder);
  }

  #newPath(): string {
    if (this.#folder === undefined) {
      makeDirectorySync(this.#parent);
      this.#folder = mkdtempSync(join(this.#parent, "reader-"));
    }
    return join(this.#folder, `${this.#nextFile++}.decoded`);
  }

  #forget(key: string): void {
    const cached = this.#cached.get(key);
    this.#cached.delete(key);
    // The path is set once the file is complete; readers holding the form open it by name.
    void cached?.form
      .catch(() => undefined)
      .then(() => {
        if (cached.path !== undefined) remove(cached.path);
      });
  }

  async #decode(request: DecodingRequest, onFile: (path: string) => void): Promise<DecodedForm> {
    const output = new GrowingOutput(() => {
      const path = this.#newPath();
      onFile(path);
      return path;
    });
    try {
      const problem = await decodeInto(request, (bytes) => output.write(bytes));
      return output.finish(problem, (bytes) => smallText(request, bytes));
    } catch (error) {
      output.abandon();
      if (!(error instanceof Error && "syscall" in error)) throw error;
      throw new StorageError(`A large body could not be decoded to a file: ${storageErrorReason(error)}`);
    }
  }
}

async function decodeInto(
  request: DecodingRequest,
  write: (bytes: Uint8Array) => void,
): Promise<DecodingProblem | undefined> {
  const charset = knownCharset(request.toUtf8From);
  const text = charset === undefined || charset === "utf-8" ? undefined : new TextDecoder(charset);
  const encoder = new TextEncoder();
  const deliver =
    text === undefined ? write : (bytes: Uint8Array) => write(encoder.encode(text.decode(bytes, { stream: true })));
  const decoder = createContentDecoder(request.contentEncoding, deliver, { maxBytes: MAX_DECODED_BYTES });
  for (let start = 0; ; start += PIECE_BYTES) {
    const piece = pieceOf(request.source, start, start + PIECE_BYTES);
    if (piece.length === 0) break;
    await decoder.write(piece);
    await nextTurn();
  }
  const { stop, remaining } = await decoder.end();
  if (text !== undefined) write(encoder.encode(text.decode()));
  if (stop === undefined) return undefined;
  return remaining.length > 0 && stop !== "limit" ? "as-sent" : "partial";
}

function pieceOf(source: Uint8Array | string, start: number, end: number): Uint8Array {
  return typeof source === "string"
    ? (readFilePart(source, start, end) ?? new Uint8Array(0))
    : source.subarray(start, end);
}

function knownCharset(contentType: string | undefined): string | undefined {
  const label = parseMediaType(contentType)?.charset;
  try {
    return label === undefined ? undefined : new TextDecoder(label).encoding;
  } catch {
    return undefined;
  }
}

/** A small text without a declared charset is examined as a whole: it may declare its own. */
function smallText(request: DecodingRequest, bytes: Uint8Array): Uint8Array {
  const { toUtf8From } = request;
  if (toUtf8From === undefined || knownCharset(toUtf8From) !== undefined) return bytes;
  const { text, charset } = decodeText(bytes, toUtf8From);
  return charset === "utf-8" ? bytes : new TextEncoder().encode(text);
}

/** Buffers in memory up to {@link MEMORY_BYTES}, then in a file. */
class GrowingOutput {
  readonly #newPath: () => string;
  #path = "";
  #pieces: Uint8Array[] = [];
  #bytes = 0;
  #fd: number | undefined;

  constructor(newPath: () => string) {
    this.#newPath = newPath;
  }

  write(piece: Uint8Array): void {
    if (piece.length === 0) return;
    this.#bytes += piece.length;
    if (this.#fd === undefined) {
      // The decoder may reuse its buffer.
      this.#pieces.push(piece.slice());
      if (this.#bytes > MEMORY_BYTES) this.#moveToFile();
      return;
    }
    writeAll(this.#fd, piece);
  }

  finish(problem: DecodingProblem | undefined, lastStep: (bytes: Uint8Array) => Uint8Array): DecodedForm {
    if (this.#fd === undefined) {
      const bytes = lastStep(Buffer.concat(this.#pieces));
      // A copy: the result is transferred to another thread; Buffer's own slice shares memory.
      return { totalBytes: bytes.length, problem, read: (start, end) => new Uint8Array(bytes.subarray(start, end)) };
    }
    closeSync(this.#fd);
    this.#fd = undefined;
    const path = this.#path;
    return {
      totalBytes: this.#bytes,
      problem,
      read: (start, end) => readFilePart(path, start, end) ?? new Uint8Array(0),
    };
  }

  abandon(): void {
    if (this.#fd === undefined) return;
    closeSync(this.#fd);
    remove(this.#path);
  }

  #moveToFile(): void {
    this.#path = this.#newPath();
    this.#fd = openSync(this.#path, "wx", 0o600);
    for (const piece of this.#pieces) writeAll(this.#fd, piece);
    this.#pieces = [];
  }
}

/** Remaining files go at the next start: a read-only disk must not end the thread. */
function remove(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true });
  } catch {
    return;
  }
}

function writeAll(fd: number, bytes: Uint8Array): void {
  let from = 0;
  while (from < bytes.length) from += writeSync(fd, bytes, from);
}
