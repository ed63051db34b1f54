// Tested by open-state-store.test.ts
import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { GenerationRecord } from "./state-store.ts";

/** Generations that are kept: the newest ones, */
const MOST_GENERATIONS = 100;
/** as long as their texts are no longer than this together, */
const MOST_TEXT_BYTES = 67_108_864;
/** but these at least. */
const LEAST_GENERATIONS = 5;

const SOURCES = ["startup", "reload", "admin", "rollback"] as const;

/** The history of configurations. */
export class GenerationTable {
  readonly #add: StatementSync;
  readonly #newest: StatementSync;
  readonly #dropOldest: StatementSync;

  constructor(database: DatabaseSync) {
    this.#add = database.prepare(
      "INSERT INTO generation (number, content_hash, published_ms, source, actor, text) VALUES (?, ?, ?, ?, ?, ?)",
    );
    this.#newest = database.prepare("SELECT * FROM generation ORDER BY seq DESC LIMIT ?");
    // Counted where they lie: rows that were read become old before they are dead.
    this.#dropOldest = database.prepare(
      `DELETE FROM generation WHERE seq <= (
         SELECT MAX(seq) FROM (
           SELECT seq, ROW_NUMBER() OVER (ORDER BY seq DESC) AS place, SUM(octet_length(text)) OVER (ORDER BY seq DESC) AS bytes
           FROM generation)
         WHERE place > ${LEAST_GENERATIONS} AND (place > ${MOST_GENERATIONS} OR bytes > ${MOST_TEXT_BYTES}))`,
    );
  }

  add(record: GenerationRecord): void {
    const { number, contentHash, publishedMs, source, actor, text } = record;
    this.#add.run(number, contentHash, Math.floor(publishedMs), source, actor ?? null, text);
    this.#dropOldest.run();
  }

  newest(limit: number): readonly GenerationRecord[] {
    return this.#newest.all(limit).map((row) => ({
      number: Number(row["number"]),
      contentHash: Number(row["content_hash"]),
      publishedMs: Number(row["published_ms"]),
      source: SOURCES.find((source) => source === row["source"]) ?? "startup",
      actor: typeof row["actor"] === "string" ? row["actor"] : undefined,
      text: String(row["text"]),
    }));
  }
}
