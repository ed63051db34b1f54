import type { Logger } from "pino";
import type { DocumentInput } from "@headworks/gateway-contract";
import { mapAnnotated } from "./annotated-fields.ts";
import { type PastFacts, pastGeneration, type PastGeneration, PastGenerations } from "./past-generations.ts";
import { patchedTextSteps } from "./patched-text.ts";
import { documentSchema, readingSteps } from "./read-document.ts";
import { isReference, redactedText } from "./secrets.ts";
import { inTurns, type Steps } from "./steps.ts";
import { normalDocument, redactedDocument, toJson } from "./write-document.ts";

/**
 * Longer texts with inline secrets are archived as JSON, which is written ten times as fast; requests are blocked
 * meanwhile.
 */
const MAX_LAID_OUT = 256 * 1024;

/** Shorter secrets occur in most texts by chance. */
const MIN_TELLING = 4;

export interface ArchivedGeneration extends PastFacts {
  /** The submitted document with its secret references; placeholders replace inline secrets. */
  readonly text: string;
}

/** Persistent storage of published generations. */
export interface GenerationArchive {
  /** Resolves once on disk. */
  recordGeneration(record: ArchivedGeneration): Promise<void>;
  /** Newest first, without texts. */
  generations(limit: number): Promise<readonly PastFacts[]>;
  generation(number: number): Promise<ArchivedGeneration | undefined>;
}

/**
 * Published generations, newest first. With an archive the history survives restarts and texts are loaded on demand;
 * memory then holds only generations not archived yet or rejected by the archive, and texts with inline secrets. See
 * decision 019.
 */
export class GenerationHistory {
  readonly #archive: GenerationArchive | undefined;
  readonly #log: Logger;
  readonly #inMemory = new PastGenerations();
  /** The newest archived generation at start-up. */
  #latest: PastFacts | undefined;
  #recording: Promise<void> = Promise.resolve();

  constructor(archive: GenerationArchive | undefined, log: Logger) {
    this.#archive = archive;
    this.#log = log;
  }

  /**
   * The number of a process's first generation: that of the newest archived one if its content is equal, otherwise the
   * next. Rejects if the archive cannot be read.
   */
  async firstNumber(contentHash: number): Promise<number> {
    [this.#latest] = (await this.#archive?.generations(1)) ?? [];
    if (this.#latest === undefined) return 1;
    return this.#latest.contentHash === contentHash ? this.#latest.generation : this.#latest.generation + 1;
  }

  /** `input` is the parsed text in normal form. */
  add(facts: PastFacts, text: string, input: DocumentInput): void {
    this.#inMemory.add(facts, text);
    const archive = this.#archive;
    if (archive === undefined) return;
    // Not awaited: a blocked store must not prevent a valid configuration from running.
    this.#recording = this.#recording.then(async () => {
      try {
        await this.#record(archive, facts, text, input);
      } catch (error) {
        this.#log.error(
          { code: "config_not_archived", generation: facts.generation, err: error },
          "the generation is missing from the stored history",
        );
      }
    });
  }

  async #record(archive: GenerationArchive, facts: PastFacts, text: string, input: DocumentInput): Promise<void> {
    const archived = await inTurns(archivedTextSteps(text, input));
    if (facts.generation !== this.#latest?.generation) {
      await archive.recordGeneration({ ...facts, text: archived.text });
    }
    if (archived.isWhole) this.#inMemory.drop(facts.generation);
  }

  /** Rejects if the archive cannot be read. */
  async newest(limit: number): Promise<readonly PastFacts[]> {
    const archived = (await this.#archive?.generations(limit)) ?? [];
    const known = new Set(archived.map(({ generation }) => generation));
    return [...archived, ...this.#inMemory.newestFirst.filter(({ generation }) => !known.has(generation))]
      .toSorted((a, b) => b.generation - a.generation)
      .slice(0, limit);
  }

  /** Undefined if not retained. Rejects if the archive cannot be read. */
  async find(generation: number): Promise<PastGeneration | undefined> {
    const here = this.#inMemory.newestFirst.find((past) => past.generation === generation);
    if (here !== undefined || this.#archive === undefined) return here;
    const archived = await this.#archive.generation(generation);
    if (archived === undefined) return undefined;
    const { text, ...facts } = archived;
    return pastGeneration(facts, text);
  }

  /** The text for a rollback: inline secrets that were not archived are restored if `running` contains them. */
  async textToRun({ text }: PastGeneration, running: DocumentInput): Promise<string> {
    return await inTurns(restoredTextSteps(text, running));
  }

  /** Resolves when no archive write is pending. */
  async settled(): Promise<void> {
    await this.#recording;
  }
}

interface ArchivedText {
  readonly text: string;
  /** False if placeholders replace inline secrets. */
  readonly isWhole: boolean;
}

/**
 * The text as submitted, with comments and secret references; placeholders replace inline secrets. `input` is the
 * parsed text in normal form.
 */
export function* archivedTextSteps(text: string, input: DocumentInput): Steps<ArchivedText> {
  const secrets = inlineSecrets(input);
  if (secrets.size === 0) return { text, isWhole: true };
  const redacted = redactedDocument(input);
  const archived = text.length > MAX_LAID_OUT ? undefined : yield* patchedTextSteps(text, input, redacted);
  // Comments may repeat a secret, and unused anchors may contain one.
  const telling = [...secrets.values()].filter(({ length }) => length >= MIN_TELLING);
  const isClean = archived !== undefined && !telling.some((secret) => archived.includes(secret));
  return { text: isClean ? archived : toJson(redacted), isWhole: false };
}

/**
 * Restores inline secrets of an archived text that `running` also contains, matched by the hash in the placeholder.
 * Other placeholders stay.
 */
export function* restoredTextSteps(archived: string, running: DocumentInput): Steps<string> {
  const secrets = inlineSecrets(running);
  if (secrets.size === 0 || !archived.includes("${redacted:")) return archived;
  const { input } = yield* readingSteps(archived, ".");
  if (input === undefined) return archived;
  yield;
  const normal = normalDocument(input);
  const restored = mapAnnotated(documentSchema, normal, "x-secret", (text) => secrets.get(text) ?? text);
  return yield* patchedTextSteps(archived, normal, restored);
}

/** Inline secrets of a document by placeholder. */
function inlineSecrets(document: DocumentInput): Map<string, string> {
  const secrets = new Map<string, string>();
  mapAnnotated(documentSchema, document, "x-secret", (text) => {
    if (!isReference(text)) secrets.set(redactedText(text), text);
    return text;
  });
  return secrets;
}
