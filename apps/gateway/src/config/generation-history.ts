import type { DocumentInput } from "@headworks/gateway-contract";
import type { Logger } from "pino";
import { archivedTextSteps, restoredTextSteps } from "./archived-text.ts";
import { pastGeneration, PastGenerations, type PastFacts, type PastGeneration } from "./past-generations.ts";
import { inTurns } from "./steps.ts";

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
