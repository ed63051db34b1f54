import { buildSchema, type MethodType, type Schema, type SchemaFile } from "@headworks/protobuf";
import type { Database } from "#storage/database.ts";

export interface StoredSchema {
  readonly id: string;
  readonly name: string;
  readonly source: "proto" | "descriptor_set" | "reflection";
  readonly files: readonly SchemaFile[];
  readonly createdAtMs: number;
}

/** A parsed schema. */
export interface OpenSchema {
  readonly stored: StoredSchema;
  readonly schema: Schema;
  readonly issues: readonly string[];
}

/** A method and the schema that declares it. */
interface KnownMethod {
  readonly id: string;
  readonly schema: Schema;
  readonly method: MethodType;
}

/** All schemas, newest first; rebuilt on every change. */
export interface SchemaBook {
  readonly schemas: readonly OpenSchema[];
  /** The newest schema that declares the method wins. */
  find(service: string, method: string): KnownMethod | undefined;
  /** The well-known types, which need no user schema. */
  readonly wellKnown: () => Schema;
}

let wellKnown: Schema | undefined;

/** Parses schemas, given oldest first; reuses those of `before` that still exist. */
export function openSchemaBook(stored: readonly StoredSchema[], before?: SchemaBook): SchemaBook {
  const known = new Map(before?.schemas.map((schema) => [schema.stored.id, schema]));
  const schemas = stored.toReversed().map((one): OpenSchema => {
    const taken = known.get(one.id);
    if (taken !== undefined) return taken;
    return { stored: one, ...buildSchema(one.files) };
  });
  return {
    schemas,
    find: (service, method) => {
      for (const { stored: one, schema } of schemas) {
        const found = schema.services.get(service)?.methods.get(method);
        if (found !== undefined) return { id: one.id, schema, method: found };
      }
      return undefined;
    },
    wellKnown: () => (wellKnown ??= buildSchema([]).schema),
  };
}

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
