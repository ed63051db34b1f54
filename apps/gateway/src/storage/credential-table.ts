import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { IssuedCredential } from "./state-store.ts";

/** Keys that were given out over the admin API. */
export class CredentialTable {
  readonly #all: StatementSync;
  readonly #add: StatementSync;
  readonly #retire: StatementSync;
  readonly #prune: StatementSync;

  constructor(database: DatabaseSync) {
    this.#all = database.prepare("SELECT * FROM issued_credential ORDER BY created_ms, id");
    this.#add = database.prepare(
      "INSERT INTO issued_credential (id, consumer, digest, created_ms, retire_ms) VALUES (?, ?, ?, ?, ?)",
    );
    this.#retire = database.prepare("UPDATE issued_credential SET retire_ms = ? WHERE id = ?");
    this.#prune = database.prepare(
      "DELETE FROM issued_credential WHERE id IN (SELECT id FROM issued_credential WHERE retire_ms < ? LIMIT ?)",
    );
  }

  /** Oldest first. */
  all(): readonly IssuedCredential[] {
    return this.#all.all().map((row) => ({
      id: String(row["id"]),
      consumer: String(row["consumer"]),
      digest: row["digest"] as Uint8Array,
      createdMs: Number(row["created_ms"]),
      retireMs: row["retire_ms"] === null ? undefined : Number(row["retire_ms"]),
    }));
  }

  add({ id, consumer, digest, createdMs, retireMs }: IssuedCredential): void {
    this.#add.run(id, consumer, digest, Math.floor(createdMs), retireMs === undefined ? null : Math.floor(retireMs));
  }

  retire(id: string, atMs: number): void {
    this.#retire.run(Math.floor(atMs), id);
  }

  /** Forgets those that are not good any more since a time; how many. */
  prune(beforeMs: number, most: number): number {
    return Number(this.#prune.run(Math.floor(beforeMs), most).changes);
  }
}
