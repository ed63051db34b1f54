// Tested by traffic-transfer.test.ts
import { Worker } from "node:worker_threads";
import type { ImportResult } from "@headworks/capture-contract";
import type { ImportOptions } from "./capture-store.ts";
import type { FromImport, ImportedSession, ImportSetup, ToImport } from "./import-messages.ts";
import type { RecordBatch } from "./writer-messages.ts";

/** The document is not what it should be; the message says what is wrong with it. */
export class ImportRefusedError extends Error {
  override readonly name = "ImportRefusedError";
}

/** What an import needs of the store. */
export interface ImportTarget {
  /** Resolves when the batch is committed, which is what makes the sender wait. */
  record(batch: RecordBatch): Promise<void>;
}

export type ImportOutcome = Omit<ImportResult, "session_id"> & { readonly session: ImportedSession };

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
    let bytes = 0;
    for await (const chunk of source) {
      options.signal.throwIfAborted();
      bytes += chunk.length;
      const entries = await conversation.take(chunk);
      options.onProgress({ bytes, entries });
    }
    options.signal.throwIfAborted();
    const done = await conversation.finish();
    return {
      imported_count: done.imported,
      skipped_count: done.skipped,
      errors: [...done.errors],
      session: done.session,
    };
  } finally {
    await conversation.close();
  }
}

class Conversation {
  readonly #worker: Worker;
  readonly #target: ImportTarget;
  #answer = Promise.withResolvers<FromImport>();
  #batches: Promise<void>[] = [];

  constructor(setup: ImportSetup, target: ImportTarget) {
    this.#target = target;
    this.#worker = new Worker(new URL("./import.worker.ts", import.meta.url), {
      workerData: setup,
      name: "weir-import",
    });
    this.#worker.on("message", (message: FromImport) => {
      if (message.kind === "batch") this.#batches.push(this.#record(message));
      else this.#answer.resolve(message);
    });
    this.#worker.on("error", (error: Error) => this.#answer.reject(error));
    this.#worker.on("exit", () => this.#answer.reject(new Error("The import thread ended")));
    // The rejection at the end of the thread is nobody's concern once the import is over.
    this.#answer.promise.catch(() => undefined);
  }

  /** Gives the number of entries found so far. */
  async take(chunk: Uint8Array): Promise<number> {
    const message = await this.#ask({ kind: "chunk", bytes: chunk });
    return message.kind === "taken" ? message.entries : 0;
  }

  async finish(): Promise<FromImport & { kind: "done" }> {
    const message = await this.#ask({ kind: "end" });
    if (message.kind !== "done") throw new Error("The import thread lost its place");
    return message;
  }

  async close(): Promise<void> {
    await Promise.allSettled(this.#batches);
    await this.#worker.terminate();
  }

  async #ask(message: ToImport): Promise<FromImport> {
    this.#worker.postMessage(message);
    const answer = await this.#answer.promise;
    this.#answer = Promise.withResolvers<FromImport>();
    this.#answer.promise.catch(() => undefined);
    if (answer.kind === "refused") throw new ImportRefusedError(answer.message);
    const batches = this.#batches;
    this.#batches = [];
    await Promise.all(batches);
    return answer;
  }

  async #record(message: FromImport & { kind: "batch" }): Promise<void> {
    const { entries, bytes, text, bodies } = message;
    const recorded = this.#target.record({ kind: "batch", entries, bytes, text, bodies });
    // Looked at when the chunk is done; until then a failure must not count as unheard.
    recorded.catch(() => undefined);
    await recorded;
  }
}
