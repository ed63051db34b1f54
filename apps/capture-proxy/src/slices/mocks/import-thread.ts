import { Worker, parentPort, workerData } from "node:worker_threads";
import type { TaskProgress } from "@headworks/capture-contract";
import type { Clock } from "#slice.ts";
import type { DocumentImport, DocumentReader, ReadDocument } from "./import-documents.ts";
import { ImportProblem } from "./imported-mocks.ts";

type ToThread = { readonly kind: "chunk"; readonly bytes: Uint8Array } | { readonly kind: "end" };
type FromThread =
  | { readonly kind: "taken"; readonly entries: number }
  | { readonly kind: "done"; readonly document: ReadDocument }
  | { readonly kind: "problem"; readonly problem: string };

export interface DocumentWait {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly onProgress?: (soFar: Pick<TaskProgress, "bytes" | "entries">) => void;
}

/** Distinguishes the thread started below from others that load this file. */
const MARK = "readsMockImport";
/** Per step: a chunk of a HAR, or a whole document of another format. */
const MAX_MS = 60_000;
const MAX_HEAP_MB = 1024;
const PROGRESS_MS = 100;

/**
 * Reads a document in a thread, because megabytes of YAML take seconds that would delay traffic. One chunk is in flight
 * at a time. Throws {@link ImportProblem}, also beyond the limits of time and memory, and errors of `chunks`.
 */
export async function readDocumentApart(
  document: DocumentImport,
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  { clock, signal, onProgress }: DocumentWait,
): Promise<ReadDocument> {
  const thread = new ReadingThread(document, clock);
  const stop = (): void => void thread.close();
  signal.addEventListener("abort", stop);
  let bytes = 0;
  let reportedMs = Number.NEGATIVE_INFINITY;
  try {
    for await (const chunk of chunks) {
      bytes += chunk.length;
      const response = await thread.take(chunk);
      if (clock.monotonic() - reportedMs < PROGRESS_MS) continue;
      reportedMs = clock.monotonic();
      onProgress?.({ bytes, entries: response.kind === "taken" ? response.entries : 0 });
    }
    const response = await thread.request({ kind: "end" });
    if (response.kind !== "done") throw new Error("The reading thread replied out of order");
    return response.document;
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  } finally {
    signal.removeEventListener("abort", stop);
    await thread.close();
  }
}

class ReadingThread {
  readonly #worker: Worker;
  readonly #clock: Clock;
  #response = deferredReply<FromThread>();

  constructor(document: DocumentImport, clock: Clock) {
    this.#clock = clock;
    this.#worker = new Worker(new URL(import.meta.url), {
      workerData: { [MARK]: true, document },
      resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB },
    });
    this.#worker.on("message", (message: FromThread) => this.#response.resolve(message));
    this.#worker.once("error", (error: NodeJS.ErrnoException) => {
      const isMemory = error.code === "ERR_WORKER_OUT_OF_MEMORY";
      this.#response.reject(isMemory ? new ImportProblem("The document takes too much memory to read") : error);
    });
    this.#worker.once("exit", () => this.#response.reject(new ImportProblem("The document takes too long to read")));
  }

  async take(chunk: Uint8Array): Promise<FromThread> {
    // A copy: transferring a view would detach its whole buffer.
    const bytes = new Uint8Array(chunk);
    return await this.request({ kind: "chunk", bytes }, [bytes.buffer]);
  }

  async request(message: ToThread, transfer: ArrayBuffer[] = []): Promise<FromThread> {
    const cancelStop = this.#clock.after(MAX_MS, () => void this.close());
    try {
      this.#worker.postMessage(message, transfer);
      const response = await this.#response.promise;
      this.#response = deferredReply<FromThread>();
      if (response.kind === "problem") throw new ImportProblem(response.problem);
      return response;
    } finally {
      cancelStop();
    }
  }

  async close(): Promise<void> {
    await this.#worker.terminate();
  }
}

/** A promise whose rejection may be unhandled: the thread may end while no reply is pending. */
function deferredReply<T>(): PromiseWithResolvers<T> {
  const resolvers = Promise.withResolvers<T>();
  resolvers.promise.catch(() => undefined);
  return resolvers;
}

const given = workerData as { readonly [MARK]?: true; readonly document: DocumentImport } | null;
if (given?.[MARK] === true && parentPort !== null) {
  const port = parentPort;
  // Loaded here only: the YAML parser takes long to load.
  const { openDocument } = await import("./import-documents.ts");
  const reader = openDocument(given.document);
  port.on("message", (message: ToThread) => port.postMessage(replyTo(message, reader)));
}

function replyTo(message: ToThread, reader: DocumentReader): FromThread {
  try {
    if (message.kind === "chunk") return { kind: "taken", entries: reader.write(message.bytes) };
    return { kind: "done", document: reader.end() };
  } catch (error) {
    if (error instanceof ImportProblem) return { kind: "problem", problem: error.message };
    throw error;
  }
}
