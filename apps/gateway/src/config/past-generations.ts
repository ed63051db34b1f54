import type { DocumentInput } from "@headworks/gateway-contract";
import type { CandidateSource } from "./generations.ts";
import { readDocument } from "./read-document.ts";
import { normalDocument, redactedDocument } from "./write-document.ts";

export interface PastFacts {
  readonly generation: number;
  readonly contentHash: number;
  readonly routeCount: number;
  readonly publishedMs: number;
  readonly source: CandidateSource;
  readonly actor: string | undefined;
}

export interface PastGeneration extends PastFacts {
  /** The text for a rollback: as submitted, with secrets, or as archived. */
  readonly text: string;
  /** The normal form with inline secrets redacted; computed on demand. */
  readonly redacted: DocumentInput;
}

const MOST = 100;
const MAX_CHARACTERS = 32 * 1024 * 1024;

/** `text` is non-enumerable, since it may contain secrets that printing would reveal. */
export function pastGeneration(facts: PastFacts, text: string): PastGeneration {
  return Object.defineProperties(
    { ...facts, text: "", redacted: {} },
    {
      text: { enumerable: false, value: text },
      redacted: { enumerable: false, get: () => redactedForm(text) },
    },
  );
}

/** The last published generations: at most 100 and at most 32 million characters of text, but always one. */
export class PastGenerations {
  #newestFirst: readonly PastGeneration[] = [];
  readonly #maxCharacters: number;

  constructor(maxCharacters: number = MAX_CHARACTERS) {
    this.#maxCharacters = maxCharacters;
  }

  get newestFirst(): readonly PastGeneration[] {
    return this.#newestFirst;
  }

  // Keeps texts only: trees of a hundred large documents would exhaust memory.
  add(facts: PastFacts, text: string): void {
    let characters = 0;
    this.#newestFirst = [pastGeneration(facts, text), ...this.#newestFirst].filter((one, at) => {
      characters += one.text.length;
      return at === 0 || (at < MOST && characters <= this.#maxCharacters);
    });
  }

  drop(generation: number): void {
    this.#newestFirst = this.#newestFirst.filter((one) => one.generation !== generation);
  }
}

function redactedForm(text: string): DocumentInput {
  const { input = {} } = readDocument(text);
  return redactedDocument(normalDocument(input));
}
