import { parentPort, workerData } from "node:worker_threads";
import { HarFormatError } from "@headworks/har";
import type { FrameBatch, FrameTuple, StreamOpening, StreamProgress } from "../streams/stream-store.ts";
import { BatchMemory } from "../write/entry-record.ts";
import { MemberError } from "./checked-members.ts";
import { type DocumentReader, type DocumentTarget, harReader, sessionReader, TextFiles } from "./document-entries.ts";
import { FILES_OF_AN_IMPORT, MAX_ERRORS, STREAMS_OF_AN_IMPORT } from "./session-imports.ts";
import type { FromImport, ImportedSession, ImportSetup, ToImport } from "./session-imports.ts";
import { encodeImported, type ImportedEntry } from "./imported-entry.ts";
import type { ImportedFrame, ImportedStream } from "./imported-stream.ts";
import { DocumentError } from "./member-scanner.ts";

const BATCH_FRAMES = 1024;
const BATCH_BYTES = 4_194_304;

/** Batches the streams and frames of an imported document. */
class FrameGatherer {
  readonly #firstStream: number;
  readonly #session: number;
  readonly #post: (batch: FrameBatch) => void;
  readonly #progress: StreamProgress[] = [];
  #openings: StreamOpening[] = [];
  readonly #touched = new Set<number>();
  #frames: FrameTuple[] = [];
  #pieces: Buffer[] = [];
  #bytes = 0;

  constructor(firstStream: number, session: number, post: (batch: FrameBatch) => void) {
    this.#firstStream = firstStream;
    this.#session = session;
    this.#post = post;
  }

  /** Returns the stream's index in the document. */
  stream({ opening, progress }: ImportedStream): number {
    const index = this.#progress.length;
    if (index === STREAMS_OF_AN_IMPORT) throw new MemberError("the document has too many streams");
    const number = this.#firstStream + index;
    this.#openings.push({ ...opening, number, session: this.#session });
    this.#progress.push({ ...progress, number });
    this.#touched.add(index);
    return index;
  }

  frame({ stream, tuple, payload, original }: ImportedFrame): void {
    if (stream >= this.#progress.length) throw new MemberError("`stream` is not the index of a preceding stream");
    this.#touched.add(stream);
    const [, ...rest] = tuple;
    this.#frames.push([this.#firstStream + stream, ...rest]);
    for (const piece of [payload, original]) {
      if (piece === undefined) continue;
      this.#pieces.push(piece);
      this.#bytes += piece.length;
    }
    if (this.#frames.length >= BATCH_FRAMES || this.#bytes >= BATCH_BYTES) this.flush();
  }

  flush(): void {
    if (this.#touched.size === 0) return;
    const joined = Buffer.concat(this.#pieces);
    const payloads = new ArrayBuffer(joined.length);
    new Uint8Array(payloads).set(joined);
    const progress = [...this.#touched].flatMap((index) => this.#progress[index] ?? []);
    const text = JSON.stringify({ openings: this.#openings, progress, frames: this.#frames });
    const bytes = text.length + joined.length;
    this.#post({ kind: "frames", frames: this.#frames.length, bytes, text, payloads, isImported: true });
    this.#openings = [];
    this.#touched.clear();
    this.#frames = [];
    this.#pieces = [];
    this.#bytes = 0;
  }
}

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
  #isRejected = false;

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
      skip: (message) => {
        this.#skipped += 1;
        this.#note(message);
        if (this.#filesOfEntry.length > 0) this.#post({ kind: "discard", files: this.#filesOfEntry }, []);
        this.#filesOfEntry = [];
      },
      note: (message) => this.#note(message),
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
    if (this.#isRejected) return;
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
      this.#isRejected = true;
      this.#post({ kind: "rejected", message: error.message }, []);
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

  #note(message: string): void {
    if (this.#errors.length < MAX_ERRORS) this.#errors.push(message);
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

// The entry of the thread; importing the class elsewhere has no side effect.
const port = parentPort;
if (port !== null) {
  const post = (message: FromImport, transfer: ArrayBuffer[]): void => port.postMessage(message, transfer);
  const thread = new ImportThread(workerData as ImportSetup, post);
  const receive = async (message: ToImport): Promise<void> => {
    await thread.receive(message);
    if (message.kind === "end") port.close();
  };
  // Errors end the thread and reach the parent.
  port.on("message", (message: ToImport) => void receive(message));
}
