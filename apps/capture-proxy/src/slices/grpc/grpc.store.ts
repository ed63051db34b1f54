import type { SchemaFile } from "@headworks/protobuf";
import type { Database } from "#storage/database.ts";
import type { StoredSchema } from "./schema-book.ts";

/** Stored schemas; changes are durable when a call returns. */
export interface SchemaStore {
  list(): StoredSchema[];
  insert(schema: StoredSchema): void;
  remove(id: string): boolean;
}

export function createSchemaStore(database: Database): SchemaStore {
  const list = database.prepare("SELECT * FROM grpc_schemas ORDER BY position");
  const insert = database.prepare(
    `INSERT INTO grpc_schemas (id, name, source, files, created_at_ms, position)
     VALUES (?, ?, ?, ?, ?, (SELECT COALESCE(MAX(position), 0) + 1 FROM grpc_schemas))`,
  );
  const remove = database.prepare("DELETE FROM grpc_schemas WHERE id = ?");
  return {
    list: () =>
      list.all().map((row) => ({
        id: String(row["id"]),
        name: String(row["name"]),
        source: String(row["source"]) as StoredSchema["source"],
        files: JSON.parse(String(row["files"])) as SchemaFile[],
        createdAtMs: Number(row["created_at_ms"]),
      })),
    insert: ({ id, name, source, files, createdAtMs }) => {
      insert.run(id, name, source, JSON.stringify(files), createdAtMs);
    },
    remove: (id) => remove.run(id).changes > 0,
  };
}
