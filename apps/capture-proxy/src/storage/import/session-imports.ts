import type { ImportResult } from "@headworks/capture-contract";
import type { CaptureStore, ImportOptions, StoreLimits } from "../capture-store.ts";
import { beyondLimit, maxBytes } from "../write/retention.ts";
import type { WriterClient } from "../write/writer-client.ts";
import type { SessionRecord } from "../write/writer-messages.ts";
import { FILES_OF_AN_IMPORT, MAX_ERRORS, STREAMS_OF_AN_IMPORT } from "./import-messages.ts";
import { type ImportOutcome, ImportRefusedError, runImport } from "./traffic-import.ts";

const DEFAULT_NAMES = { har: "Imported HAR", session: "Imported session" } as const;

/** What imports need of the store. */
export interface ImportingStore {
  readonly writer: () => WriterClient;
  /** A provisional session, which goes at the next start unless it is kept. */
  readonly create: (name: string) => Promise<SessionRecord>;
  readonly update: (id: string, change: Parameters<CaptureStore["updateSession"]>[1]) => Promise<void>;
  /** Gives how many of its entries the limits take. */
  readonly switchTo: (id: string) => Promise<number>;
  readonly remove: (id: string) => Promise<void>;
  /** Where the long texts of a document lie while it is read, by the number of its session. */
  readonly textsFolder: (session: number) => string;
}

/** Imports of documents, each into a session of its own that nobody sees before it is whole. */
export class SessionImports {
  readonly #store: ImportingStore;
  readonly #running = new Set<string>();
  #prunedForSize = 0;

  constructor(store: ImportingStore) {
    this.#store = store;
  }

  /** Whether a session is being imported. */
  isRunning(id: string): boolean {
    return this.#running.has(id);
  }

  /** To be told of entries that had to go because the bodies of all sessions were too large. */
  pruned(count: number): void {
    this.#prunedForSize += count;
  }

  /**
   * Reads a document into a session, which is removed again when the document turns out to be bad. Throws
   * {@link import("./traffic-import.ts").ImportRefusedError} with a sentence.
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
      // Without a disk it stays provisional, and goes at the next start.
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

  /** Makes an imported session one of the store's; gives how many older entries had to go for it. */
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

/** As many sentences as a result may have; the last says how many there were besides. */
function shownErrors(errors: readonly string[], moreErrors: number): string[] {
  const all = errors.length + moreErrors;
  if (all <= MAX_ERRORS) return [...errors];
  const shown = errors.slice(0, MAX_ERRORS - 1);
  return [...shown, `${all - shown.length} more sentences are not shown`];
}

/** What the limits of the store took because of an import. */
interface ImportLoss {
  /** Entries of the document. */
  readonly dropped: number;
  /** Older entries of other sessions. */
  readonly displaced: number;
}

/** Throws {@link ImportRefusedError} as soon as the bodies of a document alone are more than the store may hold. */
function refuseTooLarge(storedBytes: number, limits: StoreLimits): void {
  if (storedBytes <= maxBytes(limits)) return;
  throw new ImportRefusedError(
    `The bodies of the document are larger than max_total_size_mb allows, which is ${limits.maxTotalSizeMb}: nothing of it was kept, and no entry had to go for it`,
  );
}

/** The sentences about what the limits took, and what they will take. */
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
