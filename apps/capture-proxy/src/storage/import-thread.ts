// Tested by session-import.test.ts
import { HarFormatError } from "@headworks/har";
import { harReader, sessionReader } from "./document-entries.ts";
import type { DocumentReader } from "./document-entries.ts";
import { FILES_OF_AN_IMPORT } from "./import-messages.ts";
import type { FromImport, ImportedSession, ImportSetup, ToImport } from "./import-messages.ts";
import { encodeImported } from "./imported-entry.ts";
import type { ImportedEntry } from "./imported-entry.ts";
import { FrameGatherer } from "./frame-gatherer.ts";
import { DocumentError } from "./member-scanner.ts";

const BATCH_ENTRIES = 256;
const BATCH_BYTES = 4_194_304;
const PIECE_BYTES = 1_048_576;
const MOST_ERRORS = 100;

/** Takes a document apart while it arrives and gives its entries in batches. */
export class ImportThread {
  readonly #setup: ImportSetup;
  readonly #post: (message: FromImport, transfer: ArrayBuffer[]) => void;
  readonly #reader: DocumentReader;
  readonly #frames: FrameGatherer;
  #session: ImportedSession = {};
  #texts: string[] = [];
  #bodies: Uint8Array[] = [];
  #bytes = 0;
  #files = 0;
  #imported = 0;
  #skipped = 0;
  readonly #errors: string[] = [];
  #isRefused = false;

  constructor(setup: ImportSetup, post: (message: FromImport, transfer: ArrayBuffer[]) => void) {
    this.#setup = setup;
    this.#post = post;
    this.#frames = new FrameGatherer(setup.firstStream, setup.sessionNumber, (batch) => {
      // Streams belong to entries, which have to be there.
      this.#flush();
      this.#post({ kind: "frames", batch }, [batch.payloads]);
    });
    const open = setup.format === "har" ? harReader : sessionReader;
    this.#reader = open({
      entry: (entry) => this.#add(entry),
      stream: (stream) => this.#frames.stream(stream),
      frame: (frame) => this.#frames.frame(frame),
      skip: (sentence) => {
        this.#skipped += 1;
        if (this.#errors.length < MOST_ERRORS) this.#errors.push(sentence);
      },
      session: (facts) => (this.#session = { ...this.#session, ...facts }),
      piece: (file, bytes, isLast) => this.#piece(file, bytes, isLast),
      nextFile: () => this.#nextFile(),
    });
  }

  receive(message: ToImport): void {
    if (this.#isRefused) return;
    try {
      if (message.kind === "chunk") {
        this.#reader.write(message.bytes);
        this.#post({ kind: "taken", entries: this.#imported }, []);
        return;
      }
      this.#reader.end();
      this.#flush();
      this.#frames.flush();
      const { imported, skipped } = { imported: this.#imported, skipped: this.#skipped };
      this.#post({ kind: "done", imported, skipped, errors: this.#errors, session: this.#session }, []);
    } catch (error) {
      if (!(error instanceof DocumentError) && !(error instanceof HarFormatError)) throw error;
      this.#isRefused = true;
      this.#post({ kind: "refused", message: error.message }, []);
    }
  }

  #add(entry: ImportedEntry): void {
    const { text, bodies } = encodeImported(entry, this.#setup.sessionNumber, (bytes) => this.#storeBody(bytes));
    this.#imported += 1;
    this.#texts.push(text);
    this.#bytes += text.length;
    for (const body of bodies) {
      this.#bodies.push(body);
      this.#bytes += body.length;
    }
    if (this.#texts.length >= BATCH_ENTRIES || this.#bytes >= BATCH_BYTES) this.#flush();
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
    this.#post({ kind: "body", file, bytes: own, isLast }, [own.buffer]);
  }

  #nextFile(): number {
    if (this.#files === FILES_OF_AN_IMPORT) throw new Error("The document has too many large bodies");
    return this.#setup.firstFile + this.#files++;
  }

  #flush(): void {
    if (this.#texts.length === 0) return;
    const bodies = new ArrayBuffer(this.#bodies.reduce((sum, body) => sum + body.length, 0));
    const target = new Uint8Array(bodies);
    let offset = 0;
    for (const body of this.#bodies) {
      target.set(body, offset);
      offset += body.length;
    }
    const text = this.#texts.join("\n");
    this.#post({ kind: "batch", entries: this.#texts.length, bytes: this.#bytes, text, bodies }, [bodies]);
    this.#texts = [];
    this.#bodies = [];
    this.#bytes = 0;
  }
}
