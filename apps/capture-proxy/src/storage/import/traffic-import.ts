import { rm } from "node:fs/promises";
import { Worker } from "node:worker_threads";
import type { ImportResult } from "@headworks/capture-contract";
import type { ImportOptions } from "../capture-store.ts";
import type { FromImport, ImportedSession, ImportSetup, ToImport } from "./import-messages.ts";
import type { FrameBatch } from "../streams/stream-message.ts";
import type { RecordBatch } from "../write/writer-messages.ts";

const PROGRESS_MS = 100;
/** Documents that need more heap fail their import, not the process. */
const MAX_HEAP_MB = 2048;

/** The document is invalid; the message says why. */
export class ImportRefusedError extends Error {
  override readonly name = "ImportRefusedError";
}

export interface ImportTarget {
  /** Resolves on commit, which applies backpressure. */
  record(batch: RecordBatch): Promise<void>;
  /** Resolves on commit. */
  recordFrames(batch: FrameBatch): Promise<void>;
  /** Takes ownership of the buffer; resolves when it is in the file. Call before the entry is recorded. */
  appendBody(file: number, bytes: Uint8Array<ArrayBuffer>, isLast: boolean): Promise<void>;
  /** Discards the files of a failed import. */
  discardBodies(files: readonly number[]): void;
}

export type ImportOutcome = Omit<ImportResult, "session_id" | "dropped_count" | "displaced_count"> & {
  readonly session: ImportedSession;
  /** Number of further errors. */
  readonly moreErrors: number;
};

/**
 * Streams a document through its own thread into the store. One chunk is in flight at a time and the next is read after
 * its entries are committed, so memory is constant. Rejects with {@link ImportRefusedError} for an invalid document,
 * with the signal's reason on abort.
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
    // A source that fails because the client disconnected is an abort.
    options.signal.throwIfAborted();
    throw error;
  } finally {
    await conversation.close();
    await rm(setup.textsFolder, { recursive: true, force: true });
  }
}

/** Throttles progress events. */
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
  /** Writes in flight. */
  #writes: Promise<void>[] = [];
  readonly #files = new Set<number>();

  constructor(setup: ImportSetup, target: ImportTarget) {
    this.#target = target;
    this.#worker = new Worker(new URL("./import-thread.ts", import.meta.url), {
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
    // The rejection at the end of the thread is irrelevant after the import.
    this.#response.promise.catch(() => undefined);
  }

  /** Returns the number of entries found so far. */
  async take(chunk: Uint8Array): Promise<number> {
    // A copy: transferring a view would detach its whole buffer.
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
    // The thread may wait for the failed write and never reply.
    write.catch((error: unknown) => this.#response.reject(error));
    this.#writes.push(write);
  }
}
