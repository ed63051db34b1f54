/** A value SQLite stores. */
export type SqlValue = null | number | bigint | string | Uint8Array;
export type SqlRow = Record<string, SqlValue>;

export interface Statement {
  run(...values: SqlValue[]): { readonly changes: number; readonly lastInsertRowid: number };
  get(...values: SqlValue[]): SqlRow | undefined;
  all(...values: SqlValue[]): SqlRow[];
  iterate(...values: SqlValue[]): IterableIterator<SqlRow>;
}

/** One SQLite file, opened, migrated, with a durable commit. The only module that names the SQLite library. */
export interface Database {
  prepare(sql: string): Statement;
  exec(sql: string): void;
  /** All or nothing; nested calls join the outer transaction. */
  transaction<T>(work: () => T): T;
  close(): void;
}
