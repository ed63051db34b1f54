// Tested by traffic-transfer.test.ts
import { fromHarEntry, HarDecoder, HarFormatError } from "@headworks/har";
import type { HarItem } from "@headworks/har";
import type { FromImport, ImportedSession, ImportSetup, ToImport } from "./import-messages.ts";
import { importedEntry, importedHarExchange } from "./imported-entry.ts";
import type { ImportedEntry } from "./imported-entry.ts";
import { DocumentError, MemberScanner } from "./member-scanner.ts";

const BATCH_ENTRIES = 256;
const BATCH_BYTES = 4_194_304;
const MOST_ERRORS = 100;

/** Takes a document apart while it arrives and gives its entries in batches; bad entries are skipped and named. */
export class ImportThread {
  readonly #setup: ImportSetup;
  readonly #post: (message: FromImport, transfer: ArrayBuffer[]) => void;
  readonly #scanner: MemberScanner;
  readonly #har = new HarDecoder();
  #sawDocument = false;
  #session: ImportedSession = {};
  #texts: string[] = [];
  #bodies: Uint8Array[] = [];
  #bytes = 0;
  #imported = 0;
  #skipped = 0;
  readonly #errors: string[] = [];
  #isRefused = false;

  constructor(setup: ImportSetup, post: (message: FromImport, transfer: ArrayBuffer[]) => void) {
    this.#setup = setup;
    this.#post = post;
    this.#scanner = new MemberScanner(setup.format === "har" ? this.#harMembers() : this.#sessionMembers());
  }

  receive(message: ToImport): void {
    if (this.#isRefused) return;
    try {
      if (message.kind === "chunk") {
        this.#scanner.write(message.bytes);
        this.#post({ kind: "taken", entries: this.#imported }, []);
        return;
      }
      this.#scanner.end();
      if (!this.#sawDocument) {
        throw new DocumentError(
          this.#setup.format === "har" ? "there is no `log.entries` array" : "there is no `entries` array",
        );
      }
      this.#flush();
      const { imported, skipped } = { imported: this.#imported, skipped: this.#skipped };
      this.#post({ kind: "done", imported, skipped, errors: this.#errors, session: this.#session }, []);
    } catch (error) {
      if (!(error instanceof DocumentError) && !(error instanceof HarFormatError)) throw error;
      this.#isRefused = true;
      this.#post({ kind: "refused", message: error.message }, []);
    }
  }

  /** A HAR stands alone, or as the member `har` of a request with options. */
  #harMembers(): ConstructorParameters<typeof MemberScanner>[0] {
    const encoder = new TextEncoder();
    const feed = (bytes: Uint8Array): void => {
      for (const item of this.#har.write(bytes)) this.#addHarItem(item);
    };
    let isFirst = true;
    return {
      streams: {
        har: (bytes) => {
          if (bytes !== undefined) return feed(bytes);
          this.#har.end();
          this.#sawDocument = true;
        },
        log: (bytes) => {
          if (isFirst) feed(encoder.encode('{"log":'));
          isFirst = false;
          if (bytes !== undefined) return feed(bytes);
          feed(encoder.encode("}"));
          this.#har.end();
          this.#sawDocument = true;
        },
      },
      values: {
        session_name: (value) => {
          if (typeof value !== "string" || value.trim() === "" || value.length > 255) {
            throw new DocumentError("`session_name` is no name");
          }
          this.#session = { ...this.#session, name: value };
        },
        switch_session: (value) => {
          if (typeof value !== "boolean") throw new DocumentError("`switch_session` is true or false");
          this.#session = { ...this.#session, switchSession: value };
        },
      },
    };
  }

  #sessionMembers(): ConstructorParameters<typeof MemberScanner>[0] {
    const decoder = new TextDecoder();
    return {
      values: {
        version: (value) => {
          if (value !== "1.0") throw new DocumentError("the file has a version that this program does not know");
        },
        session: (value) => (this.#session = sessionOf(value)),
      },
      elements: {
        entries: (bytes, index) =>
          this.#add(index, () => {
            const entry: unknown = JSON.parse(decoder.decode(bytes));
            return importedEntry(entry, this.#setup.sessionNumber, this.#setup.maxBodyBytes);
          }),
      },
      arrays: { entries: () => (this.#sawDocument = true) },
    };
  }

  #addHarItem(item: HarItem): void {
    if (item.kind === "refused") return this.#refuse(item.message);
    this.#add(item.index, () =>
      importedHarExchange(fromHarEntry(item.entry), this.#setup.sessionNumber, this.#setup.maxBodyBytes),
    );
  }

  #add(index: number, make: () => ImportedEntry): void {
    let entry: ImportedEntry;
    try {
      entry = make();
    } catch (error) {
      return this.#refuse(`entry ${index}: ${error instanceof Error ? error.message : String(error)}`);
    }
    this.#imported += 1;
    this.#texts.push(entry.text);
    this.#bytes += entry.text.length;
    for (const body of entry.bodies) {
      this.#bodies.push(body);
      this.#bytes += body.length;
    }
    if (this.#texts.length >= BATCH_ENTRIES || this.#bytes >= BATCH_BYTES) this.#flush();
  }

  #refuse(sentence: string): void {
    this.#skipped += 1;
    if (this.#errors.length < MOST_ERRORS) this.#errors.push(sentence);
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

function sessionOf(value: unknown): ImportedSession {
  if (typeof value !== "object" || value === null) throw new DocumentError("`session` is no object");
  const { name, notes, tags } = value as Record<string, unknown>;
  return {
    ...(typeof name === "string" && name.trim() !== "" && { name: name.slice(0, 255) }),
    ...(typeof notes === "string" && { notes: notes.slice(0, 65_536) }),
    ...(Array.isArray(tags) && { tags: tags.filter((tag) => typeof tag === "string").slice(0, 64) }),
  };
}
