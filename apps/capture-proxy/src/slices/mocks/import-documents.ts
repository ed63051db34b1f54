import { TextDecoder } from "node:util";
import { parseNumber, readJson, WrittenNumber } from "@headworks/json";
import { parseDocument, visit } from "yaml";
import { HarMocks } from "./har-mocks.ts";
import { type ImportedMocks, ImportProblem } from "./imported-mocks.ts";
import { openApiMocks } from "./openapi-mocks.ts";
import { postmanMocks } from "./postman-mocks.ts";

export interface DocumentImport {
  readonly format: "har" | "openapi" | "postman" | "json";
  readonly baseUrl: string | null;
}

/** Rules, or the unchecked text of an export of this service. */
export type ReadDocument = ImportedMocks | { readonly exported: string };

/** Consumes a document while its bytes arrive. Both methods throw {@link ImportProblem} for invalid documents. */
export interface DocumentReader {
  /** Returns the number of entries so far. */
  write(chunk: Uint8Array): number;
  end(): ReadDocument;
}

/** A HAR is read entry by entry, so that memory only holds its rules; other documents are buffered. */
export function openDocument({ format, baseUrl }: DocumentImport): DocumentReader {
  switch (format) {
    case "har":
      return new HarMocks();
    case "openapi":
      return new WholeDocument((text) => openApiMocks(parsedText(text, true), baseUrl));
    case "postman":
      return new WholeDocument((text) => postmanMocks(parsedText(text, false)));
    case "json":
      return new WholeDocument((text) => ({ exported: text }));
  }
}

/** YAML aliases can multiply a document; real documents stay far below this number. */
const MAX_ALIASES = 1000;

class WholeDocument implements DocumentReader {
  readonly #read: (text: string) => ReadDocument;
  #decoder: TextDecoder | undefined;
  /** First bytes, until a byte order mark is ruled out or found. */
  #start: Uint8Array = new Uint8Array(0);
  #text = "";

  constructor(read: (text: string) => ReadDocument) {
    this.#read = read;
  }

  write(chunk: Uint8Array): number {
    if (this.#decoder !== undefined) {
      this.#text += this.#decoded(this.#decoder, chunk);
      return 0;
    }
    this.#start = Buffer.concat([this.#start, chunk]);
    if (this.#start.length >= 2) this.#text = this.#decoded(this.#begin(), this.#start);
    return 0;
  }

  end(): ReadDocument {
    const text = this.#decoder === undefined ? this.#decoded(this.#begin(), this.#start) : this.#text;
    const rest = this.#decoded(this.#decoder ?? this.#begin());
    try {
      return this.#read(text + rest);
    } catch (error) {
      if (error instanceof RangeError) throw new ImportProblem("The document is nested too deeply", { cause: error });
      throw error;
    }
  }

  /** UTF-8, or the UTF-16 that some shells write. */
  #begin(): TextDecoder {
    const [first, second] = this.#start;
    const isUtf16 = (first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff);
    const charset = isUtf16 ? (first === 0xff ? "utf-16le" : "utf-16be") : "utf-8";
    return (this.#decoder = new TextDecoder(charset, { fatal: true }));
  }

  #decoded(decoder: TextDecoder, chunk?: Uint8Array): string {
    try {
      return decoder.decode(chunk, { stream: chunk !== undefined });
    } catch (error) {
      throw new ImportProblem(`The document is not valid ${decoder.encoding.toUpperCase()}`, { cause: error });
    }
  }
}

/** YAML parses numbers into doubles; numbers valid in JSON keep their original text. */
function keepDigits(scalar: { value: unknown; source?: string }): void {
  if (typeof scalar.value !== "number" || scalar.source === undefined) return;
  const number = parseNumber(scalar.source);
  if (number instanceof WrittenNumber) scalar.value = number;
}

function parsedText(text: string, mayBeYaml: boolean): unknown {
  try {
    return readJson(text);
  } catch (error) {
    if (!mayBeYaml || /^\s*[[{]/.test(text.slice(0, 1000))) {
      throw new ImportProblem(`The document is not JSON: ${(error as Error).message.slice(0, 200)}`, { cause: error });
    }
  }
  try {
    const document = parseDocument(text, { prettyErrors: false, logLevel: "error" });
    const [error] = document.errors;
    if (error !== undefined) throw error;
    visit(document, { Scalar: (_key, scalar) => keepDigits(scalar) });
    return document.toJS({ maxAliasCount: MAX_ALIASES });
  } catch (error) {
    throw new ImportProblem(`The document is not YAML: ${(error as Error).message.slice(0, 200)}`, { cause: error });
  }
}
