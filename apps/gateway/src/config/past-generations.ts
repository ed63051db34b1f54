import type { CandidateSource, GenerationFacts } from "./generations.ts";
import { readDocument } from "./read-document.ts";
import { normalDocument, redactedDocument, toYaml } from "./write-document.ts";

/** One published generation of the past. */
export interface PastGeneration extends GenerationFacts {
  readonly publishedMs: number;
  readonly source: CandidateSource;
  readonly actor: string | undefined;
  /** As it was submitted, secrets and all, for going back to it. */
  readonly text: string;
  /** The normal form in YAML, inline secrets redacted; made when it is asked for. */
  readonly redactedText: string;
}

const MOST = 100;
const MOST_CHARACTERS = 32 * 1024 * 1024;

/**
 * The last generations that were published: at most 100, and so many that their texts together have at most 32 million
 * characters; always at least one.
 */
export class PastGenerations {
  #newestFirst: readonly PastGeneration[] = [];
  readonly #mostCharacters: number;

  constructor(mostCharacters: number = MOST_CHARACTERS) {
    this.#mostCharacters = mostCharacters;
  }

  get newestFirst(): readonly PastGeneration[] {
    return this.#newestFirst;
  }

  add(past: Omit<PastGeneration, "redactedText">): void {
    const { text, ...facts } = past;
    // Texts only: the trees of a hundred large documents would fill the memory. Not enumerable, so that nothing that
    // prints an entry prints secrets.
    const entry: PastGeneration = Object.defineProperties(
      { ...facts, text: "", redactedText: "" },
      {
        text: { enumerable: false, value: text },
        redactedText: { enumerable: false, get: () => redactedYaml(text) },
      },
    );
    let characters = 0;
    this.#newestFirst = [entry, ...this.#newestFirst].filter((one, at) => {
      characters += one.text.length;
      return at === 0 || (at < MOST && characters <= this.#mostCharacters);
    });
  }
}

function redactedYaml(text: string): string {
  const { input = {} } = readDocument(text);
  return toYaml(redactedDocument(normalDocument(input)));
}
