import type { DocumentInput } from "@headworks/gateway-contract";
import type { CandidateSource } from "./generations.ts";
import { readDocument } from "./read-document.ts";
import { normalDocument, redactedDocument } from "./write-document.ts";

/** What is told of a published generation of the past. */
export interface PastFacts {
  readonly generation: number;
  readonly contentHash: number;
  readonly routeCount: number;
  readonly publishedMs: number;
  readonly source: CandidateSource;
  readonly actor: string | undefined;
}

/** One published generation of the past. */
export interface PastGeneration extends PastFacts {
  /** For going back to it: as it was submitted, secrets and all, or as it is archived. */
  readonly text: string;
  /** The normal form, inline secrets redacted; made when it is asked for. */
  readonly redacted: DocumentInput;
}

const MOST = 100;
const MAX_CHARACTERS = 32 * 1024 * 1024;

/** A generation with its text, which nothing that prints the entry prints: it may hold secrets. */
export function pastGeneration(facts: PastFacts, text: string): PastGeneration {
  return Object.defineProperties(
    { ...facts, text: "", redacted: {} },
    {
      text: { enumerable: false, value: text },
      redacted: { enumerable: false, get: () => redactedForm(text) },
    },
  );
}

/**
 * The last generations that were published: at most 100, and so many that their texts together have at most 32 million
 * characters; always at least one.
 */
export class PastGenerations {
  #newestFirst: readonly PastGeneration[] = [];
  readonly #maxCharacters: number;

  constructor(maxCharacters: number = MAX_CHARACTERS) {
    this.#maxCharacters = maxCharacters;
  }

  get newestFirst(): readonly PastGeneration[] {
    return this.#newestFirst;
  }

  // Texts only: the trees of a hundred large documents would fill the memory.
  add(facts: PastFacts, text: string): void {
    let characters = 0;
    this.#newestFirst = [pastGeneration(facts, text), ...this.#newestFirst].filter((one, at) => {
      characters += one.text.length;
      return at === 0 || (at < MOST && characters <= this.#maxCharacters);
    });
  }

  /** Forgets one, if it is there. */
  drop(generation: number): void {
    this.#newestFirst = this.#newestFirst.filter((one) => one.generation !== generation);
  }
}

function redactedForm(text: string): DocumentInput {
  const { input = {} } = readDocument(text);
  return redactedDocument(normalDocument(input));
}
