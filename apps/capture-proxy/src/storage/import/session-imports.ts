import type { ImportResult } from "@headworks/capture-contract";
import type { CaptureStore, ImportOptions, StoreLimits } from "../capture-store.ts";
import { beyondLimit, maxBytes } from "../write/retention.ts";
import type { WriterClient } from "../write/writer-client.ts";
import type { SessionRecord } from "../write/writer-messages.ts";
import { FILES_OF_AN_IMPORT, MAX_ERRORS, STREAMS_OF_AN_IMPORT } from "./import-messages.ts";
import { type ImportOutcome, ImportRefusedError, runImport } from "./traffic-import.ts";

const DEFAULT_NAMES = { har: "Imported HAR", session: "Imported session" } as const;

export interface ImportingStore {
  readonly writer: () => WriterClient;
  /** Provisional: removed at the next start unless kept. */
  readonly create: (name: string) => Promise<SessionRecord>;
  readonly update: (id: string, change: Parameters<CaptureStore["updateSession"]>[1]) => Promise<void>;
  /** Returns how many entries the limits will remove. */
  readonly switchTo: (id: string) => Promise<number>;
  readonly remove: (id: string) => Promise<void>;
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
   * Imports into a session, which is removed if the document is invalid. Throws {@link
   * import("./traffic-import.ts").ImportRefusedError} with a sentence.
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
      await this.#store.remove(created.id).catch(() => undefined);
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
    const { session, moreErrors, ...counts } = await runImport(setup, source, options, {
      record: async (batch) => {
        await writer.recordImported(batch);
        refuseTooLarge(writer.sessions.get(number)?.storedBytes ?? 0, writer.limits);
      },
      recordFrames: async (batch) => await writer.recordImportedFrames(batch),
      appendBody: async (file, bytes, isLast) =>
        void (await writer.call({ op: "appendBody", file, bytes, isLast }, [bytes.buffer])),
      discardBodies: (files) => writer.discardFiles(files),
    });
    const name = options.sessionName ?? session.name;
    await this.#store.update(id, {
      ...(name !== undefined && { name }),
      ...(session.notes !== undefined && { notes: session.notes }),
      ...(session.tags !== undefined && { tags: [...session.tags] }),
    });
    const isSwitched = options.switchSession || session.switchSession === true;
    const displaced = await this.#keep(id);
    const dropped = isSwitched ? await this.#store.switchTo(id) : 0;
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

/** Truncates to the maximum; the last sentence counts the rest. */
function shownErrors(errors: readonly string[], moreErrors: number): string[] {
  const all = errors.length + moreErrors;
  if (all <= MAX_ERRORS) return [...errors];
  const shown = errors.slice(0, MAX_ERRORS - 1);
  return [...shown, `${all - shown.length} more sentences are not shown`];
}

/** Entries removed for limits because of an import. */
interface ImportLoss {
  /** Of the document. */
  readonly dropped: number;
  /** Of other sessions. */
  readonly displaced: number;
}

/** Throws {@link ImportRefusedError} once the document's bodies alone exceed the size limit. */
function refuseTooLarge(storedBytes: number, limits: StoreLimits): void {
  if (storedBytes <= maxBytes(limits)) return;
  throw new ImportRefusedError(
    `The bodies of the document are larger than max_total_size_mb allows, which is ${limits.maxTotalSizeMb}: nothing of it was kept, and no entry had to go for it`,
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
    notes.push(`max_total_size_mb is ${limits.maxTotalSizeMb}: ${entries(loss.displaced)} of other sessions had to go`);
  }
  const beyond = beyondLimit(imported, limits);
  if (beyond > 0) {
    const when = loss.dropped > 0 ? "were dropped" : "are dropped when this session becomes the active one";
    notes.push(`max_requests is ${limits.maxRequests}: the oldest ${beyond} of its ${imported} entries ${when}`);
  }
  return notes;
}

function entries(count: number): string {
  return count === 1 ? "the oldest entry" : `the ${count} oldest entries`;
}
