import { rm } from "node:fs/promises";
import { Worker } from "node:worker_threads";
import type { ImportResult } from "@headworks/capture-contract";
import type { ImportOptions } from "../capture-store.ts";
import type { FromImport, ImportedSession, ImportSetup, ToImport } from "./import-messages.ts";
import type { FrameBatch } from "../streams/stream-message.ts";
import type { RecordBatch } from "../write/writer-messages.ts";

const PROGRESS_MS = 100;
/** A document that needs more to be understood ends its import, not the program. */
const MAX_HEAP_MB = 2048;

/** The document is not what it should be; the message says what is wrong with it. */
export class ImportRefusedError extends Error {
  override readonly name = "ImportRefusedError";
}

/** What an import needs of the store. */
export interface ImportTarget {
  /** Resolves when the batch is committed, which is what makes the sender wait. */
  record(batch: RecordBatch): Promise<void>;
  /** Resolves when the frames are committed. */
  recordFrames(batch: FrameBatch): Promise<void>;
  /**
   * Takes the piece over and resolves when it is in the body's file; must be asked for before the entry that the body
   * belongs to.
   */
  appendBody(file: number, bytes: Uint8Array<ArrayBuffer>, isLast: boolean): Promise<void>;
  /** The import failed: files that no entry refers to are not wanted. */
  discardBodies(files: readonly number[]): void;
}

export type ImportOutcome = Omit<ImportResult, "session_id" | "dropped_count" | "displaced_count"> & {
  readonly session: ImportedSession;
  /** How many sentences there were besides `errors`. */
  readonly moreErrors: number;
};

/**
 * Streams a document through a thread of its own into the store. One chunk is under way at a time and the next is
 * not asked for before its entries are committed, so memory stays flat whatever the size. Rejects with
 * {@link ImportRefusedError} for a bad document, with the signal's reason when it aborts.
 */
export async function runImport(
  setup: ImportSetup,
  source: AsyncIterable<Uint8Array>,
  options: Pick<ImportOptions, "signal" | "onProgress">,
  target: ImportTarget,
): Promise<ImportOutcome> {
  const conversation = new Conversation(setup, target);
  try {
    const progress = new Progress(options.onProgress);
    for await (const chunk of source) {
      options.signal.throwIfAborted();
      progress.report(chunk.length, await conversation.take(chunk));
    }
    options.signal.throwIfAborted();
    const done = await conversation.finish();
    progress.end(done.imported);
    return {
      imported_count: done.imported,
      skipped_count: done.skipped,
      errors: [...done.errors],
      moreErrors: done.moreErrors,
      session: done.session,
    };
  } catch (error) {
    await conversation.close();
    conversation.discardBodies();
    // A source that broke because its sender went away is called off, not broken.
    options.signal.throwIfAborted();
    throw error;
  } finally {
    await conversation.close();
    await rm(setup.textsFolder, { recursive: true, force: true });
  }
}

/** Tells how far an import is, not more often than anybody wants to know. */
class Progress {
  readonly #tell: ImportOptions["onProgress"];
  #bytes = 0;
  #toldMs = Number.NEGATIVE_INFINITY;

  constructor(tell: ImportOptions["onProgress"]) {
    this.#tell = tell;
  }

  report(bytes: number, entries: number): void {
    this.#bytes += bytes;
    if (performance.now() - this.#toldMs < PROGRESS_MS) return;
    this.#toldMs = performance.now();
    this.#tell({ bytes: this.#bytes, entries });
  }

  end(entries: number): void {
    this.#tell({ bytes: this.#bytes, entries });
  }
}

class Conversation {
  readonly #worker: Worker;
  readonly #target: ImportTarget;
  #response = Promise.withResolvers<FromImport>();
  /** What is on its way to the disk. */
  #writes: Promise<void>[] = [];
  readonly #files = new Set<number>();

  constructor(setup: ImportSetup, target: ImportTarget) {
    this.#target = target;
    this.#worker = new Worker(new URL("./import.worker.ts", import.meta.url), {
      workerData: setup,
      name: "weir-import",
      resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB },
    });
    this.#worker.on("message", (message: FromImport) => {
      if (message.kind === "batch") this.#write(this.#target.record(message));
      else if (message.kind === "frames") this.#write(this.#target.recordFrames(message.batch));
      else if (message.kind === "body") this.#write(this.#appendBody(message));
      else if (message.kind === "discard") this.#discard(message.files);
      else this.#response.resolve(message);
    });
    this.#worker.on("error", (error: Error) => this.#response.reject(error));
    this.#worker.on("exit", () => this.#response.reject(new Error("The import thread ended")));
    // The rejection at the end of the thread is nobody's concern once the import is over.
    this.#response.promise.catch(() => undefined);
  }

  /** Gives the number of entries found so far. */
  async take(chunk: Uint8Array): Promise<number> {
    // A view would take all of the memory it looks at along.
    const bytes = new Uint8Array(chunk);
    const message = await this.#ask({ kind: "chunk", bytes }, [bytes.buffer]);
    return message.kind === "taken" ? message.entries : 0;
  }

  async finish(): Promise<FromImport & { kind: "done" }> {
    const message = await this.#ask({ kind: "end" });
    if (message.kind !== "done") throw new Error("The import thread lost its place");
    return message;
  }

  async close(): Promise<void> {
    await this.#worker.terminate();
    await Promise.allSettled(this.#writes);
  }

  discardBodies(): void {
    this.#target.discardBodies([...this.#files]);
  }

  async #ask(message: ToImport, transfer: ArrayBuffer[] = []): Promise<FromImport> {
    this.#tell(message, transfer);
    const response = await this.#response.promise;
    this.#response = Promise.withResolvers<FromImport>();
    this.#response.promise.catch(() => undefined);
    if (response.kind === "refused") throw new ImportRefusedError(response.message);
    const writes = this.#writes;
    await Promise.all(writes);
    this.#writes = [];
    return response;
  }

  async #appendBody({ file, bytes, isLast }: FromImport & { kind: "body" }): Promise<void> {
    const sizeBytes = bytes.length;
    this.#files.add(file);
    await this.#target.appendBody(file, bytes, isLast);
    this.#tell({ kind: "written", bytes: sizeBytes });
  }

  #discard(files: readonly number[]): void {
    for (const file of files) this.#files.delete(file);
    this.#target.discardBodies(files);
  }

  #tell(message: ToImport, transfer: ArrayBuffer[] = []): void {
    this.#worker.postMessage(message, transfer);
  }

  #write(write: Promise<void>): void {
    // The thread may be waiting for what failed, and would not answer.
    write.catch((error: unknown) => this.#response.reject(error));
    this.#writes.push(write);
  }
}
