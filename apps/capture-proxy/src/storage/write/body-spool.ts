import type { BodySpool, SpooledBody } from "#exchange/body.ts";
import type { ToWriter } from "./writer-messages.ts";

/** Coalesces writes into chunks of this size to reduce the number of messages. */
const CHUNK_BYTES = 262_144;

export interface SpoolTarget {
  send(message: ToWriter, transfer: ArrayBuffer[]): void;
  /** False if a body of this size exceeds the store's limit. */
  fits(bytes: number): boolean;
  /** Reserves backlog bytes; false if the backlog is full. */
  reserve(bytes: number): boolean;
  release(bytes: number): void;
  /** Counts a body that is not stored. */
  shed(): void;
}

/** Streams large bodies to files of the writer thread. */
export class FileSpool implements BodySpool {
  readonly #target: SpoolTarget;
  readonly #open = new Map<number, FileBody>();
  #nextFile: number;

  constructor(target: SpoolTarget, nextFile: number) {
    this.#target = target;
    this.#nextFile = nextFile;
  }

  open(): SpooledBody | undefined {
    if (!this.#target.reserve(0)) {
      this.#target.shed();
      return undefined;
    }
    const body = new FileBody(this.#nextFile++, this.#target, () => this.#open.delete(body.id));
    this.#open.set(body.id, body);
    return body;
  }

  /** Allocates consecutive file numbers; returns the first. */
  reserve(count: number): number {
    this.#nextFile += count;
    return this.#nextFile - count;
  }

  /** The writer thread failed to write the file. */
  failed(file: number): void {
    this.#open.get(file)?.fail();
  }

  /** The writer thread ended: every open body is lost. */
  failAll(): void {
    for (const body of this.#open.values()) body.fail();
  }
}

class FileBody implements SpooledBody {
  readonly id: number;
  readonly #target: SpoolTarget;
  readonly #onClosed: () => void;
  #chunk: Buffer<ArrayBuffer> | undefined;
  #used = 0;
  #bytes = 0;
  #state: "open" | "failed" | "closed" = "open";

  constructor(id: number, target: SpoolTarget, onClosed: () => void) {
    this.id = id;
    this.#target = target;
    this.#onClosed = onClosed;
  }

  write(piece: Buffer): boolean {
    this.#bytes += piece.length;
    if (this.#state !== "open" || !this.#target.fits(this.#bytes) || !this.#target.reserve(piece.length)) {
      if (this.#state !== "closed") this.#target.shed();
      return false;
    }
    let from = 0;
    while (from < piece.length) {
      this.#chunk ??= Buffer.allocUnsafeSlow(CHUNK_BYTES);
      const copied = piece.copy(this.#chunk, this.#used, from);
      from += copied;
      this.#used += copied;
      if (this.#used === CHUNK_BYTES) this.#sendChunk();
    }
    return true;
  }

  end(): void {
    if (this.#state === "closed") return;
    // A truncated file must not look complete.
    if (this.#state === "failed") return this.discard();
    this.#sendChunk();
    this.#target.send({ kind: "fileEnd", file: this.id }, []);
    this.#close();
  }

  discard(): void {
    this.#forgetChunk();
    this.#target.send({ kind: "fileDiscard", file: this.id }, []);
    this.#close();
  }

  fail(): void {
    if (this.#state !== "open") return;
    this.#state = "failed";
    this.#forgetChunk();
  }

  #forgetChunk(): void {
    if (this.#chunk === undefined) return;
    this.#target.release(this.#used);
    this.#chunk = undefined;
    this.#used = 0;
  }

  #sendChunk(): void {
    const chunk = this.#chunk;
    if (chunk === undefined || this.#used === 0) return;
    const bytes = chunk.subarray(0, this.#used);
    this.#chunk = undefined;
    this.#used = 0;
    this.#target.send({ kind: "piece", file: this.id, bytes }, [chunk.buffer]);
  }

  #close(): void {
    if (this.#state === "closed") return;
    this.#state = "closed";
    this.#onClosed();
  }
}
