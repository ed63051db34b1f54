import type { DatabaseSync, SQLOutputValue, StatementSync } from "node:sqlite";
import type { GenerationFacts, GenerationRecord } from "./state-store.ts";

/** Maximum number of generations. */
const MAX_GENERATIONS = 100;
/** Maximum total size of their texts. */
const MAX_TEXT_BYTES = 67_108_864;
/** Minimum number kept regardless of size. */
const MIN_GENERATIONS = 5;

const SOURCES = ["startup", "reload", "admin", "rollback"] as const;
const FACTS = "number, content_hash, route_count, published_ms, source, actor";

/** Published configurations. */
export class GenerationTable {
  readonly #add: StatementSync;
  readonly #newest: StatementSync;
  readonly #one: StatementSync;
  readonly #dropOldest: StatementSync;

  constructor(database: DatabaseSync) {
    this.#add = database.prepare(`INSERT INTO generation (${FACTS}, text) VALUES (?, ?, ?, ?, ?, ?, ?)`);
    this.#newest = database.prepare(`SELECT ${FACTS} FROM generation ORDER BY number DESC LIMIT ?`);
    this.#one = database.prepare(`SELECT ${FACTS}, text FROM generation WHERE number = ?`);
    // Sized in SQL: reading rows would promote short-lived texts to the old generation of the heap.
    this.#dropOldest = database.prepare(
      `DELETE FROM generation WHERE number <= (
         SELECT MAX(number) FROM (
           SELECT number, ROW_NUMBER() OVER (ORDER BY number DESC) AS place,
             SUM(octet_length(text)) OVER (ORDER BY number DESC) AS bytes
           FROM generation)
         WHERE place > ${MIN_GENERATIONS} AND (place > ${MAX_GENERATIONS} OR bytes > ${MAX_TEXT_BYTES}))`,
    );
  }

  add(record: GenerationRecord): void {
    const { generation, contentHash, routeCount, publishedMs, source, actor, text } = record;
    this.#add.run(generation, contentHash, routeCount, Math.floor(publishedMs), source, actor ?? null, text);
    this.#dropOldest.run();
  }

  newest(limit: number): readonly GenerationFacts[] {
    return this.#newest.all(limit).map((row) => factsOf(row));
  }

  find(number: number): GenerationRecord | undefined {
    const row = this.#one.get(number);
    return row === undefined ? undefined : { ...factsOf(row), text: String(row["text"]) };
  }
}

function factsOf(row: Readonly<Record<string, SQLOutputValue>>): GenerationFacts {
  return {
    generation: Number(row["number"]),
    contentHash: Number(row["content_hash"]),
    routeCount: Number(row["route_count"]),
    publishedMs: Number(row["published_ms"]),
    source: SOURCES.find((source) => source === row["source"]) ?? "startup",
    actor: typeof row["actor"] === "string" ? row["actor"] : undefined,
  };
}
