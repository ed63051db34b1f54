import type { Logger } from "pino";
import type { DocumentInput } from "@headworks/gateway-contract";
import { mapAnnotated } from "./annotated-fields.ts";
import { type PastFacts, pastGeneration, type PastGeneration, PastGenerations } from "./past-generations.ts";
import { patchedTextSteps } from "./patched-text.ts";
import { documentSchema, readingSteps } from "./read-document.ts";
import { isReference, redactedText } from "./secrets.ts";
import { inTurns, type Steps } from "./steps.ts";
import { normalDocument, redactedDocument, toJson } from "./write-document.ts";

/** Longer ones are archived as JSON where they have inline secrets: it is written in a tenth of the time while requests wait. */
const MAX_LAID_OUT = 256 * 1024;

/** What is shorter is in most texts by chance, and nobody's secret: fields that routes set may have any value. */
const MIN_TELLING = 4;

/** A generation as an archive keeps it. */
export interface ArchivedGeneration extends PastFacts {
  /** The document as it was written, with its secret references; placeholders stand for inline secrets. */
  readonly text: string;
}

/** Where published generations are remembered beyond the process. */
export interface GenerationArchive {
  /** Resolves when it is on disk. */
  recordGeneration(record: ArchivedGeneration): Promise<void>;
  /** Newest first, without their texts. */
  generations(limit: number): Promise<readonly PastFacts[]>;
  generation(number: number): Promise<ArchivedGeneration | undefined>;
}

/**
 * What was published, newest first. With an archive it outlives the process, texts are read when they are asked for, and
 * memory holds what the archive does not: generations on their way to it or that it did not take, and texts with inline
 * secrets. See decision 019.
 */
export class GenerationHistory {
  readonly #archive: GenerationArchive | undefined;
  readonly #log: Logger;
  readonly #inMemory = new PastGenerations();
  /** The newest one that the archive had at the start. */
  #latest: PastFacts | undefined;
  #recording: Promise<void> = Promise.resolve();

  constructor(archive: GenerationArchive | undefined, log: Logger) {
    this.#archive = archive;
    this.#log = log;
  }

  /**
   * The number of a process's first generation: the next one, or that of the newest generation if this is its content, which
   * goes on then. Rejects when the archive cannot be read.
   */
  async firstNumber(contentHash: number): Promise<number> {
    [this.#latest] = (await this.#archive?.generations(1)) ?? [];
    if (this.#latest === undefined) return 1;
    return this.#latest.contentHash === contentHash ? this.#latest.generation : this.#latest.generation + 1;
  }

  /** `input` is what the text says, in the normal form. */
  add(facts: PastFacts, text: string, input: DocumentInput): void {
    this.#inMemory.add(facts, text);
    const archive = this.#archive;
    if (archive === undefined) return;
    // Not waited for: a store that is stuck must not keep a good configuration from running.
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

  /** The last ones. Rejects when the archive cannot be read. */
  async newest(limit: number): Promise<readonly PastFacts[]> {
    const archived = (await this.#archive?.generations(limit)) ?? [];
    const known = new Set(archived.map(({ generation }) => generation));
    return [...archived, ...this.#inMemory.newestFirst.filter(({ generation }) => !known.has(generation))]
      .toSorted((a, b) => b.generation - a.generation)
      .slice(0, limit);
  }

  /** One of them; undefined when it is not kept. Rejects when the archive cannot be read. */
  async find(generation: number): Promise<PastGeneration | undefined> {
    const here = this.#inMemory.newestFirst.find((past) => past.generation === generation);
    if (here !== undefined || this.#archive === undefined) return here;
    const archived = await this.#archive.generation(generation);
    if (archived === undefined) return undefined;
    const { text, ...facts } = archived;
    return pastGeneration(facts, text);
  }

  /** The text to go back to a generation with: inline secrets that were not archived are there if `running` has them, too. */
  async textToRun({ text }: PastGeneration, running: DocumentInput): Promise<string> {
    return await inTurns(restoredTextSteps(text, running));
  }

  /** Resolves when nothing is on its way to the archive. */
  async settled(): Promise<void> {
    await this.#recording;
  }
}

/** A document as it may lie outside of its own file. */
interface ArchivedText {
  readonly text: string;
  /** False where placeholders stand for inline secrets. */
  readonly isWhole: boolean;
}

/**
 * A text as it was written, with its comments and its secret references; placeholders stand for inline secrets. `input` is
 * what the text says, in the normal form.
 */
export function* archivedTextSteps(text: string, input: DocumentInput): Steps<ArchivedText> {
  const secrets = inlineSecrets(input);
  if (secrets.size === 0) return { text, isWhole: true };
  const redacted = redactedDocument(input);
  const archived = text.length > MAX_LAID_OUT ? undefined : yield* patchedTextSteps(text, input, redacted);
  // A comment may repeat a secret, and an anchor that nobody uses may keep one.
  const telling = [...secrets.values()].filter(({ length }) => length >= MIN_TELLING);
  const isClean = archived !== undefined && !telling.some((secret) => archived.includes(secret));
  return { text: isClean ? archived : toJson(redacted), isWhole: false };
}

/**
 * An archived text with the inline secrets that `running` has, too. A placeholder tells by its hash which secret it stands
 * for; those of secrets that are gone stay.
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

/** The inline secrets of a document by their placeholders. */
function inlineSecrets(document: DocumentInput): Map<string, string> {
  const secrets = new Map<string, string>();
  mapAnnotated(documentSchema, document, "x-secret", (text) => {
    if (!isReference(text)) secrets.set(redactedText(text), text);
    return text;
  });
  return secrets;
}
