import type { Database, SqlRow } from "#storage/database.ts";
import { RuleTable } from "#rules/rule-table.ts";
import type { StoredBlockEntry } from "./block-entry.ts";

export type BlocklistStore = RuleTable<StoredBlockEntry>;

export function createBlocklistStore(database: Database): BlocklistStore {
  return new RuleTable(database, {
    table: "block_entries",
    columns: {
      pattern: ({ pattern }) => pattern,
      note: ({ note }) => note,
      status_code: ({ statusCode }) => statusCode,
      response_body: ({ responseBody }) => responseBody,
      content_type: ({ contentType }) => contentType,
    },
    read: (row) => ({
      pattern: String(row["pattern"]),
      note: textOrNull(row["note"]),
      statusCode: Number(row["status_code"]),
      responseBody: String(row["response_body"]),
      contentType: String(row["content_type"]),
    }),
  });
}

function textOrNull(value: SqlRow[string] | undefined): string | null {
  return value === null || value === undefined ? null : String(value);
}
