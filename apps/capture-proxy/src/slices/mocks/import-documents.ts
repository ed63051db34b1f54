import { TextDecoder } from "node:util";
import { parseNumber, readJson, WrittenNumber } from "@headworks/json";
import { parseDocument, visit } from "yaml";
import { HarMocks } from "./har-mocks.ts";
import { ImportProblem } from "./imported-mocks.ts";
import type { ImportedMocks } from "./imported-mocks.ts";
import { openApiMocks } from "./openapi-mocks.ts";
import { postmanMocks } from "./postman-mocks.ts";

/** A document that is to be read, and how. */
export interface DocumentImport {
  readonly format: "har" | "openapi" | "postman" | "json";
  readonly baseUrl: string | null;
}

/** What a document gives: rules, or the text of the export of this service that it is, unchecked. */
export type ReadDocument = ImportedMocks | { readonly exported: string };

/** Takes a document in while its bytes come. Both methods throw {@link ImportProblem} for what is no such document. */
export interface DocumentReader {
  /** Takes a chunk; gives the number of entries that were found so far. */
  write(chunk: Uint8Array): number;
  /** No more bytes come. Takes as long as it takes. */
  end(): ReadDocument;
}

/** Reads a HAR entry by entry, so that memory holds what is made of it; other documents as a whole. */
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

/** Aliases of YAML may multiply a document; this many values is more than any that was written by somebody. */
const MAX_ALIASES = 1000;

class WholeDocument implements DocumentReader {
  readonly #read: (text: string) => ReadDocument;
  #decoder: TextDecoder | undefined;
  /** Bytes in front, until they tell whether there is a byte order mark. */
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

  /** UTF-8, or the UTF-16 that some shells write into files. */
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

/** YAML reads numbers into doubles; those that JSON can say keep the text that they were written with. */
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
