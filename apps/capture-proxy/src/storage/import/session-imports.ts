import { rm } from "node:fs/promises";
import { Worker } from "node:worker_threads";
import type { ImportResult } from "@headworks/capture-contract";
import { beyondLimit, type CaptureStore, type ImportOptions, maxBytes, type StoreLimits } from "../capture-store.ts";
import type { FrameBatch } from "../streams/stream-store.ts";
import type { WriterClient } from "../write/writer-client.ts";
import type { RecordBatch, SessionRecord } from "../write/writer-messages.ts";

export interface ImportSetup {
  readonly format: "har" | "session";
  readonly sessionNumber: number;
  /** First number for files of large bodies. */
  readonly firstFile: number;
  /** First stream number. */
  readonly firstStream: number;
  /** Bodies of other programs are truncated here like captured ones; native sessions are restored completely. */
  readonly maxBodyBytes: number;
  /** For long strings while their entry is read; created on demand, removed after the import. */
  readonly textsFolder: string;
}

/** File numbers reserved per import. */
export const FILES_OF_AN_IMPORT = 1_000_000;
/** Stream numbers reserved per import. */
export const STREAMS_OF_AN_IMPORT = 1_000_000;
/** Maximum reported messages per import. */
export const MAX_ERRORS = 100;

export type ToImport =
  | { readonly kind: "chunk"; readonly bytes: Uint8Array<ArrayBuffer> }
  /** Body bytes written to files. */
  | { readonly kind: "written"; readonly bytes: number }
  | { readonly kind: "end" };

/** Session facts of the document. */
export interface ImportedSession {
  readonly name?: string;
  readonly notes?: string | null;
  readonly tags?: readonly string[];
  readonly switchSession?: boolean;
}

export type FromImport =
  | { readonly kind: "frames"; readonly batch: FrameBatch }
  | RecordBatch
  | { readonly kind: "body"; readonly file: number; readonly bytes: Uint8Array<ArrayBuffer>; readonly isLast: boolean }
  /** Files of a rejected entry. */
  | { readonly kind: "discard"; readonly files: readonly number[] }
  | { readonly kind: "taken"; readonly entries: number }
  | {
      readonly kind: "done";
      readonly imported: number;
      readonly skipped: number;
      /** At most {@link MAX_ERRORS}. */
      readonly errors: readonly string[];
      readonly moreErrors: number;
      readonly session: ImportedSession;
    }
  | { readonly kind: "rejected"; readonly message: string };

const PROGRESS_MS = 100;
/** Documents that need more heap fail their import, not the process. */
const MAX_HEAP_MB = 2048;

/** The document is invalid; the message says why. */
class ImportRefusedError extends Error {
  override readonly name = "ImportRefusedError";
}

type ImportOutcome = Omit<ImportResult, "session_id" | "dropped_count" | "displaced_count"> & {
  readonly session: ImportedSession;
  readonly moreErrors: number;
};

/**
 * Streams a document through its own thread into the store. One chunk is in flight at a time and the next is read after
 * its entries are committed, so memory is constant. Rejects with {@link ImportRefusedError} for an invalid document,
 * with the signal's reason on abort.
 */
async function runImport(
  setup: ImportSetup,
  source: AsyncIterable<Uint8Array>,
  options: Pick<ImportOptions, "signal" | "onProgress">,
  writer: WriterClient,
): Promise<ImportOutcome> {
  const client = new ImportThreadClient(setup, writer);
  try {
    const progress = new Progress(options.onProgress);
    for await (const chunk of source) {
      options.signal.throwIfAborted();
      progress.report(chunk.length, await client.take(chunk));
    }
    options.signal.throwIfAborted();
    const done = await client.finish();
    progress.end(done.imported);
    return {
      imported_count: done.imported,
      skipped_count: done.skipped,
      errors: [...done.errors],
      moreErrors: done.moreErrors,
      session: done.session,
    };
  } catch (error) {
    await client.close();
    client.discardBodies();
    // A source that fails because the client disconnected is an abort.
    options.signal.throwIfAborted();
    throw error;
  } finally {
    await client.close();
    await rm(setup.textsFolder, { recursive: true, force: true });
  }
}

/** Throttles progress events. */
class Progress {
  readonly #onProgress: ImportOptions["onProgress"];
  #bytes = 0;
  #reportedMs = Number.NEGATIVE_INFINITY;

  constructor(onProgress: ImportOptions["onProgress"]) {
    this.#onProgress = onProgress;
  }

  report(bytes: number, entries: number): void {
    this.#bytes += bytes;
    if (performance.now() - this.#reportedMs < PROGRESS_MS) return;
    this.#reportedMs = performance.now();
    this.#onProgress({ bytes: this.#bytes, entries });
  }

  end(entries: number): void {
    this.#onProgress({ bytes: this.#bytes, entries });
  }
}

class ImportThreadClient {
  readonly #worker: Worker;
  readonly #writer: WriterClient;
  readonly #sessionNumber: number;
  #response = Promise.withResolvers<FromImport>();
  /** Writes in flight. */
  #writes: Promise<void>[] = [];
  readonly #files = new Set<number>();

  constructor(setup: ImportSetup, writer: WriterClient) {
    this.#writer = writer;
    this.#sessionNumber = setup.sessionNumber;
    this.#worker = new Worker(new URL("./import-thread.ts", import.meta.url), {
      workerData: setup,
      name: "weir-import",
      // With V8's larger default for young objects, a full heap can end the process instead of the thread.
      resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB, maxYoungGenerationSizeMb: 16 },
    });
    this.#worker.on("message", (message: FromImport) => {
      if (message.kind === "batch") this.#write(this.#record(message));
      else if (message.kind === "frames") this.#write(this.#writer.recordImportedFrames(message.batch));
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
    const message = await this.#request({ kind: "chunk", bytes }, [bytes.buffer]);
    return message.kind === "taken" ? message.entries : 0;
  }

  async finish(): Promise<FromImport & { kind: "done" }> {
    const message = await this.#request({ kind: "end" });
    if (message.kind !== "done") throw new Error("The import thread sent an unexpected message");
    return message;
  }

  async close(): Promise<void> {
    await this.#worker.terminate();
    await Promise.allSettled(this.#writes);
  }

  discardBodies(): void {
    this.#writer.discardFiles([...this.#files]);
  }

  async #request(message: ToImport, transfer: ArrayBuffer[] = []): Promise<FromImport> {
    this.#post(message, transfer);
    const response = await this.#response.promise;
    this.#response = Promise.withResolvers<FromImport>();
    this.#response.promise.catch(() => undefined);
    if (response.kind === "rejected") throw new ImportRefusedError(response.message);
    const writes = this.#writes;
    await Promise.all(writes);
    this.#writes = [];
    return response;
  }

  /** Resolves on commit, which applies backpressure. */
  async #record(batch: RecordBatch): Promise<void> {
    await this.#writer.recordImported(batch);
    rejectTooLarge(this.#writer.sessions.get(this.#sessionNumber)?.storedBytes ?? 0, this.#writer.limits);
  }

  async #appendBody({ file, bytes, isLast }: FromImport & { kind: "body" }): Promise<void> {
    const sizeBytes = bytes.length;
    this.#files.add(file);
    // Transferred: the writer thread detaches the buffer once it is in the file.
    await this.#writer.call({ op: "appendBody", file, bytes, isLast }, [bytes.buffer]);
    this.#post({ kind: "written", bytes: sizeBytes });
  }

  #discard(files: readonly number[]): void {
    for (const file of files) this.#files.delete(file);
    this.#writer.discardFiles(files);
  }

  #post(message: ToImport, transfer: ArrayBuffer[] = []): void {
    this.#worker.postMessage(message, transfer);
  }

  #write(write: Promise<void>): void {
    // The thread may wait for the failed write and never reply.
    write.catch((error: unknown) => this.#response.reject(error));
    this.#writes.push(write);
  }
}

const DEFAULT_NAMES = { har: "Imported HAR", session: "Imported session" } as const;

interface ImportingStore {
  readonly writer: () => WriterClient;
  /** Provisional: removed at the next start unless kept. */
  readonly create: (name: string) => Promise<SessionRecord>;
  readonly sessions: Pick<CaptureStore, "updateSession" | "switchSession" | "deleteSession">;
  /** Folder for long texts while a document is read, by session number. */
  readonly textsFolder: (session: number) => string;
}

/** Imports each document into its own session, hidden until complete. */
export class SessionImports {
  readonly #store: ImportingStore;
  readonly #running = new Set<string>();
  #prunedForSize = 0;

  constructor(store: ImportingStore) {
    this.#store = store;
  }

  isRunning(id: string): boolean {
    return this.#running.has(id);
  }

  /** Reports entries removed for the size limit. */
  pruned(count: number): void {
    this.#prunedForSize += count;
  }

  /**
   * Imports into a session, which is removed if the document is invalid. Throws {@link ImportRefusedError}
   * with a message.
   */
  async run(
    format: "har" | "session",
    source: AsyncIterable<Uint8Array>,
    options: ImportOptions,
  ): Promise<ImportResult> {
    const created = await this.#store.create(options.sessionName ?? DEFAULT_NAMES[format]);
    this.#running.add(created.id);
    try {
      return await this.#fill(created, format, source, options);
    } catch (error) {
      // If the disk fails it stays provisional and is removed at the next start.
      await this.#store.sessions.deleteSession(created.id).catch(() => undefined);
      this.#running.delete(created.id);
      throw error;
    }
  }

  async #fill(
    { id, number }: SessionRecord,
    format: "har" | "session",
    source: AsyncIterable<Uint8Array>,
    options: ImportOptions,
  ): Promise<ImportResult> {
    const writer = this.#store.writer();
    const setup = {
      format,
      sessionNumber: number,
      firstFile: writer.reserveFiles(FILES_OF_AN_IMPORT),
      firstStream: writer.reserveStreams(STREAMS_OF_AN_IMPORT),
      maxBodyBytes: writer.limits.maxBodyBytes,
      textsFolder: this.#store.textsFolder(number),
    };
    const { session, moreErrors, ...counts } = await runImport(setup, source, options, writer);
    const name = options.sessionName ?? session.name;
    await this.#store.sessions.updateSession(id, {
      ...(name !== undefined && { name }),
      ...(session.notes !== undefined && { notes: session.notes }),
      ...(session.tags !== undefined && { tags: [...session.tags] }),
    });
    const isSwitched = options.switchSession || session.switchSession === true;
    const displaced = await this.#keep(id);
    const dropped = isSwitched ? ((await this.#store.sessions.switchSession(id)) ?? 0) : 0;
    const errors = [...limitNotes({ dropped, displaced }, counts, writer.limits), ...counts.errors];
    return {
      session_id: id,
      ...counts,
      ...(dropped > 0 && { dropped_count: dropped }),
      ...(displaced > 0 && { displaced_count: displaced }),
      errors: shownErrors(errors, moreErrors),
    };
  }

  /** Publishes an imported session; returns how many older entries were displaced. */
  async #keep(id: string): Promise<number> {
    const writer = this.#store.writer();
    const before = this.#prunedForSize;
    await writer.call({ op: "keepSession", id });
    this.#running.delete(id);
    let isDue = writer.limits.maxTotalSizeMb !== null;
    while (isDue) isDue = (await writer.call({ op: "tidy" })) === true;
    return this.#prunedForSize - before;
  }
}

/** Truncates to the maximum; the last message counts the rest. */
function shownErrors(errors: readonly string[], moreErrors: number): string[] {
  const all = errors.length + moreErrors;
  if (all <= MAX_ERRORS) return [...errors];
  const shown = errors.slice(0, MAX_ERRORS - 1);
  return [...shown, `${all - shown.length} more messages are not shown`];
}

/** Entries removed for limits because of an import. */
interface ImportLoss {
  /** Of the document. */
  readonly dropped: number;
  /** Of other sessions. */
  readonly displaced: number;
}

/** Throws {@link ImportRefusedError} once the document's bodies alone exceed the size limit. */
function rejectTooLarge(storedBytes: number, limits: StoreLimits): void {
  if (storedBytes <= maxBytes(limits)) return;
  throw new ImportRefusedError(
    `The bodies of the document exceed max_total_size_mb (${limits.maxTotalSizeMb}): nothing was imported, and no other entry was removed`,
  );
}

/** Sentences about entries that limits removed or will remove. */
function limitNotes(
  loss: ImportLoss,
  { imported_count: imported }: Pick<ImportOutcome, "imported_count">,
  limits: StoreLimits,
): string[] {
  const notes: string[] = [];
  if (loss.displaced > 0) {
    notes.push(
      `max_total_size_mb is ${limits.maxTotalSizeMb}: ${entries(loss.displaced)} of other sessions ${loss.displaced === 1 ? "was" : "were"} removed`,
    );
  }
  const beyond = beyondLimit(imported, limits);
  if (beyond > 0) {
    const when = loss.dropped > 0 ? "were removed" : "will be removed when this session becomes active";
    notes.push(`max_requests is ${limits.maxRequests}: the oldest ${beyond} of its ${imported} entries ${when}`);
  }
  return notes;
}

function entries(count: number): string {
  return count === 1 ? "the oldest entry" : `the ${count} oldest entries`;
}
