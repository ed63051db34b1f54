import { HarFormatError } from "@headworks/har";
import { harReader, sessionReader } from "../export/document-entries.ts";
import type { DocumentReader, DocumentTarget } from "../export/document-entries.ts";
import { BatchMemory } from "../write/batch-memory.ts";
import { FILES_OF_AN_IMPORT, MAX_ERRORS } from "./import-messages.ts";
import type { FromImport, ImportedSession, ImportSetup, ToImport } from "./import-messages.ts";
import { encodeImported } from "./imported-entry.ts";
import type { ImportedEntry } from "./imported-entry.ts";
import { FrameGatherer } from "../write/frame-gatherer.ts";
import { DocumentError } from "./member-scanner.ts";
import { TextFiles } from "../search/text-files.ts";

const PIECE_BYTES = 1_048_576;
/** Body bytes in flight to files before reading pauses. */
const MAX_UNWRITTEN_BYTES = 8_388_608;

/** Parses an arriving document and posts its entries in batches. */
export class ImportThread {
  readonly #setup: ImportSetup;
  readonly #post: (message: FromImport, transfer: ArrayBuffer[]) => void;
  readonly #reader: DocumentReader;
  readonly #frames: FrameGatherer;
  #session: ImportedSession = {};
  #batch: BatchMemory | undefined;
  #files = 0;
  /** For the current entry. */
  #filesOfEntry: number[] = [];
  #unwrittenBytes = 0;
  #waiting: (() => void) | undefined;
  #imported = 0;
  #skipped = 0;
  readonly #errors: string[] = [];
  #moreErrors = 0;
  #isRefused = false;

  constructor(setup: ImportSetup, post: (message: FromImport, transfer: ArrayBuffer[]) => void) {
    this.#setup = setup;
    this.#post = post;
    this.#frames = new FrameGatherer(setup.firstStream, setup.sessionNumber, (batch) => {
      // Streams need their entries to be stored first.
      this.#flush();
      this.#post({ kind: "frames", batch }, [batch.payloads]);
    });
    const target: DocumentTarget = {
      maxBodyBytes: setup.maxBodyBytes,
      entry: (entry) => this.#add(entry),
      stream: (stream) => this.#frames.stream(stream),
      frame: (frame) => this.#frames.frame(frame),
      skip: (sentence) => {
        this.#skipped += 1;
        this.#note(sentence);
        if (this.#filesOfEntry.length > 0) this.#post({ kind: "discard", files: this.#filesOfEntry }, []);
        this.#filesOfEntry = [];
      },
      note: (sentence) => this.#note(sentence),
      session: (facts) => (this.#session = { ...this.#session, ...facts }),
      piece: (file, bytes, isLast) => this.#piece(file, bytes, isLast),
      nextFile: () => this.#nextFile(),
      hasRoom: async () => await this.#hasRoom(),
    };
    const texts = new TextFiles(setup.textsFolder);
    this.#reader = setup.format === "har" ? harReader(target, texts) : sessionReader(target, texts);
  }

  /** Send each chunk, and the end, only after the reply to the previous one. */
  async receive(message: ToImport): Promise<void> {
    if (message.kind === "written") return this.#written(message.bytes);
    if (this.#isRefused) return;
    try {
      if (message.kind === "chunk") {
        await this.#reader.write(message.bytes);
        // Detach at once: the garbage collector would let many of them accumulate.
        message.bytes.buffer.transfer(0);
        this.#post({ kind: "taken", entries: this.#imported }, []);
        return;
      }
      this.#reader.end();
      this.#flush();
      this.#frames.flush();
      const counts = { imported: this.#imported, skipped: this.#skipped, moreErrors: this.#moreErrors };
      this.#post({ kind: "done", ...counts, errors: this.#errors, session: this.#session }, []);
    } catch (error) {
      if (!(error instanceof DocumentError) && !(error instanceof HarFormatError)) throw error;
      this.#isRefused = true;
      this.#post({ kind: "refused", message: error.message }, []);
    }
  }

  #add(entry: ImportedEntry): void {
    const { text, bodies } = encodeImported(entry, this.#setup.sessionNumber, (bytes) => this.#storeBody(bytes));
    this.#imported += 1;
    const bodyBytes = bodies.reduce((sum, body) => sum + body.length, 0);
    if (this.#batch?.hasRoomFor(text, bodyBytes) === false) this.#flush();
    this.#batch ??= BatchMemory.for(text, bodyBytes);
    this.#batch.add(text, bodies);
    this.#filesOfEntry = [];
    if (this.#batch.isFull) this.#flush();
  }

  #note(sentence: string): void {
    if (this.#errors.length < MAX_ERRORS) this.#errors.push(sentence);
    else this.#moreErrors += 1;
  }

  #storeBody(bytes: Uint8Array): number {
    const file = this.#nextFile();
    for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
      this.#piece(file, bytes.subarray(at, at + PIECE_BYTES), at + PIECE_BYTES >= bytes.length);
    }
    return file;
  }

  #piece(file: number, bytes: Uint8Array, isLast: boolean): void {
    const own = new Uint8Array(bytes);
    this.#unwrittenBytes += own.length;
    this.#post({ kind: "body", file, bytes: own, isLast }, [own.buffer]);
  }

  async #hasRoom(): Promise<void> {
    while (this.#unwrittenBytes > MAX_UNWRITTEN_BYTES) {
      const { promise, resolve } = Promise.withResolvers<undefined>();
      const written = (): void => resolve(undefined);
      this.#waiting = written;
      await promise;
    }
  }

  #written(bytes: number): void {
    this.#unwrittenBytes -= bytes;
    this.#waiting?.();
    this.#waiting = undefined;
  }

  #nextFile(): number {
    if (this.#files === FILES_OF_AN_IMPORT) throw new Error("The document has too many large bodies");
    const file = this.#setup.firstFile + this.#files++;
    this.#filesOfEntry.push(file);
    return file;
  }

  #flush(): void {
    const batch = this.#batch;
    if (batch === undefined) return;
    this.#batch = undefined;
    const { entries, usedBytes: bytes, memory } = batch;
    this.#post({ kind: "batch", entries, bytes, memory }, [memory]);
  }
}
